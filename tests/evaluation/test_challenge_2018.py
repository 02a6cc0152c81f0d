"""The 2018 challenge's density estimation, Gini index and pay-gap rank (Li et al. 2021b, section 5.1)."""

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from evaluation.mgd.targets import draw_schemas
from evaluation.papers.challenges.density import density
from evaluation.papers.challenges.gini import gini_index, gini_score
from evaluation.papers.challenges.range_2018 import answer, draw_query, range_score
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError


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


def test_gini_of_identical_tables_and_small_cases():
    assert gini_score(census(300, 1), census(300, 1)).score == pytest.approx(1e6)
    assert gini_score(census(90, 1, cities=1), census(80, 2, cities=1)).rank == 500_000
    assert gini_index(np.array([5, 5, 5, 5])) == pytest.approx(-1 / 4)
    assert gini_index(np.array([0, 0, 0, 8])) == pytest.approx(0.5)
    assert gini_index(np.zeros(3)) == gini_index(np.zeros(0)) == 1
    none = gini_score(census(0, 1), census(9, 1))
    assert none.score is None
    json.dumps(none.to_json(), allow_nan=False)
    json.dumps(gini_score(census(300, 1), census(0, 2)).to_json(), allow_nan=False)


def test_the_usual_gini_index_is_offered_beside_that_of_the_challenge():
    """Half the mean difference of two incomes, over their mean; ten equal incomes have none."""
    wages = np.array([1.0, 2.0, 4.0, 9.0])
    differences = np.abs(wages[:, None] - wages)
    assert gini_index(wages, usual=True) == pytest.approx(differences.mean() / 2 / wages.mean())
    assert gini_index(np.ones(10), usual=True) == pytest.approx(0)
    assert gini_index(np.ones(10)) == pytest.approx(-0.1)
    real, synthetic = census(400, 1), census(30, 2)
    assert gini_score(real, synthetic, usual=True).gini != gini_score(real, synthetic).gini


def test_gini_of_other_columns():
    frame = census(300, 1).rename(columns={"CITY": "town", "SEX": "gender", "INCWAGE": "pay"})
    names = {"group": "town", "sex": "gender", "income": "pay"}
    assert gini_score(frame, frame, **names).score == pytest.approx(1e6)
    swapped = frame.assign(gender=3 - frame.gender)
    assert gini_score(frame, swapped, **names).rank < 500_000
    with pytest.raises(UserError, match="no column 'town'"):
        gini_score(frame, frame.drop(columns="town"), **names)


def table(rows: int, seed: int, columns: int = 5) -> CodedTable:
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(Attribute(f"c{i}", 4) for i in range(columns)))
    return CodedTable(domain, tuple((rng.random(rows) ** 2 * 4).astype(np.uint8) for _ in range(columns)))


def test_density_is_the_mean_distance_of_300_triples():
    real, synthetic = table(500, 1), table(400, 2)
    result = density(real, synthetic, seed=3)
    frames = [pd.DataFrame(dict(zip(t.domain.names, t.columns, strict=True))) for t in (real, synthetic)]
    apart = []
    for schema in draw_schemas(real.domain.names, seed=3):
        p, q = (f.groupby(list(schema)).size() / len(f) for f in frames)
        apart.append(p.sub(q, fill_value=0).abs().sum())
    assert len(apart) == 300
    assert result.score == pytest.approx(1e6 * (1 - np.mean(apart) / 2))
    json.dumps(result.to_json(), allow_nan=False)


def test_range_score_is_the_published_formula():
    real, synthetic = table(500, 1), table(400, 2)
    result = range_score(real, synthetic, seed=1)
    rng = np.random.default_rng(1)
    query = draw_query(real.domain, rng)
    asked = [frame_of(t)[list(query)].apply(lambda c: query[c.name][c]).all(axis=1).mean() for t in (real, synthetic)]
    assert [answer(t, query) for t in (real, synthetic)] == pytest.approx(asked)
    d = [np.log(max(p, 1e-6) / q) for q, p in zip(result.frame["real"], result.frame["synthetic"], strict=True)]
    expected = 1e6 * max(0, 1 - np.sqrt(np.mean(np.square(d))) / np.log(1e3))
    assert result.score == pytest.approx(expected)
    assert (result.frame["real"] > 0).all() and len(result.frame) == 300
    assert result.frame["columns"].map(len).mean() == pytest.approx(5 * 0.33 / (1 - 0.67**5), abs=0.2)
    json.dumps(result.to_json(), allow_nan=False)


def test_range_score_at_its_ends():
    real = table(90, 1)
    assert range_score(real, real).score == pytest.approx(1e6)
    assert range_score(real, table(0, 1)).score is None
    wide = Domain((Attribute("a", 60_000), Attribute("b", 60_000, 60_000)))
    rng = np.random.default_rng(0)
    sparse = CodedTable(wide, tuple(rng.integers(0, 60_000, 3).astype(np.uint16) for _ in "ab"))
    rare = range_score(sparse, sparse, queries=40)
    assert rare.score == pytest.approx(1e6)


def frame_of(coded: CodedTable) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(coded.domain.names, coded.columns, strict=True)))


def test_density_at_its_ends():
    assert density(table(90, 1), table(90, 1)).score == pytest.approx(1e6)
    assert density(table(90, 1), table(0, 1)).score is None
    assert set(density(table(9, 1, columns=2), table(9, 2, columns=2)).frame["attributes"]) == {("c0", "c1")}
    domain = Domain((Attribute("a", 2),))
    zero, one = (CodedTable(domain, (np.full(4, v, np.uint8),)) for v in (0, 1))
    assert density(zero, one).score == 0
