"""What people look at first in two tables without a schema: the same figures, from their values. NOT private."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.correlation import RECORDS
from evaluation.values.value_tables import DAY, ValueColumn, Values, shown
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.value_summaries import QUANTILES, side_by_side
from pipeline.scores.first_look import FirstLook


def value_look(values: Values, schema: Schema, coded: Sequence[CodedTable], groups: Sequence[str] = ()) -> FirstLook:
    """The figures of both tables, from their values.

    Args:
        schema, coded: the real and the synthetic table in the buckets of that schema, which tell the groups.
        groups: columns of the schema.
    """
    columns = [c for c in values.columns if c.on_a_line]
    tables = [values.tables[name] for name in ("real", "synthetic")]
    real, synthetic = ({c.name: _summary(c, t.column(c.name)) for c in columns} for t in tables)
    numbers = side_by_side(real, synthetic)
    rows = [row for by in groups for row in _grouped(columns, tables, schema, coded, by)]
    names = tuple(c.name for c in columns)
    sample = (_sample(columns, tables[0]), _sample(columns, tables[1])) if names else None
    return FirstLook(numbers, rows, names, sample, moments={c.name: 1 for c in columns if c.kind == "date"})


def _grouped(
    columns: Sequence[ValueColumn], tables: Sequence[CodedTable], schema: Schema, coded: Sequence[CodedTable], by: str
) -> list[JsonDict]:
    labels, rows = code_names(schema[by]), []
    of_rows = [t.column(by) for t in coded]
    for column in (c for c in columns if c.name != by):
        for code in np.union1d(*of_rows):
            inside = [t.column(column.name)[g == code] for t, g in zip(tables, of_rows, strict=True)]
            own = [_summary(column, codes) if len(codes) else None for codes in inside]
            rows.append(
                {"by": by, "group": labels[int(code)], "column": column.name, "real": own[0], "synthetic": own[1]}
                | {"mean_standard_error": None}
            )
    return rows


def _summary(column: ValueColumn, codes: NDArray[np.unsignedinteger]) -> JsonDict:
    """Rows, count, share missing, mean, standard deviation and quantiles (between neighbours, linearly)."""
    k = len(column.values)
    counts = np.bincount(codes, minlength=column.attribute.size)[:k]
    count, numbers = int(counts.sum()), np.asarray(column.values, np.float64)
    out: JsonDict = {
        "rows": len(codes),
        "count": count,
        "missing": 1 - count / len(codes) if len(codes) else None,
    }
    if not count:
        return out | {"mean": None, "stddev": None, "quantiles": [None] * len(QUANTILES)}
    mean = math.fsum(counts * (numbers / count))
    unit = DAY if column.kind == "date" and not (numbers % DAY).any() else 1
    widest = float(np.abs(numbers - mean).max()) or 1.0  # so that no square overflows
    spread = float(np.sqrt(counts @ (((numbers - mean) / widest) ** 2 / max(count - 1, 1)))) * (widest / unit)
    above, places = np.cumsum(counts), np.array(QUANTILES) * (count - 1)
    low, high = (numbers[np.searchsorted(above, at, side="right")] for at in (np.floor(places), np.ceil(places)))
    part = places - np.floor(places)
    quantiles = low * (1 - part) + high * part
    shown = [_said(column, q) for q in quantiles]
    return out | {"mean": _said(column, mean), "stddev": spread if count > 1 else None, "quantiles": shown}


def _said(column: ValueColumn, value: float) -> float | str:
    return shown("date", round(value)) if column.kind == "date" else float(value)


def _sample(columns: Sequence[ValueColumn], table: CodedTable) -> NDArray[np.float64]:
    """(rows, columns) values of at most RECORDS random rows."""
    rows: slice | NDArray[np.int64] = slice(None)
    if table.rows > RECORDS:
        rows = np.sort(np.random.default_rng(0).choice(table.rows, RECORDS, replace=False))
    return np.stack([c.numbers[table.column(c.name)[rows]] for c in columns], axis=1)
