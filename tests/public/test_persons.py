"""Questions about persons: what one of them adds, against counts made one by one."""

import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import (
    DISTINCT,
    Feature,
    PersonQuestion,
    Trait,
    difference_starts,
    mean_of,
    person_questions,
    questions_of,
    sizes,
    times_of,
    with_shares,
)
from mechanisms.public.persons.person_unit import parse_person_unit
from mechanisms.public.persons.tally import WHOLE, Persons, by_question, sheet_of, stacked, tally
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.units import Neighbouring

COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
    "day": {"kind": "integer", "min": 0, "max": 60, "bins": {"count": 6}},
    "ward": {"kind": "categorical", "values": [f"w{i}" for i in range(12)], "missing": False},
    "cost": {"kind": "integer", "min": 0, "max": 39, "bins": {"count": 8}},
    "sort": {"kind": "categorical", "values": ["a", "b", "c"], "missing": True},
}
UNIT = {"column": "person", "constant": ["sex"], "order": "day", "records": {"max": 6}}


def world(unit: dict[str, Any] = UNIT) -> tuple[Schema, tuple[PersonQuestion, ...]]:
    schema = parse_schema({"name": "stays", "columns": COLUMNS}, where="stays", folder=Path())
    own, _ = parse_person_unit(unit, {c.name: c for c in schema.columns}, where="stays")
    return schema, person_questions(own, schema.columns)


SCHEMA, QUESTIONS = world()
SIZES = {c.name: c.size for c in SCHEMA.columns}


@st.composite
def people(draw: st.DrawFn) -> list[tuple[int, list[dict[str, int]]]]:
    """Persons: a constant, and records of codes and a time (−1: none), in order."""
    record = st.fixed_dictionaries({n: st.integers(0, s - 1) for n, s in SIZES.items()} | {"time": st.integers(-1, 60)})
    return draw(
        st.lists(st.tuples(st.integers(0, 1), st.lists(record, min_size=1, max_size=9)), min_size=1, max_size=5)
    )


def as_persons(given_people: list[tuple[int, list[dict[str, int]]]]) -> Persons:
    sheet, records = sheet_of(QUESTIONS), [r for _, own in given_people for r in own]
    return Persons(
        stacked([np.array([r[n] for r in records]) for n in sheet.columns], len(records)),
        np.array([r["time"] for r in records], np.int64),
        np.array([[sex for sex, _ in given_people]], np.int32),
        np.arange(len(records), dtype=np.int64),
        np.cumsum([0, *(len(own) for _, own in given_people)]).astype(np.int64),
    )


def cell(feature: Feature, sex: int, own: list[dict[str, int]], i: int) -> int:
    """A feature's cell, from its definition."""

    def between(earlier: int, later: int) -> int:
        starts = feature.groups
        if earlier < 0 or later < 0:
            return len(starts)
        return max(k for k, s in enumerate(starts) if s <= max(later - earlier, 0))

    codes = [r[feature.column] for r in own] if feature.column in SIZES else []
    match feature.kind:
        case Trait.RECORDS:
            return feature.groups[min(len(own), len(feature.groups)) - 1]
        case Trait.CONSTANT:
            return feature.groups[sex]
        case Trait.FIRST:
            return feature.groups[codes[0]]
        case Trait.SPAN:
            return between(own[0]["time"], own[-1]["time"])
        case Trait.DISTINCT:
            return min(len(set(codes)), feature.size) - 1
        case Trait.MEAN:
            values = [c for c in codes if c < feature.groups[0]]
            return sum(values) * (feature.size - 1) // (len(values) * feature.groups[0]) if values else feature.size - 1
        case Trait.VALUE:
            return feature.groups[codes[i]]
        case Trait.NEXT:
            return feature.groups[codes[i + 1]]
        case Trait.SAME:
            return int(codes[i] == codes[i + 1])
    return between(own[i]["time"], own[i + 1]["time"])


