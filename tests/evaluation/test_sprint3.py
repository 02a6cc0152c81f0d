"""The scorer of sprint 3: a slow version written from the reference's wording, and its edge cases."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from evaluation.sprint3 import EDGES, FEATURES, PLACE, TIME, TO, UNIT, binned, sprint3, sprint3_coded, sprint3_table
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable


def trips(rows: int, seed: int) -> pd.DataFrame:
    """Trips of which all 21 shifts and 78 areas (−1 is missing) occur."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({n: rng.choice([-1, 0, 5, 9, 10, 11, 90, 200, 1799, 1800, 9999], rows) for n in EDGES})
    frame = frame.assign(company_id=rng.integers(0, 4, rows), payment_type=rng.integers(-1, 3, rows))
    frame[TO] = rng.integers(-1, 77, rows)
    frame[PLACE] = np.where(np.arange(rows) < 78, np.arange(rows) - 1, rng.integers(-1, 9, rows))
    frame[TIME] = np.where(np.arange(rows) < 21, np.arange(rows), rng.integers(0, 3, rows))
    return frame.assign(**{UNIT: rng.integers(100, 130, rows)})


def cut(frame: pd.DataFrame) -> pd.DataFrame:
    edges = {c: [-np.inf, *e, np.inf] for c, e in EDGES.items()}
    return frame.assign(**{c: pd.cut(frame[c], e, right=False, labels=False) for c, e in edges.items()})


def slow_parts(truth: pd.DataFrame, sub: pd.DataFrame) -> list[float]:
    def l1(p, q):
        return 2.0 if not len(p) or not len(q) else (p / p.sum()).sub(q / q.sum(), fill_value=0).abs().sum()

    truth, sub = cut(truth), cut(sub)
    keys = sorted({*zip(truth[PLACE], truth[TIME], strict=True), *zip(sub[PLACE], sub[TIME], strict=True)})
    scores = []
    for place, time in keys:
        sides = [f[(f[PLACE] == place) & (f[TIME] == time)] for f in (truth, sub)]
        values = [
            l1(*(s.groupby([a, b]).size() for s in sides)) for a, b in itertools.permutations(FEATURES, 2) if a != b
        ]
        scores.append(2 if abs(len(sides[0]) - len(sides[1])) >= 250 else np.mean(values))
    spatial = 1 - l1(*(f.groupby([PLACE, TO]).size() for f in (truth, sub))) / 2
    return [(2 - np.mean(scores)) / 2, spatial, slow_conjunction(truth, sub)]


def slow_conjunction(truth: pd.DataFrame, sub: pd.DataFrame) -> float:
    def profile(frame):
        tables = [pd.crosstab(frame[UNIT], frame[c]) for c in (TIME, PLACE)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tables[0].join(tables[1], rsuffix="p")

    q = profile(truth)
    p = profile(sub).reindex(columns=q.columns).fillna(0).to_numpy(int)
    q = q.to_numpy(int)
    rng = np.random.RandomState(123456)
    apart = []
    for _ in range(50):
        centre = q[rng.randint(0, len(q))]
        width = rng.randint(5, 51, size=99)
        near = [(np.abs(t - centre) <= width).all(axis=1).mean() for t in (q, p)]
        apart.append(abs(near[0] - near[1]))
    return 1 - np.mean(apart)


def parts(truth: pd.DataFrame, sub: pd.DataFrame) -> list[float]:
    result = sprint3_table(truth, sub)
    return [result.k_marginal, result.spatial, result.conjunction]


@pytest.mark.parametrize("lacks", ["nothing", "a shift", "an area", "a shift and its area", "an area beyond"])
def test_equals_the_slow_version(lacks):
    """A number that is a shift and an area and is lacking as either drops the counts of both, as in the original."""
    truth, sub = trips(300, 1), trips(250, 2)
    if lacks.startswith("a shift"):
        sub = sub[sub[TIME] != 2]
    if lacks.endswith("area"):
        sub = sub[sub[PLACE] != (2 if "shift" in lacks else 1)]
    if lacks == "an area beyond":
        sub = sub[sub[PLACE] != 50]
    expected = slow_parts(truth, sub) if lacks == "nothing" else [slow_conjunction(truth, sub)]
    assert parts(truth, sub)[-len(expected) :] == pytest.approx(expected, abs=1e-9)


def test_more_records_of_a_place_and_time_than_the_cutoff():
    truth, sub = trips(120, 1), trips(9000, 2)
    groups = sprint3_table(truth, sub).details.groups
    assert groups["penalised"].equals((groups["real"] - groups["synthetic"]).abs() >= 250)
    assert groups.loc[groups["penalised"], "distance"].tolist() == [2.0] * int(groups["penalised"].sum()) != []


def test_a_perfect_and_an_empty_submission():
    truth = trips(400, 1)
    assert sprint3_table(truth, truth).score == pytest.approx(1000, abs=1e-9)
    empty = sprint3_table(truth, truth.iloc[:0])
    assert (empty.score, empty.k_marginal, empty.spatial, empty.conjunction) == (0, 0, 0, 0)
    assert sprint3_table(truth.iloc[:0], truth).score is None


def test_budgets_and_the_missing_column():
    truth, sub = trips(400, 1), trips(300, 2)
    both = pd.concat([truth.assign(epsilon=1), sub.assign(epsilon=10)])
    assert sprint3(truth, both).score == pytest.approx((1000 + sprint3_table(truth, sub).score) / 2)
    assert sprint3(truth, sub).score == 0
    json.dumps(sprint3(truth, both).to_json(), allow_nan=False)


def test_bins_and_the_truth_that_lacks_an_area():
    assert binned(pd.DataFrame({"fare": [-1, 0, 9, 10, 89, 90]}))["fare"].tolist() == [0, 1, 1, 2, 9, 10]
    assert [len(EDGES[n]) + 1 for n in ("fare", "trip_seconds")] == [11, 11]
    with pytest.raises(UserError, match="not 99"):
        sprint3_table(trips(60, 1), trips(60, 2))


def test_coded_tables_and_what_they_lack():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("where", 5), Attribute("when", 4), Attribute("to", 5), Attribute("fare", 3)))
    tables = [
        CodedTable(domain, tuple(rng.integers(0, a.size, 500).astype(np.uint8) for a in domain.attributes))
        for _ in range(2)
    ]
    ids = rng.integers(0, 9, (2, 500))
    names = {"place": "where", "time": "when", "to": "to"}
    full = sprint3_coded(*tables, **names, unit=ids[0], synthetic_unit=ids[1])
    assert 0 < full.score < 1000
    alone = sprint3_coded(*tables, **names)
    assert alone.score is None and "subject" in alone.reason
    assert (alone.k_marginal, alone.spatial) == (full.k_marginal, full.spatial)
