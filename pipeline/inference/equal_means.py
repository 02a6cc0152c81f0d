"""A test of equal group means on noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.errors import UserError
from mechanisms.public.marginals import Values
from pipeline.inference.ratio_intervals import Sums
from pipeline.inference.told import Told

#: Groups whose number of records is not above so many of its standard errors take no part.
CERTAIN = 4.0
#: Means that are tried before the best of them is refined.
TRIED = 41


@dataclass(frozen=True)
class MeansTest:
    """Are the means of several groups equal?

    Attributes:
        statistic: χ², against `degrees` degrees of freedom.
        p_value: how likely so large a statistic is where all means are equal.
        groups: the places of the groups that took part; the others have too few records for their noise.
    """

    statistic: float
    degrees: int
    p_value: float
    groups: tuple[int, ...]


def equal_means(known: Told, members: Sequence[Values], values: Values, *, sampling: bool) -> MeansTest:
    """A score test: for a common mean μ the sums Σ (v − μ)·count of all groups have mean 0 and Gaussian noise.

    The statistic is their least squared length over μ, in units of their covariance (χ² with groups − 1 degrees of
    freedom; Hansen et al. 1996, continuously updated estimates). Noise that the groups share is in it.

    Args:
        members: per group which cells count.
        values: the number of each cell.
        sampling: whether the drawing of records adds to the variance.
    Raises:
        UserError: fewer than two groups with records.
    """
    from scipy.optimize import minimize_scalar
    from scipy.stats import chi2

    sums = [Sums(known, m, sampling) for m in members]
    part = [i for i, s in enumerate(sums) if s.value(s.cells) > CERTAIN * s.error(s.cells)]
    if len(part) < 2:
        raise UserError("fewer than two groups are larger than their noise", where="by", fix="coarser groups")
    of = [members[i] for i in part]

    def length(mu: float) -> float:
        weights = np.array([m * (values - mu) for m in of])
        totals = weights @ known.values
        drawn = np.maximum(known.values, 0.0) if sampling else np.zeros_like(known.values)
        covariance = known.covariance(weights) + (weights * drawn) @ weights.T
        return float(totals @ np.linalg.pinv(covariance, hermitian=True) @ totals)

    inside = np.sum(of, axis=0) > 0
    low, high = float(values[inside].min()), float(values[inside].max())
    grid = np.linspace(low, high, TRIED)
    best = int(np.argmin([length(float(mu)) for mu in grid]))
    ends = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, TRIED - 1)]))
    least = min(length(float(grid[best])), float(minimize_scalar(length, bounds=ends, method="bounded").fun))
    degrees = len(part) - 1
    return MeansTest(least, degrees, float(chi2.sf(least, degrees)), tuple(part))
