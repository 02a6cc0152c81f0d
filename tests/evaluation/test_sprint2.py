"""The scorer of sprint 2 against a transcription of its definition, in every edge case of the reference."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation.papers.challenges.kmarginal import BY, draw_marginals, sprint2_coded
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from tests.evaluation import transcribed
from tests.evaluation.sprint2_frames import EDGES, binned, sprint2, sprint2_table

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


def worlds(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two random tables with an edge case of the reference."""
    truth, sub = survey(300, 1), survey(250, 2)
    if kind == "places invented and lost":
        sub = sub[sub.PUMA != "17-1"].assign(PUMA=lambda f: f.PUMA.replace("39-5", "invented"))
    elif kind.startswith("off by"):  # one place and year has so many more records than in the truth
        here = truth[(truth.PUMA == "17-1") & (truth.YEAR == 2012)]
        extra = here.sample(int(kind.split()[-1]), replace=True, random_state=0)
        sub = pd.concat([sub[(sub.PUMA != "17-1") | (sub.YEAR != 2012)], here, extra])
    elif kind == "on the edges":
        truth, sub = (f.assign(**{n: np.resize(e, len(f)) for n, e in EDGES.items()}) for f in (truth, sub))
        sub = sub.assign(**{n: sub[n] + 1 for n in EDGES})
    elif kind == "beyond the edges":
        sub = sub.assign(**{n: np.resize([-9_999_999, 9_999_999], len(sub)) for n in EDGES})
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


def test_other_seeds_equal_the_transcription_and_0_means_the_published_one():
    truth, sub = survey(120, 3), survey(110, 4)
    for seed in (0, 7):
        expected = transcribed.sprint2_table(truth, sub, seed)
        assert sprint2_table(truth, sub, seed=seed).score == pytest.approx(expected, abs=1e-9)
    assert sprint2_table(truth, sub, seed=0).score == sprint2_table(truth, sub).score


def test_a_submission_of_several_epsilons_equals_the_transcription():
    truth = survey(150, 1)
    sub = pd.concat([survey(100, seed).assign(epsilon=e) for seed, e in ((2, 0.1), (3, 1.0), (4, 10.0))])
    expected = transcribed.over_epsilons(transcribed.sprint2_table, truth, sub)
    numbered = sub.assign(sim_individual_id=range(len(sub)))  # not scored
    assert sprint2(truth, numbered).score == pytest.approx(expected, abs=1e-9)
    no_epsilon = sub.drop(columns="epsilon")
    assert sprint2(truth, no_epsilon).score == transcribed.over_epsilons(transcribed.sprint2_table, truth, no_epsilon)


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
    with pytest.raises(UserError, match="the real table: no column 'RACE'"):
        sprint2_table(truth.drop(columns="RACE"), truth.drop(columns="RACE"))


def test_coded_tables_score_like_their_codes():
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute(n, 4) for n in (*BY, *FEATURES)))
    tables = [
        CodedTable(domain, tuple(rng.integers(0, 4, 300).astype(np.uint8) for _ in domain.names)) for _ in range(2)
    ]
    ends = {n: EDGES[n] if n in EDGES else np.arange(4) for n in domain.names}
    frames = [pd.DataFrame({n: ends[n][t.column(n)] for n in domain.names}) for t in tables]
    assert sprint2_coded(*tables).score == pytest.approx(sprint2_table(*frames).score, abs=1e-9)
    assert BY == ("PUMA", "YEAR")
    whole = sprint2_coded(*tables, by=(), k=3)
    assert len(whole.groups) == 1
    half = CodedTable(domain, tables[0].columns, np.full(300, 2**19, np.uint32))
    assert sprint2_coded(tables[0], half).score == 1000
