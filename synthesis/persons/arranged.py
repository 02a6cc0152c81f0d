"""Synthetic rows by person, in the order in which they are written: records as they are, linked; constants; times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.persons.person_questions import Trait, asked_columns, person_questions, times_of
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.structural_zeros import broken
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Owned, agreeing, draw, draw_agreeing, in_order
from synthesis.consistency.agree import default_rows
from synthesis.numbers.fine_evidence import mean_of
from synthesis.persons.linking import linked_persons
from synthesis.persons.person_sizes import all_records
from synthesis.persons.person_targets import Asked, answered


def with_persons(schema: Schema, measurements: Measurements) -> Schema:
    """The schema, with what links rows into persons where it declares a unit and any answer about persons is there."""
    if schema.rules.unit is None or not (measurements.persons or schema.rules.linked):
        return schema
    records = default_rows(with_all_records(schema, measurements))
    time = schema.rules.unit.times({c.name: c for c in schema.columns})
    even = time is not None and _drowned(schema, measurements, time.name)
    linked = partial(arranged, answers=measurements.persons, records=records, even=even)
    return replace(schema, rules=replace(schema.rules, arranged=linked))


def with_all_records(schema: Schema, measurements: Measurements) -> Measurements:
    """The answers, and how many rows stand for them: all records of all persons, of whom some have more than count."""
    unit = schema.rules.unit
    if unit is None or unit.bound == unit.max_records or not measurements.persons:
        return measurements
    total = default_rows(replace(measurements, rows=None))
    return replace(
        measurements, rows=all_records(_asked(unit, schema, measurements), unit.max_records, total, unit.bound)
    )


def constants_alone(schema: Schema, measurements: Measurements) -> dict[str, Floats]:
    """Of each constant that was asked about alone how many persons have each of its codes, by the noisy answer."""
    unit = schema.rules.unit
    if unit is None or not measurements.persons:
        return {}
    asked = _asked(unit, schema, measurements)
    return {a.question.features[0].column: a.values for a in asked if a.kinds() == (Trait.CONSTANT,)}


def _asked(unit: PersonUnit, schema: Schema, measurements: Measurements) -> list[Asked]:
    """The questions about persons that have an answer."""
    columns = asked_columns(schema)
    return answered(person_questions(unit, columns), measurements.persons, {c.name: c for c in columns})


def _drowned(schema: Schema, measurements: Measurements, name: str) -> bool:
    """Whether a column's fine cells hold less than twice their noise (root mean square): they say nothing of times."""
    fine = schema.fine.get(name)
    answer = None if fine is None else mean_of(measurements.answers_about((fine.name,)))
    return answer is not None and float(np.mean(answer[0] ** 2)) < 5 * answer[1]  # the noise adds one to four


def arranged(
    coded: CodedTable,
    schema: Schema,
    rng: np.random.Generator,
    *,
    answers: Sequence[NoisyMarginal],
    records: int,
    even: bool = False,
    progress: Progress | None = None,
) -> Owned:
    """The rows of each person together and in order; ids are 1, 2, …; constants are those of the persons.

    Guarantee: post-processing; costs no privacy.
    Args:
        records: that the answers speak of; of more or fewer rows there are more or fewer persons.
        even: times are spread evenly inside their bins, whatever the shape of their column.
    """
    unit = schema.rules.unit
    assert unit is not None, "the schema declares a unit"
    if even:
        schema = replace(
            schema, columns=tuple(replace(c, shape=None) if c.name in unit.order[:1] else c for c in schema.columns)
        )
    columns = asked_columns(schema)
    time = unit.times({c.name: c for c in columns})
    values = {n: v for name in unit.order for n, v in _drawn(coded, schema, name, rng).items()}
    ruled = {n for names in _orders(schema) if len(names) > 1 for n in names}
    bound = time is not None and time.name in ruled
    whole = np.full(coded.rows, -1, np.int64)
    if time is not None and time.name in values:
        whole = times_of(np.where(_special(coded, time), np.nan, values[time.name]), time)
    part = coded.rows / max(records, 1)  # the answers are those of a table of so many rows
    linked = linked_persons(
        coded,
        whole,
        unit,
        columns,
        [replace(a, values=a.values * part, scale=a.scale * part) for a in answers],
        schema.rules.linked,
        seed=int(rng.integers(2**62)),
        progress=progress,
    )
    if time is not None and time.name in values and not bound:  # times of rows that a rule orders stay with their row
        values[time.name] = agreeing(values[time.name][linked.time_of], coded, time.name, schema)
    sizes = np.diff(linked.starts)
    owners = np.repeat(np.arange(1, sizes.size + 1), sizes)
    keys = [_key(coded, schema[n], values) for n in reversed(unit.order)]
    order = linked.members[np.lexsort([*(k[linked.members] for k in keys), owners])]
    codes = {a.name: np.asarray(coded.column(a.name))[order] for a in coded.domain.attributes}
    for name, own in zip(unit.constant, linked.constants, strict=True):
        codes[name] = np.repeat(own, sizes).astype(code_dtype(coded.domain[name].size))
    rows = CodedTable(coded.domain, tuple(codes[a.name] for a in coded.domain.attributes))
    assert not broken(codes, coded.domain, schema.rules.linked).any(), "links keep to the rules that name constants"
    return Owned(rows, owners, {n: v[order] for n, v in values.items()}, linked.notes)


def _orders(schema: Schema) -> list[list[str]]:
    """The columns of records that the schema orders with each other."""
    unit = schema.rules.unit
    return [[n for n in g.columns if unit is None or n not in unit.constant] for g in schema.rules.ordered]


def _drawn(coded: CodedTable, schema: Schema, name: str, rng: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    """Values of a column of the order; with those of every column that the schema orders with it."""
    groups, names = [g for g in _orders(schema) if len(g) > 1], [name]
    for _ in groups:  # until all that share a column, and so on
        names = list(dict.fromkeys(n for g in ([name], *groups) if {*g} & {*names} for n in g))
    if len(names) < 2:
        return {name: draw_agreeing(coded, name, schema, rng).values}
    drawn = {n: draw(np.asarray(coded.column(n)), schema[n], rng).values for n in names}
    return in_order(drawn, coded, schema, rng, slice(None), np.arange(coded.rows))


def _special(coded: CodedTable, column: Column) -> Flags:
    """Which rows have no value of a column: *other* or *missing*."""
    return np.asarray(coded.column(column.name)) >= column.value_codes


def _key(coded: CodedTable, column: Column, values: dict[str, NDArray[np.generic]]) -> Floats:
    """What rows are sorted by: the values of a column, those without any behind them."""
    own = values.get(column.name, np.asarray(coded.column(column.name)))
    return np.where(_special(coded, column), np.inf, own.astype(np.float64))
