"""Settings that Hydra composes for each command anew are composed once for as long as the files say the same."""

import io
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hydra._internal import config_loader_impl, defaults_list  # noqa: TID251 - tests alone; the product composes anew
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from pipeline.settings import own_settings

_read, _composed = OmegaConf.load, config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list
_listed, _parsed = config_loader_impl.create_defaults_list, OverridesParser.parse_rule
_typed = own_settings.of_its_type
#: All that names a thing → the thing, pickled: it is read in a seventh of the time in which it is copied.
_made: dict[Any, bytes] = {}


def _once(key: Any, make: Callable[[], Any]) -> Any:
    if key not in _made:
        _made[key] = pickle.dumps(make())
    return pickle.loads(_made[key])


def _read_once(file: Any) -> Any:
    """In place of `OmegaConf.load`: a text is parsed once."""
    if isinstance(file, str | os.PathLike):
        return _read(file)
    text = file.read()
    return _once(text, lambda: _read(io.StringIO(text)))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _files(entry.path)
        elif entry.name.endswith(".yaml"):
            facts = entry.stat()
            yield entry.path, facts.st_mtime_ns, facts.st_size


def _state(repo: Any) -> Any:
    """What settings are composed from: the files of all places, none of which changed, and those that are made here."""
    places = [source.path for source in repo.get_sources()]
    files = [(place, *sorted(_files(place))) for place in places if place and Path(place).is_dir()]
    return tuple(places), tuple(files), repr(ConfigStore.instance().repo.get("evaluation"))


def _listed_once(repo: Any, config_name: Any, overrides_list: list[Any], **more: Any) -> Any:
    """In place of Hydra's own: which files are merged; other settings are given to what they say."""
    given = defaults_list.Overrides(repo, overrides_list)
    choices = repr((given.override_choices, given.append_group_defaults, given.deletions))

    def make() -> Any:
        found = _listed(repo, config_name, overrides_list, **more)
        return found.defaults, found.overrides.known_choices

    defaults, given.known_choices = _once((config_name, choices, *more.items(), _state(repo)), make)
    return SimpleNamespace(defaults=defaults, config_overrides=given.config_overrides, overrides=given)


def _composed_once(loader: Any, defaults: list[Any], repo: Any) -> Any:
    """In place of Hydra's own: the same files, in the same order, are merged once."""
    return _once((repr(defaults), _state(repo)), lambda: _composed(loader, defaults, repo))


def _parsed_once(parser: Any, text: str, rule: str) -> Any:
    """In place of Hydra's own: what a text on the command line says."""
    return _once(("parsed", text, rule), lambda: _parsed(parser, text, rule))


def _typed_once(cls: type[Any], name: str, value: Any) -> Any:
    """In place of what a group of settings is merged into for each command anew."""
    return _once(("typed", cls, name, repr(value)), lambda: _typed(cls, name, value))


OmegaConf.load = staticmethod(_read_once)  # type: ignore[method-assign, assignment]
config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list = _composed_once  # type: ignore[method-assign]
config_loader_impl.create_defaults_list = _listed_once  # type: ignore[assignment]
OverridesParser.parse_rule = _parsed_once  # type: ignore[method-assign]
own_settings.of_its_type = _typed_once
ConfigStore.__deepcopy__ = lambda store, _: store  # type: ignore[attr-defined]  # Hydra copies it for each command
