"""Intervals of ratios of noisy sums, and of quantiles, by inverting a test of each value (Fieller 1954)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.release import Measurements
from pipeline.inference.marginal_estimates import MarginalEstimate
from pipeline.inference.noise_bounds import widest_reach

#: The confidence of an interval, and of a bound, is 1 − ALPHA.
ALPHA = 0.05


def errors_of_interval(measurements: Measurements) -> float:
    """So many standard errors on both sides of a weighted sum of answers hold the true one at 95 %, or more often."""
    return max((widest_reach(noise, ALPHA) for noise in {a.noise for a in measurements.answers}), default=0.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums over cells of one group, with all that their noise and the drawing of records add to their variance.

    Attributes:
        counts: the marginal's counts.
        cells: which cells belong to the group, 1 or 0 each, and count in the denominator.
        sampling: whether the records count as independent draws from a population (Poisson), beside the noise.
        alpha: the probability that an interval leaves for both of its sides.
    """

    counts: MarginalEstimate
    cells: Floats
    sampling: bool
    alpha: float = ALPHA

    @cached_property
    def _drawn(self) -> Floats:
        return np.maximum(self.counts.values, 0.0) if self.sampling else np.zeros_like(self.counts.values)

    def value(self, weights: Floats) -> float:
        return float(weights @ self.counts.values)

    def error(self, weights: Floats) -> float:
        """The standard error of a weighted sum of cells."""
        return math.sqrt(self.counts.spread(weights) ** 2 + float(weights**2 @ self._drawn))

    def far(self, weights: Floats) -> float:
        """How many standard errors a weighted sum may be off on one side, at α/2: 1.96 for Gaussian noise at 5 %."""
        normal = NormalDist().inv_cdf(1 - self.alpha / 2)
        if self.counts.gaussian or not self.counts.spread(weights):
            return normal
        draws = np.concatenate([noise @ weights for noise in self.counts.draws()])
        return max(float(np.quantile(np.abs(draws), 1 - self.alpha)) / self.counts.spread(weights), normal)


@dataclass(frozen=True)
class Interval:
    """An estimate with a 95 % interval; `value` is None where the noise leaves no records to divide by."""

    value: float | None
    low: float
    high: float
    error: float | None = None


def sum_interval(sums: Sums, weights: Floats, upper: Floats, middle: Floats) -> Interval:
    """A weighted sum of counts that are not negative: far below 0, noise leaves as much open as at 0.

    Where records are drawn, a number is tested with the variance that it has itself, not with that of the records seen,
    which is 0 where there are none (Wilson 1927).

    Args:
        weights, upper: the least and the largest weights that may be true, from 0 to 1; `middle` those of the estimate.
    """
    far = sums.far(middle)
    shift = far**2 / 2 if sums.sampling else 0.0

    def reach(value: float, of: Floats) -> float:
        drawn = max(value, 0.0) + shift / 2 if sums.sampling else 0.0
        return far * math.hypot(sums.counts.spread(of), math.sqrt(drawn))

    least, most = sums.value(weights), max(sums.value(upper), 0.0)
    low, high = max(least + shift - reach(least, weights), 0.0), most + shift + reach(most, upper)
    return Interval(sums.value(middle), low, high, sums.error(middle))


def ratio_interval(sums: Sums, low: Floats, high: Floats, middle: Floats | None = None) -> Interval:
    """Σ v·count / Σ count over the group's cells, with v of each cell somewhere between `low` and `high`.

    The lower end is the least μ that a one-sided test at 2.5 % of Σ (low − μ)·count = 0 does not refuse, the upper one
    likewise: exact for Gaussian noise whatever the denominator is; ends stop at the least and the largest v. A v of 0
    or 1 makes it a share, and drawn records have the variance of the share that is tested.

    Args:
        middle: the v of the estimate; None: half way.
    """
    inside = sums.cells > 0
    least, most = float(low[inside].min(initial=np.inf)), float(high[inside].max(initial=-np.inf))
    records, middle = sums.value(sums.cells), ((low + high) / 2 if middle is None else middle) * sums.cells
    if not inside.any():
        return Interval(None, math.nan, math.nan)
    at = min(max(sums.value(middle) / records, least), most) if records > 0 else (least + most) / 2
    far = sums.far(middle - at * sums.cells)
    ends = [fieller(sums, v * sums.cells, sums.cells, (sums.value(v * sums.cells), records), far) for v in (low, high)]
    lower, upper = (least, most) if ends[0] is None or ends[1] is None else (ends[0][0], ends[1][1])
    lower = lower if least <= lower <= most else least  # every value is refused, which chance alone can do
    upper = upper if least <= upper <= most else most
    if records <= 0:
        return Interval(None, lower, upper)
    return Interval(at, min(lower, at), max(upper, at), sums.error(middle - at * sums.cells) / records)


