"""Which column of a table names the person, so that texts of a few persons are not told. NOT private."""

from __future__ import annotations

from typing import Any

from mechanisms.public.drafts.column_guess import FEW_IDS
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.text_forms import ID_NAME, PERSON_ID_COLUMN, ROW_SHARE

#: What the setting says where each row is a unit, and where the column is guessed.
RECORD, GUESS = "record", "guess"
#: Ids that are no persons by their name are taken where they have at least this share of the rows as values.
SHARE = 0.02


def guess_unit(source: Source, engine: Any) -> str | None:
    """The column called a person's id, or any id that repeats: of several the one with the fewest values.

    Args:
        source: the table in the engine.
    """
    named = [i for i, name in enumerate(source.names) if ID_NAME.search(name)]
    if not named:
        return None
    parts = ", ".join(f"approx_count_distinct({source.text(i)})" for i in named)
    ((rows, *values),) = engine.execute(f"SELECT count(*), {parts} FROM {source.relation}").fetchall()
    ids = [(n, source.names[i]) for i, n in zip(named, values, strict=True) if n > FEW_IDS]
    persons = [(n, name) for n, name in ids if PERSON_ID_COLUMN.search(name)]
    return min(persons or [(n, name) for n, name in ids if SHARE * rows <= n <= ROW_SHARE * rows], default=(0, None))[1]


def counted(unit: str | None, *, guessed: bool) -> str:
    """What was counted, as a sentence of the draft."""
    if unit is None:
        if not guessed:
            return "Rows were counted (privacy.unit=record)."
        why = "no column is called a person's id. Where a person has several rows: privacy.unit=COLUMN."
        return f"Rows were counted: {why}"
    how = "guessed to be the person; privacy.unit=COLUMN says another" if guessed else "privacy.unit"
    return f"Counted by the column {unit!r} ({how}): rows without it do not count."
