"""The first arrangement: persons draw their sizes, first times and spans; records are dealt to their slots in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.jit import compiled
from mechanisms.public.persons.person_questions import Trait, difference_starts, resolution
from mechanisms.public.persons.person_questions import times_of as whole_times
from mechanisms.public.persons.tally import Codes
from mechanisms.public.schema.code_labels import bin_bounds
from mechanisms.public.schema.column import Column
from synthesis.consistency.shrinkage import smoothed
from synthesis.persons.allowed import Bans, broken
from synthesis.persons.person_targets import Asked, PersonTarget
from synthesis.rounding import codes_of
from synthesis.xorshift import below

#: Among so many records of a bin the nearest in level is taken.
LOOKED_AT = 24
#: So many are looked at until there is one that the person may hold.
LOOKED_FOR = 1024
#: Exchanges that are tried for each step and each first time.
EXCHANGES = 16
#: Bins of time in which records are counted meanwhile, at most.
FINE = 512


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
) -> Floats:
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


def drawn_cells(targets: Floats, groups: Ints, rng: np.random.Generator) -> Ints:
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
) -> Floats:
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
        begun = dated_tokens.min() + within * room
    else:
        rows = first.goal.reshape(first.asked.values.shape)[:, : low.size]
        cell = drawn_cells(rows + dated_tokens.size / records / (rows.shape[0] * rows.shape[1]), groups, rng)
        begun = low[cell] + within * (high[cell] - low[cell] + 1)
    # bins of about as many records each, or more where many have one time
    bins = np.unique(dated_tokens[np.arange(FINE) * dated_tokens.size // FINE]).astype(np.float64)
    there = np.diff(np.searchsorted(dated_tokens, bins), append=dated_tokens.size) * (records / dated_tokens.size)
    state, end = np.array([rng.integers(1, 2**63)], np.uint64), float(dated_tokens[-1]) + 1
    exchanged_begins(begun, walked, starts, *_by_group(np.arange(sizes.size), groups), bins, there, end, state)
    return np.asarray(begun[owners] + walked)


def _by_group(members: Ints, groups: Ints) -> tuple[Ints, Ints, Ints]:
    """The members' groups, the members by group, and where each group's begin among them."""
    order = members[np.argsort(groups[members], kind="stable")]
    return groups, order, np.searchsorted(groups[order], np.arange(groups.max() + 2)).astype(np.int64)


def gap_edges(column: Column) -> Floats:
    """Where each cell of a difference begins, and where the last one ends."""
    starts = difference_starts(column)
    return np.array([*starts, max((column.high - column.low) / resolution(column), starts[-1]) + 1], np.float64)


def _walk(
    targets: Sequence[PersonTarget], starts: Ints, groups: Ints, owners: Ints, length: Floats, rng: np.random.Generator
) -> Floats:
    """Time since the first for each slot: of several walks by wanted gaps the one that ends nearest to the span."""
    records, place = owners.size, np.arange(owners.size) - starts[owners]
    even = length[owners] * place / np.maximum(np.diff(starts)[owners] - 1, 1)
    target = next((t for t in targets if Trait.GAP in t.asked.kinds()), None)
    if target is None:
        return np.asarray(even)
    edges = gap_edges(target.asked.columns[target.asked.question.features[-1].column])
    shape = target.asked.values.shape
    rows = target.goal.reshape(shape[0], -1, shape[-1]).sum(axis=1)[:, :-1]
    later = np.flatnonzero(place > 0)
    cell, steps = drawn_cells(rows, groups[owners[later]], rng), np.zeros(records)
    steps[later] = np.floor(edges[cell] + rng.random(later.size) * (edges[cell + 1] - edges[cell]))
    over = np.bincount(owners, steps, groups.size).astype(np.float64) - np.floor(length)
    state = np.array([rng.integers(1, 2**63)], np.uint64)
    exchanged_steps(steps, over, owners, *_by_group(later, groups[owners]), state)
    walked = np.cumsum(steps)
    return np.asarray(walked - walked[starts[:-1]][owners])


@compiled
def exchanged_steps(
    steps: Floats, over: Floats, owners: Ints, groups: Ints, order: Ints, begins: Ints, state: NDArray[np.uint64]
) -> None:
    """Persons of one group exchange steps, in place, where their sums then lie nearer to their spans.

    Args:
        steps: (records,) the time from the record before.
        over: (persons,) by how much the steps' sum lies above the span.
        groups: (records,) of their persons; `order`, `begins` the records that have a step, by group.
    """
    for _ in range(EXCHANGES * len(order)):
        a = order[below(state, len(order))]
        low = begins[groups[a]]
        b = order[low + below(state, begins[groups[a] + 1] - low)]
        one, other, less = owners[a], owners[b], steps[a] - steps[b]
        if one != other and abs(over[one] - less) + abs(over[other] + less) <= abs(over[one]) + abs(over[other]):
            over[one] -= less
            over[other] += less
            steps[a], steps[b] = steps[b], steps[a]


@compiled
def exchanged_begins(
    begun: Floats, walked: Floats, starts: Ints, groups: Ints, order: Ints, begins: Ints, edges: Floats, there: Floats,
    end: float, state: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Persons of one group exchange first times, in place, where all times then lie nearer to those that are there.

    Args:
        begun: (persons,) first times; `walked` (records,) the time since then; `groups` (persons,), `order` and
            `begins` the persons by group.
        edges: where bins of time begin; `there` how many records each has, none lies at the `end` or later.
    """
    over = np.append(-there, 0.0)
    for person in range(len(begun)):
        _counted(over, edges, end, begun[person] + walked[starts[person] : starts[person + 1]], 1.0)
    for _ in range(EXCHANGES * len(begun)):
        a = below(state, len(begun))
        low = begins[groups[a]]
        b = order[low + below(state, begins[groups[a] + 1] - low)]
        one, other = walked[starts[a] : starts[a + 1]], walked[starts[b] : starts[b + 1]]
        for _ in range(2):  # there, and back where nothing is gained
            rise = _counted(over, edges, end, begun[a] + one, -1.0) + _counted(over, edges, end, begun[b] + other, -1.0)
            begun[a], begun[b] = begun[b], begun[a]
            rise += _counted(over, edges, end, begun[a] + one, 1.0) + _counted(over, edges, end, begun[b] + other, 1.0)
            if rise < 0.0:
                break


@compiled
def _counted(over: Floats, edges: Floats, end: float, times: Floats, sign: float) -> float:
    """Count times in their bins; returns by how much the sum of squares rises."""
    rise = 0.0
    for time in times:
        k = len(edges) if time >= end else max(np.searchsorted(edges, time, side="right") - 1, 0)
        rise += 1.0 + 2.0 * sign * over[k]
        over[k] += sign
    return rise


def tokens_of_slots(planned: Floats, starts: Ints, dated_tokens: int, rng: np.random.Generator) -> Ints:
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
    pool: Ints, low: int, high: int, levels: Floats, aims: Floats, bans: Bans, person: int, state: NDArray[np.uint64]
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
    levels: Floats,
    staying: Flags,
    aims: Floats,
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
