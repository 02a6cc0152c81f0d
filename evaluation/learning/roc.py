"""The area under the ROC curve, with its standard error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def auc_with_error(ours: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[float, float]:
    """How often a score of ours is above one of the others' (ties count half), and its standard error.

    Source: DeLong et al. 1988, from placements.
    """
    m, n = ours.size, others.size
    ranks = _ranks(np.concatenate([ours, others]))
    above = (ranks[:m] - _ranks(ours)) / n
    below = 1 - (ranks[m:] - _ranks(others)) / m
    variance = above.var(ddof=1) / m + below.var(ddof=1) / n
    # All placements alike: as with a share of 0 or 1, three units in all might have been otherwise.
    return float(above.mean()), math.sqrt(max(variance, 1 / (4 * min(m, n) ** 2)))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value from 1 on; of equal ones their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
