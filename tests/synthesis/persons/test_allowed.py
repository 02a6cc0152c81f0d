"""Rules over constants and columns of records: no person holds a record that one forbids, whatever the world is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import person_questions
from mechanisms.public.rules.ordered import about_constants
from mechanisms.public.rules.structural_zeros import broken, joined, of_persons
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.decode import Owned, draw_table
from synthesis.persons.arranged import _drawn
from synthesis.persons.linking import linked_persons
from synthesis.persons.person_answers import answered
from tests.conftest import few
from tests.synthesis.persons.test_linking import BY_NAME, COLUMNS, SCHEMA, UNIT, answers_of, check, world

CLIQUES = [("team", "sex"), ("year", "home"), ("hits", "sex"), ("sex", "home"), ("year", "team"), ("hits",)]
DOMAIN = SCHEMA.domain


@few(15)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.lists(st.sampled_from(CLIQUES), min_size=1, unique=True),
    st.sampled_from([0.1, 0.5]), st.booleans(),
)  # fmt: skip
def test_each_record_that_is_left_goes_to_a_person_who_may_hold_it(seed, persons, cliques, part, measured):
    rng, (table, times, owners) = np.random.default_rng(seed), world(seed, persons, missing=0.2)
    try:
        zeros = joined((DOMAIN.canonical(c), rng.random(DOMAIN.cells(c)) < part) for c in cliques)
        records, linked = of_persons(zeros, UNIT.constant, DOMAIN, "t")
    except UserError as error:
        assert "every combination" in error.what
        return
    codes = {n: np.asarray(table.column(n)) for n in DOMAIN.names}
    pairs = [codes | {"sex": np.full(times.size, s), "home": np.full(times.size, h)} for s in (0, 1) for h in (0, 1, 2)]
    there = ~broken(codes, DOMAIN, records)
    assert np.array_equal(there, ~np.all([broken(own, DOMAIN, zeros) for own in pairs], axis=0))
    table, times, owners = (
        table.at(np.flatnonzero(there)),
        times[there],
        np.unique(owners[there], return_inverse=True)[1],
    )
    answers = answers_of(table, times, owners, UNIT, 1.0, seed) if measured and times.size else []
    made = linked_persons(table, times, UNIT, COLUMNS, answers, linked, seed=seed, sweeps=3)
    check(made, table, times, UNIT)
    codes = {n: np.asarray(table.column(n))[made.members] for n in ("year", "team", "hits")}
    codes |= {n: np.repeat(own, np.diff(made.starts)) for n, own in zip(UNIT.constant, made.constants, strict=True)}
    assert not broken(codes, DOMAIN, zeros).any()


def test_what_dealing_does_not_bring_is_told_and_answers_clear_what_cannot_be():
    table, times, owners = world(3, 30, size=6)
    linked = of_persons([(("team", "sex"), np.arange(28) // 2 % 2 == np.arange(28) % 2)], UNIT.constant, DOMAIN, "t")[1]
    answers = answers_of(table, times, owners, UNIT, 0.0)
    asked = answered(person_questions(UNIT, COLUMNS), answers, BY_NAME, [(("hits", "sex"), np.arange(22) == 5)])
    closed = {a.question.label: np.argwhere(~a.possible).tolist() for a in asked if a.question.level == "records"}
    assert closed.pop(("records: sex", "hits")) == [[1, 2]] and not any(closed.values())
    even = table.at(np.flatnonzero(table.column("team") % 2 == 0))
    alike = linked_persons(even, times[: even.rows], UNIT, COLUMNS, answers, linked, seed=1)
    assert (alike.constants[0] == 1).all() and alike.told[0].endswith("since rules about constants left no other way")
    one_of_each = table.at(np.array([int(np.argmax(table.column("team") % 2 == own)) for own in (0, 1)]))
    two = answers_of(*world(3, 1, size=2), UNIT, 0.0)
    split = linked_persons(one_of_each, times[:2], UNIT, COLUMNS, two, linked, seed=1)
    assert split.starts.tolist() == [0, 1, 2] and split.told[-1].startswith("1 persons were parted in two")
    assert linked_persons(one_of_each, times[:2], UNIT, COLUMNS, two, seed=1).starts.tolist() == [0, 2]
    with pytest.raises(UserError, match="every combination"):
        of_persons([(("team", "sex"), np.ones(28, bool))], UNIT.constant, DOMAIN, "t")


def test_persons_stay_as_many_where_a_constant_follows_from_each_record():
    table, times, owners = world(5, 600)  # persons of one kind of team each, of which the answers know nothing
    other = np.arange(42) // 3 % 3 != np.arange(42) % 3
    linked = of_persons([(("team", "home"), other)], UNIT.constant, DOMAIN, "t")[1]
    made = linked_persons(table, times, UNIT, COLUMNS, answers_of(table, times, owners, UNIT, 1.0), linked, seed=1)
    assert 570 < made.constants.shape[1] < 630
    assert not any("parted" in words for words in made.told), made.told


def test_constants_stay_as_frequent_as_measured_where_one_of_them_skips_a_question():
    table, times, owners = world(5, 600)
    kept = np.flatnonzero((table.column("sex") == 1) | (np.arange(times.size) % 3 == 0))  # and has fewer records
    columns = {n: np.array(table.column(n)[kept]) for n in DOMAIN.names}
    columns["hits"][columns["sex"] == 0] = 10
    table = CodedTable(DOMAIN, tuple(columns[n] for n in DOMAIN.names))
    owners = np.unique(owners[kept], return_inverse=True)[1]
    skipped = (("hits", "sex"), (np.arange(22) % 2 == 0) & (np.arange(22) < 20))
    answers, own = answers_of(table, times[kept], owners, UNIT, 1.0), np.unique(owners, return_index=True)[1]
    made = linked_persons(table, times[kept], UNIT, COLUMNS, answers, [skipped], seed=1)
    assert (made.constants[0] == 0).sum() > 0.6 * (columns["sex"][own] == 0).sum()


@few(60)
@given(st.integers(0, 10**6), st.lists(st.booleans(), min_size=2, max_size=4), st.integers(1, 6))
def test_values_around_constants_ascend_and_those_of_one_record_change_places(seed, constant, most):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, 5)
    owners = np.repeat(np.arange(5), sizes)
    values = [rng.integers(0, 9, 5)[owners] if c else rng.integers(0, 9, owners.size) for c in constant]
    absent = [rng.random(5)[owners] < 0.2 if c else rng.random(owners.size) < 0.2 for c in constant]
    made = about_constants(values, absent, constant, owners)
    before, rows = (
        [[v[i] for v, a in zip(some, absent, strict=True) if not a[i]] for i in range(owners.size)]
        for some in (values, made)
    )
    assert all(row == sorted(row) for row in rows)
    assert all((m == m[np.searchsorted(owners, owners)]).all() for m, c in zip(made, constant, strict=True) if c)
    if sum(constant) == 1 and len(constant) == 2:
        assert all(rows[i] == sorted(before[i]) for i in np.flatnonzero(sizes[owners] == 1))
        moving = constant.index(False)
        order = np.lexsort((values[moving], owners))
        order = order[~absent[moving][order]]
        assert (np.diff(made[moving][order])[np.diff(owners[order]) == 0] >= 0).all()


@pytest.mark.parametrize("constant", [(), ("a",), ("a", "d"), ("d",)])
@pytest.mark.parametrize("ordered", [[["a", "b"], ["b", "c"], ["c", "d"]], [["c", "d"], ["a", "c"], ["b", "c"]]])
def test_ordered_groups_that_share_columns_all_hold(constant, ordered):
    column = {"kind": "integer", "min": 0, "max": 99, "missing": False, "bins": {"edges": [0, 50, 99]}}
    own = {"columns": dict.fromkeys("abcd", column), "ordered": ordered, "confirmed_public": True}
    unit = {"unit": {"column": "id", "constant": [*constant], "records": {"max": 4}}} if constant else {}
    schema, rng = parse_schema(own | unit, where="t"), np.random.default_rng(4)
    codes = np.sort(rng.integers(0, 2, (300, 4)), axis=1).T
    ids = np.arange(300) // 3
    rows = [c if n not in constant else np.repeat(c[::3], 3) for n, c in zip("abcd", codes, strict=True)]
    kept = ~broken(dict(zip("abcd", rows, strict=True)), schema.domain, schema.rules.zeros)
    table = CodedTable(schema.domain, tuple(c[kept] for c in rows))
    drawn = draw_table(Owned(table, ids[kept]), schema, rng, 0, table.rows)
    values = {n: each.values for n, each in zip("abcd", drawn, strict=True)}
    assert table.rows > 50
    assert all((values[low] <= values[high]).all() for low, high in ordered)
    assert all((np.diff(values[n])[np.diff(ids[kept]) == 0] == 0).all() for n in constant)


def test_the_order_of_a_person_is_drawn_with_all_columns_that_a_chain_of_rules_ties_to_it():
    column = {"kind": "integer", "min": 0, "max": 99, "missing": False, "bins": {"edges": [0, 99]}}
    unit = {"column": "id", "order": ["t"], "records": {"max": 4}}
    own = {"columns": dict.fromkeys("atbc", column), "ordered": [["a", "t"], ["t", "c"]], "confirmed_public": True}
    schema, rows = parse_schema(own | {"unit": unit}, where="t"), 200
    table = CodedTable(schema.domain, (np.zeros(rows, np.int64),) * 4)
    values = _drawn(table, schema, "t", np.random.default_rng(1))
    assert {*values} == {"a", "t", "c"}
    assert (values["a"] <= values["t"]).all() and (values["t"] <= values["c"]).all()


def test_rules_that_would_try_too_many_constants_for_each_person_are_refused():
    domain = Domain((Attribute("born", 200), Attribute("died", 200)))
    with pytest.raises(UserError, match="40,000 combinations of constants"):
        of_persons([(("born", "died"), np.eye(200, dtype=bool).ravel())], ("born", "died"), domain, "t")
