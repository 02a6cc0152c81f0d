"""Columns of a file as codes into their distinct values: scores read values, whatever bins a schema may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mechanisms.public.arrays import Ints
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import declared_gap, read_sql, text_sql
from mechanisms.public.tables.scan import DATES, INTEGERS, Source

#: Columns of these types are read as they are; all others as the texts that a CSV file would hold.
AS_THEY_ARE = INTEGERS | {"VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE"}

#: So many columns are named in a line that names columns.
NAMED = 12


@dataclass(frozen=True, eq=False)
class Dictionary:
    """One column of a table.

    Attributes:
        codes: (rows,) the place of each row's value among `values`; −1 for none.
        values: the distinct values: texts, numbers, truth values, days or times; none twice.
    """

    codes: NDArray[np.int32]
    values: pa.Array

    @cached_property
    def counts(self) -> Ints:
        """How many rows have each of the values."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:]


def raw_expressions(source: Source, names: Sequence[str]) -> dict[str, str]:
    """Name → SQL for the column as the file holds it; days and times beyond the years 1 to 9999 are no values."""
    return {name: _as_held(source, source.index(name, where=str(source.path))) for name in names}


def _as_held(source: Source, index: int) -> str:
    kind = source.types[index]
    if kind in DATES:
        day = f"c{index}" if kind == "DATE" else f"TRY_CAST(c{index} AS TIMESTAMP)"
        return f"CASE WHEN {day} >= DATE '0001-01-01' AND {day} < DATE '10000-01-01' THEN {day} END"
    return f"c{index}" if kind in AS_THEY_ARE else source.text(index)


def schema_expressions(source: Source, schema: Schema) -> dict[str, str]:
    """Name → SQL for the column as the schema reads it: numbers, days or seconds from 1970-01-01, or texts.

    Nothing is clipped, and nothing binned.
    """
    return {c.name: _as_declared(source, c) for c in schema.columns}


def _as_declared(source: Source, column: Column) -> str:
    text = text_sql(source, column)
    if column.width is not None or not column.gridded:
        return text
    value = read_sql(source, column)
    if column.cell_of and column.kind in DATE_KINDS:
        value = column.grid.sql(value)  # Monday and midnight are 0
    elif column.kind in DATE_KINDS:
        value = f"floor(epoch({value}){' / 86400' if column.kind == 'date' else ''})"
    return f"CASE WHEN NOT ({declared_gap(column, value, text)}) THEN {value} END"


def dictionaries(
    source: Source, expressions: Mapping[str, str], progress: Progress | None = None
) -> dict[str, Dictionary]:
    """Every expression's values over all rows of a table, in the order of the file.

    Cost: one pass over the file, some 40 nanoseconds a cell; memory: 4 bytes a cell, and the distinct values.

    Raises:
        UserError: a malformed file.
    """
    names = list(expressions)
    chunks: list[list[Any]] = [[] for _ in names]
    select = ", ".join(f"{sql} AS v{i}" for i, sql in enumerate(expressions.values()))
    rows = 0
    for batch in source.batches(f"SELECT {select} FROM {source.relation}"):
        for parts, column in zip(chunks, batch.columns, strict=True):
            if pa.types.is_floating(column.type):  # NaN and infinities are no values
                column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
            parts.append(column.dictionary_encode())
        rows += batch.num_rows
        if progress is not None:
            progress(rows, 0, f"{rows:,} rows")
    return {name: _joined(chunks.pop(0)) for name in names}


def _joined(parts: list[Any]) -> Dictionary:
    if not parts:
        return Dictionary(np.empty(0, np.int32), pa.array([], pa.string()))
    whole = pa.chunked_array(parts).unify_dictionaries()
    codes = [np.asarray(part.indices.fill_null(-1)).astype(np.int32, copy=False) for part in whole.chunks]
    return Dictionary(np.concatenate(codes), whole.chunk(0).dictionary)


def texts_of(dictionary: Dictionary) -> NDArray[np.object_]:
    """(rows,) each row's value as a text; None for none."""
    texts = np.array([*dictionary.values.cast(pa.string()).to_pylist(), None], object)
    return np.asarray(texts[dictionary.codes], object)


def shared_names(sources: Mapping[str, Source], asked: Collection[str] | None = None) -> tuple[list[str], list[str]]:
    """The columns that all tables have, in the order of the first one, and a line about each one that some lack.

    Args:
        asked: the columns that are wanted; None for all of every table.

    Raises:
        UserError: there is no column that all have.
    """
    every = dict.fromkeys(name for source in sources.values() for name in source.names)
    names = [n for n in every if asked is None or n in asked]
    lacking = {n: [t for t, source in sources.items() if n not in source.names] for n in names}
    shared = [n for n in names if not lacking[n]]
    if not shared:
        own = "; ".join(f"{table}: {', '.join(source.names[:12])}" for table, source in sources.items())
        fix = f"tables of the same columns; the right delimiter ({own})"
        raise UserError("the tables have no column in common", where=" and ".join(sources), fix=fix)
    absent = [n for n in asked or () if n not in every]
    groups: dict[str, list[str]] = {"in any table": absent} if absent else {}
    for name, tables in lacking.items():
        if tables:
            groups.setdefault(f"in {' nor in '.join(tables)}", []).append(name)
    return shared, [_not_scored(where, some) for where, some in groups.items()]


def _not_scored(where: str, names: Sequence[str]) -> str:
    """One line about columns, however many."""
    if len(names) == 1:
        return f"column {names[0]!r} is not {where}: it is not scored"
    return f"not {where}, and not scored: {first_few(map(repr, names), NAMED)}"
