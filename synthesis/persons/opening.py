"""The first arrangement: persons draw their sizes, first times and spans; records are dealt to their slots in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled
from mechanisms.public.marginals import Values
from mechanisms.public.persons.person_features import Trait, difference_starts, resolution
from mechanisms.public.persons.person_features import times_of as whole_times
from mechanisms.public.persons.tally import Codes, Ints
from mechanisms.public.schema.code_labels import bin_bounds
from mechanisms.public.schema.column import Column
from synthesis.consistency.shrinkage import smoothed
from synthesis.persons.allowed import Bans, broken
from synthesis.persons.person_answers import Asked
from synthesis.persons.person_targets import PersonTarget
from synthesis.persons.swaps import below
from synthesis.rounding import codes_of

#: Yes or no for each.
Flags = NDArray[np.bool_]
#: Among so many records of a bin the nearest in level is taken.
LOOKED_AT = 24
#: So many are looked at until there is one that the person may hold.
LOOKED_FOR = 1024
#: First times are corrected so often.
CORRECTIONS = 8
#: So many walks are drawn for each person.
WALKS = 8


def drawn_constants(
    asked: Sequence[Asked], names: Sequence[str], sizes: Sequence[int], persons: int, rng: np.random.Generator
) -> Codes:
    """(constants, persons) codes: each constant for itself, by the answers about it; uniform where there are none."""
    drawn = np.zeros((len(names), persons), np.int32)
    for row, (name, size) in enumerate(zip(names, sizes, strict=True)):
        sums, weights = [np.ones(size)], [1e-12]
        for one in asked:
            every = [(f.kind, f.column) for f in one.question.features]
            axes = tuple(i for i, own in enumerate(every) if own != (Trait.CONSTANT, name))
            if one.question.level == "persons" and [*np.delete(one.values.shape, axes)] == [size]:
                sums.append(one.values.sum(axis=axes))
                weights.append(size / max(one.stddev**2 * one.values.size, 1e-12))
        margin = np.average(sums, axis=0, weights=weights)
        drawn[row] = codes_of(smoothed(margin, (0,), float(np.sum(weights)) ** -0.5)[0], persons, rng)
    return drawn


def stays(
    targets: Sequence[PersonTarget], column: str, times: Ints, starts: Ints, groups: Ints, rng: np.random.Generator
) -> Flags:
    """(records,) whether each slot keeps the code of the one before, by the gap between their times.

    Args:
        times: (records,) of each slot.
    """
    alike = (t for t in targets if Trait.SAME in t.asked.kinds())
    same = next((t for t in alike if t.asked.question.features[1].column == column), None)
    if same is None or times.size == 0:
        return np.zeros(times.size, np.bool_)
    cells = same.goal.reshape(same.asked.values.shape[0], 2, -1)
    before, gap = np.concatenate(([0], times[:-1])), np.zeros(times.size, np.int64)
    if cells.shape[2] > 1:
        edges = same.asked.question.features[-1].groups
        gap = np.searchsorted(edges, np.maximum(times - before, 0), side="right") - 1
        gap = np.where((times < 0) | (before < 0), cells.shape[2] - 1, gap)
    share = (cells[:, 1] + 0.01) / (cells.sum(axis=1) + 0.02)
    owners = np.repeat(np.arange(groups.size), np.diff(starts))
    chosen = rng.random(times.size) < share[groups[owners], gap]
    chosen[starts[:-1]] = False
    return np.asarray(chosen)


def drawn_levels(
    means: Sequence[PersonTarget], groups: Ints, signs: Sequence[float], rng: np.random.Generator
) -> Values:
    """(persons, levels) the mean of each column that a person wants, as a part of its codes; NaN for no value.

    Who is high in one column is high in those that rise with it, and low in those that fall.

    Args:
        signs: of each column's correlation with the first; 0 where there is none to speak of.
    """
    levels = np.full((groups.size, len(means)), np.nan)
    rank = rng.random(groups.size)
    for row, (target, sign) in enumerate(zip(means, signs, strict=True)):
        shape = target.asked.values.shape
        cell, last = drawn_cells(target.goal.reshape(shape), groups, rng), shape[1] - 1
        order = rank * sign if sign else rng.random(groups.size)
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            cell[inside[np.argsort(order[inside], kind="stable")]] = np.sort(cell[inside])
        levels[:, row] = np.where(cell == last, np.nan, (cell + rng.random(groups.size)) / max(last, 1))
    return levels


def drawn_cells(targets: Values, groups: Ints, rng: np.random.Generator) -> Ints:
    """For each person a cell of its group's row of the wanted counts."""
    cells = np.zeros(groups.size, np.int64)
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        cells[inside] = codes_of(targets[group], inside.size, rng)
    return cells


