"""Are synthetic values systematically smaller than the holdout's? Quantiles, a rank statistic and its test."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.files import JsonDict

QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
#: Tests reject below this.
LEVEL = 0.01


@dataclass(frozen=True)
class RateEstimate:
    """A share with its 95 % interval and a one-sided test against the value that real records have.

    Attributes:
        value: the share.
        low, high: the 95 % interval, within [0, 1].
        p: how likely so large a value is if the truth is `null`; None where there is no spread to judge by.
        null: what real records score.
    """

    value: float
    low: float
    high: float
    p: float | None
    null: float


def estimate(value: float, variance: float, *, null: float = 0.5, null_variance: float = 0.0) -> RateEstimate:
    """Normal interval and test of a share; without any spread only the sign is left, and no test."""
    error = math.sqrt(max(variance, 0.0))
    spread = math.sqrt(max(variance, 0.0) + max(null_variance, 0.0))
    p = float(ndtr((null - value) / spread)) if spread > 0 else None
    return RateEstimate(value, max(0.0, value - 1.96 * error), min(1.0, value + 1.96 * error), p, null)


@dataclass(frozen=True, eq=False)
class PrivacyComparison:
    """Values of synthetic records beside those of holdout records.

    Attributes:
        synthetic, holdout: sorted values, without undefined ones; holdout is empty where there is none.
        smaller: P(synthetic < holdout) + ½ P(equal): ½ is alike, above it the synthetic ones are smaller.
        ties: how often a synthetic and a holdout value are equal.
        reason: why there is no comparison.
    """

    synthetic: Floats
    holdout: Floats
    smaller: RateEstimate | None
    ties: float | None
    reason: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the synthetic values are not systematically smaller; None where that cannot be judged."""
        if self.smaller is None:
            return None
        if self.smaller.p is None:
            return self.smaller.value <= self.smaller.null
        return self.smaller.p >= LEVEL

    def curve(self, points: int = 101) -> pd.DataFrame:
        """Quantiles of both, for a plot."""
        q = np.linspace(0, 1, points)
        return pd.DataFrame({"quantile": q, "synthetic": _at(self.synthetic, q), "holdout": _at(self.holdout, q)})

    def to_json(self) -> JsonDict:
        """JSON values: means, quantiles, the rank statistic and the verdict."""
        out: JsonDict = {"not_smaller": self.passed}
        if self.reason:
            out["reason"] = self.reason
        if self.smaller is not None:
            out |= {"smaller": asdict(self.smaller), "ties": self.ties}
        for name, values in (("synthetic", self.synthetic), ("holdout", self.holdout)):
            if values.size:
                quantiles = dict(zip(map(str, QUANTILES), map(float, _at(values, np.array(QUANTILES))), strict=True))
                out[name] = {"mean": float(values.mean()), "quantiles": quantiles}
        return out


def compare(synthetic: Floats, holdout: Floats | None, *, clusters: Ints | None = None) -> PrivacyComparison:
    """Whether synthetic values tend to be smaller than holdout ones: a rank test that allows for ties.

    Goal: not systematically smaller (Platzer 2020, §3). Range of `smaller.value`: [0, 1]; ½ is what holdout records
    score against each other. Edge cases: undefined values are left out; nothing to compare gives a reason.

    Args:
        clusters: synthetic records with the same number are not independent (they have the same nearest record).
    """
    keep = np.isfinite(synthetic)
    ours = synthetic[keep]
    if holdout is None:
        return PrivacyComparison(np.sort(ours), np.empty(0), None, None, "no holdout to compare with")
    theirs = np.sort(holdout[np.isfinite(holdout)])
    if not ours.size or not theirs.size:
        return PrivacyComparison(np.sort(ours), theirs, None, None, "no defined values on one of the two sides")
    mine = np.sort(ours)
    left, right = (np.searchsorted(theirs, ours, side=s) for s in ("left", "right"))
    placed = 1 - (left + right) / 2 / theirs.size
    back = (np.searchsorted(mine, theirs, side="left") + np.searchsorted(mine, theirs, side="right")) / 2 / mine.size
    groups = np.arange(ours.size) if clusters is None else clusters[keep]
    variance = clustered_variance(placed, groups) + clustered_variance(back, np.arange(theirs.size))
    ties = float(((right - left) / theirs.size).mean())
    return PrivacyComparison(mine, theirs, estimate(float(placed.mean()), variance), ties)


def clustered_variance(values: Floats, clusters: Ints) -> float:
    """Variance of the mean of values that are independent between clusters only."""
    n = values.size
    if n < 2:
        return 0.0
    groups = np.unique(clusters, return_inverse=True)[1]
    sums = np.bincount(groups, values - values.mean())
    return float((sums * sums).sum()) / (n * n)


def _at(values: Floats, quantiles: Floats) -> Floats:
    if not values.size:
        return np.full(quantiles.size, np.nan)
    return np.asarray(np.quantile(values, quantiles, method="inverted_cdf"))
