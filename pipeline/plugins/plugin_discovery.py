"""Which modules of others the settings ask for; each is imported once, and nothing is imported that nobody asked for.

A module is named by the setting `plugins=[my_module]`, or stands in an entry point of an installed package under the
name of what it offers, such as `selection.top_pairs`: then the name alone asks for it. A release never does.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from mechanisms.public.errors import UserError
from pipeline.plugins.offers import declared, offered_by

#: The setting that names modules.
SETTING = "plugins"
#: Setting on the command line → the kind of what it names, as entry points and releases spell it.
NAMING = {
    **{f"{g}{k}": g for g in ("selection", "synthesis", "mechanism", "engine", "experiment") for k in ("", ".kind")},
    "privacy.accountant": "accountant",
    "evaluation.metrics": "metric",
    "metrics": "metric",
    "release.format": "format",
}
#: What stands between the names of a list, or of a sweep's values.
_BETWEEN = re.compile(r"[\s,\[\]()\"']+")
_loaded: set[str] = set()


def load_asked(overrides: Sequence[str]) -> None:
    """Load what overrides ask for, before they are composed: a choice of a plugin's is known after that.

    Of a list, and of the values of a sweep, each is asked for. What cannot be read is somebody else's to refuse.

    Raises:
        UserError: as of `load_module`.
    """
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        for name in filter(None, _BETWEEN.split(value)):
            if key == SETTING:
                load_module(name)
            elif key in NAMING:
                _load_offering(NAMING[key], name)


def load_used(settings: Mapping[str, Any]) -> None:
    """Load what composed settings (as nested mappings) ask for; what is loaded already stays as it is.

    Raises:
        UserError: as of `load_module`.
    """
    for name in settings.get(SETTING) or ():
        load_module(str(name))
    for kind, name in _named(settings):
        _load_offering(kind, name)


def used_modules(settings: Mapping[str, Any]) -> list[str]:
    """The modules that composed settings ask for, by their own name or by an entry point, each once."""
    named = [e.module for kind, name in _named(settings) for e in declared().get(f"{kind}.{name}", ())]
    return list(dict.fromkeys([*map(str, settings.get(SETTING) or ()), *named]))


def _named(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of every thing that composed settings choose."""
    for setting, kind in NAMING.items():
        value: Any = settings
        for part in setting.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str):
                yield kind, name


def load_module(name: str, by: EntryPoint | None = None) -> None:
    """Import a module and register what it offers; once.

    Args:
        by: the entry point that named it: the module must offer what it is called after.
    Raises:
        UserError: no such module, or it cannot be imported; it offers nothing, or what cannot be registered.
    """
    where = SETTING if by is None else f"entry point {by.name!r} of {by.dist.name if by.dist else 'a package'}"
    if not is_module_name(name):
        fix = f"{SETTING}=[my_module]: a module's name, without .py and folders"
        raise UserError(f"{name!r} is no name of a module", where=where, fix=fix)
    module = _imported(name, where)
    from pipeline.plugins.registries import register

    if name not in _loaded:
        register(module, where)
        _loaded.add(name)
    kind, _, thing = ("", "", "") if by is None else by.name.partition(".")
    if by is not None and offered_by.get((kind, thing)) != name:
        problem_text = f"the module {name} offers no {kind} called {thing!r}"
        raise UserError(problem_text, where=where, fix="mend or uninstall the package")


def is_module_name(name: str) -> bool:
    """Whether a text is names with dots between them."""
    return all(part.isidentifier() for part in name.split("."))


def _load_offering(kind: str, name: str) -> None:
    entries = declared().get(f"{kind}.{name}", ())
    if len({e.value for e in entries}) > 1:
        packages = ", ".join(sorted(e.dist.name for e in entries if e.dist))
        raise UserError(f"several packages offer a {kind} called {name!r}: {packages}", where=kind, fix="uninstall one")
    if entries:
        load_module(entries[0].module, entries[0])


def _imported(name: str, where: str) -> ModuleType:
    """The module; the current folder is looked into after all other places."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            fix = "a module that is installed, or whose file lies in the current folder"
            raise UserError(f"no module {name!r}", where=where, fix=fix) from error
        raise _broken(name, where, error) from error
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(name, where, error) from error


def _broken(name: str, where: str, error: BaseException) -> UserError:
    problem = str(error).strip().splitlines()
    problem_text = f"the module {name} cannot be imported: {type(error).__name__}{f': {problem[0]}' if problem else ''}"
    return UserError(problem_text, where=where, fix=f"python -c 'import {name}' shows all of it")
