"""An arrangement of records into persons, as arrays for compiled loops; how a change of it is tried and taken back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.jit import compiled, compiled_in_place
from mechanisms.public.persons.tally import (
    MOMENTS,
    OF_PERSON,
    OF_RECORDS,
    ORDER,
    Codes,
    Entries,
    Persons,
    QuestionArrays,
    Sheet,
    entries_room,
    tally,
    weigh_person,
)
from synthesis.persons.allowed import Bans

#: A change that lowers the cost by less is none: sums of floats are exact to about so much.
LEAST = 1e-9


class Goals(NamedTuple):
    """The questions, and per cell, or wider cell, the wanted count and how much a squared difference counts.

    Attributes:
        codes: (columns, records) as of `stacked`.
        targets: (cells + wider cells,) in the unit of the tallies.
        weights: (cells + wider cells,) 0 for a cell that nothing is known about.
        within: (cells, kinds) each cell itself, and the wider ones that it lies in.
    """

    layout: QuestionArrays
    codes: Codes
    targets: Floats
    weights: Floats
    within: Ints


class Links(NamedTuple):
    """Who holds which record, and which record holds which time.

    A slot is a place in `members`; a token is a time of one record of the table, numbered by bin and time.

    Attributes:
        members: (records,) the record in each slot.
        starts: (persons + 1,) the first slot of each person.
        owners: (records,) the person of each slot.
        places: (records,) the slot of each record.
        times: (records,) the time that each record holds.
        tokens: (records,) the token that each record holds; `holders` the record that holds each token.
        constants: (constants, persons).
        cells: the cells that each person adds to, as `weigh_person` writes them; `begins` where each person's begin.
        counts: (cells + wider cells,) the tally of the arrangement.
        bans: which records a person may not hold; it holds none of them.
    """

    members: Ints
    starts: Ints
    owners: Ints
    places: Ints
    times: Ints
    tokens: Ints
    holders: Ints
    constants: Codes
    cells: Codes
    begins: Ints
    counts: Ints
    bans: Bans


class Undo(NamedTuple):
    """Entries of a person, and what two persons were before a change.

    Attributes:
        entries: of the person counted last.
        old: (3, 2 × most entries) entry, cell and weight before each change.
        old_members: (2, most records).
    """

    entries: Entries
    old: Ints
    old_members: Ints


def _begins(layout: QuestionArrays, starts: Ints) -> Ints:
    """Where each person's entries in a tally begin, and where the last one's end."""
    records = np.diff(starts)
    entries = np.zeros(records.size, np.int64)
    for level, moving in zip(layout.questions[:, 0], layout.questions[:, 5] > 0, strict=True):
        items = np.ones_like(records) if level == OF_PERSON else records if level == OF_RECORDS else records - 1
        entries += items if moving else np.minimum(items, 1)
    return np.concatenate(([0], np.cumsum(entries)))


@compiled_in_place
def _weighed(goals: Goals, links: Links, room: Undo, person: int, low: int, high: int, changed: int) -> int:
    persons = Persons(goals.codes, links.times, links.constants, links.members, links.starts)
    return weigh_person(room.entries, goals.layout, persons, person, low, high, changed)


@compiled
def _write_cells(goals: Goals, links: Links, room: Undo) -> None:
    for person in range(len(links.starts) - 1):
        for k in range(_weighed(goals, links, room, person, links.starts[person], links.starts[person + 1], -1)):
            links.cells[links.begins[person] + room.entries.numbers[k]] = room.entries.cells[k]


def links_of(persons: Persons, tokens: Ints, sheet: Sheet, goals: Goals, bans: Bans) -> tuple[Links, Undo]:
    """The arrangement as arrays, counted, and room to change it; members and times are copied.

    Args:
        persons: of one record or more each.
        tokens: (records,) the token that each record holds.
    """
    records, sizes = persons.members.size, np.diff(persons.starts)
    places, holders = np.empty(records, np.int64), np.empty(records, np.int64)
    places[persons.members], holders[tokens] = np.arange(records), np.arange(records)
    begins = _begins(sheet.layout, persons.starts)
    most = int(sizes.max(initial=1))
    entries = max(len(sheet.layout.questions), 1) * most
    counts = np.zeros(goals.targets.size, np.int64)
    np.add.at(counts, goals.within, tally(persons, sheet)[:, None])
    links = Links(
        persons.members.copy(), persons.starts, np.repeat(np.arange(sizes.size), sizes), places,
        persons.times.copy(), tokens.copy(), holders, persons.constants.copy(),
        np.zeros(int(begins[-1]), np.int32), begins, counts, bans,
    )  # fmt: skip
    room = Undo(entries_room(entries), np.zeros((3, 2 * entries), np.int64), np.zeros((2, most), np.int64))
    _write_cells(goals, links, room)
    return links, room


def cost_of(goals: Goals, counts: Ints) -> float:
    """Σ over cells of weight × (count − target)²."""
    return float(goals.weights @ (counts - goals.targets) ** 2)


@compiled_in_place
def keep(links: Links, room: Undo, side: int, person: int) -> None:
    """Remember a person's records in their order."""
    start = links.starts[person]
    for i in range(start, links.starts[person + 1]):
        room.old_members[side, i - start] = links.members[i]


