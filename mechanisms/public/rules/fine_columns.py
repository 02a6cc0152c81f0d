"""Fine columns: which columns of a schema get them, and what is synthesized without them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from mechanisms.public.coded_table import AnyTable, CodedTable, CountedTable
from mechanisms.public.domain import Domain
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import log_cut, plain_edges
from mechanisms.public.schema.table_schema import Schema, as_a_column

Rows = TypeVar("Rows", CodedTable, CountedTable, AnyTable)


def with_fine_columns(schema: Schema, cells: int) -> Schema:
    """The schema with about this many fine cells for every column of numbers or dates.

    Only bins of several values are cut; if each bin holds one value, the column says `fine` alone, and its codes are
    denoised.

    Columns that say `fine` themselves keep to it, and those that rules make or change have none. A column of a wide
    range that stands in no rule has its bins of equal width cut as by `log_cut`.

    Args:
        cells: 0: no column gets any.
    """
    if not cells:
        return schema
    tied, mapped = tied_columns(schema), {n for pair in schema.rules.mapped for n in (pair.target, pair.source)}
    alone = (c for c in schema.columns if c.joint_bins is None and as_a_column(schema, c.name))
    free = {c.name for c in alone if plain_edges(c) is not None} - mapped
    columns = (_with_fine(c, cells, cut=c.name not in tied) if c.name in free else c for c in schema.columns)
    return replace(schema, columns=tuple(columns))


def tied_columns(schema: Schema) -> frozenset[str]:
    """Columns whose codes a rule of the schema reads, binds or orders."""
    rules = schema.rules
    names = {n for step in rules.steps for n in (*step.takes, *step.reads)} | {n for c, _ in rules.zeros for n in c}
    names |= {n for group in rules.ordered for n in group.columns}
    names |= {n for pair in rules.mapped for n in (pair.target, pair.source)}
    if rules.unit_ids is not None:
        names |= {*rules.unit_ids.same, *rules.unit_ids.order_by}
    if rules.unit is not None:
        names |= {*rules.unit.constant, *rules.unit.order}
    return frozenset(names)


def _with_fine(column: Column, cells: int, *, cut: bool) -> Column:
    bare = column.tree is None and column.distances is None and column.places is None
    asked = column if column.fine is not None else replace(column, fine=cells)
    declared = column.discover is None  # else the bins are assumed, and stand in no schema's text
    return log_cut(asked) if cut and bare and declared and asked.fine else asked


def varied_columns(domain: Domain) -> list[str]:
    """The names of what has more than one value, a column and its fine cells being one."""
    fine = {name + FINE for name in domain.names}
    return [a.name for a in domain.attributes if a.size > 1 and a.name not in fine]


def without_fine(table: Rows, schema: Schema) -> Rows:
    """The rows of a measured table over what is synthesized: all but the fine columns."""
    if not schema.fine:
        return table
    if isinstance(table, CountedTable):
        return replace(table, domain=schema.synthesized)
    return table.over(schema.synthesized.names)
