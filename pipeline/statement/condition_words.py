"""What the rows of a conditioned table satisfy, in words: such a table must not be taken for the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def condition_in_words(where: Mapping[str, Any]) -> str:
    """`sex = F; age = [20, 40]`: what all rows of a table satisfy."""
    return "; ".join(f"{name} = {_shown(value)}" for name, value in where.items())


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "missing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
