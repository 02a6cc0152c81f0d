"""The first arrangement: persons draw their sizes, first times and spans; records are dealt to their slots in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled
from mechanisms.public.marginals import Values
from mechanisms.public.persons.features import Kind, difference_starts, resolution
from mechanisms.public.persons.features import times_of as whole_times
from mechanisms.public.persons.tally import Ints
from mechanisms.public.schema.code_labels import bin_bounds
from mechanisms.public.schema.column import Column
from synthesis.persons.arrangement import Codes
from synthesis.persons.swaps import below
from synthesis.persons.targets import Asked, Target, smoothed
from synthesis.rounding import codes_of

#: Among so many records of a bin the nearest in level is taken.
LOOKED_AT = 24
#: So many walks are drawn for each person.
WALKS = 8


@dataclass(frozen=True, eq=False)
class Drawn:
    """What each person draws.

    Attributes:
        planned: (records,) the time that each slot is planned for, of any scale; a person's in ascending order.
        stays: (records,) whether a slot keeps the leading code of the one before.
        levels: (persons,) the mean code wanted; −1 for none.
    """

    planned: Values
    stays: NDArray[np.bool_]
    levels: Values


def target_of(targets: Sequence[Target], *kinds: Kind) -> Target | None:
    """The first target whose features are of these kinds."""
    return next((t for t in targets if t.asked.kinds() == kinds), None)


def drawn_constants(
    asked: Sequence[Asked], names: Sequence[str], sizes: Sequence[int], persons: int, rng: np.random.Generator
) -> Codes:
    """(constants, persons) codes: each constant for itself, by the answers about it; uniform where there are none."""
    drawn = np.zeros((len(names), persons), np.int32)
    for row, (name, size) in enumerate(zip(names, sizes, strict=True)):
        sums, weights = [np.ones(size)], [1e-12]
        for one in asked:
            axis = next(
                (i for i, f in enumerate(one.question.features) if f.kind is Kind.CONSTANT and f.column == name), -1
            )
            if one.question.level == "persons" and axis >= 0 and one.values.shape[axis] == size:
                axes = tuple(i for i in range(one.values.ndim) if i != axis)
                sums.append(one.values.sum(axis=axes))
                weights.append(size / max(one.stddev**2 * one.values.size, 1e-12))
        margin = np.average(sums, axis=0, weights=weights)
        drawn[row] = codes_of(smoothed(margin, (0,), float(np.sum(weights) / size) ** -0.5), persons, rng)
    return drawn


def draw(
    targets: Sequence[Target],
    starts: Ints,
    groups: Ints,
    time: Column | None,
    level_codes: int,
    leading: tuple[str, str],
    rng: np.random.Generator,
) -> Drawn:
    """What persons of given sizes draw from the targets.

    Args:
        groups: (persons,) the group of each person's size.
        level_codes: of the leading level.
        leading: the columns whose sameness and whose level are dealt by.
    """
    sizes, persons, records = np.diff(starts), starts.size - 1, int(starts[-1])
    owners = np.repeat(np.arange(persons), sizes)
    stays, levels = np.zeros(records, np.bool_), np.full(persons, -1.0)
    same = next(
        (t for t in targets if Kind.SAME in t.asked.kinds() and t.asked.question.features[1].column == leading[0]), None
    )
    if same is not None:
        cells = same.wanted.reshape(*same.asked.values.shape[:2], -1).sum(axis=2)
        share = cells[:, 1] / np.maximum(cells.sum(axis=1), 1e-12)
        stays = rng.random(records) < share[groups[owners]]
    mean = next(
        (
            t
            for t in targets
            if t.asked.kinds() == (Kind.RECORDS, Kind.MEAN) and t.asked.question.features[1].column == leading[1]
        ),
        None,
    )
    if mean is not None:
        cell, last = _cells(mean, groups, rng), mean.asked.values.shape[1] - 1
        levels = np.where(cell == last, -1.0, (cell + rng.random(persons)) * level_codes / last)
    return Drawn(_planned(targets, starts, groups, owners, time, rng), stays, levels)


def _cells(target: Target, groups: Ints, rng: np.random.Generator) -> Ints:
    """For each person a cell of its group's row."""
    rows, cells = target.wanted.reshape(target.asked.values.shape[0], -1), np.zeros(groups.size, np.int64)
    for group in range(len(rows)):
        inside = np.flatnonzero(groups == group)
        cells[inside] = codes_of(rows[group], inside.size, rng)
    return cells


def _planned(
    targets: Sequence[Target], starts: Ints, groups: Ints, owners: Ints, time: Column | None, rng: np.random.Generator
) -> Values:
    """A time for each slot: from the first on, at even distances up to the span."""
    sizes, records = np.diff(starts), int(starts[-1])
    first, span = target_of(targets, Kind.RECORDS, Kind.FIRST), target_of(targets, Kind.RECORDS, Kind.SPAN)
    if time is None or (first is None and span is None):
        return np.asarray(rng.random(records))
    low, high = (whole_times(b, time).astype(np.float64) for b in bin_bounds(time))
    longest = (time.high - time.low) / resolution(time)
    begin = rng.random(sizes.size) * longest
    if first is not None:
        cell = np.minimum(_cells(first, groups, rng), low.size - 1)
        begin = low[cell] + rng.random(sizes.size) * (high[cell] - low[cell] + 1)
    length = rng.random(sizes.size) * longest
    if span is not None:
        edges = np.array([*span.asked.question.features[1].groups, longest + 1], np.float64)
        cell = np.minimum(_cells(span, groups, rng), edges.size - 2)
        length = edges[cell] + rng.random(sizes.size) * np.maximum(edges[cell + 1] - edges[cell] - 1, 0)
    return np.asarray(begin[owners] + _walk(targets, starts, groups, owners, length, rng))


