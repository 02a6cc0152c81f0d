"""How many persons have 1, 2, … records: whole numbers that account for every record; their shares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.persons.person_questions import PersonQuestion, Trait, sizes
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import Schema
from synthesis.consistency.projection import norm_sub
from synthesis.persons.person_targets import Asked

#: Added to variances, which may be 0 where there is no noise.
TINY = 1e-9


def persons_by_size(asked: Sequence[Asked], most: int, records: int) -> Ints:
    """(most,) how many persons have 1, 2, … records: whole numbers of that many records in all.

    The histogram is brought onto the sums of other answers by inverse variance, onto the number of records by least
    squares, thin sizes share a smooth course, and a tilt takes up what is left.

    Edge cases: a histogram that was lost is what other answers say of groups of sizes; without these too, or where
    nothing is above 0, each record is a person of its own.
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


def _persons(asked: Sequence[Asked], counted: Ints, total: int) -> Floats | None:
    """(most,) how many persons have 1, 2, … records, where one of n counts as counted[n − 1] in a known total."""
    most = counted.size
    own = next((a for a in asked if a.kinds() == (Trait.RECORDS,)), None) or _by_groups(asked, most)
    if own is None or not (own.values > 0).any() or most == 1 or total == 0:
        return None
    numbers = counted.astype(np.float64)
    values = _with_sums(own, asked)
    values += numbers * (total - numbers @ values) / (numbers @ numbers)
    return _tilted(_smooth(values, own.stddev), numbers, total)


def _by_groups(asked: Sequence[Asked], most: int) -> Asked | None:
    """In place of a lost histogram: the least noisy answer beside sizes, evenly inside its groups, as one so noisy."""
    beside = [a for a in asked if a.by_size and a.question.level == "persons"]
    if not beside:
        return None
    best = min(beside, key=lambda a: a.stddev**2 * a.values.size)
    rows = np.where(best.possible, best.values, 0).reshape(best.values.shape[0], -1)
    groups = np.array(best.question.features[0].groups)
    values = (rows.sum(axis=1) / np.bincount(groups))[groups]
    question = PersonQuestion("persons", (sizes(most, every=True),))
    stddev = best.stddev * math.sqrt(rows.shape[1])
    return Asked(question, values, stddev, np.ones(most, np.bool_), best.columns)


def _with_sums(own: Asked, asked: Sequence[Asked]) -> Floats:
    """The histogram, whose groups of sizes have the sums of all answers by inverse variance."""
    values, by_sizes = own.values.copy(), [a for a in asked if a.by_size]
    for groups in sorted({a.question.features[0].groups for a in by_sizes}):
        like = [a for a in by_sizes if a.question.features[0].groups == groups]
        for group in range(max(groups) + 1):
            inside = np.array(groups) == group
            sums, weights = [values[inside].sum()], [1 / ((own.stddev**2 + TINY) * inside.sum())]
            for other in like:
                if cells := int(other.possible[group].sum()):
                    sums.append(other.values[group][other.possible[group]].sum())
                    weights.append(1 / ((other.stddev**2 + TINY) * cells))
            values[inside] += (np.average(sums, weights=weights) - sums[0]) / inside.sum()
    return values


def _smooth(values: Floats, stddev: float) -> Floats:
    """Sizes from the largest down are merged until each group stands above three σ, and spread smoothly inside.

    Sums of groups keep what is below 0, so that noise in many sizes that nobody has adds nobody to them. A size that
    rises three σ above its group, as where all persons have 12 records of at most 20, is a group of its own.
    """
    edges, stop = [values.size], values.size
    while stop > 0:
        start = stop - 1
        while start > 0 and values[start:stop].sum() < 3 * stddev * math.sqrt(stop - start):
            start -= 1
        edges.append(start)
        stop = start
    edges.reverse()
    while True:
        shape = _spread(values, list(itertools.pairwise(edges)))
        alone = [e for e in edges[:-1] if e + 1 not in edges and values[e] - shape[e] > 3 * stddev]
        if not alone:
            return shape
        edges = sorted({*edges, *(e + 1 for e in alone)})


def _spread(values: Floats, groups: Sequence[tuple[int, int]]) -> Floats:
    """The sums of groups of sizes, spread log-linearly from centre to centre, the last one by e^(−s √n).

    Its s is what brings it from the height of the group before to its sum: between a geometric tail, as of visits, and
    a power of n, as of calls by address.
    """
    sums = np.array([max(values[a:b].sum(), 1e-3) for a, b in groups])
    centres, sizes = np.mean(groups, axis=1) - 0.5, np.diff(groups)[:, 0]
    height, place = np.log(sums / sizes), np.arange(values.size, dtype=np.float64)
    line = np.interp(place, centres, height)
    start, stop = groups[-1]
    if len(groups) > 1 and stop - start > 1:
        way = np.sqrt(place[start:] + 1) - math.sqrt(centres[-2] + 1)
        fall = _root(lambda s: -float(np.exp(height[-2] - s * way).sum()), -sums[-1], 0.0, 20 / way[0])
        line[start:] = height[-2] - fall * way
    shape = np.exp(np.maximum(line, -600.0))  # above 0 everywhere
    for (a, b), each in zip(groups, sums, strict=True):
        shape[a:b] *= each / shape[a:b].sum()
    return shape


def _tilted(values: Floats, numbers: Floats, records: int) -> Floats:
    """values × e^(λ n) of the same sum, where that can be, whose Σ n × values is the number of records."""
    total = float(np.clip(values.sum(), records / numbers.max(), records))

    def tilted(by: float) -> Floats:
        shape = values * np.exp(by * (numbers - (numbers.max() if by > 0 else 1)))
        return np.asarray(shape * (total / shape.sum()))

    shape = tilted(_root(lambda by: float(tilted(by) @ numbers), records, -50.0, 50.0))
    return np.asarray(shape * (records / (shape @ numbers)))


def _root(rising: Callable[[float], float], goal: float, low: float, high: float) -> float:
    """Where a rising function reaches a goal, or the end that is nearer to it."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > goal else (middle, high)
    return (low + high) / 2


def _whole(values: Floats, records: int) -> Ints:
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


def records_shares(histogram: NoisyMarginal) -> tuple[tuple[int, float], ...]:
    """(number of records, share of the units with so many), from the closest non-negative histogram of the same sum.

    Edge cases: a noisy number of units that is not above 0 tells nothing: every row is a unit of its own.
    """
    cells = norm_sub(histogram.values, float(histogram.values.sum()))
    if not cells.sum() > 0:
        return ((1, 1.0),)
    shares = cells / cells.sum()
    return tuple((n, float(p)) for n, p in enumerate(shares, start=1) if p > 0)


def with_records(schema: Schema, measurements: Measurements) -> Schema:
    """The schema, with the measured records per unit where it asks for them; as it is where they were lost."""
    ids = schema.rules.unit_ids
    if ids is None or not ids.measured or measurements.histogram is None:
        return schema
    filled = replace(ids, records=records_shares(measurements.histogram))
    return replace(schema, rules=replace(schema.rules, unit_ids=filled))
