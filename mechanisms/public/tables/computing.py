"""Columns that are computed from others: how often a table says something else than the rule. NOT private."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.scan import Source, stream

Floats = NDArray[np.float64]


def rows_that_differ(source: Source, schema: Schema) -> dict[str, int]:
    """Rule → in how many rows of the table the column is not what its expression says. NOT private.

    Values count as the schema reads them, inside their bounds; a missing value where the expression has one differs.
    """
    found = {}
    for step in schema.rules.computed:
        column = schema[step.target]
        columns = [schema[n] for n in step.sources]
        inner, values = value_expressions(source, schema, [*columns, column])
        differ = 0
        select = f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"
        with source.connect() as engine:
            for batch in stream(source, engine, select):
                *given, own = (_read(batch.column(i)) for i in range(batch.num_columns))
                expected = step.values(dict(zip(step.sources, given, strict=True)), column)
                differ += int(np.count_nonzero(~_same(own, expected, column)))
        found[step.rule] = differ
    return found


def _read(values: object) -> Floats:
    return np.array(values.to_numpy(zero_copy_only=False), np.float64)  # type: ignore[attr-defined]


def _same(own: Floats, expected: Floats, column: Column) -> NDArray[np.bool_]:
    """Equal, or both missing; of a float, up to half of its last decimal."""
    near = 0.0 if column.kind != "float" else 10.0**-column.decimals / 2 if column.decimals is not None else 0.0
    slack = near + (1e-9 * np.abs(expected) if column.kind == "float" else 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(own - expected) <= slack) | (np.isnan(own) & np.isnan(expected)))