def gap_edges(column: Column) -> Values:
    """Where each cell of a difference begins, and where the last one ends."""
    starts = difference_starts(column)
    return np.array([*starts, max((column.high - column.low) / resolution(column), starts[-1]) + 1], np.float64)


def _walk(targets: Sequence[Target], starts: Ints, groups: Ints, owners: Ints, length: Values, rng: np.random.Generator) -> Values:
    """Time since the first for each slot: of several walks by wanted gaps the one that ends nearest to the span."""
    records, place = owners.size, np.arange(owners.size) - starts[owners]
    even = length[owners] * place / np.maximum(np.diff(starts)[owners] - 1, 1)
    target = next((t for t in targets if Kind.GAP in t.asked.kinds()), None)
    if target is None:
        return np.asarray(even)
    edges = gap_edges(target.asked.columns[target.asked.question.features[-1].column])
    shape = target.asked.values.shape
    rows = target.wanted.reshape(shape[0], -1, shape[-1]).sum(axis=1)[:, :-1]
    best, off = even, np.full(length.size, np.inf)
    for _ in range(WALKS):
        cell = np.zeros(records, np.int64)
        for group in range(shape[0]):
            inside = np.flatnonzero((groups[owners] == group) & (place > 0))
            cell[inside] = codes_of(rows[group], inside.size, rng)
        steps = np.floor(edges[cell] + rng.random(records) * (edges[cell + 1] - edges[cell])) * (place > 0)
        walked = np.cumsum(steps)
        walked -= walked[starts[:-1]][owners]
        away = np.abs(walked[starts[1:] - 1] - length)
        better = away < off
        best, off = np.where(better[owners], walked, best), np.where(better, away, off)
    return np.asarray(best)


def tokens_of_slots(planned: Values, starts: Ints, known: int, rng: np.random.Generator) -> Ints:
    """(records,) the token of each slot: times by rank of the planned ones, missing ones anywhere; ascending in a person."""
    records = planned.size
    tokens = np.empty(records, np.int64)
    chosen = rng.permutation(records)
    tokens[chosen[known:]] = np.arange(known, records)
    dated = np.sort(chosen[:known])
    tokens[dated[np.argsort(planned[dated], kind="stable")]] = np.arange(known)
    owners = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    return np.asarray(tokens[np.lexsort((tokens, owners))])


@compiled
def _nearest(pool: Ints, low: int, high: int, levels: Values, wanted: float, state: NDArray[np.uint64]) -> int:
    """Where among some of a pool the record stands whose level is nearest."""
    best, distance = low + below(state, high - low), np.inf
    if wanted < 0:
        return best
    for _ in range(min(LOOKED_AT, high - low)):
        place = low + below(state, high - low)
        away = abs(levels[pool[place]] - wanted)
        if away < distance:
            best, distance = place, away
    return best


@compiled
def deal(
    members: Ints,
    slot_of_token: Ints,
    owners: Ints,
    bins: Codes,
    bin_begins: Ints,
    leading: Codes,
    codes: int,
    record_levels: Values,
    stays: NDArray[np.bool_],
    person_levels: Values,
    state: NDArray[np.uint64],
) -> None:
    """Give a record to each slot, in the order of time: one of its bin, that stays or is near in level.

    Args:
        leading: (records,) the code in which a slot may stay; of so many codes.
    """
    records = len(bins)
    pool, place_in_pool = np.empty(records, np.int64), np.empty(records, np.int64)
    begins = np.zeros((len(bin_begins) - 1) * codes + 1, np.int64)
    for r in range(records):
        begins[bins[r] * codes + leading[r] + 1] += 1
    for k in range(len(begins) - 1):
        begins[k + 1] += begins[k]
    left, ends = begins[:-1].copy(), bin_begins[1:].copy()
    for r in range(records):  # records of one bin and code lie together
        key = bins[r] * codes + leading[r]
        pool[left[key]] = r
        left[key] += 1
    alike = pool.copy()
    for place in range(records):
        place_in_pool[pool[place]] = place
    free = np.ones(records, np.bool_)
    for token in range(records):
        slot = slot_of_token[token]
        time_bin, chosen = np.searchsorted(bin_begins, token, side="right") - 1, -1
        level = person_levels[owners[slot]]
        if stays[slot] and slot > 0 and owners[slot - 1] == owners[slot]:
            key = time_bin * codes + leading[members[slot - 1]]
            while left[key] > begins[key]:
                place = _nearest(alike, begins[key], left[key], record_levels, level, state)
                candidate = alike[place]
                if free[candidate]:
                    chosen = candidate
                    break
                left[key] -= 1
                alike[place] = alike[left[key]]
        if chosen < 0:
            chosen = pool[_nearest(pool, bin_begins[time_bin], ends[time_bin], record_levels, level, state)]
        free[chosen] = False
        ends[time_bin] -= 1
        last, place = pool[ends[time_bin]], place_in_pool[chosen]
        pool[place], place_in_pool[last] = last, place
        members[slot] = chosen
