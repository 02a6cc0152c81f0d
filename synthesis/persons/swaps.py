"""Swaps that lower the cost of an arrangement: of records, times and constants, between two persons.

A hill climb in the space of arrangements: every swap that is kept lowers the cost, none is kept that raises it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Ints
from mechanisms.public.jit import compiled_in_place, compiled_uncounted
from mechanisms.public.persons.tally import MOMENTS, Codes, bit_of
from synthesis.persons.allowed import breaks, broken, exchange_constant
from synthesis.persons.arrangement import Goals, Links, Undo, keep, settled, swap_slots, swap_times
from synthesis.xorshift import below

#: Of 64 proposals so many look for a record like the one before or after, of these the rest in another bin of time; so
#: many for a time at a gap that is wanted; the rest for any record of the same bin.
ALIKE, ELSEWHERE, TIMES = 32, 38, 53
#: A record that may be spared is looked for so often; and one that is not yet where a proposal would bring it.
TRIES, AGAIN = 8, 6


class Aims(NamedTuple):
    """Where records lie that a proposal may want.

    Attributes:
        bins: (records,) the bin of time of each record.
        bin_begins: (bins + 1,) the first token of each bin.
        token_times: (records,) the time of each token, ascending; none last.
        dated: how many tokens have a time.
        columns: (aims,) rows of codes in which a record may be like its neighbour, the leading one first.
        sizes: (aims,) codes of each; `offsets` where its parts begin in `begins`.
        begins: for each bin and code, where its records begin in `records`.
        records: (aims, records) by bin and code.
        gaps: times between a record and the next one, as often as they are wanted; empty where nothing is known.
    """

    bins: Codes
    bin_begins: Ints
    token_times: Ints
    dated: int
    columns: Ints
    sizes: Ints
    offsets: Ints
    begins: Ints
    records: Codes
    gaps: Ints


@compiled_in_place
def _neighbour(links: Links, slot: int, state: NDArray[np.uint64]) -> int:
    """The slot before or after, of the same person; −1 where there is none."""
    person = links.owners[slot]
    start, stop = links.starts[person], links.starts[person + 1]
    if stop - start < 2:
        return -1
    near = slot - 1 if below(state, 2) == 0 else slot + 1
    if near < start:
        return slot + 1
    return slot - 1 if near >= stop else near


@compiled_in_place
def _another(links: Links, slot: int, near: int, state: NDArray[np.uint64]) -> tuple[int, int]:
    """Another slot and one beside it; the same ones where it has none."""
    other = below(state, len(links.members))
    beside = _neighbour(links, other, state)
    return (slot, near) if beside < 0 else (other, beside)


@compiled_in_place
def _like(goals: Goals, aims: Aims, aim: int, time_bin: int, record: int, state: NDArray[np.uint64]) -> int:
    """A record of a bin of time with the code of another record; −1 where there is none."""
    key = aims.offsets[aim] + time_bin * aims.sizes[aim] + goals.codes[aims.columns[aim], record]
    low, high = aims.begins[key], aims.begins[key + 1]
    return -1 if low == high else int(aims.records[aim, low + below(state, high - low)])


@compiled_in_place
def _stays(goals: Goals, links: Links, aims: Aims, aim: int, record: int) -> bool:
    """Whether a record has the code of the one before or after it."""
    slot, column = links.places[record], aims.columns[aim]
    person, code = links.owners[slot], goals.codes[column, record]
    if slot > links.starts[person] and goals.codes[column, links.members[slot - 1]] == code:
        return True
    return bool(slot + 1 < links.starts[person + 1] and goals.codes[column, links.members[slot + 1]] == code)


@compiled_in_place
def _free(
    goals: Goals, links: Links, aims: Aims, aim: int, time_bin: int, near: int, a: int, state: NDArray[np.uint64]
) -> int:
    """A record like a neighbour of another one; if that would be new there, one unlike its own neighbours if found."""
    like = _like(goals, aims, aim, time_bin, near, state)
    if like < 0 or _stays(goals, links, aims, aim, a):
        return like
    for _ in range(TRIES):
        if not _stays(goals, links, aims, aim, like):
            break
        like = _like(goals, aims, aim, time_bin, near, state)
    return like


@compiled_in_place
def _token_at(aims: Aims, time: int, state: NDArray[np.uint64]) -> int:
    """A token of a time, or the first later one."""
    low = int(np.searchsorted(aims.token_times[: aims.dated], time, side="left"))
    high = int(np.searchsorted(aims.token_times[: aims.dated], time, side="right"))
    return min(low, aims.dated - 1) if high == low else low + below(state, high - low)


@compiled_in_place
def _at_gap(links: Links, record: int, gap: int) -> bool:
    """Whether so much time lies between a record and the one before or after it."""
    slot, time = links.places[record], links.times[record]
    person = links.owners[slot]
    if slot > links.starts[person] and time - links.times[links.members[slot - 1]] == gap:
        return True
    return bool(slot + 1 < links.starts[person + 1] and links.times[links.members[slot + 1]] - time == gap)


@compiled_in_place
def _swap(goals: Goals, links: Links, room: Undo, a: int, b: int, slots: bool, times: bool) -> float:
    """Two records exchange slots, times or both, if the cost falls by it."""
    low, low_other = links.places[a], links.places[b]
    one, other = links.owners[low], links.owners[low_other]
    if slots and broken(links.bans, one, b) + broken(links.bans, other, a) > 0:
        return 0.0
    changed = MOMENTS if slots != times else 0
    if changed:
        keep(links, room, 0, one)
        keep(links, room, 1, other)
    if slots:
        swap_slots(links, a, b)
        for column in range(len(goals.codes)):
            if goals.codes[column, a] != goals.codes[column, b]:
                changed |= bit_of(column)
    if times:
        swap_times(links, a, b)
    rise = settled(goals, links, room, low, low_other, False, changed)
    if rise == 0.0 and times:
        swap_times(links, a, b)
        if slots:
            swap_slots(links, a, b)
    return rise


@compiled_in_place
def _to_time_at_gap(
    goals: Goals, links: Links, slot: int, near: int, aims: Aims, state: NDArray[np.uint64]
) -> tuple[int, int, bool, bool]:
    """A record takes a time at a wanted gap from its neighbour's; or another record of that time takes its place."""
    a = links.members[slot]
    if len(aims.gaps) == 0:
        return a, a, False, True
    gap = aims.gaps[below(state, len(aims.gaps))]
    for _ in range(AGAIN):
        if abs(links.times[links.members[slot]] - links.times[links.members[near]]) != gap:
            break
        slot, near = _another(links, slot, near, state)
    a, anchor = links.members[slot], links.times[links.members[near]]
    if anchor < 0:
        return a, a, False, True
    time = anchor + gap if slot > near else anchor - gap
    if links.times[a] == time:
        return a, a, False, True
    b = links.holders[_token_at(aims, time, state)]
    for _ in range(TRIES):
        if not _at_gap(links, b, gap):
            break
        b = links.holders[_token_at(aims, time, state)]
    if aims.bins[b] == aims.bins[a]:
        return a, b, False, True
    if len(aims.columns) > 0:
        like = _like(goals, aims, below(state, len(aims.columns)), aims.bins[b], links.members[near], state)
        b = like if like >= 0 else b
    return a, b, True, False


