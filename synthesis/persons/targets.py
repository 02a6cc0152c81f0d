"""From noisy answers about persons to wanted counts: sizes first, then rows that sum to them, none below 0.

Source: prior means that the answers themselves make likeliest are empirical Bayes (Robbins 1956; Efron 2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from mechanisms.public.marginals import Values
from mechanisms.public.persons.features import Kind, is_ordered
from mechanisms.public.persons.questions import PersonQuestion, by_label
from mechanisms.public.persons.tally import Ints
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.column import Column

#: An answer tells nothing where its distance from the arrangement without it stays below so many standard deviations.
SIGNAL = 2.0
#: Widths of the neighbourhoods that a cell's prior mean is taken from, in cells.
WIDTHS = (0.7, 1.5, 3.0)
#: Multiples of a prior mean that a cell may have; the least prior mean, in σ, stands for none; steps of EM.
MULTIPLES, SPIKE, STEPS = (0.0, 1 / 16, 1 / 4, 1.0, 4.0, 16.0), 0.01, 40
#: Parts of a prior mean that neighbours make up.
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that was answered.

    Attributes:
        values: the noisy answers, in persons, in the shape of the question.
        stddev: of the noise of each.
        possible: which cells a person can be in.
        columns: of the schema, by name.
    """

    question: PersonQuestion
    values: Values
    stddev: float
    possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    columns: Mapping[str, Column]

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
            asked.append(Asked(question, values, answer.stddev, _possible(question, columns), columns))
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


def likeliest(values: Values, stddev: float, means: Sequence[Values]) -> tuple[Values, Values]:
    """Posterior means and variances of cells seen through Gaussian noise, under the likeliest of several priors; none is below 0.

    A cell is exponential, with a multiple of its prior mean; the shares of the multiples are fitted by EM.

    Args:
        means: candidates, each with one prior mean per cell.
    """
    if stddev <= 0 or not values.size:
        return np.maximum(values, 0.0), np.zeros(values.shape)
    scaled, best, found, squares = values.ravel() / stddev, -np.inf, values.ravel(), values.ravel()
    for mean in means:
        rates = 1 / np.maximum(np.outer(MULTIPLES, mean.ravel() / stddev), SPIKE)
        tails = log_ndtr(scaled - rates)
        logs = np.log(rates) - scaled * rates + 0.5 * rates**2 + tails
        top = logs.max(axis=0)
        likelihoods, shares = np.exp(logs - top), np.full((len(MULTIPLES), 1), 1 / len(MULTIPLES))
        for _ in range(STEPS):
            parts = shares * likelihoods
            shares = (parts / parts.sum(axis=0)).mean(axis=1, keepdims=True)
        parts = shares * likelihoods
        likelihood = float((np.log(parts.sum(axis=0)) + top).sum())
        if likelihood > best:
            moved = scaled - rates
            inside = moved + np.exp(-0.5 * moved**2 - 0.5 * math.log(2 * math.pi) - tails)
            inside = np.maximum(inside, 0.0)
            best, found = likelihood, (parts * inside).sum(axis=0) / parts.sum(axis=0)
            squares = (parts * np.maximum(1 + moved * inside, 0.0)).sum(axis=0) / parts.sum(axis=0)
    variances = np.maximum(squares - found**2, 0.0) * stddev**2
    return (found * stddev).reshape(values.shape), variances.reshape(values.shape)


def smoothed(values: Values, lines: Sequence[int], stddev: float) -> Values:
    """Cells free of noise: each prior mean is a mean of all cells, or of the neighbours along the axes.

    Args:
        values: of any number of axes.
        lines: along each axis the first so many cells lie on a line; others have no neighbours.
    """
    flat = np.full(values.shape, max(float(values.mean()), 0.0))
    means = [flat, flat / 4]
    for width in WIDTHS:
        near = _neighbours(values, lines, width)
        means += [np.maximum(near, flat / 10), np.maximum(near, flat / 100)]
    return likeliest(values, stddev, means)[0]


def _neighbours(values: Values, lines: Sequence[int], width: float) -> Values:
    """Of each cell the mean of the others, by their distance along the axes."""
    total, count = values, np.ones(values.shape)
    for axis, line in enumerate(lines):
        place = np.arange(values.shape[axis])
        kernel = np.exp(-0.5 * ((place[:, None] - place[None, :]) / width) ** 2)
        kernel *= (place[:, None] < line) & (place[None, :] < line)
        np.fill_diagonal(kernel, 1.0)
        total, count = (np.moveaxis(np.tensordot(kernel, x, (1, axis)), 0, axis) for x in (total, count))
    return np.maximum((total - values) / np.maximum(count - 1, 1e-9), 0.0)


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
        wanted, variance = (
            _by_rows(one, by_size) if one.by_size else _one_row(one, start.reshape(one.values.shape), by_size)
        )
        targets.append(Target(one, wanted.ravel(), variance.ravel(), signal))
    for span in (t for t in targets if t.asked.kinds() == (Kind.RECORDS, Kind.SPAN)):
        targets = [
            _within_spans(t, span, by_size) if Kind.GAP in t.asked.kinds() and t.asked.by_size else t for t in targets
        ]
    return targets