def planned_times(
    targets: Sequence[PersonTarget],
    starts: Ints,
    groups: Ints,
    time: Column | None,
    dated_tokens: Ints,
    rng: np.random.Generator,
) -> Values:
    """A time for each slot: a first one and steps from it up to the span; as many fall in each bin as there are.

    Args:
        dated_tokens: the times of the records that have one.
    """
    sizes, records = np.diff(starts), int(starts[-1])
    owners = np.repeat(np.arange(sizes.size), sizes)
    by_kinds = {t.asked.kinds(): t for t in reversed(targets)}  # of several the first
    first, span = (by_kinds.get((Trait.RECORDS, kind)) for kind in (Trait.FIRST, Trait.SPAN))
    if time is None or dated_tokens.size == 0 or span is None:
        return np.asarray(rng.random(records))
    low, high = (whole_times(b, time).astype(np.float64) for b in bin_bounds(time))
    longest = (time.high - time.low) / resolution(time)
    within = rng.random(sizes.size)
    edges = np.array([*span.asked.question.features[1].groups, longest + 1], np.float64)
    cell = np.minimum(drawn_cells(span.goal.reshape(span.asked.values.shape), groups, rng), edges.size - 2)
    length = edges[cell] + rng.random(sizes.size) * np.maximum(edges[cell + 1] - edges[cell] - 1, 0)
    walked = _walk(targets, starts, groups, owners, length, rng)
    if first is None:  # by chance it lies anywhere before what its steps leave
        room = np.maximum(dated_tokens.max() - dated_tokens.min() - walked[starts[1:] - 1], 0)
        return np.asarray((dated_tokens.min() + within * room)[owners] + walked)
    rows = first.goal.reshape(first.asked.values.shape)[:, : low.size]
    rows = rows + dated_tokens.size / records / (rows.shape[0] * rows.shape[1])
    there = np.bincount(_bins(dated_tokens, low), minlength=low.size) / dated_tokens.size
    return _begun(rows, groups, owners, walked, low, high, there, rng)


def _bins(times: Values | Ints, low: Values) -> Ints:
    """The bin of each time, from the bins' first times."""
    return np.asarray(np.clip(np.searchsorted(low, times, side="right") - 1, 0, low.size - 1))


def _begun(
    rows: Values, groups: Ints, owners: Ints, walked: Values, low: Values, high: Values, there: Values,
    rng: np.random.Generator,
) -> Values:  # fmt: skip
    """Walks from first times whose shares are corrected, step by step, for bins that have too many records or too few.

    Source: each correction is one of Richardson 1972 and Lucy 1974, from the noisy first times on.
    """
    inside = rng.random(groups.size)
    for _ in range(CORRECTIONS + 1):
        cell = drawn_cells(rows, groups, rng)
        planned = (low[cell] + inside * (high[cell] - low[cell] + 1))[owners] + walked
        bins = _bins(planned, low)
        share = np.bincount(bins, minlength=low.size) / owners.size
        ratio = there / np.maximum(share, 0.5 / owners.size)
        levels = np.bincount(owners, ratio[bins], groups.size) / np.bincount(owners, minlength=groups.size)
        persons = np.bincount(groups * low.size + cell, minlength=rows.size)
        factor = np.bincount(groups * low.size + cell, levels, rows.size) / np.maximum(persons, 1)
        rows = rows * np.where(persons > 0, factor, 1.0).reshape(rows.shape)
    return np.asarray(planned)


def gap_edges(column: Column) -> Values:
    """Where each cell of a difference begins, and where the last one ends."""
    starts = difference_starts(column)
    return np.array([*starts, max((column.high - column.low) / resolution(column), starts[-1]) + 1], np.float64)