@compiled_in_place
def put_back(links: Links, room: Undo, side: int, person: int) -> None:
    """Give a person its records again, in the order remembered."""
    start = links.starts[person]
    for i in range(start, links.starts[person + 1]):
        record = room.old_members[side, i - start]
        if links.members[i] != record:
            links.members[i] = record
            links.places[record] = i


@compiled_in_place
def in_order(links: Links, person: int) -> tuple[int, int]:
    """Sort a person's records by time, none last; equal ones keep their order. Returns the first and last one moved."""
    start, stop, first, last = links.starts[person], links.starts[person + 1], len(links.members), 0
    for i in range(start + 1, stop):
        record, place = links.members[i], i
        time = links.times[record]
        while place > start:
            before = links.times[links.members[place - 1]]
            if time < 0 or (before >= 0 and before <= time):
                break
            links.members[place] = links.members[place - 1]
            links.places[links.members[place]] = place
            place -= 1
        if place != i:
            first, last = min(first, place), i
            links.members[place] = record
            links.places[record] = place
    return first, last


@compiled_in_place
def swap_times(links: Links, a: int, b: int) -> None:
    """Two records exchange their times."""
    links.times[a], links.times[b] = links.times[b], links.times[a]
    links.tokens[a], links.tokens[b] = links.tokens[b], links.tokens[a]
    links.holders[links.tokens[a]], links.holders[links.tokens[b]] = a, b


@compiled_in_place
def swap_slots(links: Links, a: int, b: int) -> None:
    """Two records exchange their slots."""
    one, other = links.places[a], links.places[b]
    links.members[one], links.members[other] = b, a
    links.places[a], links.places[b] = other, one


@compiled_in_place
def _moved(goals: Goals, links: Links, before: int, after: int, weight: int) -> float:
    """Count a weight in another cell than before; returns by how much the cost rises."""
    rise = 0.0
    for k in range(goals.within.shape[1]):
        less, more = goals.within[before, k], goals.within[after, k]
        if less != more:
            rise += goals.weights[less] * weight * (weight - 2.0 * (links.counts[less] - goals.targets[less]))
            links.counts[less] -= weight
            rise += goals.weights[more] * weight * (weight + 2.0 * (links.counts[more] - goals.targets[more]))
            links.counts[more] += weight
    return rise


@compiled_in_place
def _recounted(
    goals: Goals, links: Links, room: Undo, slot: int, whole: bool, changed: int, changes: int
) -> tuple[float, int]:
    """Count a changed person anew; returns by how much the cost rises, and how many changes are remembered by then.

    Args:
        slot: that changed; `whole` where others did too.
        changed: what did, as bits of `QuestionArrays`.
        changes: how many of another person are remembered.
    """
    person, low, high = links.owners[slot], slot - 1, slot + 1
    rise, begin = 0.0, links.begins[person]
    if changed & MOMENTS:
        first, last = in_order(links, person)
        if first <= last:
            changed, low, high = changed | ORDER, min(low, first - 1), max(high, last + 1)
    if whole:
        low, high = links.starts[person], links.starts[person + 1]
    for k in range(_weighed(goals, links, room, person, low, high, changed)):
        entry = begin + room.entries.numbers[k]
        before, after, weight = links.cells[entry], room.entries.cells[k], room.entries.weights[k]
        if before == after:
            continue
        rise += _moved(goals, links, before, after, weight)
        links.cells[entry] = after
        room.old[0, changes], room.old[1, changes], room.old[2, changes] = entry, before, weight
        changes += 1
    return rise, changes


@compiled_in_place
def settled(goals: Goals, links: Links, room: Undo, slot: int, slot_other: int, whole: bool, changed: int) -> float:
    """Count two changed persons (or one twice) anew; keep the change if the cost falls; returns by how much it rose.

    Args:
        slot, slot_other: of each that changed; `whole` where others did too.
        changed: what did, as bits of `QuestionArrays`.

    Edge cases: 0.0 where it did not fall; if times changed, the persons have again the records that `keep` remembers.
    """
    one, other = links.owners[slot], links.owners[slot_other]
    rise, changes = 0.0, 0
    for at in (slot, slot_other):  # one call: what stands inline is compiled anew for each
        if at == slot or (other != one and rise < 0):  # who does not gain by a change looks for another
            more, changes = _recounted(goals, links, room, at, whole or one == other, changed, changes)
            rise += more
    if rise < -LEAST:
        return rise
    for k in range(changes):
        entry, before, weight = room.old[0, k], room.old[1, k], room.old[2, k]
        _moved(goals, links, links.cells[entry], before, weight)
        links.cells[entry] = before
    if changed & MOMENTS:
        put_back(links, room, 0, one)
        put_back(links, room, 1, other)
    return 0.0