def brute(question: PersonQuestion, given_people: list[tuple[int, list[dict[str, int]]]]) -> np.ndarray[Any, Any]:
    counts: Counter[int] = Counter()
    for sex, own in given_people:
        items = {"persons": 1, "records": len(own), "steps": len(own) - 1}[question.level]
        for i in range(items):
            at = np.ravel_multi_index([cell(f, sex, own, i) for f in question.features], question.shape)
            counts[int(at)] += WHOLE // items
    return np.array([counts[i] for i in range(question.query.columns)])


@given(people())
def test_counts_are_those_made_one_by_one(given_people: list[tuple[int, list[dict[str, int]]]]) -> None:
    found = by_question(tally(as_persons(given_people), sheet_of(QUESTIONS)), QUESTIONS)
    for question, counts in zip(QUESTIONS, found, strict=True):
        assert counts.tolist() == brute(question, given_people).tolist(), question.label


@given(people())
def test_one_person_more_adds_one_at_most_and_takes_nothing(
    given_people: list[tuple[int, list[dict[str, int]]]],
) -> None:
    sheet = sheet_of(QUESTIONS)
    whole, less = tally(as_persons(given_people), sheet), np.zeros(sheet.cells, np.int64)
    if len(given_people) > 1:
        less = tally(as_persons(given_people[:-1]), sheet)
    for question, more in zip(QUESTIONS, by_question(whole - less, QUESTIONS), strict=True):
        assert (more >= 0).all()
        for norm, moved in (("l1", more.sum()), ("l2", math.sqrt((more.astype(float) ** 2).sum()))):
            bound = question.sensitivity(norm=norm, neighbouring=Neighbouring.ADD_REMOVE, max_records=50)  # type: ignore[arg-type]
            assert moved <= bound * WHOLE


@pytest.mark.parametrize(("relation", "l1", "l2"), [("add_remove", 1, 1), ("replace", 2, math.sqrt(2))])
def test_sensitivities_do_not_grow_with_the_clip(relation: str, l1: float, l2: float) -> None:
    for question in QUESTIONS:
        for most in (1, 20):
            own = {"neighbouring": Neighbouring(relation), "max_records": most}
            assert question.sensitivity(norm="l1", **own) == pytest.approx(l1)  # type: ignore[arg-type]
            assert question.sensitivity(norm="l2", **own) == pytest.approx(l2)  # type: ignore[arg-type]


def test_every_feature_stands_at_its_level_and_within_its_size() -> None:
    of_persons = {Trait.RECORDS, Trait.CONSTANT, Trait.FIRST, Trait.SPAN, Trait.DISTINCT, Trait.MEAN}
    further = {"persons": set(), "records": {Trait.VALUE}}
    further["steps"] = {Trait.VALUE, Trait.NEXT, Trait.SAME, Trait.GAP}
    assert all(f.kind in of_persons | further[q.level] for q in QUESTIONS for f in q.features)
    for feature in (f for q in QUESTIONS for f in q.features):
        if feature.kind in {Trait.VALUE, Trait.NEXT, Trait.FIRST, Trait.CONSTANT, Trait.RECORDS}:
            assert set(feature.groups) == set(range(feature.size)), feature.label


def test_the_questions_are_those_of_the_docstring() -> None:
    labels = [" × ".join(q.label) for q in QUESTIONS]
    assert labels[0] == "persons: records"
    assert "persons: records × sex" in labels
    assert {"records: sex × ward", "records: sex × cost", "records: sex × day"} & {*labels} == {
        "records: sex × cost",
        "records: sex × day",
    }
    assert "steps: records × same ward × gap day" in labels
    assert {"persons: records × mean cost", "persons: records × distinct ward", "steps: cost × next cost"} <= {*labels}
    assert "steps: sort × next sort" in labels
    assert len(labels) == len(set(labels))
    assert DISTINCT == 7


