"""How many persons have 1, 2, … records: whole numbers that account for every record."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanisms.public.marginals import Values
from mechanisms.public.persons.person_features import Trait
from mechanisms.public.persons.tally import Ints
from synthesis.persons.person_answers import Asked

#: Added to variances, which may be 0 where there is no noise.
TINY = 1e-9


def persons_by_size(asked: Sequence[Asked], most: int, records: int) -> Ints:
    """(most,) how many persons have 1, 2, … records: whole numbers of that many records in all.

    The histogram is brought onto the sums of other answers by inverse variance, onto the number of records by least
    squares, thin sizes share a smooth tail, and a tilt takes up what is left.

    Edge cases: without a histogram, or where nothing in it is above 0, each record is a person of its own.
    """
    values = _persons(asked, np.arange(1, most + 1), records)
    if values is None:
        return np.array([records] + [0] * (most - 1))
    return _whole(values, records)


def all_records(asked: Sequence[Asked], most: int, total: int, bound: int) -> int:
    """How many records all persons have, of whom each counts with `bound` at most, and all together with `total`."""
    numbers = np.arange(1, most + 1)
    values = _persons(asked, np.minimum(numbers, bound), total)
    return total if values is None else round(float(values @ numbers))


def _persons(asked: Sequence[Asked], counted: Ints, total: int) -> Values | None:
    """(most,) how many persons have 1, 2, … records, where one of n counts as counted[n − 1] in a known total."""
    own, most = next((a for a in asked if a.kinds() == (Trait.RECORDS,)), None), counted.size
    if own is None or not (own.values > 0).any() or most == 1 or total == 0:
        return None
    numbers = counted.astype(np.float64)
    values, slope = _with_sums(own, asked), numbers / numbers.max()  # the largest rises as fast as the level
    low, high = -np.abs(values).max() - 1.0, np.abs(values).max() + total + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        above = numbers @ np.maximum(values + middle * slope, 0.0) > total
        low, high = (low, middle) if above else (middle, high)
    smooth = _smooth_tail(np.maximum(values + high * slope, 0.0), own.stddev)
    return _tilted(smooth, numbers, total)


def _with_sums(own: Asked, asked: Sequence[Asked]) -> Values:
    """The histogram, whose groups of sizes have the sums of all answers by inverse variance."""
    values, kept = own.values.copy(), [a for a in asked if a.by_size]
    for groups in sorted({a.question.features[0].groups for a in kept}):
        like = [a for a in kept if a.question.features[0].groups == groups]
        for group in range(max(groups) + 1):
            inside = np.array(groups) == group
            sums, weights = [values[inside].sum()], [1 / ((own.stddev**2 + TINY) * inside.sum())]
            for other in like:
                if cells := int(other.possible[group].sum()):
                    sums.append(other.values[group][other.possible[group]].sum())
                    weights.append(1 / ((other.stddev**2 + TINY) * cells))
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


def _tilted(values: Values, numbers: Values, records: int) -> Values:
    """values × e^(λ n) of the same sum, where that can be, whose Σ n × values is the number of records."""
    total = float(np.clip(values.sum(), records / numbers.max(), records))
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        shape = values * np.exp(middle * (numbers - (numbers.max() if middle > 0 else 1)))
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
