"""Settings that Hydra composes for each command anew are composed once for as long as the files say the same."""

import io
import os
import pickle
from collections.abc import Callable
from typing import Any

from hydra._internal import config_loader_impl, defaults_list  # noqa: TID251 - tests alone; the product composes anew
from omegaconf import OmegaConf

_read, _composed = OmegaConf.load, config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list
_choices = defaults_list._create_interpolation_map
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


def _composed_once(loader: Any, defaults: list[Any], repo: Any) -> Any:
    """In place of Hydra's own: files of the same contents, in the same order, are merged once."""
    contents = tuple((path, pickle.dumps(found and found.config)) for path, found in repo.cache.items())
    return _once((repr(defaults), contents), lambda: _composed(loader, defaults, repo))


def _choices_once(overrides: Any, defaults: list[Any], self_added: bool) -> Any:
    """In place of Hydra's own: which file was chosen of each group, so far."""
    key = ("choices", repr(overrides.known_choices), repr(defaults), self_added)
    return _once(key, lambda: _choices(overrides, defaults, self_added))


OmegaConf.load = staticmethod(_read_once)  # type: ignore[method-assign, assignment]
config_loader_impl.ConfigLoaderImpl._compose_config_from_defaults_list = _composed_once  # type: ignore[method-assign]
defaults_list._create_interpolation_map = _choices_once
