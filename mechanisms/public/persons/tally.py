"""Tallies: what the records of a person add to every answer. One loop counts real persons and synthetic ones.

Counts are whole multiples of 2**-WEIGHT_BITS persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Ints
from mechanisms.public.jit import compiled, compiled_in_place
from mechanisms.public.persons.person_questions import LEVELS, PersonQuestion, Trait
from mechanisms.public.units import WEIGHT_BITS

Codes = NDArray[np.int32]
#: The numbers of `Trait` and of LEVELS as the loops know them.
RECORDS, CONSTANT, FIRST, SPAN, DISTINCT, MEAN, VALUE, NEXT, SAME, GAP = (int(k) for k in Trait)
OF_PERSON, OF_RECORDS, OF_STEPS = range(len(LEVELS))
#: Bits of what a question reads: times, the order of records; so many others, which columns and constants share.
MOMENTS, ORDER, SHARED_BITS = 1, 2, 60
#: A person's weight.
WHOLE = 1 << WEIGHT_BITS
#: For the distinct codes of a person.
DISTINCT_ROOM = 64


class QuestionArrays(NamedTuple):
    """Questions as arrays, for the loops.

    Attributes:
        questions: (questions, 6) level, first feature, features, first cell, what it reads, 1 if each item has one.
        features: (features, 6) kind, column, first of its groups, how many groups, size, stride.
        groups: of all features, one after the other.
    """

    questions: Ints
    features: Ints
    groups: Ints


@dataclass(frozen=True, eq=False)
class Sheet:
    """Questions, and the columns that they read.

    Attributes:
        cells: of all questions together.
        columns: the columns of the schema whose codes are wanted, in the order of the rows of `Persons.codes`.
        constants: those of the constants, of the rows of `Persons.constants`.
    """

    layout: QuestionArrays
    cells: int
    columns: tuple[str, ...]
    constants: tuple[str, ...]


class Persons(NamedTuple):
    """Records by person. Of real ones NOT private.

    Attributes:
        codes: (columns or more, records or more) codes of each column of the sheet, as of `stacked`.
        times: (records,) whole, −1 for none.
        constants: (constants, persons) codes.
        members: (records,) the records of the first person in their order, then those of the second, …
        starts: (persons + 1,) where each person's records begin in `members`.
    """

    codes: Codes
    times: Ints
    constants: Codes
    members: Ints
    starts: Ints


def stacked(columns: Sequence[NDArray[np.integer]], records: int) -> Codes:
    """(columns, records) codes, those of one record side by side; at least (2, 2).

    numba calls one row contiguous in either order: the loops would be compiled again for it.
    """
    codes = np.zeros((max(len(columns), 2), max(records, 2)), np.int32, order="F")
    for place, column in enumerate(columns):
        codes[place, :records] = column
    return codes


class Entries(NamedTuple):
    """Room for what one person adds to a tally.

    Attributes:
        numbers, cells, weights: (questions × records or more,) of each entry.
        seen: room for distinct codes.
    """

    numbers: Ints
    cells: Ints
    weights: Ints
    seen: Ints


def entries_room(most: int) -> Entries:
    """Room for so many entries."""
    numbers, cells, weights = np.zeros((3, most), np.int64)
    return Entries(numbers, cells, weights, np.zeros(DISTINCT_ROOM, np.int64))


def sheet_of(questions: Sequence[PersonQuestion]) -> Sheet:
    """The arrays of questions."""
    every = [f for q in questions for f in q.features]
    columns = tuple(
        dict.fromkeys(f.column for f in every if f.kind not in {Trait.RECORDS, Trait.CONSTANT, Trait.SPAN, Trait.GAP})
    )
    constants = tuple(dict.fromkeys(f.column for f in every if f.kind is Trait.CONSTANT))
    rows: list[tuple[int, ...]] = []
    features: list[tuple[int, ...]] = []
    groups: list[int] = []
    first = 0
    for question in questions:
        begin, reads = len(features), 0 if question.level == "persons" else ORDER
        stride = 1
        strides = []
        for feature in reversed(question.features):
            strides.append(stride)
            stride *= feature.size
        for feature, step in zip(question.features, reversed(strides), strict=True):
            names = constants if feature.kind is Trait.CONSTANT else columns
            place = names.index(feature.column) if feature.column in names else -1
            features.append((int(feature.kind), place, len(groups), len(feature.groups), feature.size, step))
            groups += feature.groups
            reads |= MOMENTS if feature.kind in {Trait.SPAN, Trait.GAP} else ORDER if feature.kind is Trait.FIRST else 0
            reads |= 0 if place < 0 else bit_of(-1 - place if feature.kind is Trait.CONSTANT else place)
        moving = any(f.kind > Trait.MEAN for f in question.features)
        rows.append((LEVELS.index(question.level), begin, len(question.features), first, reads, moving))
        first += stride
    as_ints = (np.array(rows, np.int64).reshape(-1, 6), np.array(features, np.int64).reshape(-1, 6))
    return Sheet(QuestionArrays(*as_ints, np.array(groups, np.int64)), first, columns, constants)


@compiled_in_place
def bit_of(place: int) -> int:
    """The bit of a column of a sheet; constants are counted from the end, from −1 on."""
    return 1 << (2 + place % SHARED_BITS)


@compiled_in_place
def _least_below(groups: Ints, first: int, count: int, number: int) -> int:
    """The last of so many ascending starts that is not above a number."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if groups[first + middle] <= number:
            low = middle
        else:
            high = middle
    return low


@compiled_in_place
def _difference(groups: Ints, first: int, count: int, earlier: int, later: int) -> int:
    """The cell of a difference; the last one where a time is missing."""
    if earlier < 0 or later < 0:
        return count
    return _least_below(groups, first, count, max(later - earlier, 0))