def _within_spans(gaps: Target, spans: Target, by_size: Ints) -> Target:
    """Gaps that fit in the spans: no more persons have a long one than a long span, and the mean gap fills the span."""
    feature = spans.asked.question.features[1]
    if gaps.asked.question.features[-1].column != feature.column:
        return gaps
    sizes, numbers = np.array(spans.asked.question.features[0].groups), np.arange(1, by_size.size + 1)
    starts = np.array(feature.groups, np.float64)
    middles = (starts + np.append(starts[1:] - 1, starts[-1])) / 2
    rows = gaps.wanted.reshape(gaps.asked.values.shape).copy()
    for group in range(len(rows)):
        persons = by_size[sizes == group].sum()
        span = spans.wanted.reshape(spans.asked.values.shape)[group, :-1]
        if persons == 0 or not rows[group].sum() > 0 or not span.sum() > 0:
            continue
        inverse = (by_size[sizes == group] / np.maximum(numbers[sizes == group] - 1, 1)).sum() / persons
        mean = float(span @ middles / span.sum() * inverse)
        own = rows[group][..., :-1]
        total = own.sum()
        tails = np.cumsum(own.reshape(-1, starts.size).sum(axis=0)[::-1])[::-1]
        capped = np.minimum(tails, np.cumsum(span[::-1])[::-1] * total / span.sum())
        capped = np.diff(np.append(capped, 0.0)[::-1])[::-1]
        own *= np.maximum(capped, 0.0) / np.maximum(tails - np.append(tails[1:], 0.0), 1e-12)
        low, high = 0.0, 10.0
        for _ in range(50):
            tilt = np.exp(-(low + high) / 2 * middles)
            above = float((own * tilt * middles).sum()) > mean * float((own * tilt).sum())
            low, high = ((low + high) / 2, high) if above else (low, (low + high) / 2)
        own *= np.exp(-low * middles)
        own *= total / max(own.sum(), 1e-12)
    return replace(gaps, wanted=rows.ravel())


def _signal(asked: Asked, base: Values) -> float:
    """By how many standard deviations χ² of an answer against a base lies above that of noise."""
    cells = int(asked.possible.sum())
    away = (asked.values - base)[asked.possible]
    return float((away @ away / max(asked.stddev, 1e-6) ** 2 - cells) / math.sqrt(2 * max(cells, 1)))


def _onto(values: Values, total: float) -> Values:
    """The same row, scaled to a total."""
    return values * (total / values.sum()) if values.sum() > 0 else np.full_like(values, total / max(values.size, 1))


def _lines(asked: Asked) -> list[int]:
    """Along each axis after that of sizes, how many cells lie on a line."""
    lines = []
    for feature in asked.question.features[asked.by_size :]:
        column = asked.columns.get(feature.column)
        special = 0 if column is None else column.size - column.value_codes
        if feature.kind in (Kind.SPAN, Kind.GAP, Kind.MEAN):
            lines.append(feature.size - 1)
        elif feature.kind is Kind.DISTINCT:
            lines.append(feature.size)
        else:
            lines.append(feature.size - special if column is not None and is_ordered(column) else 0)
    return lines


def _one_row(asked: Asked, base: Values, by_size: Ints) -> tuple[Values, Values]:
    """A question without sizes: free of noise as it is, or as a change of the base; of the persons that it counts."""
    total = float(by_size[1:].sum() if asked.question.level == "steps" else by_size.sum())
    start, floor = _onto(base, total), total / base.size / 100
    means = [
        np.maximum(start * (1 - a) + a * _neighbours(asked.values, _lines(asked), w), floor)
        for a in PARTS
        for w in WIDTHS
    ]
    found, variance = likeliest(asked.values, asked.stddev, means)
    return _onto(np.where(asked.possible, found, 0.0), total), variance


def _by_rows(asked: Asked, by_size: Ints) -> tuple[Values, Values]:
    """A question by groups of sizes: what all rows have in common first, then each row near it and near its neighbours."""
    groups = np.array(asked.question.features[0].groups)
    values = np.where(asked.possible, asked.values, 0.0)
    rows, open_cells = values.reshape(groups.max() + 1, -1), asked.possible.reshape(groups.max() + 1, -1)
    totals = np.bincount(groups, by_size.astype(np.float64))
    several = open_cells.sum(axis=1) > 1
    if not several.any():
        return np.where(open_cells, totals[:, None], 0.0), np.zeros(rows.shape)
    pooled = smoothed(values[several].sum(axis=0), _lines(asked), asked.stddev * math.sqrt(several.sum())).ravel()
    common = np.array([_onto(np.where(o, pooled, 0.0), t) for o, t in zip(open_cells, totals, strict=True)])
    share = rows / np.maximum(totals, 1.0)[:, None]
    near = np.zeros_like(rows)
    for group in np.flatnonzero(several):
        beside = [g for g in (group - 1, group + 1) if 0 <= g < len(rows) and several[g]]
        if beside:
            near[group] = (
                np.maximum(np.average(share[beside], axis=0, weights=totals[beside] + 1e-9), 0.0) * totals[group]
            )
    means = [np.maximum((1 - a) * common + a * near, f * common)[open_cells] for a in PARTS for f in (0.1, 0.5)]
    wanted, variance = np.zeros_like(rows), np.zeros_like(rows)
    wanted[open_cells], variance[open_cells] = likeliest(rows[open_cells], asked.stddev, means)
    rows = np.array([_onto(row, t) if o.any() else row for row, o, t in zip(wanted, open_cells, totals, strict=True)])
    return rows, variance