@compiled_in_place
def _proposed(
    goals: Goals, links: Links, aims: Aims, state: NDArray[np.uint64], kind: int
) -> tuple[int, int, bool, bool]:
    """One proposal of a kind below 64: two records, and whether they exchange slots and times; one twice for none."""
    slot = below(state, len(links.members))
    a, near = links.members[slot], _neighbour(links, slot, state)
    if kind < ELSEWHERE and near >= 0 and len(aims.columns) > 0:
        aim = below(state, len(aims.columns)) if below(state, 2) else 0
        for _ in range(AGAIN):
            if not _stays(goals, links, aims, aim, links.members[slot]):
                break
            slot, near = _another(links, slot, near, state)
        a = links.members[slot]
        time_bin = aims.bins[a] if kind < ALIKE else aims.bins[links.members[near]]
        b = _free(goals, links, aims, aim, time_bin, links.members[near], a, state)
        return (a, a, True, True) if b < 0 else (a, b, True, aims.bins[a] == aims.bins[b])
    if kind < TIMES and near >= 0:
        return _to_time_at_gap(goals, links, slot, near, aims, state)
    low, high = aims.bin_begins[aims.bins[a]], aims.bin_begins[aims.bins[a] + 1]
    b = links.holders[low + below(state, high - low)]
    return a, b, True, True


@compiled_in_place
def _swapped_constant(goals: Goals, links: Links, room: Undo, state: NDArray[np.uint64]) -> float:
    """Two persons exchange one constant, if the cost falls by it."""
    persons, constant = len(links.starts) - 1, below(state, len(links.constants))
    one, other = below(state, persons), below(state, persons)
    mine, its = links.constants[constant, one], links.constants[constant, other]
    if mine == its:
        return 0.0
    exchange_constant(links.bans, links.constants, constant, one, other)
    rise = 0.0
    if breaks(links.bans, links.members, links.starts, one, other) == 0:
        rise = settled(goals, links, room, links.starts[one], links.starts[other], True, bit_of(-1 - constant))
    if rise == 0.0:
        exchange_constant(links.bans, links.constants, constant, one, other)
    return rise


@compiled_uncounted
def sweep(goals: Goals, links: Links, room: Undo, aims: Aims, state: NDArray[np.uint64]) -> float:
    """A proposal for each record, and for each constant of each person; returns by how much the cost fell."""
    rise = 0.0
    for _ in range(len(links.members)):
        a, b, slots, times = _proposed(goals, links, aims, state, below(state, 64))
        if a != b:
            rise += _swap(goals, links, room, a, b, slots, times)
    for _ in range(len(links.constants) * (len(links.starts) - 1)):
        rise += _swapped_constant(goals, links, room, state)
    return -rise
