"""The scorers of the contests: 2018 (Li et al. 2021b, section 5.1) and ranges; sprints 1 to 3 as transcribed."""

import json
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evaluation.papers.challenges import match_2018
from evaluation.papers.challenges import range_query as module
from evaluation.papers.challenges.kmarginal import PLACE, TIME, draw_marginals
from evaluation.papers.challenges.match_2018 import answer, draw_query, gini_index, gini_score
from evaluation.papers.challenges.range_query import (
    answerable_queries,
    draw_queries,
    occupied,
    pie_chart_counts,
    range_answers,
    relative_error,
)
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from tests.evaluation import transcribed
from tests.evaluation.contest_frames import SURVEY_EDGES, TO, TRIP_EDGES, UNIT, sprint2_table, sprint3_table
from tests.evaluation.transcribed import SURVEY, sprint1, sprint1_row
from tests.evaluation.worlds import frame_of, result_of, skewed
from tests.public.table_worlds import coded, uniform


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
    owing = census(90, 1).assign(INCWAGE=[-30, 31] * 45), census(90, 2).assign(INCWAGE=[-300, 301] * 45)
    assert gini_score(*owing).score <= 1e6  # it was 60 million, the square of a difference of hundreds


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


def test_the_scorer_whose_gini_index_is_the_default_is_named_among_the_sources():
    cited, pages = "Match 3 on Topcoder", Path(__file__).parents[2] / "docs"
    (row,) = [r for r in (pages / "references.md").read_text(encoding="utf-8").splitlines() if "| NIST 2018 |" in r]
    decided = (pages / "decisions" / "017-metrics-where-sources-disagree.md").read_text(encoding="utf-8")
    assert cited in row and cited in decided and f"{cited} (NIST 2018)" in str(match_2018.__doc__)


def test_gini_of_other_columns():
    frame = census(300, 1).rename(columns={"CITY": "town", "SEX": "gender", "INCWAGE": "pay"})
    names = {"group": "town", "sex": "gender", "income": "pay"}
    assert gini_score(frame, frame, **names).score == pytest.approx(1e6)
    swapped = frame.assign(gender=3 - frame.gender)
    assert gini_score(frame, swapped, **names).details["pay_gap_rank"] < 500_000


def table(rows: int, seed: int, columns: int = 5) -> CodedTable:
    return skewed(rows, seed, Domain(tuple(Attribute(f"c{i}", 4) for i in range(columns))))


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


def test_identical_tables_have_no_error_an_empty_one_has_error_1_and_an_empty_truth_a_reason():
    real, empty = people(200, 1), people(0, 1)
    queries = answerable_queries(real, TOWN.names, count=30)
    assert range_query_error(real, real, queries).error == 0
    assert range_query_error(real, empty, queries).error == 1
    order = np.random.default_rng(0).permutation(200)
    made, shuffled = people(300, 2), real.at(order)
    assert range_query_error(shuffled, made, queries).error == range_query_error(real, made, queries).error
    got = range_query_error(empty, people(20, 1), answerable_queries(empty, TOWN.names, count=30))
    assert got.error is None and got.undefined == 30
    assert "no query holds a true record" in got.to_json()["reason"]


MISTAKES = [
    ({"attributes": ()}, "at least one attribute"),
    ({"attributes": ("sex", "sex")}, "each once"),
    ({"attributes": ("sx",)}, "no column 'sx'"),
]


@pytest.mark.parametrize(("change", "said"), MISTAKES)
def test_mistakes_in_a_range_query_are_named(change, said):
    with pytest.raises(UserError, match=said):
        draw_queries(TOWN, **({"attributes": ("age",)} | change))


def row(*values: float, width: int = 174) -> np.ndarray:
    return np.array([[*values, *[0.0] * (width - len(values))]])


def one(truth: np.ndarray, submitted: np.ndarray) -> float:
    return float(pie_chart_counts(truth, submitted).segments[0])


def test_the_published_edge_values():
    nothing = row()
    assert one(nothing, nothing) == 1
    assert one(nothing, row(3)) == 0
    assert one(row(3), nothing) == pytest.approx(0.012855, abs=1e-6)
    assert one(nothing, row(*[1] * 20)) == 0  # 5 % each: just slices
    assert one(nothing, row(*[1] * 21)) == 1  # 4.76 % each: all under the threshold
    assert 1 - one(row(10, 30), row(20, 60)) == pytest.approx(1.6e-5, abs=5e-7)


def test_the_bias_penalty_begins_above_500_records():
    off_by = [one(row(1e6), row(1e6 + d)) for d in (500, 501, -500, -501)]
    assert off_by == pytest.approx([1, 0.75, 1, 0.75], abs=1e-4)


