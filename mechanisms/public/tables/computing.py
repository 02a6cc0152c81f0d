"""Values of numbers and dates, and how often a computed column says something else than its rule. NOT private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.scan import Source

Floats = NDArray[np.float64]


def value_batches(source: Source, columns: Sequence[Column]) -> Iterator[dict[str, Floats]]:
    """Column → its values as its schema reads them, NaN where there is none, some rows of the table at a time."""
    inner, values = value_expressions(source, columns)
    for batch in source.batches(f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"):
        arrays = (batch.column(i).to_numpy(zero_copy_only=False) for i in range(batch.num_columns))
        yield {c.name: np.array(array, np.float64) for c, array in zip(columns, arrays, strict=True)}


def rows_that_differ(source: Source, schema: Schema) -> dict[str, int]:
    """Rule → in how many rows of the table the column is not what its expression says. NOT private.

    Values count as the schema reads them, inside their bounds; a missing value where the expression has one differs.
    """
    differing = {}
    for step in schema.rules.computed:
        column, count = schema[step.target], 0
        for values in value_batches(source, [*(schema[n] for n in step.sources), column]):
            count += int(np.count_nonzero(~_same(values[column.name], step.values(values, column), column)))
        differing[step.rule] = count
    return differing


def _same(own: Floats, expected: Floats, column: Column) -> NDArray[np.bool_]:
    """Equal, or both missing; of a float, up to half of its last decimal."""
    near = 0.0 if column.kind != "float" else 10.0**-column.decimals / 2 if column.decimals is not None else 0.0
    slack = near + (1e-9 * np.abs(expected) if column.kind == "float" else 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(own - expected) <= slack) | (np.isnan(own) & np.isnan(expected)))
