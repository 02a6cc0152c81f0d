"""The scorer of sprint 2: a slow version written from the reference's wording, and its edge cases."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation.kmarginal import draw_marginals
from evaluation.sprint2 import BY, EDGES, binned, sprint2, sprint2_coded, sprint2_table
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable

CODES = (
    *("SEX", "MARST", "RACE", "HISPAN", "CITIZEN", "SPEAKENG", "HCOVANY", "HCOVPRIV", "HINSEMP", "HINSCAID"),
    *("HINSCARE", "EDUC", "EMPSTAT", "EMPSTATD", "LABFORCE", "WRKLSTWK", "ABSENT", "LOOKING", "AVAILBLE"),
    *("WRKRECAL", "WORKEDYR", "GQ"),
)
FEATURES = sorted([*CODES, *EDGES])


def survey(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({c: rng.integers(0, 3, rows) for c in CODES})
    for name, edges in EDGES.items():
        on_an_edge = rng.choice(edges, rows)
        frame[name] = np.where(rng.random(rows) < 0.5, on_an_edge, on_an_edge + rng.integers(-7, 8, rows)).astype(int)
    places = rng.choice(["17-1", "17-2", "39-5"], rows, p=[0.6, 0.3, 0.1])
    return frame.assign(PUMA=places, YEAR=rng.integers(2012, 2015, rows))


def slow_score(truth: pd.DataFrame, sub: pd.DataFrame) -> float:
    """From the wording of the reference, with pandas, one cell at a time."""

    def cut(frame):
        inf = [np.inf]
        return frame.assign(**{c: pd.cut(frame[c], [-np.inf, *e, *inf], labels=False) for c, e in EDGES.items()})

    truth, sub = cut(truth), cut(sub)
    rng = np.random.RandomState(123456)
    keys = sorted({*zip(truth.PUMA, truth.YEAR, strict=True), *zip(sub.PUMA, sub.YEAR, strict=True)})
    sums = dict.fromkeys(keys, 0.0)
    for _ in range(50):
        a, b = rng.choice(FEATURES, size=2, replace=False)
        for key in keys:
            sides = [f[(key[0] == f.PUMA) & (key[1] == f.YEAR)] for f in (truth, sub)]
            if any(len(s) == 0 for s in sides):
                sums[key] += 2
                continue
            p, q = (s.groupby([a, b]).size() / len(s) for s in sides)
            sums[key] += p.sub(q, fill_value=0).abs().sum()
    scores = []
    for key in keys:
        n = [((key[0] == f.PUMA) & (key[1] == f.YEAR)).sum() for f in (truth, sub)]
        scores.append(2 if abs(int(n[0]) - int(n[1])) >= 250 else sums[key] / 50)
    return 1000 * (2 - np.mean(scores)) / 2


@pytest.mark.parametrize(("rows", "other"), [(300, 250), (700, 100), (40, 60)])
def test_equals_the_slow_version(rows, other):
    truth, sub = survey(rows, 1), survey(other, 2)
    if rows == 40:
        sub = sub[sub.PUMA != "17-1"].assign(PUMA=lambda f: f.PUMA.replace("39-5", "invented"))
    assert sprint2_table(truth, sub).score == pytest.approx(slow_score(truth, sub), abs=1e-9)


def test_the_published_draw():
    draws = draw_marginals(FEATURES, k=2, draws=50, seed=123456)
    assert len(FEATURES) == 33
    assert draws[:3] == (("WRKRECAL", "INCWELFR"), ("MARST", "EDUC"), ("INCWAGE", "HINSCAID"))
    assert len({frozenset(d) for d in draws}) == 48
    assert "WRKLSTWK" not in {c for d in draws for c in d}
    assert draw_marginals(FEATURES, k=2, draws=50, seed=0) == draws


def test_the_published_numbers_of_bins():
    names = ("AGE", "INCTOT", "POVERTY", "DEPARTS")
    assert [len(EDGES[n]) + 1 for n in names] == [18, 22, 27, 97]
    assert EDGES["DEPARTS"][[0, 3, 4, -1]].tolist() == [0, 45, 100, 2345]
    assert binned(pd.DataFrame({"AGE": [0, 20, 21, 100, 101]}))["AGE"].tolist() == [0, 0, 1, 16, 17]


def test_a_perfect_and_an_empty_submission():
    truth = survey(200, 1)
    assert sprint2_table(truth, truth).score == 1000
    assert sprint2_table(truth, truth.iloc[:0]).score == 0
    assert sprint2_table(truth.iloc[:0], truth.iloc[:0]).score is None


@pytest.mark.parametrize(("extra", "penalised"), [(249, False), (250, True)])
def test_the_bias_cutoff_includes_250(extra, penalised):
    truth = survey(300, 1).assign(PUMA="17-1", YEAR=2012)
    sub = pd.concat([truth, truth.sample(extra, random_state=0)])
    assert bool(sprint2_table(truth, sub).groups["penalised"].iloc[0]) is penalised


def test_budgets_are_scored_apart_and_averaged():
    truth, sub = survey(200, 1), survey(200, 2)
    both = pd.concat([truth.assign(epsilon=1.0), sub.assign(epsilon=10.0)])
    result = sprint2(truth, both)
    assert [e for e, _ in result.per_epsilon] == [1.0, 10.0]
    assert result.score == pytest.approx((1000 + sprint2_table(truth, sub).score) / 2)
    assert sprint2(truth, both, epsilons=(0.1, 1, 10)).score == pytest.approx(result.score * 2 / 3)
    assert sprint2(truth, sub).score == 0
    json.dumps(result.to_json(), allow_nan=False)


def test_a_missing_column_is_named():
    truth = survey(50, 1)
    with pytest.raises(UserError, match="the synthetic table: no column"):
        sprint2_table(truth, truth.drop(columns="YEAR"))


def test_coded_tables_score_like_their_codes():
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute(n, 4) for n in ("PUMA", "YEAR", "A", "B", "C")))
    tables = [CodedTable(domain, tuple(rng.integers(0, 4, 300).astype(np.uint8) for _ in range(5))) for _ in range(2)]
    frames = [pd.DataFrame(dict(zip(domain.names, t.columns, strict=True))) for t in tables]
    assert sprint2_coded(*tables).score == pytest.approx(sprint2_table(*frames).score, abs=1e-9)
    assert BY == ("PUMA", "YEAR")
    whole = sprint2_coded(*tables, by=(), k=3)
    assert len(whole.groups) == 1
    half = CodedTable(domain, tables[0].columns, np.full(300, 2**19, np.uint32))
    assert sprint2_coded(tables[0], half).score == 1000