@pytest.mark.parametrize("kind", ["sparse", "noisy", "proportional", "heavy", "one slice", "off by 500", "empty rows"])
def test_random_maps_score_as_transcribed(kind):
    """174 types, as published; rows of every ε stand below each other, and the total is their sum."""
    rng = np.random.default_rng(3)
    rate = rng.pareto(0.8, 174) + 0.001
    a = rng.poisson(rate / rate.sum() * rng.choice([3, 40, 3000], (120, 1)))
    b = rng.poisson(a + 0.02)
    if kind == "noisy":
        b = np.maximum(np.rint(a + rng.laplace(0, 3, a.shape)), 0).astype(int)
    elif kind == "proportional":
        b = a * rng.integers(1, 9, (120, 1))
    elif kind == "heavy":
        a, b = a * 10**6, a * 10**6 + rng.integers(0, 2, a.shape)
    elif kind == "one slice":
        a, b = (np.where(np.arange(174) == rng.integers(0, 3, (120, 1)), x, 0) for x in (a + 1, b + 1))
    elif kind == "off by 500":
        b = a.copy()
        b[:, 0] += rng.choice([499, 500, 501], 120)
    elif kind == "empty rows":
        a, b = (np.where(rng.random((120, 1)) < 0.5, 0, x) for x in (a, b))
    got = pie_chart_counts(a, b)
    expected = [sprint1_row([*map(float, x)], [*map(float, y)]) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(got.segments, expected, rtol=0, atol=1e-9)
    assert got.score == pytest.approx(sprint1(a, b), abs=1e-9)


def test_the_inverse_is_the_complement_of_the_score_and_chunks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.poisson(3, (50, 8)), rng.poisson(3, (50, 8))
    whole = pie_chart_counts(a, b)
    assert whole.inverse == pytest.approx(1 - whole.score / 50)
    monkeypatch.setattr(module, "CHUNK_CELLS", 24)  # three segments at a time
    assert np.array_equal(pie_chart_counts(a, b).segments, whole.segments)
    assert pie_chart_counts(a, a).inverse == 0


CALLS = Domain((Attribute("month", 3, 3), Attribute("place", 4), Attribute("type", 5), Attribute("note", 2)))
calls = partial(uniform, CALLS)


def scored(real, made, **columns):
    return result_of("pie_chart", real, made, {"segment": "place", "time": "month", "kind": "type", **columns})


def test_two_tables_are_scored_per_place_and_month_and_weights_count():
    real, made = calls(200, 1), calls(230, 2)
    got = scored(real, made)
    counts = [count_cliques(table, [("place", "month", "type")])[0].reshape(12, 5) for table in (real, made)]
    assert got.score == pytest.approx(sprint1(*counts))
    assert got.segments.size == 12
    assert scored(real, CodedTable(CALLS, real.columns, np.full(200, 1 << 20, np.uint32))).inverse == 0


def test_mistakes_in_a_pie_chart_are_named(monkeypatch):
    with pytest.raises(UserError, match="no column 'plase'"):
        scored(calls(5, 1), calls(5, 2), segment="plase")
    with pytest.raises(UserError, match="different attributes"):
        scored(calls(5, 1), calls(5, 2), time="place")
    monkeypatch.setattr(module, "MAX_CELLS", 59)
    with pytest.raises(UserError, match="60 cells"):
        scored(calls(5, 1), calls(5, 2))


CODES = [name for name in SURVEY if name not in SURVEY_EDGES]


def survey(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({c: rng.integers(0, 3, rows) for c in CODES})
    for name, edges in SURVEY_EDGES.items():
        on_an_edge = rng.choice(edges, rows)
        frame[name] = np.where(rng.random(rows) < 0.5, on_an_edge, on_an_edge + rng.integers(-7, 8, rows)).astype(int)
    places = rng.choice(["17-1", "17-2", "39-5"], rows, p=[0.6, 0.3, 0.1])
    return frame.assign(PUMA=places, YEAR=rng.integers(2012, 2015, rows))


def with_more(truth: pd.DataFrame, sub: pd.DataFrame, more: int, **where: object) -> pd.DataFrame:
    """One place and time has so many more records than in the truth."""
    here, there = ((f[[*where]] == pd.Series(where)).all(axis=1) for f in (truth, sub))
    extra = truth[here].sample(more, replace=True, random_state=0)
    return pd.concat([sub[~there], truth[here], extra])


def worlds(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    truth, sub = survey(300, 1), survey(250, 2)
    if kind == "places invented and lost":
        sub = sub[sub.PUMA != "17-1"].assign(PUMA=lambda f: f.PUMA.replace("39-5", "invented"))
    elif kind.startswith("off by"):
        sub = with_more(truth, sub, int(kind.split()[-1]), PUMA="17-1", YEAR=2012)
    elif kind == "on the edges":
        truth, sub = (f.assign(**{n: np.resize(e, len(f)) for n, e in SURVEY_EDGES.items()}) for f in (truth, sub))
        sub = sub.assign(**{n: sub[n] + 1 for n in SURVEY_EDGES})
    elif kind == "beyond the edges":
        sub = sub.assign(**{n: np.resize([-9_999_999, 9_999_999], len(sub)) for n in SURVEY_EDGES})
    elif kind == "records without a place":
        truth = truth.assign(PUMA=truth.PUMA.where(np.arange(len(truth)) % 10 > 0))
        sub = sub.assign(YEAR=sub.YEAR.where(np.arange(len(sub)) % 7 > 0))
    elif kind == "further columns":
        truth, sub = truth.assign(FIRST=1, ZULU=np.arange(len(truth))), sub.assign(FIRST=2)
    elif kind == "one record":
        sub = sub.head(1)
    elif kind == "empty":
        sub = sub.head(0)
    return truth, sub


EDGE_CASES = ("plain", "places invented and lost", "off by 249", "off by 250", "off by 251")
EDGE_CASES += ("records without a place", "further columns", "on the edges", "beyond the edges", "one record", "empty")


@pytest.mark.parametrize("kind", EDGE_CASES)
def test_equals_the_transcription_of_the_definition(kind):
    truth, sub = worlds(kind)
    assert sprint2_table(truth, sub).score == pytest.approx(transcribed.sprint2_table(truth, sub), abs=1e-9)


def test_the_published_draw_and_the_published_numbers_of_bins():
    names = ("AGE", "INCTOT", "POVERTY", "DEPARTS", "fare", "trip_seconds")
    assert [len((SURVEY_EDGES | TRIP_EDGES)[n]) + 1 for n in names] == [18, 22, 27, 97, 11, 11]
    draws = draw_marginals(SURVEY)
    assert len(SURVEY) == 33
    assert draws[:3] == (("WRKRECAL", "INCWELFR"), ("MARST", "EDUC"), ("INCWAGE", "HINSCAID"))
    assert len({frozenset(d) for d in draws}) == 48
    assert "WRKLSTWK" not in {c for d in draws for c in d}


def test_a_perfect_and_an_empty_submission():
    truth = survey(200, 1)
    assert sprint2_table(truth, truth).score == 1000
    assert sprint2_table(truth, truth.iloc[:0]).score == 0
    assert sprint2_table(truth.iloc[:0], truth.iloc[:0]).score is None


def test_coded_tables_score_like_their_codes():
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute(n, 4) for n in ("PUMA", "YEAR", *SURVEY)))
    tables = [coded(domain, rng.integers(0, 4, (len(domain), 300))) for _ in range(2)]
    ends = {n: SURVEY_EDGES[n] if n in SURVEY_EDGES else np.arange(4) for n in domain.names}
    frames = [pd.DataFrame({n: ends[n][t.column(n)] for n in domain.names}) for t in tables]
    places = {"segment": "PUMA", "time": "YEAR"}
    assert result_of("sprint2", *tables, places).score == pytest.approx(sprint2_table(*frames).score, abs=1e-9)
    half = CodedTable(domain, tables[0].columns, np.full(300, 2**19, np.uint32))
    assert result_of("sprint2", tables[0], half, places).score == 1000


def trips(rows: int, seed: int) -> pd.DataFrame:
    """Trips of which all 21 shifts and 78 areas (−1 is missing) occur."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({n: rng.choice([-1, 0, 5, 9, 10, 11, 90, 200, 1799, 1800, 9999], rows) for n in TRIP_EDGES})
    frame = frame.assign(company_id=rng.integers(0, 4, rows), payment_type=rng.integers(-1, 3, rows))
    frame[TO] = rng.integers(-1, 77, rows)
    frame[PLACE] = np.where(np.arange(rows) < 78, np.arange(rows) - 1, rng.integers(-1, 9, rows))
    frame[TIME] = np.where(np.arange(rows) < 21, np.arange(rows), rng.integers(0, 3, rows))
    return frame.assign(**{UNIT: rng.integers(100, 130, rows)})


def parts(truth: pd.DataFrame, sub: pd.DataFrame) -> list[float]:
    details = sprint3_table(truth, sub).details
    return [details[name] for name in ("k_marginal", "pickup_dropoff", "higher_order_conjunction")]


def trip_worlds(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    truth, sub = trips(300, 1), trips(250, 2)
    if kind.startswith("off by"):
        sub = with_more(truth, sub, int(kind.split()[-1]), **{PLACE: 3, TIME: 1})
    elif kind == "on the edges":
        truth, sub = (
            f.assign(**{n: np.resize([-1, *e, 9_999], len(f)) for n, e in TRIP_EDGES.items()}) for f in (truth, sub)
        )
        sub = sub.assign(**{n: sub[n] - 1 for n in TRIP_EDGES})
    elif kind == "taxis in another order, with texts for numbers":
        truth, sub = (f.assign(**{UNIT: [f"taxi {-x}" for x in f[UNIT]]}).iloc[::-1] for f in (truth, sub))
    elif kind == "unscored columns":
        truth, sub = (f.assign(trip_day_of_week=n, trip_hour_of_day=n) for n, f in enumerate((truth, sub)))
    elif kind == "trips without a taxi":
        truth, sub = (f.assign(**{UNIT: f[UNIT].where(np.arange(len(f)) % n > 0)}) for f, n in ((truth, 20), (sub, 10)))
        truth.loc[:98, UNIT] = 100.0
    elif kind == "one busy taxi":
        sub = pd.concat([trips(99, 2), trips(900, 3)]).assign(**{UNIT: 100})
    lacks = {
        "no shift 2": sub[TIME] != 2,
        "no area 1": sub[PLACE] != 1,
        "neither shift nor area 2": (sub[TIME] != 2) & (sub[PLACE] != 2),
        "no area 50": sub[PLACE] != 50,
        "no missing area": sub[PLACE] != -1,
        "half of the shifts and areas": (sub[TIME] % 2 == 1) & (sub[PLACE] % 2 == 1),
    }
    return truth, sub[lacks[kind]] if kind in lacks else sub


TRIP_CASES = ("plain", "off by 249", "off by 250", "off by 251", "on the edges", "unscored columns", "one busy taxi")
TRIP_CASES += ("taxis in another order, with texts for numbers", "no shift 2", "no area 1", "no area 50")
TRIP_CASES += ("trips without a taxi", "neither shift nor area 2", "no missing area", "half of the shifts and areas")


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", TRIP_CASES)
def test_sprint_3_equals_the_transcription_of_the_definition(kind):
    """A number that is a shift and an area and is lacking as either drops the counts of both, as in the original."""
    truth, sub = trip_worlds(kind)
    assert parts(truth, sub) == pytest.approx(transcribed.sprint3_table(truth, sub), abs=1e-9)


def test_the_conjunction_of_busy_and_idle_taxis_equals_the_transcription():
    """Counts on both sides of the widths: the shares are neither 0 nor 1."""
    tables = []
    for seed, busy in ((1, 0.5), (2, 0.2)):
        rng = np.random.default_rng(seed)
        day = trips(99, 1)
        each = [rng.poisson(0.4 if rng.random() < busy else 0.05, 99) for _ in range(30)]
        taxis = [day.loc[np.repeat(day.index, n)].assign(**{UNIT: taxi}) for taxi, n in enumerate(each)]
        tables.append(pd.concat([*taxis, day.assign(**{UNIT: 99})]))
    got = sprint3_table(*tables).details["higher_order_conjunction"]
    assert 0.5 < got < 1
    assert got == pytest.approx(transcribed.conjunction(*tables), abs=1e-9)


def test_a_perfect_and_an_empty_submission_to_sprint_3():
    truth = trips(400, 1)
    assert sprint3_table(truth, truth).score == pytest.approx(1000, abs=1e-9)
    empty = sprint3_table(truth, truth.iloc[:0])
    assert [empty.score, *parts(truth, truth.iloc[:0])] == [0, 0, 0, 0]
    assert sprint3_table(truth.iloc[:0], truth).score is None


def test_coded_tables_and_what_they_lack():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("where", 5), Attribute("when", 4), Attribute("to", 5), Attribute("fare", 3)))
    tables = [
        CodedTable(domain, tuple(rng.integers(0, a.size, 500).astype(np.uint8) for a in domain.attributes))
        for _ in range(2)
    ]
    ids = rng.integers(0, 9, (2, 500))
    roles = {"segment": "where", "time": "when", "to": "to"}
    full = result_of("sprint3", *tables, roles, subject=(ids[0], ids[1]))
    assert 0 < full.score < 1000
    order = rng.permutation(500)
    shuffled = tables[0].at(order)
    again = result_of("sprint3", shuffled, tables[1], roles, subject=(ids[0][order], ids[1]))
    assert again.score == pytest.approx(full.score, abs=1e-9)
    alone = result_of("sprint3", *tables, roles)
    assert alone.score is None and "subject" in alone.reason
    assert all(alone.details[name] == full.details[name] for name in ("k_marginal", "pickup_dropoff"))
