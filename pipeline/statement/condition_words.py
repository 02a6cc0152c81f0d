"""What the rows of a conditioned table satisfy, in words: such a table must not be taken for the whole."""

from __future__ import annotations

from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.json_values import Json


def condition_in_words(where: Json) -> str:
    """`sex = F; age = [20, 40]`: what all rows of a table satisfy."""
    return "; ".join(f"{name} = {_shown(value)}" for name, value in where.items())


def only_rows_with(given: Json | None) -> str:
    """The same behind a table's name; empty for a table of the whole.

    Args:
        given: of the table's manifest.
    """
    return "" if given is None else f", only rows with {condition_in_words(given['where'])}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "missing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def refuse_part(given: Json | None, question: str) -> None:
    """Refuse what only a table of the whole can be asked.

    Args:
        given: of the table's manifest.
        question: what was asked of it, in the plural.
    Raises:
        UserError: the table holds only rows that satisfy a condition.
    """
    if given is not None:
        fix = f"{question} of the release that it was made from; or of a new table without where="
        raise UserError(
            f"{question} of a table with only rows with {condition_in_words(given['where'])}", where="where", fix=fix
        )
