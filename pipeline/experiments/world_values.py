"""The true table of an experiment, and its tables as values, for metrics that speak of values. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import METRICS
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from pipeline.scores.read_values import with_schema


@dataclass(frozen=True, eq=False)
class World:
    """The truth of an experiment. NOT private.

    Attributes:
        schema: the table's public facts.
        path: the file that the releases are made from.
        real: its rows in codes; holdout: of these, the rows that a release set aside.
        subjects: a number per row of `real` for its unit; None where every row is one.
    """

    schema: Schema
    path: Path
    real: CodedTable
    holdout: CodedTable | None
    subjects: np.ndarray | None

    def without(self, aside: NDArray[np.bool_]) -> World:
        """The truth of a release that set these rows aside."""
        held, rest = (rows_of(self.real, part) for part in (aside, ~aside))
        return replace(self, real=rest, holdout=held, subjects=None if self.subjects is None else self.subjects[~aside])


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


def sampled(table: CodedTable, share: float, rng: np.random.Generator) -> CodedTable:
    """A random share of the rows without replacement, repeated until the table has its size again. NOT private."""
    chosen = rng.choice(table.rows, max(round(share * table.rows), 1), replace=False)
    places = np.resize(chosen, table.rows)
    return CodedTable(table.domain, tuple(np.asarray(c[places]) for c in table.columns))


def rows_of(table: CodedTable, chosen: NDArray[np.bool_]) -> CodedTable:
    """Some rows of a table."""
    places = np.flatnonzero(chosen)
    return CodedTable(table.domain, tuple(np.asarray(c[places]) for c in table.columns))
