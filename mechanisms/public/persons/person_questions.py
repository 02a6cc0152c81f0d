"""Features of persons and of their records, and questions about them: in each histogram a person weighs 1 at most.

Sources: the weights follow from the definition of sensitivity alone; neighbouring records as a pair are those of a
Markov chain of order one (Chen, Acs & Castelluccia 2012, n-grams, of length two), each person's normalized to 1.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import UNITS, Neighbouring, Norm

#: Values of one column stand in at most so many groups where a record is set beside the next one.
GROUPS = 10
#: And so many, least and most, where a person's mean stands beside the number of records, three for two codes between:
#: a mean that lies anywhere inside a wide cell makes persons less alike, and noise in narrow ones is smoothed away.
MEANS = (15, 30)
#: Distinct values of a person are counted up to so many.
DISTINCT = 7
#: Sizes of persons are cut at these, where they stand beside something else.
SIZES = (1, 2, 3, 5, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257)
#: A difference of times has at most so many cells.
DIFFERENCES = 20
HOUR = 3600


class Trait(enum.IntEnum):
    """What a feature is; `tally` computes each by its number."""

    RECORDS = 0  # how many records the person has
    CONSTANT = 1  # a value that all of them share
    FIRST = 2  # the value in the first record
    SPAN = 3  # the time from the first record to the last
    DISTINCT = 4  # how many distinct codes there are, 1 to DISTINCT, more under the last
    MEAN = 5  # the mean code of the values
    VALUE = 6  # the value in a record
    NEXT = 7  # the value in the next record
    SAME = 8  # whether both are equal: 0 no, 1 yes
    GAP = 9  # the time between both


@dataclass(frozen=True)
class Feature:
    """A whole number below `size`, of a person, a record, or a record and the next one.

    Attributes:
        kind: which.
        column: of the schema; "" for the number of records.
        groups: for VALUE, NEXT, FIRST, CONSTANT: code → cell; for RECORDS: number of records − 1 → cell, more under the
            last; for SPAN and GAP: the least difference of each cell, ascending from 0, a missing time behind them; for
            MEAN: the number of value codes alone; for DISTINCT and SAME empty.
        size: how many cells.
    """

    kind: Trait
    column: str
    groups: tuple[int, ...]
    size: int

    @property
    def label(self) -> str:
        """How plans and statements name it."""
        word = {Trait.RECORDS: "records", Trait.CONSTANT: "", Trait.VALUE: ""}.get(self.kind, self.kind.name.lower())
        return f"{word} {self.column}".strip()


def sizes(most: int, *, every: bool = False, few: bool = False) -> Feature:
    """The number of records of a person, up to `most`: each number for itself, or in groups that grow; half as many."""
    if every:
        return Feature(Trait.RECORDS, "", tuple(range(most)), most)
    starts = [s for s in SIZES[:: 1 + few] if s <= most]
    cells = np.searchsorted(starts, np.arange(1, most + 1), side="right") - 1
    return Feature(Trait.RECORDS, "", tuple(map(int, cells)), len(starts))


def of_values(kind: Trait, column: Column, most: int | None = None) -> Feature:
    """The value of a column in at most `most` groups, None: each for itself; *other* and *missing* for themselves.

    Neighbours share a group: of an ordered column, or one of few values (`in_groups`).
    """
    values, special = column.value_codes, column.size - column.value_codes
    groups = min(values, most or values)
    cells = [i * groups // values for i in range(values)] + [groups + i for i in range(special)]
    return Feature(kind, column.name, tuple(cells), groups + special)


def in_groups(column: Column) -> bool:
    """Whether GROUPS groups say what a column's values are: those of an unordered one stand alone."""
    return column.value_codes <= GROUPS or is_ordered(column)


def is_ordered(column: Column) -> bool:
    """Whether neighbouring value codes lie near each other."""
    return (column.kind in ORDERED_KINDS and column.width is None) or column.ordinal


