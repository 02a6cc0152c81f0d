"""Whole numbers from real ones, without bias and with little variance."""

from __future__ import annotations

import numpy as np

from mechanisms.public.arrays import Floats, Ints


def systematic(values: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Whole numbers in proportion to `values`, summing to `count`, each within one of its exact share, unbiased.

    Systematic sampling: one uniform offset for all cells, so that small cells are kept with their probability.
    """
    sums = np.cumsum(values, dtype=np.float64)
    if count == 0 or not sums.size or sums[-1] <= 0:
        return np.zeros(values.size, np.int64)
    grid = np.floor(sums * (count / sums[-1]) + rng.random()).astype(np.int64)
    grid[np.flatnonzero(values)[-1] :] = count
    return np.asarray(np.diff(np.minimum(grid, count), prepend=0), np.int64)


def codes_of(values: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """`rows` cell numbers in random order, with frequencies in proportion to `values` (uniform where all are 0)."""
    weights = values if values.sum() > 0 else np.ones_like(values)
    codes = np.repeat(np.arange(values.size), systematic(weights.ravel(), rows, rng))
    rng.shuffle(codes)
    return codes
