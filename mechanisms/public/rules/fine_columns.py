"""Fine columns: which columns of a schema get them, and how rows that were read finely fall into bins and cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.rules.engineering import room
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import finest, log_cut, parents, plain_edges
from mechanisms.public.schema.table_schema import Schema

CHUNK = 1 << 20


def with_fine_columns(schema: Schema, cells: int) -> Schema:
    """The schema with about so many fine cells for every column of numbers or dates whose bins hold several values.

    Columns that say `fine` themselves keep to it, and those that rules make or change have none. A column of a wide
    range that stands in no rule has its bins of equal width cut as by `log_cut`.

    Args:
        cells: 0: no column gets any.
    """
    if not cells:
        return schema
    tied = tied_columns(schema)
    columns = tuple(
        _with_fine(c, cells, cut=c.name not in tied) if _measured_as_it_is(schema, c) else c for c in schema.columns
    )
    return replace(schema, columns=columns)


def tied_columns(schema: Schema) -> frozenset[str]:
    """Columns whose codes a rule of the schema reads, binds or orders."""
    rules = schema.rules
    names = {n for step in rules.steps for n in (*step.takes, *step.reads)} | {n for c, _ in rules.zeros for n in c}
    names |= {n for group in rules.ordered for n in group.columns}
    names |= {n for pair in rules.mapped for n in (pair.target, pair.source)}
    if rules.unit_ids is not None:
        names |= {*rules.unit_ids.same, *rules.unit_ids.order_by}
    return frozenset(names)


def _measured_as_it_is(schema: Schema, column: Column) -> bool:
    name = column.name
    same = name in schema.synthesized and schema.synthesized[name] == schema.domain[name]
    mapped = {n for pair in schema.rules.mapped for n in (pair.target, pair.source)}
    return same and name not in mapped and plain_edges(column) is not None


def _with_fine(column: Column, cells: int, *, cut: bool) -> Column:
    bare = column.tree is None and column.distances is None and column.places is None
    asked = column if column.fine is not None else replace(column, fine=cells)
    asked = log_cut(asked) if cut and bare and asked.fine else asked
    return column if finest(asked) is asked else asked


def apart(
    coded: CodedTable, schema: Schema, *, workdir: Path | None = None
) -> tuple[CodedTable, tuple[NDArray[Any], ...]]:
    """Rows of `schema.finest` as rows of the schema's columns, and the fine ones in the order of `schema.fine`.

    Args:
        workdir: where the columns of bins go (they are mapped); None: in memory.
    """
    columns = list(coded.columns)
    for place, column in enumerate(schema.columns):
        if column.name not in schema.fine:
            continue
        bins = parents(column).astype(code_dtype(column.size))
        columns[place] = room(workdir, place, coded.rows, column.size)
        for start in range(0, coded.rows, CHUNK):
            part = slice(start, min(start + CHUNK, coded.rows))
            columns[place][part] = bins[coded.columns[place][part]]
    plain = CodedTable(schema.domain, tuple(columns), coded.weights)
    return plain, tuple(coded.column(name) for name in schema.fine)


def without_fine(table: CodedTable, schema: Schema) -> CodedTable:
    """The rows of a measured table over what is synthesized: all but the fine columns."""
    if not schema.fine:
        return table
    names = schema.synthesized.names
    return CodedTable(schema.synthesized, tuple(table.column(n) for n in names), table.weights, table.known)
