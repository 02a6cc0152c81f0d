"""From noisy answers about persons to wanted counts: sizes first, then rows that sum to them, none below 0.

Sources: shrinkage toward a common row is James & Stein 1961 (positive part); a spike at 0 beside an exponential slab,
fitted by marginal likelihood, is empirical Bayes as of Johnstone & Silverman 2004.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from mechanisms.public.marginals import Values
from mechanisms.public.persons.features import Kind
from mechanisms.public.persons.questions import PersonQuestion, by_label
from mechanisms.public.persons.tally import Ints
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.column import Column

#: An answer tells nothing where its distance from the arrangement without it stays below so many standard deviations.
SIGNAL = 2.0
#: The spike's share and the slab's mean (in σ) are taken from these.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0)
MEANS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0, 2048.0)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that was answered.

    Attributes:
        values: the noisy answers, in persons, in the shape of the question.
        stddev: of the noise of each.
        possible: which cells a person can be in.
    """

    question: PersonQuestion
    values: Values
    stddev: float
    possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(f.kind for f in self.question.features)

    @property
    def by_size(self) -> bool:
        """Whether the rows are groups of sizes."""
        return self.question.features[0].kind is Kind.RECORDS and len(self.question.features) > 1


@dataclass(frozen=True, eq=False)
class Target:
    """Wanted counts of a question, in persons, the variance of what was measured, flat; and how far it is from noise."""

    asked: Asked
    wanted: Values
    variance: Values
    signal: float


def answered(
    questions: Sequence[PersonQuestion], answers: Sequence[NoisyMarginal], columns: Mapping[str, Column]
) -> list[Asked]:
    """The questions that have an answer, in their order; of several answers the last one."""
    found = {a.clique: a for a in answers}
    asked = []
    for label, question in by_label(questions).items():
        answer = found.get(label)
        if answer is not None and answer.values.size == math.prod(question.shape):
            values = np.asarray(answer.values, np.float64).reshape(question.shape)
            asked.append(Asked(question, values, answer.stddev, _possible(question, columns)))
    return asked


