"""What helps a column whose noisy counts tell nothing, in the words of the schema: for plan, run and query alike."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.readings import said_drawn, zip_fields
from mechanisms.public.schema.table_schema import Schema

#: Columns that are named.
NAMED = 4
#: With fewer cells than this, it is not for their number that noise drowns a column.
MANY = 20


def said_cells(schema: Schema, names: Sequence[str], unit: str | None) -> list[str]:
    """A sentence for each column that noise drowns and that has many cells, the one with the most first.

    Computed from public facts and the names.

    Args:
        names: columns whose counts are noise for the most part.
        unit: the column that names the unit of privacy, whose ids no release needs.
    """
    many = [schema[n] for n in names if n in schema.domain.names and schema[n].size >= MANY]
    many.sort(key=lambda c: -c.size)
    more = ", or a larger privacy.epsilon"
    cures = [f"it names the unit: leave_out: [{c.name}]" if c.name == unit else _fewer(c) + more for c in many[:NAMED]]
    return [f"noise drowns {c.name!r}, {c.size:,} cells: {cure}" for c, cure in zip(many, cures, strict=False)]


def _fewer(column: Column) -> str:
    """The setting of the schema that makes fewer cells of the column."""
    if column.width is not None:
        prefix = int(zip_fields(column)["prefix"])
        return f"prefix: {prefix - 1} makes a tenth of them" if prefix > 1 else "leave it out"
    if column.kind in ORDERED_KINDS:
        return "coarser bins make fewer"
    return "a shorter list of values makes fewer, with other for the rest"


def digits_drawn(schema: Schema) -> list[str]:
    """A sentence for each column of codes whose last digits are invented."""
    return [f"{c.name!r}: {s}" for c in schema.columns if c.width is not None for s in said_drawn(zip_fields(c))]
