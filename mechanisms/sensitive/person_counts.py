"""Exact counts of persons: the rows of each unit in their order, and what they add to each question. NOT private."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.persons.person_questions import counted_questions, times_of
from mechanisms.public.persons.tally import Ints, Persons, Sheet, sheet_of, stacked, tally
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import value_parts
from mechanisms.sensitive.contribution import UnitRows, numbers_of, unit_forms, unit_id

#: The number of a row without an id.
NOBODY = -1


def person_counts(
    table: UnitRows, schema: Schema, plain: CodedTable, *, key: bytes, aside: NDArray[np.bool_] | None = None
) -> Ints:
    """(cells,) the exact counts of all questions about persons (`counted_questions`), one after the other.

    Guarantee: what a unit adds follows from its own rows, their order among each other and the key alone, has no
        negative entry, and sums to one person at most in each question, however many records it has.
    Args:
        plain: the table's rows as codes of the schema's columns, in the order of the file.
        key: secret; chooses among the values of a constant that contradict each other within a unit.
        aside: which rows belong to units that are set aside.
    Cost: one pass over ids and order, a sort, and a pass over the rows for each feature; memory: 4 bytes per row and
        column that is asked about, and 40 per row.
    """
    declared = schema.rules.unit
    assert declared is not None, "the schema declares a unit"
    by_name, sheet = {c.name: c for c in schema.columns}, sheet_of(counted_questions(schema))
    numbers = [by_name[n] for n in declared.order if by_name[n].kind in ORDERED_KINDS and by_name[n].width is None]
    owners, values = _owners_and_values(table, numbers)  # of other columns the codes are in order
    keys = [values[n] if n in values else np.asarray(plain.column(n), np.float64) for n in reversed(declared.order)]
    counted = owners != NOBODY if aside is None else (owners != NOBODY) & ~aside
    rows = np.flatnonzero(counted)
    # what has no value stands behind all that has one; equal ones keep the order of the file
    ranked = [np.where(np.isnan(k[rows]), np.inf, k[rows]) for k in keys]
    members = rows[np.lexsort((*ranked, owners[rows]))].astype(np.int64)
    changes = np.flatnonzero(np.diff(owners[members], prepend=NOBODY - 1))
    starts = np.append(changes, members.size).astype(np.int64)
    time = declared.times(by_name)
    times = np.full(plain.rows, -1, np.int64) if time is None else times_of(values[time.name], time)
    constants = _constants(plain, schema, sheet, members, starts, key)
    codes = stacked([plain.column(n) for n in sheet.columns], plain.rows)
    return tally(Persons(codes, times, constants, members, starts), sheet)


def _owners_and_values(table: UnitRows, columns: Sequence[Column]) -> tuple[Ints, dict[str, NDArray[np.float64]]]:
    """(rows,) a number for each row's unit, NOBODY where none counts; and the values of some columns, NaN for none."""
    import pyarrow as pa

    source, unit = table.source, table.unit
    inner, values = value_parts(source, columns)
    parts = {"unit": unit_id(source, unit), **inner}
    named = ", ".join(f"{sql} AS {name}" for name, sql in parts.items())
    outer = ", ".join(["unit", *(f"{sql} AS x{i}" for i, sql in enumerate(values))])
    ids, read = [], [[np.zeros(0)] for _ in columns]
    for batch in source.batches(f"SELECT {outer} FROM (SELECT {named} FROM {source.relation})"):
        ids.append(unit_forms(batch.column(0), source, unit).cast(pa.large_string()))
        for target, column in zip(read, batch.columns[1:], strict=True):
            target.append(column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
    owners = numbers_of(pa.chunked_array(ids, pa.large_string()), alone=unit.missing == "own")
    return owners, {c.name: np.concatenate(v) for c, v in zip(columns, read, strict=True)}


def _constants(
    plain: CodedTable, schema: Schema, sheet: Sheet, members: Ints, starts: Ints, key: bytes
) -> NDArray[np.int32]:
    """(constants, persons) codes: of several of one person the first in a secret order, values before gaps.

    The order is the same for all persons, so that nobody's choice follows from another's rows.
    """
    chosen = np.empty((len(sheet.constants), starts.size - 1), np.int32)
    for place, name in enumerate(sheet.constants):
        column = schema[name]
        order = _secret_order(column, key)
        rank = np.empty(column.size, np.int64)
        rank[order] = np.arange(column.size)
        if starts.size > 1:
            chosen[place] = order[np.minimum.reduceat(rank[plain.column(name)[members]], starts[:-1])]
    return chosen


def _secret_order(column: Column, key: bytes) -> Ints:
    """The codes of a column in an order that follows from the key: values first, then *other* and *missing*."""
    seed = hashlib.blake2b(b"constant:" + column.name.encode(), key=key[:64], digest_size=16).digest()
    order = np.random.Generator(np.random.Philox(key=int.from_bytes(seed))).permutation(column.size)
    return np.concatenate([order[order < column.value_codes], order[order >= column.value_codes]]).astype(np.int64)
