"""Range queries: the answers are those of counting row by row, and the draws are what they say."""

import numpy as np
import pytest

from evaluation.papers.challenges.range_query import (
    answerable_queries,
    draw_queries,
    occupied,
    range_answers,
    range_query_error,
    relative_error,
)
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError

TOWN = Domain((Attribute("age", 9, 7), Attribute("sex", 2), Attribute("job", 10), Attribute("year", 5, 5)))


def people(rows: int, seed: int, weighted: bool = False) -> CodedTable:
    rng = np.random.default_rng(seed)
    columns = tuple((rng.random(rows) ** 2 * a.size).astype(code_dtype(a.size)) for a in TOWN.attributes)
    weights = rng.integers(0, 1 << 20, rows).astype(np.uint32) if weighted else None
    return CodedTable(TOWN, columns, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("names", [("job",), ("age", "sex"), ("year", "job", "age")])
def test_the_answers_are_those_of_counting_row_by_row(names, weighted):
    table = people(300, 1, weighted)
    queries = draw_queries(TOWN, names, count=40, seed=5)
    got = range_answers(queries, *occupied(table, queries.clique))
    for q in range(40):
        total = 0.0
        for r in range(table.rows):
            if all(c[table.column(n)[r], q] for n, c in zip(names, queries.chosen, strict=True)):
                total += 1.0 if table.weights is None else table.weights[r] / 2**20
        assert got[q] == pytest.approx(total, rel=1e-12)


def test_a_query_holds_a_range_of_an_ordered_attribute_and_a_subset_of_any_other():
    queries = draw_queries(TOWN, ("age", "job"), count=500, share=0.3, seed=1)
    ages, jobs = queries.chosen
    assert not ages[7:].any()  # other and missing lie in no range
    assert set(ages.sum(0)) == {2}  # round(0.3 · 7)
    assert all(np.diff(np.flatnonzero(ages[:, q])).max() == 1 for q in range(500))
    assert {int(np.flatnonzero(ages[:, q])[0]) for q in range(500)} == set(range(6))  # every range occurs
    assert set(jobs.sum(0)) == {3}
    assert len({tuple(np.flatnonzero(jobs[:, q])) for q in range(500)}) > 90  # of 120 subsets
    assert set(draw_queries(TOWN, ("sex",), share=0.01).chosen[0].sum(0)) == {1}
    assert draw_queries(TOWN, TOWN.names, share=1.0).chosen[2].all()


def test_the_seed_and_not_the_count_decides_the_queries():
    few, many, other = (draw_queries(TOWN, TOWN.names, count=c, seed=s) for c, s in ((20, 3), (70, 3), (20, 4)))
    assert all(np.array_equal(a, b[:, :20]) for a, b in zip(few.chosen, many.chosen, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(few.chosen, other.chosen, strict=True))
    assert few.seed == 3


def test_every_answerable_query_holds_a_true_record():
    table = people(6, 2)
    queries = answerable_queries(table, TOWN.names, count=50, seed=0)
    assert queries.size == 50
    assert (range_answers(queries, *occupied(table, queries.clique)) > 0).all()
    every = draw_queries(TOWN, TOWN.names, count=50 * 50, seed=0)
    holding = np.flatnonzero(range_answers(every, *occupied(table, every.clique)) > 0)
    expected = every.only(holding[:50])  # the first of one seeded sequence
    assert all(np.array_equal(a, b) for a, b in zip(queries.chosen, expected.chosen, strict=True))


def test_the_error_is_the_mean_relative_one():
    got = relative_error(np.array([10.0, 4.0, 0.0]), np.array([15.0, 4.0, 7.0]), seed=9)
    assert got.error == pytest.approx(0.25)
    assert got.undefined == 1
    assert np.isnan(got.errors[2])
    assert got.to_json() == {"error": 0.25, "queries": 3, "undefined": 1, "seed": 9}


def test_identical_tables_have_no_error_and_an_empty_one_has_error_1():
    real = people(200, 1)
    queries = answerable_queries(real, TOWN.names, count=30)
    assert range_query_error(real, real, queries).error == 0
    assert range_query_error(real, people(0, 1), queries).error == 1
    order = np.random.default_rng(0).permutation(200)
    made, shuffled = people(300, 2), CodedTable(TOWN, tuple(c[order] for c in real.columns))
    assert range_query_error(shuffled, made, queries).error == range_query_error(real, made, queries).error


def test_an_empty_truth_has_no_error_but_a_reason():
    empty = people(0, 1)
    queries = answerable_queries(empty, TOWN.names, count=30)
    got = range_query_error(empty, people(20, 1), queries)
    assert got.error is None
    assert "no query holds a true record" in got.to_json()["reason"]
    assert got.undefined == 30


MISTAKES = [
    ({"count": 0}, "count"),
    ({"share": 0.0}, "share"),
    ({"share": 1.1}, "share"),
    ({"share": float("nan")}, "share"),
    ({"seed": -1}, "seed"),
    ({"attributes": ()}, "at least one attribute"),
    ({"attributes": ("sex", "sex")}, "each once"),
    ({"attributes": ("sx",)}, "no column 'sx'"),
]


@pytest.mark.parametrize(("change", "said"), MISTAKES)
def test_mistakes_are_named(change, said):
    with pytest.raises(UserError, match=said):
        draw_queries(TOWN, **({"attributes": ("age",)} | change))
