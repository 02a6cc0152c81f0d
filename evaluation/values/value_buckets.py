"""Buckets of values for metrics that count cells: made from the real table, with frequent values in buckets alone."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_buckets import apart_edges
from evaluation.values.value_tables import ValueColumn, Values
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: Buckets of a column of numbers or dates, and values of any other column, at most.
BUCKETS, CATEGORIES = 20, 50
OTHERS = "other values"


def bucketed(values: Values, name: str) -> tuple[Schema, dict[str, CodedTable]]:
    """A schema for scoring alone, made from the values of the real table, and all tables as its codes.

    Numbers and dates: each value its own code where there are at most BUCKETS, else buckets [lo, hi) that hold about as
    many real records each; a value that many records have is a bucket alone. Others: the most frequent real values, and
    one code for the rest. Never confirmed as public: it tells about the rows.

    Args:
        name: of the table.
    """
    columns, mappings = [], []
    for i, column in enumerate(values.columns):
        counts = np.bincount(values.tables["real"].columns[i], minlength=column.attribute.size)[: len(column.values)]
        declared, mapping = _on_line(column, counts) if column.on_a_line else _listed(column, counts)
        columns.append(declared)
        mappings.append(mapping.astype(code_dtype(declared.size)))
    schema = Schema(name, tuple(columns))
    coded = {
        t: CodedTable(schema.domain, tuple(m[c] for m, c in zip(mappings, table.columns, strict=True)))
        for t, table in values.tables.items()
    }
    return schema, coded


def _on_line(column: ValueColumn, counts: NDArray[np.int64]) -> tuple[Column, NDArray[np.int64]]:
    k = len(column.values)
    if k == 0:
        return _declared(column, ["no value"], ordinal=False), _specials(column, np.zeros(0, np.int64), 1)
    starts = np.arange(1, k) if k <= BUCKETS else apart_edges(counts, BUCKETS)
    ends = list(zip([0, *starts.tolist()], [*(starts - 1).tolist(), k - 1], strict=True))
    names = [column.label(a) if a == b else f"{column.label(a)} to {column.label(b)}" for a, b in ends]
    mapping = np.searchsorted(starts, np.arange(k), side="right")
    return _declared(column, names, ordinal=True), _specials(column, mapping, len(names))


def _listed(column: ValueColumn, counts: NDArray[np.int64]) -> tuple[Column, NDArray[np.int64]]:
    k = len(column.values)
    if k == 0:
        return _declared(column, ["no value"], ordinal=False), _specials(column, np.zeros(0, np.int64), 1)
    often = np.arange(k)
    if k > CATEGORIES:
        often = np.sort(np.argsort(-counts, kind="stable")[: CATEGORIES - 1])
    mapping = np.full(k, len(often))
    mapping[often] = np.arange(len(often))
    names = [column.label(int(i)) for i in often] + ([OTHERS] if k > CATEGORIES else [])
    return _declared(column, names, ordinal=False), _specials(column, mapping, len(names))


def _specials(column: ValueColumn, mapping: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The mapping of all codes: what is no value comes behind the values."""
    whole = np.concatenate([mapping, size + np.arange(len(column.specials))])
    return whole if len(whole) == column.attribute.size else np.zeros(column.attribute.size, np.int64)


def _declared(column: ValueColumn, names: list[str], *, ordinal: bool) -> Column:
    odd = [s for s in column.specials if s != "missing"]
    return Column(
        column.name,
        "categorical",
        values=_unlike(names, odd),
        ordinal=ordinal and len(names) > 1,
        other=odd[0] if odd else None,
        missing="missing" in column.specials,
    )


def _unlike(names: list[str], taken: list[str]) -> tuple[str, ...]:
    """The names, none twice, and none empty."""
    seen, unlike = set(taken), []
    for name in names:
        text = name or "(empty)"
        numbered = (f"{text} ({i})" for i in itertools.count(2))
        while text in seen:
            text = next(numbered)
        seen.add(text)
        unlike.append(text)
    return tuple(unlike)
