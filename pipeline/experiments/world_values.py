"""The values of an experiment's tables, for metrics whose definition speaks of values, not of bins. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import METRICS
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from pipeline.scores.read_values import with_schema


def values_of(
    real: Source,
    synthetic: Source,
    schema: Schema,
    metrics: Sequence[str],
    aside: NDArray[np.bool_] | None,
    progress: Progress,
) -> Values | None:
    """Both tables as values, the rows that were set aside as a holdout; None where no metric asks for values.

    Args:
        aside: of each real row, whether the release set it aside; None where it set none aside.
    """
    if not any(METRICS[name].on_values for name in metrics):
        return None
    values = with_schema({"real": real, "synthetic": synthetic}, schema, progress)
    if aside is None:
        return values
    tables = dict(values.tables)
    tables["holdout"], tables["real"] = (rows_of(tables["real"], part) for part in (aside, ~aside))
    return replace(values, tables=tables)


def rows_of(table: CodedTable, chosen: NDArray[np.bool_]) -> CodedTable:
    """Some rows of a table."""
    places = np.flatnonzero(chosen)
    return CodedTable(table.domain, tuple(np.asarray(c[places]) for c in table.columns))
