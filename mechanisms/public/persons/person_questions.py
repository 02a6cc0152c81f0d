"""What is asked about persons: each question is a histogram in which one person has weight 1 at most.

Sources: the weights follow from the definition of sensitivity alone; neighbouring records as a pair are those of a
Markov chain of order one (Chen, Acs & Castelluccia 2012, n-grams, of length two), each person's normalized to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, Literal

from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_features import (
    DISTINCT,
    GROUPS,
    Feature,
    Trait,
    difference,
    in_groups,
    is_ordered,
    mean_of,
    of_values,
    sizes,
)
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import UNITS, Neighbouring, Norm

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
#: The part for as much about constants; how all of it grows as ε falls (1 / ε^GROWTH); and the most that it may be.
CONSTANTS, GROWTH, MOST_SHARE = 0.1, 0.6, 0.15


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
        """Its part of the persons' budget beside the other questions: sizes, times and what stays weigh most."""
        kinds = {f.kind for f in self.features}
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
      mean of an ordered one or the number of distinct values of another; each constant, beside the number of records
      and beside every other constant;
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
        if own.size > MOST_BESIDE:
            yield PersonQuestion("persons", (own,))
        else:
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
        share: of all of them together; None: 0.84 / C, from 0.04 to 0.07, for what changes within a person, and 0.1
            for as many questions about constants, which spare records as much; below ε = 1 ε^-0.6 times as much; 0.15
            at most.
        most: C. The noise of what is asked of records is C times that about persons, who need the less beside it.
    """
    parts = sum(q.part for q in questions)
    moving = sum(q.part for q in questions if Trait.CONSTANT not in {f.kind for f in q.features})
    own = min(max(SHARE / most, LEAST), MOST_MOVING) + CONSTANTS * (parts - moving) / max(moving, 1.0)
    whole = min(MOST_SHARE, own / min(epsilon, 1.0) ** GROWTH) if share is None else share
    return [replace(q, share=whole * q.part / parts) for q in questions]
