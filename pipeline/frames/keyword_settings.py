"""Settings as keywords of Python → the overrides of a command: the same names, and the same messages for a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.errors import UserError
from pipeline.conf_folder import CONF
from pipeline.settings.overrides import encoded


def overrides_of(settings: Mapping[str, Any], refused: Mapping[str, str] | None = None) -> list[str]:
    """Overrides such as ``selection=pairs`` and ``privacy.accountant="zcdp"``; choices of groups come first.

    Args:
        settings: name → value; of a group its choice, or a mapping of its settings: `privacy={"accountant": "zcdp"}`,
            `selection={"kind": "mst", "k": 2}`.
        refused: names that are no settings here → what to write instead.
    Raises:
        UserError: a refused name; a value that no setting has.
    """
    pairs = [pair for name, value in settings.items() for pair in _flat(str(name), value)]
    for name, _ in pairs:
        for root, fix in (refused or {}).items():
            if name == root or (name.startswith((f"{root}/", f"{root}.")) and root in {"hydra", "experiment"}):
                raise UserError("no setting of this function", where=f"{name}=", fix=fix)
    choices = [f"{n}={v}" for n, v in pairs if _is_group(n)]
    return choices + [f"{n}={encoded(_plain(v, n))}" for n, v in pairs if not _is_group(n)]


def _is_group(name: str) -> bool:
    return (CONF / name).is_dir()


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A mapping of a group's settings, one by one."""
    if "." in name or not isinstance(value, Mapping):
        yield name, value
        return
    for key, part in value.items():
        yield (name, part) if key == "kind" else (f"{name}.{key}", part)


def _plain(value: Any, name: str) -> Any:
    """The value in JSON's types."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): _plain(v, name) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, name) for v in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UserError(f"got {type(value).__name__}", where=f"{name}=", fix="a number, a text, a list or a mapping")