def _possible(
    question: PersonQuestion, columns: Mapping[str, Column]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The cells that a person can be in: one record has no next one, one value, and no time from first to last."""
    open_cells = np.ones(question.shape, np.bool_)
    sizes = question.features[0]
    for axis, feature in enumerate(question.features):
        last = np.moveaxis(open_cells, axis, -1)
        if feature.kind in (Kind.SPAN, Kind.GAP) and not columns[feature.column].missing:
            last[..., -1] = False
        if feature.kind is Kind.MEAN and columns[feature.column].size == columns[feature.column].value_codes:
            last[..., -1] = False
        if sizes.kind is not Kind.RECORDS or axis == 0:
            continue
        for group in range(sizes.size):
            most = max(n for n, g in enumerate(sizes.groups, start=1) if g == group)
            row = np.moveaxis(open_cells[group], axis - 1, -1)
            if feature.kind is Kind.DISTINCT:
                row[..., most:] = False
            if feature.kind is Kind.SPAN and most == 1:
                row[..., 1:-1] = False
    if question.level == "steps" and sizes.kind is Kind.RECORDS:
        open_cells[[max(n for n, g in enumerate(sizes.groups, start=1) if g == i) == 1 for i in range(sizes.size)]] = (
            False
        )
    return open_cells


def persons_by_size(asked: Sequence[Asked], most: int, records: int) -> Ints:
    """(most,) how many persons have 1, 2, … records: whole numbers of that many records in all.

    The histogram is brought onto the sums of other answers by inverse variance, onto the number of records by least
    squares, thin sizes share a smooth tail, and a tilt takes up what is left.

    Edge cases: without a histogram, or where nothing in it is above 0, each record is a person of its own.
    """
    own = next((a for a in asked if a.kinds() == (Kind.RECORDS,)), None)
    counts = np.zeros(most, np.int64)
    if own is None or not (own.values > 0).any() or most == 1 or records == 0:
        counts[0] = records
        return counts
    numbers = np.arange(1, most + 1, dtype=np.float64)
    values = _with_sums(own, asked)
    low, high = -np.abs(values).max() - 1.0, np.abs(values).max() + records + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        above = numbers @ np.maximum(values + middle * numbers / most, 0.0) > records
        low, high = (low, middle) if above else (middle, high)
    smooth = _smooth_tail(np.maximum(values + high * numbers / most, 0.0), own.stddev)
    return _whole(_tilted(smooth, records), records)


def _with_sums(own: Asked, asked: Sequence[Asked]) -> Values:
    """The histogram, whose groups of sizes have the sums of all answers by inverse variance."""
    values = own.values.copy()
    groups = next((np.array(a.question.features[0].groups) for a in asked if a.by_size), None)
    if groups is None:
        return values
    for group in range(groups.max() + 1):
        inside = groups == group
        sums, weights = [values[inside].sum()], [1 / (own.stddev**2 * inside.sum())]
        for other in asked:
            cells = int(other.possible[group].sum()) if other.by_size else 0
            if cells:
                sums.append(other.values[group][other.possible[group]].sum())
                weights.append(1 / (other.stddev**2 * cells))
        values[inside] += (np.average(sums, weights=weights) - sums[0]) / inside.sum()
    return values


def _smooth_tail(values: Values, stddev: float) -> Values:
    """Sizes from the largest down are merged until each group stands above three σ, and spread log-linearly inside."""
    groups, stop = [], values.size
    while stop > 0:
        start = stop - 1
        while start > 0 and values[start:stop].sum() < 3 * stddev * math.sqrt(stop - start):
            start -= 1
        groups.append((start, stop))
        stop = start
    groups = groups[::-1]
    centres = np.array([(a + b - 1) / 2 for a, b in groups])
    height = np.log([max(values[a:b].sum() / (b - a), 1e-3) for a, b in groups])
    place = np.arange(values.size, dtype=np.float64)
    line = np.interp(place, centres, height)
    if len(groups) > 1:  # the last slope goes on behind the last centre
        slope = min((height[-1] - height[-2]) / (centres[-1] - centres[-2]), 0.0)
        line = np.where(place > centres[-1], height[-1] + slope * (place - centres[-1]), line)
    shape = np.exp(line)
    for a, b in groups:
        shape[a:b] *= values[a:b].sum() / shape[a:b].sum()
    return shape


def _tilted(values: Values, records: int) -> Values:
    """values × e^(λ n) of the same sum whose Σ n × values is the number of records; more or fewer persons at the ends."""
    numbers = np.arange(1, values.size + 1, dtype=np.float64)
    total = float(np.clip(values.sum(), records / values.size, records))
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        shape = values * np.exp(middle * (numbers - (values.size if middle > 0 else 1)))
        mean = (shape @ numbers) / shape.sum() if shape.sum() > 0 else 1.0
        low, high = (low, middle) if mean * total > records else (middle, high)
    tilted = shape * (total / shape.sum())
    return np.asarray(tilted * (records / (tilted @ numbers)))


def _whole(values: Values, records: int) -> Ints:
    """Whole numbers near the values, of so many records in all."""
    sums = np.floor(np.cumsum(values[::-1]) + 0.5).astype(np.int64)
    counts = np.diff(sums, prepend=0)[::-1].copy()
    numbers = np.arange(1, values.size + 1)
    left = records - int(counts @ numbers)
    while left < 0:
        size = int(numbers[counts > 0].max()) if -left > 1 else int(numbers[counts > 0].min())
        counts[size - 1] -= 1
        left += size
    counts[values.size - 1] += left // values.size
    if left % values.size:
        counts[left % values.size - 1] += 1
    return np.asarray(counts, np.int64)


def spike_and_slab(values: Values, stddev: float) -> Values:
    """Posterior means of cells that are 0 or exponential, seen through Gaussian noise; none is below 0.

    The share and the mean of those that are not 0 are the likeliest of a grid.
    """
    if stddev <= 0 or not values.size:
        return np.maximum(values, 0.0)
    scaled = values / stddev
    spike = -0.5 * scaled**2 - 0.5 * math.log(2 * math.pi)
    best = (-np.inf, 1.0, 1.0)
    for mean in MEANS:
        slab = -math.log(mean) - scaled / mean + 0.5 / mean**2 + log_ndtr(scaled - 1 / mean)
        for share in SHARES:
            both = np.logaddexp(math.log1p(-share) + spike, math.log(share) + slab) if share < 1 else slab
            best = max(best, (float(both.sum()), mean, share))
    _, mean, share = best
    moved = scaled - 1 / mean
    slab = -math.log(mean) - scaled / mean + 0.5 / mean**2 + log_ndtr(moved)
    density = np.exp(-0.5 * moved**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(moved))
    inside = np.maximum(moved + density, 0.0)
    odds = 1.0 if share == 1 else 1 / (1 + np.exp(math.log1p(-share) + spike - math.log(share) - slab))
    return np.asarray(odds * inside * stddev)


def targets_of(asked: Sequence[Asked], by_size: Ints, base: Sequence[Values]) -> list[Target]:
    """What is wanted of each question in which more than noise stands.

    Args:
        by_size: how many persons have 1, 2, … records.
        base: of each question the counts of an arrangement that knows sizes alone, in persons.
    """
    targets = []
    for one, start in zip(asked, base, strict=True):
        signal = _signal(one, start.reshape(one.values.shape))
        if one.kinds() == (Kind.RECORDS,) or signal < SIGNAL:
            continue
        wanted = _by_rows(one, by_size) if one.by_size else _one_row(one, start, by_size)
        targets.append(Target(one, wanted.ravel(), np.full(wanted.size, one.stddev**2), signal))
    return targets


def _signal(asked: Asked, base: Values) -> float:
    """By how many standard deviations χ² of an answer against a base lies above that of noise."""
    cells = int(asked.possible.sum())
    away = (asked.values - base)[asked.possible]
    return float((away @ away / max(asked.stddev, 1e-6) ** 2 - cells) / math.sqrt(2 * max(cells, 1)))


def _onto(values: Values, total: float) -> Values:
    """The same row, scaled to a total."""
    return values * (total / values.sum()) if values.sum() > 0 else np.full_like(values, total / max(values.size, 1))


def _one_row(asked: Asked, base: Values, by_size: Ints) -> Values:
    """A question without sizes: shrunk to the base, then free of noise, of the persons that it counts in all."""
    total = float(by_size[1:].sum() if asked.question.level == "steps" else by_size.sum())
    open_cells, start = asked.possible.ravel(), _onto(base.ravel(), total)
    values, kept = asked.values.ravel(), start.copy()
    away = (values - start)[open_cells]
    factor = max(0.0, 1 - asked.stddev**2 * away.size / max(float(away @ away), 1e-12))
    kept[open_cells] = spike_and_slab(start[open_cells] + factor * away, factor * asked.stddev)
    return _onto(np.where(open_cells, kept, 0.0), total)


def _by_rows(asked: Asked, by_size: Ints) -> Values:
    """A question by groups of sizes: each row shrunk to the common one, then free of noise, of its group's persons."""
    groups = np.array(asked.question.features[0].groups)
    rows = asked.values.reshape(groups.max() + 1, -1)
    open_cells = asked.possible.reshape(rows.shape)
    totals = np.bincount(groups, by_size.astype(np.float64))
    shared = open_cells.sum(axis=0) == open_cells.sum(axis=0).max()
    several = open_cells.sum(axis=1) > 1
    common = np.where(open_cells & several[:, None], rows, 0.0).sum(axis=0)
    common = np.where(
        shared | (common > 0), spike_and_slab(common, asked.stddev * math.sqrt(max(several.sum(), 1))), 0.0
    )
    wanted = np.zeros_like(rows)
    for group in np.flatnonzero(open_cells.any(axis=1)):
        free = open_cells[group]
        start = _onto(common[free], totals[group])
        away = rows[group][free] - start
        factor = max(0.0, 1 - asked.stddev**2 * max(away.size - 2, 1) / max(float(away @ away), 1e-12))
        wanted[group, free] = _onto(spike_and_slab(start + factor * away, factor * asked.stddev), totals[group])
    return wanted
