"""Values of numbers and dates, and what people look at first: their mean, quantiles, gaps. NOT private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.code_labels import written_bound
from mechanisms.public.schema.column import DATE_KINDS, ORDERED_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import beyond_sql, encoding, value_expressions, value_parts
from mechanisms.public.tables.scan import Source, listed

#: The quantiles of a summary.
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)


def value_batches(source: Source, columns: Sequence[Column]) -> Iterator[dict[str, Floats]]:
    """Column → its values as its schema reads them, NaN where there is none, some rows of the table at a time."""
    inner, values = value_expressions(source, columns)
    for batch in source.batches(f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"):
        arrays = (batch.column(i).to_numpy(zero_copy_only=False) for i in range(batch.num_columns))
        yield {c.name: np.array(array, np.float64) for c, array in zip(columns, arrays, strict=True)}


def first_rows(source: Source, columns: Sequence[Column], rows: int) -> Floats:
    """Values of columns in the first rows, shape (rows, columns); not a number where they are missing."""
    begin = replace(source, relation=f"(SELECT * FROM {source.relation} LIMIT {rows})")
    first = next(value_batches(begin, columns), {})
    return np.column_stack([first.get(c.name, np.empty(0)) for c in columns])


def rows_that_differ(source: Source, schema: Schema) -> dict[str, int]:
    """Rule → in how many rows of the table the column is not what its expression says. NOT private.

    Values count as the schema reads them, inside their bounds; a missing value where the expression has one differs.
    """
    differing = {}
    for step in schema.rules.computed:
        column, count = schema[step.target], 0
        for values in value_batches(source, [*(schema[n] for n in step.reads), column]):
            count += int(np.count_nonzero(~agree(values[column.name], step.values(values, column), column)))
        differing[step.rule] = count
    return differing


def rows_clipped(source: Source, schema: Schema) -> dict[str, int]:
    """Rule → in how many rows of a synthetic table the column's bounds clip the value that its expression has.

    A length is read from the time that was written: of such times those at a bound count, but as many as lie beside it.
    """
    clipped, sums = {}, {c.cell_of for c in schema.columns if c.between}
    for step in (s for s in schema.rules.computed if schema[s.target].outside == "clip"):
        column, (low, high), count = schema[step.target], schema[step.target].bounds, 0
        for values in value_batches(source, [*(schema[n] for n in step.reads), column]):
            exact, own = step.unbounded(values, column), values[column.name]
            beyond = np.count_nonzero((exact < low) | (exact > high))
            at, beside = (
                np.count_nonzero((own == a) | (own == b))
                for a, b in ((low, high), (low + column.step, high - column.step))
            )
            count += int(at - beside if column.name in sums else beyond)
        clipped[step.rule] = max(count, 0)
    return clipped


def agree(own: Floats, expected: Floats, column: Column) -> Flags:
    """Equal, or both missing; of a float, up to half of its last decimal, unless that is wider than its bounds."""
    last = 10.0**-column.decimals if column.kind == "float" and column.decimals is not None else 0.0
    near = last / 2 if last <= column.high - column.low else 0.0
    slack = near + (1e-9 * np.abs(expected) if column.kind == "float" else 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(own - expected) <= slack) | (np.isnan(own) & np.isnan(expected)))


def summaries(source: Source, schema: Schema) -> dict[str, JsonDict]:
    """Column → rows, count, missing (share), mean, stddev and quantiles of its values, as the schema reads them.

    Values beyond the bounds count as the bounds, and `beyond` is the share that they are of all values. What is
    missing, other or not placed has no value. Dates are texts, their standard deviation is in days or seconds. NOT
    private of a private table.
    """
    columns = numbers_of(schema)
    if not columns:
        return {}
    inner, values = value_expressions(source, columns)
    beyond = [f"({beyond_sql(column, f'q{i}')}) AS b{i}" for i, column in enumerate(columns)]
    rows = f"SELECT {_named(values)}, {', '.join(beyond)} FROM ({inner})"
    shares = [f"avg(CASE WHEN x{i} IS NOT NULL THEN CAST(b{i} AS INTEGER) END)" for i in range(len(columns))]
    (figures,) = source.lines(f"SELECT {', '.join(shares)}, count(*), {_figures(len(columns))} FROM ({rows})")
    summary = _summaries(columns, figures[len(columns) :])
    return {c.name: summary[c.name] | {"beyond": share} for c, share in zip(columns, figures, strict=False)}


def group_summaries(source: Source, schema: Schema, by: str) -> dict[int, dict[str, JsonDict]]:
    """Code of the column `by` → the same of the records that have it, for every other column."""
    columns = [c for c in numbers_of(schema) if c.name != by]
    inner, values = value_parts(source, columns)
    group = schema[by]
    coded = encoding(source, replace(schema, columns=(group,)), further=inner)
    rows = f"SELECT v0 % {group.size} AS g, {_named(values)} FROM ({coded.select})"
    figures = f"SELECT g, count(*), {_figures(len(columns))} FROM ({rows}) GROUP BY g ORDER BY g"
    return {int(code): _summaries(columns, rest) for code, *rest in source.lines(figures, first=coded.types)}


def value_sample(source: Source, schema: Schema, rows: int) -> Floats:
    """(rows, columns of numbers and dates) the values of some of the records, at most so many; NaN where there is none.

    NOT private of a private table.
    """
    inner, values = value_expressions(source, numbers_of(schema))
    some = f"SELECT {_named(values)} FROM ({inner} USING SAMPLE reservoir({rows} ROWS) REPEATABLE (0))"
    with source.connect() as engine:
        values_by_name = engine.execute(some).fetchnumpy()
    return np.stack([np.ma.filled(np.ma.asarray(v, np.float64), np.nan) for v in values_by_name.values()], axis=1)


def rows_of(source: Source, chosen: Flags, workdir: Path) -> Source:
    """The table with the chosen of its rows alone; the folder holds which they are, while it is read."""
    path = workdir / "chosen.parquet"
    pq.write_table(pa.table({"chosen": chosen}), path)
    joined = f"{source.relation} POSITIONAL JOIN read_parquet({listed([path])})"
    return replace(source, relation=f"(SELECT * EXCLUDE chosen FROM {joined} WHERE chosen)")


def numbers_of(schema: Schema) -> list[Column]:
    """The columns of numbers and dates that the table has."""
    return [c for c in schema.with_lengths if c.kind in ORDERED_KINDS and c.width is None]


def _named(values: Sequence[str]) -> str:
    return ", ".join(f"{value} AS x{i}" for i, value in enumerate(values))


def _figures(columns: int) -> str:
    """SQL for the figures of x0, x1 and so on."""
    parts = ", ".join(f"{q}" for q in QUANTILES)
    each = [f"count(x{i}), avg(x{i}), stddev_samp(x{i}), quantile_cont(x{i}, [{parts}])" for i in range(columns)]
    return ", ".join(each)


def _summaries(columns: Sequence[Column], figures: Sequence[Any]) -> dict[str, JsonDict]:
    each = {}
    for i, column in enumerate(columns):
        count, mean, stddev, quantiles = figures[1 + 4 * i : 5 + 4 * i]
        shown = [_shown(column, q) for q in quantiles or ()]
        each[column.name] = summary(figures[0], count, _shown(column, mean), stddev, shown)
    return each


def summary(
    rows: int, count: int, mean: object = None, stddev: float | None = None, quantiles: Sequence[object] = ()
) -> JsonDict:
    """The figures of a column of so many rows, of which `count` have a value; without any all others are None."""
    missing, quantiles = 1 - count / rows if rows else None, [*quantiles] or [None] * len(QUANTILES)
    figures = {"mean": mean, "stddev": stddev, "quantiles": quantiles}
    return {"rows": rows, "count": count, "missing": missing, **figures}


def _shown(column: Column, value: float | None) -> object:
    return written_bound(column, round(value)) if value is not None and column.kind in DATE_KINDS else value