@pytest.mark.parametrize(
    ("most", "epsilon", "share"),
    [(5, 1, 0.07), (12, 10, 0.07), (20, 1, 0.042), (200, 3, 0.04), (20, 0.5, 0.042 / 0.5**0.6), (20, 0.1, 0.15)],
)
def test_persons_cost_the_less_the_more_records_count_and_more_where_little_can_be_spent(most, epsilon, share) -> None:
    _, asked = world({"column": "person", "order": "day", "records": {"max": 200}})
    assert math.isclose(sum(q.share for q in with_shares(asked, None, epsilon, most)), share)
    assert math.isclose(sum(q.share for q in with_shares(asked, 0.3, epsilon, most)), 0.3)
    beside = sum(q.share for q in with_shares(QUESTIONS, None, epsilon, most))
    assert beside > share + 0.01 or math.isclose(beside, 0.15), "constants spare records what they cost"


def test_one_record_a_person_has_no_steps() -> None:
    _, questions = world(UNIT | {"records": {"max": 1}})
    assert {q.level for q in questions} == {"persons", "records"}


def test_differences_grow_and_end_at_the_range() -> None:
    starts = difference_starts(SCHEMA["day"])
    assert starts[:5] == (0, 1, 2, 3, 4)
    assert list(starts) == sorted(set(starts))
    assert starts[-1] <= 61
    date = {"kind": "date", "min": "1990-01-01", "max": "2020-01-01", "bins": {"count": 10}}
    days = parse_schema({"name": "x", "columns": {"d": date}}, where="x")["d"]
    assert len(difference_starts(days)) <= 20
    assert times_of(np.array([np.nan, days.low, days.low + 3]), days).tolist() == [-1, 0, 3]


@pytest.mark.parametrize(
    ("other", "constant"), [("records", ["records", "sex"]), ("mean cost", ["mean cost"]), ("first day", ["first day"])]
)
def test_no_two_questions_have_the_name_that_one_charge_has(other: str, constant: list[str]) -> None:
    columns = COLUMNS | {other: {"kind": "categorical", "values": ["a", "b", "c"]}}
    schema = parse_schema(
        {"name": "stays", "columns": columns, "unit": UNIT | {"constant": constant}}, where="", folder=Path()
    )
    with pytest.raises(UserError, match="two questions about persons are called 'persons:persons: records"):
        questions_of(schema)


ALL_ROWS_OF_ONE = """
import resource
import numpy as np
from mechanisms.public.persons.tally import Persons, sheet_of, tally
from tests.public.test_persons import QUESTIONS

def most(persons, rows):
    sheet = sheet_of(QUESTIONS)
    starts = np.linspace(0, rows, persons + 1).astype(np.int64)
    codes, constants = np.zeros((len(sheet.columns), rows), np.int32, order="F"), np.zeros((1, persons), np.int32)
    tally(Persons(codes, np.zeros(rows, np.int64), constants, np.arange(rows), starts), sheet)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(most(100_000, 400_000), most(1, 400_000))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kilobytes are those of Linux")
def test_one_person_with_all_rows_takes_hardly_more_memory_than_many() -> None:
    said = subprocess.run([sys.executable, "-c", ALL_ROWS_OF_ONE], capture_output=True, text=True, check=True).stdout
    many, one = map(int, said.split())
    assert one - many < 25_000  # of each question at once: 24 bytes a row more


def test_fewer_groups_of_sizes_are_unions_of_the_others() -> None:
    """Sums over either can be compared; a group begins with the smallest size."""
    for most in (1, 2, 3, 20, 150):
        fine, few = sizes(most), sizes(most, few=True)
        assert few.groups[0] == 0 and few.size == few.groups[-1] + 1 <= (fine.size + 1) // 2
        assert len({(a, b) for a, b in zip(fine.groups, few.groups, strict=True)}) == fine.size


def test_the_cells_of_a_mean_follow_from_the_codes() -> None:
    """Two a code for few codes, three for two codes of many, thirty at most; and one for no value."""
    column = {n: Column("x", "integer", low=0, high=n - 1, missing=False) for n in (2, 5, 10, 18, 90)}
    assert {n: mean_of(c).size - 1 for n, c in column.items()} == {2: 4, 5: 10, 10: 15, 18: 27, 90: 30}