def mean_of(column: Column) -> Feature:
    """The mean code of a person's values, in cells of equal width; the last cell: no record has a value."""
    codes, (least, most) = column.value_codes, MEANS
    return Feature(Trait.MEAN, column.name, (codes,), min(2 * codes, max(least, min(3 * codes // 2, most))) + 1)


def difference(kind: Trait, column: Column) -> Feature:
    """A difference of times in cells that grow; the last cell: a time is missing."""
    starts = difference_starts(column)
    return Feature(kind, column.name, starts, len(starts) + 1)


def resolution(column: Column) -> float:
    """The unit in which times of an order's column are counted: a number, a day, an hour, or a part of the range."""
    if column.kind == "float":
        return (column.high - column.low) / 1000 or 1.0
    return float(HOUR) if column.kind == "datetime" else 1.0


def difference_starts(column: Column) -> tuple[int, ...]:
    """The least difference of each cell: 0 to 4 each, then growing by halves, or doubling where the range is long."""
    longest = int((column.high - column.low) / resolution(column)) + 1
    slow, fast = [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]
    while slow[-1] < longest:
        slow += [slow[-1] * 3 // 2, slow[-1] * 2]
    while fast[-1] < longest:
        fast.append(fast[-1] * 2)
    starts = [s for s in slow if s <= longest]
    return tuple(starts if len(starts) <= DIFFERENCES else [s for s in fast if s <= longest])


def times_of(values: Floats, column: Column) -> Ints:
    """Values of an order's column as whole multiples of its resolution from the lower bound; −1 for none."""
    counted = np.floor((values - column.low) / resolution(column))
    return np.where(np.isnan(values), -1.0, np.clip(counted, 0, 2.0**53)).astype(np.int64)


Level = Literal["persons", "records", "steps"]
LEVELS: tuple[Level, ...] = ("persons", "records", "steps")
#: Ids of the charges begin so.
PERSONS = "persons:"
#: A question has at most so many cells.
MOST_CELLS = 20_000
#: A constant of more codes stands beside nothing else.
MOST_BESIDE = 200
#: The part of the budget for what changes within a person, from ε = 1 on: SHARE / C, between LEAST and MOST_MOVING.
SHARE, LEAST, MOST_MOVING = 0.84, 0.04, 0.07
#: How that grows as ε falls (1 / ε^GROWTH), and the most that it may be; the part for as much about constants, which
#: spare records as much, and the most for these.
GROWTH, MOST_SHARE, CONSTANTS, MOST_CONSTANTS = 0.6, 0.15, 0.05, 0.23
#: What a constant alone weighs, beside a pair: each pair rests on the two (decision 073 compares 0, 4 and 10).
ALONE = 10.0


@dataclass(frozen=True)
class PersonQuestion:
    """A histogram over persons, their records, or pairs of a record and the next one of the same person.

    A person of n records gives weight 1 to one cell (persons), 1/n to each record's (records), or 1/(n − 1) to each
    pair's (steps; nothing where n is 1), rounded down on the lattice of weights: 1 at most together, whatever C is.

    Attributes:
        level: persons, records or steps.
        features: what spans the cells, in C order.
        share: its part of the budget, in the accountant's additive currency.
        ids: the column of ids of a `unit_id` that asks it; empty: a declared unit does.
    """

    purpose: ClassVar[Literal["persons"]] = "persons"
    level: Level
    features: tuple[Feature, ...]
    share: float = 0.0
    ids: str = ""

    @property
    def label(self) -> tuple[str, ...]:
        """What stands for the marginal's columns in plans and statements."""
        if self.ids:
            return (f"records per {self.ids}",)
        return (f"{self.level}: {self.features[0].label}", *(f.label for f in self.features[1:]))

    @property
    def part(self) -> float:
        """Its part of the persons' budget beside the other questions: constants alone weigh most."""
        kinds = {f.kind for f in self.features}
        if len(self.features) == 1 and Trait.CONSTANT in kinds:
            return ALONE
        if Trait.NEXT in kinds:
            return 0.5
        return 1.0 if kinds & {Trait.MEAN, Trait.DISTINCT, Trait.CONSTANT} else 2.0

    @property
    def event(self) -> str:
        return f"{UNITS}{self.ids}" if self.ids else f"{PERSONS}{','.join(self.label)}"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(f.size for f in self.features)

    @property
    def query(self) -> Identity:
        return Identity(math.prod(self.shape))

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
        """The most that one person changes, at any C: 1 under `add_remove`; 2 (L1) or √2 (L2) under `replace`.

        A person adds a vector without negative entries that sums to 1 at most, so that two persons' vectors differ by 2
        in L1 and √2 in L2 at most, as those of one record of weight 1.
        """
        return sensitivity(self.query, norm=norm, neighbouring=neighbouring, max_records=1)


def records_per_unit(ids: str, most: int, share: float = 0.0) -> PersonQuestion:
    """How many units have 1 … C records, more under C: all that `unit_id: {records: measured}` asks of the rows."""
    return PersonQuestion("persons", (sizes(most, every=True),), share, ids)


def person_questions(unit: PersonUnit, columns: Sequence[Column]) -> tuple[PersonQuestion, ...]:
    """Everything that is asked about the persons of a schema, by public facts alone.

    - persons: how many records they have; beside it the first time, the time from first to last, and of each column the
      mean of an ordered one or the number of distinct values of another; each constant, alone, beside the number of
      records and beside every other constant;
    - records: each constant beside the values of each column;
    - steps: whether a column of many values stays the same, beside the time between both records and the number of
      records; the value and the next one of all others.

    Args:
        columns: of the schema.
    Raises:
        UserError: two questions with one name, by which they are charged: a column is called as a feature of another.
    """
    by_name = {c.name: c for c in columns}
    time, group = unit.times(by_name), sizes(unit.max_records)
    constants = [by_name[n] for n in unit.constant if not by_name[n].constant]
    fixed = {*unit.constant, *([] if time is None else [time.name])}
    moving = [c for c in columns if c.name not in fixed and not c.constant and not c.unmeasured]
    asked = [PersonQuestion("persons", (sizes(unit.max_records, every=True),))]
    asked += _of_constants(constants, sizes(unit.max_records, few=True), [*moving, *([] if time is None else [time])])
    if unit.max_records > 1:
        asked += _of_moving(moving, time, group)
    if twice := next((name for name, n in Counter(q.event for q in asked).items() if n > 1), None):
        problem = f"two questions about persons are called {twice!r}"
        fix = "other names of columns: without commas, and without first, mean, next, records and the like in front"
        raise UserError(problem, where="schema: unit", fix=fix)
    return tuple(q for q in asked if math.prod(q.shape) <= MOST_CELLS)


def _of_constants(constants: Sequence[Column], group: Feature, others: Sequence[Column]) -> Iterator[PersonQuestion]:
    """Each constant alone, beside the number of records, every other constant and the values of each column."""
    beside: list[tuple[Column, Feature]] = []
    for column in constants:
        own = of_values(Trait.CONSTANT, column)
        yield PersonQuestion("persons", (own,))
        if own.size <= MOST_BESIDE:
            yield PersonQuestion("persons", (group, own))
            beside.append((column, own))
    for (_, a), (_, b) in combinations(beside, 2):
        yield PersonQuestion("persons", (a, b))
    for column, _ in beside:
        for other in others:
            if in_groups(column) and in_groups(other):
                both = of_values(Trait.CONSTANT, column, GROUPS), of_values(Trait.VALUE, other, GROUPS)
                yield PersonQuestion("records", both)


def _of_moving(moving: Sequence[Column], time: Column | None, group: Feature) -> Iterator[PersonQuestion]:
    """What changes within a person: its level, its variety, and what stays from one record to the next."""
    gap = None
    if time is not None:
        gap = difference(Trait.GAP, time)
        yield PersonQuestion("persons", (group, of_values(Trait.FIRST, time)))
        yield PersonQuestion("persons", (group, difference(Trait.SPAN, time)))
    same = [c for c in moving if not is_ordered(c) and c.size > GROUPS]
    for column in same:
        yield PersonQuestion("steps", (group, Feature(Trait.SAME, column.name, (), 2), *([] if gap is None else [gap])))
    if gap is not None and not same:
        yield PersonQuestion("steps", (group, gap))
    for column in moving:
        distinct = Feature(Trait.DISTINCT, column.name, (), min(column.size, DISTINCT))
        yield PersonQuestion("persons", (group, mean_of(column) if is_ordered(column) else distinct))
        if column not in same:
            following = of_values(Trait.NEXT, column, GROUPS)
            yield PersonQuestion("steps", (of_values(Trait.VALUE, column, GROUPS), following))


def by_label(questions: Sequence[PersonQuestion]) -> Mapping[tuple[str, ...], PersonQuestion]:
    """The questions by what statements call them."""
    return {q.label: q for q in questions}


def questions_of(schema: Schema) -> tuple[PersonQuestion, ...]:
    """The questions about the persons of a schema; none where it declares no unit. They follow from it alone."""
    unit = schema.rules.unit
    return () if unit is None else person_questions(unit, asked_columns(schema))


def questions_about_units(schema: Schema, most: int) -> tuple[PersonQuestion, ...]:
    """The same, or the one question that a unit_id of `most` records per unit asks."""
    ids = schema.rules.unit_ids
    return questions_of(schema) if ids is None or not ids.measured else (records_per_unit(ids.name, most),)


def counted_questions(schema: Schema) -> tuple[PersonQuestion, ...]:
    """What persons are counted for: `questions_of`; while columns are open, the leaves of the constants among them."""
    unit, open_columns = schema.rules.unit, schema.to_discover
    if unit is None or not open_columns:
        return questions_of(schema)
    asked = [c for c in open_columns if c.name in unit.constant and c.discover is not None and not c.discover.values]
    return tuple(PersonQuestion("persons", (of_values(Trait.CONSTANT, c),)) for c in asked)


def asked_columns(schema: Schema) -> list[Column]:
    """The columns that questions about persons speak of: all but those that rules write from others."""
    unit = schema.rules.unit
    own = set() if unit is None else {*unit.constant, *unit.order}
    written = {name for step in schema.rules.steps if not step.gives for name in step.takes} - own
    return [c for c in schema.columns if c.name not in written]


def with_shares(
    questions: tuple[PersonQuestion, ...], share: float | None, epsilon: float, most: int
) -> list[PersonQuestion]:
    """The questions, each with its part of the budget.

    Args:
        share: of all of them together; None: 0.84 / C, from 0.04 to 0.07, for what changes within a person, and 0.05
            for as much that is asked about constants, which spare records as much, 0.23 at most; or below ε = 1 ε^-0.6
            times the former, up to 0.15, where that is more. In any case the two have this proportion.
        most: C. The noise of what is asked of records is C times that about persons, who need the less beside it.
    """
    fixed = [q for q in questions if Trait.CONSTANT in {f.kind for f in q.features}]
    of_fixed = sum(q.part for q in fixed)
    of_moving = sum(q.part for q in questions) - of_fixed
    own = min(max(SHARE / most, LEAST), MOST_MOVING)
    more = min(MOST_CONSTANTS, CONSTANTS * of_fixed / max(of_moving, 1.0))
    whole = max(own + more, min(MOST_SHARE, own / min(epsilon, 1.0) ** GROWTH)) if share is None else share
    moving, constant = (whole * s / (own + more) / max(of, 1e-12) for s, of in ((own, of_moving), (more, of_fixed)))
    return [replace(q, share=q.part * (constant if q in fixed else moving)) for q in questions]
