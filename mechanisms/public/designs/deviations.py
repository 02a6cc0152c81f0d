"""One-parameter gamma model of the cell counts of a pair; noisy differences above a level estimate the parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.queries.query_matrices import QueryMatrix as Query

#: The mean absolute value of a standard normal variable.
ABSOLUTE = math.sqrt(2 / math.pi)
#: Cells are grouped by the logarithm of their expected count into `SIZES` groups: a sum over cells costs 24 terms.
SIZES = 24
#: The grid of strengths s, where a cell with mean m has variance m + (s · m)²: 0 is independence, 100 near certainty.
STRENGTHS = np.concatenate([[0.0], np.geomspace(0.02, 100.0, 36)])
#: Levels of noise: at most this many are computed exactly; the others are interpolated.
LEVELS = 20


@dataclass(frozen=True, eq=False)
class PairCells:
    """The cells of a pair as a model expects them, those of like size together.

    A cell's count is taken as drawn with that mean and the variance mean + (strength · mean)² from a gamma law: records
    fall into cells by chance, columns depend, and where they depend much many cells are empty and few are full.

    Attributes:
        count: cells of each size.
        expected: their mean count, in records.
        aside: the variance that the errors of their one-way marginals give to what is expected of them.
        records: of the table.
    """

    count: Floats
    expected: Floats
    aside: Floats
    records: float

    @classmethod
    def of(cls, expected: Floats, aside: Floats, records: float) -> PairCells:
        """Of all cells, and the variances of what is expected; cells that nothing is expected of do not count."""
        full = expected > 1e-9
        expected, aside = expected[full], aside[full]
        if expected.size > SIZES:
            size = np.log(expected)
            edges = np.linspace(float(size.min()), float(size.max()) + 1e-9, SIZES + 1)
            home = np.searchsorted(edges, size, side="right") - 1
        else:
            home = np.arange(expected.size)
        count = np.bincount(home).astype(np.float64)
        some = count > 0
        means = [np.bincount(home, weights=v)[some] / count[some] for v in (expected, aside)]
        return cls(count[some], means[0], means[1], records)

    @classmethod
    def of_pair(
        cls, expected: Floats, sides: tuple[Floats, Floats], errors: tuple[float, float], query: Query
    ) -> PairCells:
        """Of what is asked about a pair, from what a model expects of its cells.

        Args:
            sides: the cells of its columns, with the standard deviations `errors`, all in records.
            query: what is asked of its cells.
        """
        left, right = sides
        records = max(float(left.sum()), 1.0)
        aside = np.add.outer((errors[1] * left / records) ** 2, (errors[0] * right / records) ** 2).ravel()
        return cls.of(query.answer(expected), query.answer(aside), records)

    def _above(self, variance: Floats, level: Floats | float) -> Floats:
        """Per size E max(count − mean − level, 0) = mean · density − level · P(count > mean + level)."""
        from scipy.special import gammaincc  # not loaded by a plan; of a shape above 1, which takes a tenth of the time

        shape, off = self.expected**2 / variance, level / self.expected
        density = _density(shape, off)
        beyond = gammaincc(shape + 1, shape * (1 + off)) - density
        return np.asarray(np.maximum(self.expected * density - level * beyond, 0.0))

    def _below(self, variance: Floats, level: Floats | float) -> Floats:
        """Per size E max(mean − level − count, 0) = mean · density − level · P(count < mean − level)."""
        from scipy.special import gammainc

        shape, off = self.expected**2 / variance, np.minimum(level / self.expected, 1.0)
        density = _density(shape, -off)
        beyond = gammainc(shape + 1, shape * (1 - off)) + density
        return np.asarray(np.maximum(self.expected * (density - off * beyond), 0.0))

    def _variance(self, strength: Floats | float) -> Floats:
        return np.asarray(self.expected + (np.asarray(strength)[..., None] * self.expected) ** 2)

    def distance(self, strength: float) -> float:
        """The L1 distance from what is expected, in records."""
        return float(2 * self._above(self._variance(strength), 0.0) @ self.count)

    def beyond(self, strength: Floats | float, level: float) -> Floats:
        """Σ over cells of max(|distance| − level, 0), with the errors of the one-way marginals in the distances."""
        variance = self._variance(strength) + self.aside
        return np.asarray((self._above(variance, level) + self._below(variance, level)) @ self.count)

    def base(self, level: float) -> float:
        """As much of the L1 distance of independent columns as is beyond a level in each cell, in records."""
        return float(self.beyond(0.0, level))

    def strength(self, beyond: float, level: float) -> float:
        """The strength at which so much is beyond a level."""
        return float(np.interp(beyond, np.maximum.accumulate(self.beyond(STRENGTHS, level)), STRENGTHS))

    def shown(self, strength: float, level: float) -> float:
        """How many cells hold more than a level of noise."""
        from scipy.special import gammaincc

        variance = self._variance(strength)
        return float(gammaincc(self.expected**2 / variance, level * self.expected / variance) @ self.count)

    def left(self, strength: float, levels: Floats) -> Floats:
        """The L1 distance that is left where the pair is measured, at each mean absolute noise of its answers.

        A synthetic table follows an answer where it differs by more than its noise. What so comes to full cells is
        taken from others of the same rows and columns, and lowers their distances as much.
        """
        some = np.geomspace(levels.min(), levels.max(), min(LEVELS, levels.size))
        above = self._above(self._variance(strength), some[:, None]) @ self.count
        left = np.maximum(self.distance(strength) - 2 * above, 0.0)
        return np.interp(np.log(levels), np.log(some), left)


def _density(shape: Floats, off: Floats | float) -> Floats:
    """x^shape · e^−x / Γ(shape + 1) at x = shape · (1 + off): that of a gamma law, times its scale over its mean."""
    from scipy.special import gammaln

    with np.errstate(divide="ignore"):  # nothing lies below 0
        steps = shape * (np.log1p(off) - off)
    return np.asarray(np.exp(steps + shape * np.log(shape) - shape - gammaln(shape + 1)))


def by_chance(expected: Floats) -> Floats:
    """Per cell how far records that fall into cells by chance are from what is expected, in records, on the mean."""
    return np.minimum(ABSOLUTE * np.sqrt(expected), 2 * expected)


def side_error(expected: Floats, noise: float | Floats) -> float:
    """Σ |error| of a one-way marginal with this mean absolute noise: no cell errs by more than it holds."""
    return float(np.minimum(expected, noise).sum())
