"""Which modules of others the settings ask for; each is imported once, and nothing is imported that nobody asked for.

A module is named by the setting `plugins=[my_module]`. A release never names one.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from mechanisms.public.errors import UserError
from pipeline.plugins.offers import SETTING

#: What stands between the names of a list, or of a sweep's values.
_BETWEEN = re.compile(r"[\s,\[\]()\"']+")
_loaded: set[str] = set()


def load_asked(overrides: Sequence[str]) -> None:
    """Load what overrides ask for, before they are composed: a choice of a plugin's is known after that.

    Of the values of a sweep each is asked for. What cannot be read is somebody else's to refuse.

    Raises:
        UserError: as of `load_module`.
    """
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        for name in filter(None, _BETWEEN.split(value) if key == SETTING else ()):
            load_module(name)


def load_used(settings: Mapping[str, Any]) -> None:
    """Load what composed settings (as nested mappings) ask for; what is loaded already stays as it is.

    Raises:
        UserError: as of `load_module`.
    """
    for name in settings.get(SETTING) or ():
        load_module(str(name))


def load_module(name: str) -> None:
    """Import a module and register what it offers; once.

    Raises:
        UserError: no such module, or it cannot be imported; it offers nothing, or what cannot be registered.
    """
    if not is_module_name(name):
        fix = f"{SETTING}=[my_module]: a module's name, without .py and folders"
        raise UserError(f"{name!r} is no name of a module", where=SETTING, fix=fix)
    module = _imported(name)
    from pipeline.plugins.registries import register

    if name not in _loaded:
        register(module)
        _loaded.add(name)


def is_module_name(name: str) -> bool:
    """Whether a text is names with dots between them."""
    return all(part.isidentifier() for part in name.split("."))


def _imported(name: str) -> ModuleType:
    """The module; the current folder is looked into after all other places."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            fix = "a module that is installed, or whose file lies in the current folder"
            raise UserError(f"no module {name!r}", where=SETTING, fix=fix) from error
        raise _broken(name, error) from error
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> UserError:
    problem = str(error).strip().splitlines()
    problem_text = f"the module {name} cannot be imported: {type(error).__name__}{f': {problem[0]}' if problem else ''}"
    return UserError(problem_text, where=SETTING, fix=f"python -c 'import {name}' shows all of it")