def fieller(
    sums: Sums, above: Floats, below: Floats, values: tuple[float, float], far: float | None = None
) -> tuple[float, float] | None:
    """The least and the largest ratio ρ of two sums that a test of a − ρb = 0 does not refuse.

    That is (a − ρb)² ≤ far² · its variance, a quadratic inequality. None where b is not above its noise. Where drawn
    records of a are among those of b, each counts once in both, and their part of the variance is ρ(1 − ρ)b.

    Args:
        above, below: the cells' weights in a and in b, which has the noise of both.
        values: a and b.
        far: standard errors that are allowed; None: those of a − ρb at the ratio itself.
    """
    a, b = values
    if b <= 0:
        return None
    ratio = a / b
    off = above - ratio * below  # around the ratio itself, so that large numbers do not cancel
    far = sums.far(off) if far is None else far
    share = sums.sampling and np.isin(below, (0, 1)).all() and np.isin(above, (0, 1)).all() and (above <= below).all()
    noise = replace(sums, sampling=False) if share else sums
    if b <= far * noise.error(below):
        return None
    of_off, of_below, both = (far**2 * noise.error(w) ** 2 for w in (off, below, off + below))
    square, middle = b * b - of_below, (of_off + of_below - both) / 2
    if share:
        drawn = far**2 * b
        square, middle, of_off = square + drawn, middle + drawn * (0.5 - ratio), of_off + drawn * ratio * (1 - ratio)
    root = math.sqrt(max(middle**2 + square * of_off, 0.0))
    return ratio + (middle - root) / square, ratio + (middle + root) / square


def quantile_interval(sums: Sums, low: Floats, high: Floats, part: float) -> Interval:
    """The value below which this part of the group's records lies, on bins.

    The interval runs over every bin that two one-sided tests at 2.5 % leave: that not too few records lie up to its
    upper end, nor too many before it. The estimate lies on a straight line inside its bin.
    """
    codes = np.flatnonzero(sums.cells > 0)
    order = codes[np.argsort(low[codes], kind="stable")]
    if order.size == 0:
        return Interval(None, math.nan, math.nan)
    upto, marks = np.zeros_like(sums.cells), []
    drawn = part * (1 - part) * max(sums.value(sums.cells), 0.0) if sums.sampling else 0.0
    far = 0.0
    for place, cell in enumerate(order):
        upto[cell] = 1.0
        weights = upto - part * sums.cells
        if place == order.size // 2:
            far = sums.far(weights)
        marks.append((sums.value(weights), math.sqrt(sums.counts.spread(weights) ** 2 + drawn)))
    values, errors = np.array(marks).T
    below = values < -far * errors  # so few records up to here that the quantile lies beyond
    beyond = np.concatenate([[False], values[:-1] > far * errors[:-1]])  # so many before here that it lies before
    left = np.flatnonzero(~below & ~beyond)
    ends = (float(low[order].min()), float(high[order].max()))
    if left.size:
        ends = (float(low[order[left[0]]]), float(high[order[left[-1]]]))
    value = quantile_on_bins(sums.counts.values[order], low[order], high[order], part)
    if value is None:
        return Interval(None, *ends)
    return Interval(value, min(ends[0], value), max(ends[1], value))


def quantile_on_bins(counts: Floats, low: Floats, high: Floats, part: float) -> float | None:
    """A quantile of counts on bins in their order, on a straight line inside its bin; None without any record."""
    counts = np.maximum(counts, 0.0)
    if counts.sum() <= 0:
        return None
    cumulated = np.cumsum(counts) / counts.sum()
    at = min(int(np.searchsorted(cumulated, part)), counts.size - 1)
    before = cumulated[at - 1] if at else 0.0
    inside = (part - before) / (cumulated[at] - before) if cumulated[at] > before else 0.5
    return float(low[at] + min(max(inside, 0.0), 1.0) * (high[at] - low[at]))
