"""Tables as numbers for models that learn; how well scores rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.coded_table import CodedTable

#: Columns without an order and with more codes are taken as numbers: trees split categories of at most so many.
CATEGORIES = 255


def features(table: CodedTable, left_out: str | None = None) -> NDArray[np.float32]:
    """(rows, columns) codes as numbers; what is other or missing on a line as absent (NaN).

    Args:
        left_out: a column that is none of the features.
    """
    columns = []
    for a, column in zip(table.domain.attributes, table.columns, strict=True):
        if a.name != left_out:
            values = column.astype(np.float32)
            columns.append(np.where(column < a.ordered, values, np.nan) if a.ordered else values)
    return np.stack(columns, axis=1).astype(np.float32)


def unordered(table: CodedTable, left_out: str | None = None) -> Flags:
    """Which of the features are categories."""
    chosen = [a for a in table.domain.attributes if a.name != left_out]
    return np.array([a.ordered == 0 and a.size <= CATEGORIES for a in chosen], bool)


def one_hot(coarse: CodedTable, left_out: str) -> NDArray[np.float32]:
    """(rows, codes) a column of 0 and 1 for each code of each other column of a table of few codes."""
    parts = []
    for a, column in zip(coarse.domain.attributes, coarse.columns, strict=True):
        if a.name != left_out:
            parts.append(np.eye(a.size, dtype=np.float32)[column])
    return np.concatenate(parts, axis=1)


def some_rows(table: CodedTable, most: int, rng: np.random.Generator) -> CodedTable:
    """At most so many random rows, in their order."""
    if table.rows <= most:
        return table
    return table.at(np.sort(rng.choice(table.rows, most, replace=False)))


def boosted_trees(
    x: NDArray[np.float32],
    y: NDArray[np.generic],
    asked: Sequence[NDArray[np.float32]],
    seed: int,
    method: Literal["predict", "predict_proba", "decision_function"],
    **settings: Any,
) -> list[Floats]:
    """What gradient-boosted trees that learned y from x tell of each table of asked rows.

    Args:
        method: numbers, of a regression; else of a classification the share of each class, or the odds of the second.
        settings: of scikit-learn's trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # slow to import
    from threadpoolctl import threadpool_limits

    kind = HistGradientBoostingRegressor if method == "predict" else HistGradientBoostingClassifier
    trees = kind(early_stopping=False, random_state=seed, **settings)
    # Waiting threads spin: several cost ten times the processor time of one, on a busy machine.
    with threadpool_limits(1, user_api="openmp"):
        trees.fit(x, y)
        return [np.asarray(getattr(trees, method)(rows), np.float64) for rows in asked]


def auc_with_error(ours: Floats, others: Floats) -> tuple[float, float]:
    """How often a score of ours is above one of the others' (ties count half), and its standard error.

    Source: DeLong et al. 1988, from placements.
    """
    m, n = ours.size, others.size
    among_all, own, theirs = (pd.Series(v).rank().to_numpy() for v in (np.concatenate([ours, others]), ours, others))
    above = (among_all[:m] - own) / n
    below = 1 - (among_all[m:] - theirs) / m
    variance = above.var(ddof=1) / m + below.var(ddof=1) / n
    # All placements alike: as with a share of 0 or 1, three units in all might have been otherwise.
    return float(above.mean()), math.sqrt(max(variance, 1 / (4 * min(m, n) ** 2)))
