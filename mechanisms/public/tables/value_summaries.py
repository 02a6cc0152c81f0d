"""What people look at first: count, mean, standard deviation, quantiles and gaps of each column of numbers or dates."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.scan import Source, mapped_errors

#: The quantiles of a summary.
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
SECONDS = {"date": 86_400, "datetime": 1}


def summaries(source: Source, schema: Schema) -> dict[str, dict[str, Any]]:
    """Column → rows, count, missing (share), mean, stddev and quantiles of its values, as the schema reads them.

    Values beyond the bounds count as the bounds; what is missing, other or not placed has no value. Dates are texts,
    their standard deviation is in days or seconds. NOT private of a private table.
    """
    columns = [c for c in schema.columns if c.kind in ORDERED_KINDS and c.width is None]
    if not columns:
        return {}
    inner, values = value_expressions(source, schema, columns)
    parts = ", ".join(f"{q}" for q in QUANTILES)
    figures = [
        f"count(v{i}), avg(v{i}), stddev_samp(v{i}), quantile_cont(v{i}, [{parts}])" for i, _ in enumerate(columns)
    ]
    rows = f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"
    with source.connect() as engine, mapped_errors(source):
        found = engine.execute(f"SELECT count(*), {', '.join(figures)} FROM ({rows})").fetchone()
    return {c.name: _summary(c, found[0], found[1 + 4 * i : 5 + 4 * i]) for i, c in enumerate(columns)}


def _summary(column: Column, rows: int, figures: Sequence[Any]) -> dict[str, Any]:
    count, mean, stddev, quantiles = figures
    return {
        "rows": rows,
        "count": count,
        "missing": 1 - count / rows if rows else None,
        "mean": _shown(column, mean),
        "stddev": stddev,
        "quantiles": [_shown(column, q) for q in quantiles or [None] * len(QUANTILES)],
    }


def _shown(column: Column, value: float | None) -> float | str | None:
    if value is None or column.kind not in SECONDS:
        return value
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(value) * SECONDS[column.kind])
    return moment.isoformat(sep=" ") if column.kind == "datetime" else moment.date().isoformat()


class NoiseErrors(Protocol):
    """The standard errors that noise gives to a mean and to QUANTILES; in days or seconds of dates."""

    @property
    def mean(self) -> float: ...

    @property
    def quantiles(self) -> tuple[float, ...]: ...


def side_by_side(
    real: Mapping[str, Mapping[str, Any]],
    synthetic: Mapping[str, Mapping[str, Any]],
    errors: Mapping[str, NoiseErrors] | None = None,
) -> list[dict[str, Any]]:
    """One row per column: both summaries, and the standard errors that noise gives to mean and quantiles, if known."""
    rows = []
    for name in real:
        error = (errors or {}).get(name)
        told = {"mean_standard_error": error and error.mean, "quantile_standard_errors": error and [*error.quantiles]}
        rows.append({"column": name, "real": real[name], "synthetic": synthetic[name], **told})
    return rows