def _walk(
    targets: Sequence[PersonTarget], starts: Ints, groups: Ints, owners: Ints, length: Values, rng: np.random.Generator
) -> Values:
    """Time since the first for each slot: of several walks by wanted gaps the one that ends nearest to the span."""
    records, place = owners.size, np.arange(owners.size) - starts[owners]
    even = length[owners] * place / np.maximum(np.diff(starts)[owners] - 1, 1)
    target = next((t for t in targets if Trait.GAP in t.asked.kinds()), None)
    if target is None:
        return np.asarray(even)
    edges = gap_edges(target.asked.columns[target.asked.question.features[-1].column])
    shape = target.asked.values.shape
    rows = target.goal.reshape(shape[0], -1, shape[-1]).sum(axis=1)[:, :-1]
    best, off = even, np.full(length.size, np.inf)
    for _ in range(WALKS):
        cell = np.zeros(records, np.int64)
        cell[place > 0] = drawn_cells(rows, groups[owners[place > 0]], rng)
        steps = np.floor(edges[cell] + rng.random(records) * (edges[cell + 1] - edges[cell])) * (place > 0)
        walked = np.cumsum(steps)
        walked -= walked[starts[:-1]][owners]
        away = np.abs(walked[starts[1:] - 1] - length)
        better = away < off
        best, off = np.where(better[owners], walked, best), np.where(better, away, off)
    return np.asarray(best)


def tokens_of_slots(planned: Values, starts: Ints, dated_tokens: int, rng: np.random.Generator) -> Ints:
    """(records,) the token of each slot: by rank of the planned times, missing ones anywhere; ascending in a person."""
    records = planned.size
    tokens = np.empty(records, np.int64)
    chosen = rng.permutation(records)
    tokens[chosen[dated_tokens:]] = np.arange(dated_tokens, records)
    dated = np.sort(chosen[:dated_tokens])
    tokens[dated[np.argsort(planned[dated], kind="stable")]] = np.arange(dated_tokens)
    owners = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    return np.asarray(tokens[np.lexsort((tokens, owners))])


@compiled
def _nearest(
    pool: Ints, low: int, high: int, levels: Values, aims: Values, bans: Bans, person: int, state: NDArray[np.uint64]
) -> int:
    """Where among some of a pool the record stands with levels nearest to a person's, of those that it may hold."""
    best, distance = low + below(state, high - low), np.inf
    for look in range(min(LOOKED_FOR, high - low)):
        if look >= LOOKED_AT and distance <= aims.shape[1]:
            break
        place = low + below(state, high - low)
        away = float(broken(bans, person, pool[place]) * (aims.shape[1] + 1))
        for k in range(aims.shape[1]):
            if not np.isnan(aims[person, k]):
                away += min(abs(levels[pool[place], k] - aims[person, k]), 1.0)
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
    levels: Values,
    staying: Flags,
    aims: Values,
    bans: Bans,
    state: NDArray[np.uint64],
) -> None:
    """Write the record of each slot, in the order of time: one of its bin, that stays or is near in level.

    Args:
        leading: (records,) the code in which a slot may stay; of so many codes.
        levels: (records, levels) as parts of the codes; `wanted` (persons, levels).
        staying: (records,) which slots keep the code of the slot before.
    """
    pool, places = np.empty(len(bins), np.int64), np.empty(len(bins), np.int64)
    begins = np.zeros((len(bin_begins) - 1) * codes + 1, np.int64)
    for r in range(len(bins)):
        begins[bins[r] * codes + leading[r] + 1] += 1
    for k in range(len(begins) - 1):
        begins[k + 1] += begins[k]
    left, ends = begins[:-1].copy(), bin_begins[1:].copy()
    for r in range(len(bins)):  # records of one bin and code lie together
        key = bins[r] * codes + leading[r]
        pool[left[key]], places[r] = r, left[key]
        left[key] += 1
    alike, free, time_bin = pool.copy(), np.ones(len(bins), np.bool_), 0
    for token in range(len(bins)):
        slot, chosen = slot_of_token[token], -1
        while bin_begins[time_bin + 1] <= token:
            time_bin += 1
        if staying[slot]:
            key = time_bin * codes + leading[members[slot - 1]]
            while left[key] > begins[key] and chosen < 0:
                place = _nearest(alike, begins[key], left[key], levels, aims, bans, owners[slot], state)
                if free[alike[place]]:
                    chosen = alike[place]
                left[key] -= 1
                alike[place] = alike[left[key]]
        if chosen < 0:
            place = _nearest(pool, bin_begins[time_bin], ends[time_bin], levels, aims, bans, owners[slot], state)
            chosen = pool[place]
        free[chosen] = False
        ends[time_bin] -= 1
        last, place = pool[ends[time_bin]], places[chosen]
        pool[place], places[last] = last, place
        members[slot] = chosen