@compiled_in_place
def _distinct(persons: Persons, column: int, start: int, stop: int, most: int, seen: Ints) -> int:
    """How many distinct codes there are, at most `most`."""
    distinct = 0
    for i in range(start, stop):
        code, again = persons.codes[column, persons.members[i]], False
        for k in range(distinct):
            if seen[k] == code:
                again = True
                break
        if not again:
            seen[distinct] = code
            distinct += 1
            if distinct == most:
                return distinct
    return distinct


@compiled_in_place
def _mean_cell(persons: Persons, column: int, start: int, stop: int, values: int, size: int) -> int:
    """The cell of the mean code of the values."""
    total, count = 0, 0
    for i in range(start, stop):
        code = persons.codes[column, persons.members[i]]
        if code < values:
            total += code
            count += 1
    if count == 0:
        return size - 1
    return (total * (size - 1)) // (count * values)


@compiled_in_place
def _of_person(layout: QuestionArrays, f: int, persons: Persons, person: int, seen: Ints) -> int:
    """The cell of a feature of a person."""
    features, groups, members = layout.features, layout.groups, persons.members
    start, stop = persons.starts[person], persons.starts[person + 1]
    kind, column, first, count, size = features[f, 0], features[f, 1], features[f, 2], features[f, 3], features[f, 4]
    if kind == RECORDS:
        return int(groups[first + min(stop - start, count) - 1])
    if kind == CONSTANT:
        return int(groups[first + persons.constants[column, person]])
    if kind == FIRST:
        return int(groups[first + persons.codes[column, members[start]]])
    if kind == SPAN:
        return _difference(groups, first, count, persons.times[members[start]], persons.times[members[stop - 1]])
    if kind == DISTINCT:
        return _distinct(persons, column, start, stop, size, seen) - 1
    return _mean_cell(persons, column, start, stop, groups[first], size)


@compiled_in_place
def _of_record(layout: QuestionArrays, f: int, persons: Persons, one: int, following: int) -> int:
    """The cell of a feature of a record and the next one."""
    features, groups, codes = layout.features, layout.groups, persons.codes
    kind, column, first, count = features[f, 0], features[f, 1], features[f, 2], features[f, 3]
    if kind == VALUE:
        return int(groups[first + codes[column, one]])
    if kind == NEXT:
        return int(groups[first + codes[column, following]])
    if kind == SAME:
        return 1 if codes[column, one] == codes[column, following] else 0
    return _difference(groups, first, count, persons.times[one], persons.times[following])


@compiled_in_place
def weigh_person(
    entries: Entries, layout: QuestionArrays, persons: Persons, person: int, low: int, high: int, changed: int
) -> int:
    """Write the entries of a person in the tally, the cell and the weight of each; returns how many were written.

    They are numbered in the order of the questions, those of one question in the order of records or steps: persons of
    equally many records have equally many entries, with the same weights.

    Args:
        person: of one record at least.
        low, high: of entries of records and steps only those whose record stands at these places, `high` left out.
        changed: bits of which a question reads one, or it is left out; −1: none is.
    """
    questions, features, members = layout.questions, layout.features, persons.members
    start, stop = persons.starts[person], persons.starts[person + 1]
    records, number, written = stop - start, 0, 0
    for q in range(len(questions)):
        level, first, last, cell = questions[q, 0], questions[q, 1], questions[q, 1] + questions[q, 2], questions[q, 3]
        items = 1 if level == OF_PERSON else records if level == OF_RECORDS else records - 1
        weight, moving = WHOLE // max(items, 1), questions[q, 5] > 0
        begin = number
        number += items if moving else min(items, 1)
        if items == 0 or (changed >= 0 and questions[q, 4] & changed == 0):
            continue
        for f in range(first, last):
            if features[f, 0] <= MEAN:
                cell += _of_person(layout, f, persons, person, entries.seen) * features[f, 5]
        if not moving:
            entries.numbers[written], entries.cells[written], entries.weights[written] = begin, cell, weight * items
            written += 1
            continue
        for i in range(max(low, start), min(high, start + items)):
            following = members[i + 1] if i + 1 < stop else members[i]
            own = cell
            for f in range(first, last):
                if features[f, 0] > MEAN:
                    own += _of_record(layout, f, persons, members[i], following) * features[f, 5]
            entries.numbers[written], entries.cells[written], entries.weights[written] = begin + i - start, own, weight
            written += 1
    return written


@compiled
def _add_persons(counts: Ints, entries: Entries, layout: QuestionArrays, persons: Persons) -> None:
    for person in range(len(persons.starts) - 1):
        start, stop = persons.starts[person], persons.starts[person + 1]
        for q in range(len(layout.questions) if start < stop else 0):
            one = QuestionArrays(layout.questions[q : q + 1], layout.features, layout.groups)
            for k in range(weigh_person(entries, one, persons, person, start, stop, -1)):
                counts[entries.cells[k]] += entries.weights[k]


def tally(persons: Persons, sheet: Sheet) -> Ints:
    """(cells,) the counts of all questions, one after the other. Of real persons NOT private.

    Guarantee: a person adds a vector without negative entries to each question, which sums to WHOLE at most and depends
        on no other person.
    Cost: one pass over the records for each feature.
    """
    counts = np.zeros(sheet.cells, np.int64)
    most = int(np.diff(persons.starts).max(initial=1))  # of one question: one person may have all rows of a table
    _add_persons(counts, entries_room(most), sheet.layout, persons)
    return counts


def by_question(counts: Ints, questions: Sequence[PersonQuestion]) -> list[Ints]:
    """The counts of each question, flat in C order."""
    return np.split(counts, np.cumsum([q.query.columns for q in questions])[:-1])
