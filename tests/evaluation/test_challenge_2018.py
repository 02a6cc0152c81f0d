"""The 2018 challenge's scores (Li et al. 2021b, section 5.1), and range queries."""

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from evaluation.mgd.targets import draw_schemas
from evaluation.papers.challenges.gini import gini_index, gini_score
from evaluation.papers.challenges.range_2018 import answer, draw_query
from evaluation.papers.challenges.range_query import (
    answerable_queries,
    draw_queries,
    occupied,
    range_answers,
    relative_error,
)
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from tests.evaluation.worlds import frame_of, result_of, skewed


def census(rows: int, seed: int, cities: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city, sex = rng.integers(0, cities, rows), rng.integers(1, 3, rows)
    wage = (rng.exponential(900, rows) * (1 + 0.1 * city) * (3 - sex)).astype(int)
    return pd.DataFrame({"CITY": city, "SEX": sex, "INCWAGE": np.where(rng.random(rows) < 0.1, 999_998, wage)})


def slow(real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """The published scorer's arithmetic, one record at a time."""

    def facts(frame):
        out = {}
        for city in dict.fromkeys(frame.CITY):
            people = sorted((w, s) for c, s, w in frame.itertuples(index=False, name=None) if c == city and w < 999_998)
            total, running, g = sum(w for w, _ in people), 0, 0.0
            for w, _ in people:
                running += w
                g += running / len(people) / total if total else 0
            means = []
            for wanted in (1, 2):
                wages = [w for w, s in people if s == wanted]
                means.append(sum(wages) / len(wages) if wages else 0)
            out[city] = (1 - 2 * g, means[0] - means[1])
        ranked = sorted(out, key=lambda c: -out[c][1])
        return {c: (out[c][0], ranked.index(c)) for c in out}

    q, p = facts(real), facts(synthetic)
    s1 = sum((1 - abs(q[c][0] - p[c][0])) ** 2 for c in q if c in p)
    s2 = sum(max(0, 1 - abs(q[c][1] - p[c][1]) / (len(q) - 1)) ** 2 for c in q if c in p)
    return 500_000 * (sqrt(s1 / len(q)) + sqrt(s2 / len(q)))


@pytest.mark.parametrize("change", ["nothing", "a city lost", "a city invented", "one sex only"])
def test_gini_equals_the_published_arithmetic(change):
    real, synthetic = census(400, 1), census(300, 2)
    if change == "a city lost":
        synthetic = synthetic[synthetic.CITY != 2]
    if change == "a city invented":
        synthetic = pd.concat([synthetic, synthetic.assign(CITY=77)])
    if change == "one sex only":
        synthetic = synthetic[(synthetic.CITY != 1) | (synthetic.SEX == 2)]
    assert gini_score(real, synthetic).score == pytest.approx(slow(real, synthetic), abs=1e-6)


def test_gini_of_small_cases():
    assert gini_score(census(90, 1, cities=1), census(80, 2, cities=1)).details["pay_gap_rank"] == 500_000
    assert gini_index(np.array([5, 5, 5, 5])) == pytest.approx(-1 / 4)
    assert gini_index(np.array([0, 0, 0, 8])) == pytest.approx(0.5)
    assert gini_index(np.zeros(3)) == gini_index(np.zeros(0)) == 1
    json.dumps(gini_score(census(300, 1), census(0, 2)).to_json(), allow_nan=False)


def test_the_usual_gini_index_is_offered_beside_that_of_the_challenge():
    """Half the mean difference of two incomes, over their mean; ten equal incomes have none."""
    wages = np.array([1.0, 2.0, 4.0, 9.0])
    differences = np.abs(wages[:, None] - wages)
    assert gini_index(wages, usual=True) == pytest.approx(differences.mean() / 2 / wages.mean())
    assert gini_index(np.ones(10), usual=True) == pytest.approx(0)
    assert gini_index(np.ones(10)) == pytest.approx(-0.1)
    real, synthetic = census(400, 1), census(30, 2)
    usual, challenge = (gini_score(real, synthetic, usual=usual).details for usual in (True, False))
    assert usual["gini_index"] != challenge["gini_index"]


def test_gini_of_other_columns():
    frame = census(300, 1).rename(columns={"CITY": "town", "SEX": "gender", "INCWAGE": "pay"})
    names = {"group": "town", "sex": "gender", "income": "pay"}
    assert gini_score(frame, frame, **names).score == pytest.approx(1e6)
    swapped = frame.assign(gender=3 - frame.gender)
    assert gini_score(frame, swapped, **names).details["pay_gap_rank"] < 500_000


def table(rows: int, seed: int, columns: int = 5) -> CodedTable:
    return skewed(rows, seed, Domain(tuple(Attribute(f"c{i}", 4) for i in range(columns))))


def test_density_is_the_mean_distance_of_300_triples():
    real, synthetic = table(500, 1), table(400, 2)
    result = result_of("density", real, synthetic, seed=3)
    frames = [frame_of(t) for t in (real, synthetic)]
    apart = []
    for schema in draw_schemas(real.domain.names, seed=3):
        p, q = (f.groupby(list(schema)).size() / len(f) for f in frames)
        apart.append(p.sub(q, fill_value=0).abs().sum())
    assert len(apart) == 300
    assert result.score == pytest.approx(1e6 * (1 - np.mean(apart) / 2))


def test_range_score_is_the_published_formula():
    real, synthetic = table(500, 1), table(400, 2)
    result = result_of("range_2018", real, synthetic, seed=1)
    rng = np.random.default_rng(1)
    query = draw_query(real.domain, rng)
    asked = [frame_of(t)[list(query)].apply(lambda c: query[c.name][c]).all(axis=1).mean() for t in (real, synthetic)]
    assert [answer(t, query) for t in (real, synthetic)] == pytest.approx(asked)
    d = [np.log(max(p, 1e-6) / q) for q, p in zip(result.frame["real"], result.frame["synthetic"], strict=True)]
    expected = 1e6 * max(0, 1 - np.sqrt(np.mean(np.square(d))) / np.log(1e3))
    assert result.score == pytest.approx(expected)
    assert (result.frame["real"] > 0).all() and len(result.frame) == 300
    assert result.frame["columns"].map(len).mean() == pytest.approx(5 * 0.33 / (1 - 0.67**5), abs=0.2)


def test_the_range_score_of_a_table_whose_every_query_is_rare():
    wide = Domain((Attribute("a", 60_000), Attribute("b", 60_000, 60_000)))
    rng = np.random.default_rng(0)
    sparse = CodedTable(wide, tuple(rng.integers(0, 60_000, 3).astype(np.uint16) for _ in "ab"))
    assert result_of("range_2018", sparse, sparse).score == pytest.approx(1e6)


def test_density_at_its_ends():
    pairs = result_of("density", table(9, 1, columns=2), table(9, 2, columns=2))
    assert set(pairs.frame["attributes"]) == {("c0", "c1")}
    domain = Domain((Attribute("a", 2),))
    zero, one = (CodedTable(domain, (np.full(4, v, np.uint8),)) for v in (0, 1))
    assert result_of("density", zero, one).score == 0


TOWN = Domain((Attribute("age", 9, 7), Attribute("sex", 2), Attribute("job", 10), Attribute("year", 5, 5)))


def people(rows: int, seed: int, weighted: bool = False) -> CodedTable:
    weights = np.random.default_rng(seed).integers(0, 1 << 20, rows).astype(np.uint32) if weighted else None
    return CodedTable(TOWN, skewed(rows, seed, TOWN).columns, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("names", [("job",), ("age", "sex"), ("year", "job", "age")])
def test_the_answers_are_those_of_counting_row_by_row(names, weighted):
    table = people(300, 1, weighted)
    queries = draw_queries(TOWN, names, count=40, seed=5)
    got = range_answers(queries, *occupied(table, tuple(queries)))
    for q in range(40):
        total = 0.0
        for r in range(table.rows):
            if all(c[table.column(n)[r], q] for n, c in queries.items()):
                total += 1.0 if table.weights is None else table.weights[r] / 2**20
        assert got[q] == pytest.approx(total, rel=1e-12)


def test_a_query_holds_a_range_of_an_ordered_attribute_and_a_subset_of_any_other():
    queries = draw_queries(TOWN, ("age", "job"), count=500, share=0.3, seed=1)
    ages, jobs = queries.values()
    assert not ages[7:].any()  # other and missing lie in no range
    assert set(ages.sum(0)) == {2}  # round(0.3 · 7)
    assert all(np.diff(np.flatnonzero(ages[:, q])).max() == 1 for q in range(500))
    assert {int(np.flatnonzero(ages[:, q])[0]) for q in range(500)} == set(range(6))  # every range occurs
    assert set(jobs.sum(0)) == {3}
    assert len({tuple(np.flatnonzero(jobs[:, q])) for q in range(500)}) > 90  # of 120 subsets
    assert set(draw_queries(TOWN, ("sex",), share=0.01)["sex"].sum(0)) == {1}
    assert draw_queries(TOWN, TOWN.names, share=1.0)[TOWN.names[2]].all()


def test_the_seed_and_not_the_count_decides_the_queries():
    few, many, other = (draw_queries(TOWN, TOWN.names, count=c, seed=s) for c, s in ((20, 3), (70, 3), (20, 4)))
    assert all(np.array_equal(few[n], many[n][:, :20]) for n in TOWN.names)
    assert not all(np.array_equal(few[n], other[n]) for n in TOWN.names)


def test_every_answerable_query_holds_a_true_record():
    table = people(6, 2)
    queries = answerable_queries(table, TOWN.names, count=50, seed=0)
    assert {chosen.shape[1] for chosen in queries.values()} == {50}
    assert (range_answers(queries, *occupied(table, tuple(queries))) > 0).all()
    every = draw_queries(TOWN, TOWN.names, count=50 * 50, seed=0)
    holding = np.flatnonzero(range_answers(every, *occupied(table, tuple(every))) > 0)
    # the first of one seeded sequence
    assert all(np.array_equal(queries[n], every[n][:, holding[:50]]) for n in TOWN.names)


def test_the_error_is_the_mean_relative_one():
    got = relative_error(np.array([10.0, 4.0, 0.0]), np.array([15.0, 4.0, 7.0]), seed=9)
    assert got.error == pytest.approx(0.25)
    assert got.undefined == 1
    assert np.isnan(got.errors[2])
    assert got.to_json() == {"error": 0.25, "queries": 3, "undefined": 1, "seed": 9}


def range_query_error(real, synthetic, queries):
    truth, answers = (range_answers(queries, *occupied(t, tuple(queries))) for t in (real, synthetic))
    return relative_error(truth, answers, seed=0)


def test_identical_tables_have_no_error_and_an_empty_one_has_error_1():
    real = people(200, 1)
    queries = answerable_queries(real, TOWN.names, count=30)
    assert range_query_error(real, real, queries).error == 0
    assert range_query_error(real, people(0, 1), queries).error == 1
    order = np.random.default_rng(0).permutation(200)
    made, shuffled = people(300, 2), real.at(order)
    assert range_query_error(shuffled, made, queries).error == range_query_error(real, made, queries).error


def test_an_empty_truth_has_no_error_but_a_reason():
    empty = people(0, 1)
    queries = answerable_queries(empty, TOWN.names, count=30)
    got = range_query_error(empty, people(20, 1), queries)
    assert got.error is None
    assert "no query holds a true record" in got.to_json()["reason"]
    assert got.undefined == 30


MISTAKES = [
    ({"attributes": ()}, "at least one attribute"),
    ({"attributes": ("sex", "sex")}, "each once"),
    ({"attributes": ("sx",)}, "no column 'sx'"),
]


@pytest.mark.parametrize(("change", "said"), MISTAKES)
def test_mistakes_are_named(change, said):
    with pytest.raises(UserError, match=said):
        draw_queries(TOWN, **({"attributes": ("age",)} | change))
