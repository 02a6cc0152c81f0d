"""The scorer of sprint 3 against a transcription of its definition, in every edge case of the reference."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation.papers.challenges.sprint3 import PLACE, TIME, TO, UNIT, Roles, sprint3_coded
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from tests.evaluation import transcribed
from tests.evaluation.sprint3_frames import EDGES, binned, sprint3, sprint3_table


def trips(rows: int, seed: int) -> pd.DataFrame:
    """Trips of which all 21 shifts and 78 areas (−1 is missing) occur."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({n: rng.choice([-1, 0, 5, 9, 10, 11, 90, 200, 1799, 1800, 9999], rows) for n in EDGES})
    frame = frame.assign(company_id=rng.integers(0, 4, rows), payment_type=rng.integers(-1, 3, rows))
    frame[TO] = rng.integers(-1, 77, rows)
    frame[PLACE] = np.where(np.arange(rows) < 78, np.arange(rows) - 1, rng.integers(-1, 9, rows))
    frame[TIME] = np.where(np.arange(rows) < 21, np.arange(rows), rng.integers(0, 3, rows))
    return frame.assign(**{UNIT: rng.integers(100, 130, rows)})


def parts(truth: pd.DataFrame, sub: pd.DataFrame) -> list[float]:
    result = sprint3_table(truth, sub)
    return [result.k_marginal, result.spatial, result.conjunction]


def worlds(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two random tables with an edge case of the reference."""
    truth, sub = trips(300, 1), trips(250, 2)
    if kind.startswith("off by"):  # one place and time has so many more records than in the truth
        here = truth[(truth[PLACE] == 3) & (truth[TIME] == 1)]
        extra = here.sample(int(kind.split()[-1]), replace=True, random_state=0)
        sub = pd.concat([sub[(sub[PLACE] != 3) | (sub[TIME] != 1)], here, extra])
    elif kind == "on the edges":
        truth, sub = (
            f.assign(**{n: np.resize([-1, *e, 9_999], len(f)) for n, e in EDGES.items()}) for f in (truth, sub)
        )
        sub = sub.assign(**{n: sub[n] - 1 for n in EDGES})
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


EDGE_CASES = ("plain", "off by 249", "off by 250", "off by 251", "on the edges", "unscored columns", "one busy taxi")
EDGE_CASES += ("taxis in another order, with texts for numbers", "no shift 2", "no area 1", "no area 50")
EDGE_CASES += ("trips without a taxi", "neither shift nor area 2", "no missing area", "half of the shifts and areas")


@pytest.mark.parametrize("kind", EDGE_CASES)
def test_equals_the_transcription_of_the_definition(kind):
    """A number that is a shift and an area and is lacking as either drops the counts of both, as in the original."""
    truth, sub = worlds(kind)
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
    for seed in (123456, 7):
        got = sprint3_table(*tables, seed=seed).conjunction
        assert 0.5 < got < 1
        assert got == pytest.approx(transcribed.conjunction(*tables, seed), abs=1e-9)


def test_a_submission_of_several_epsilons_equals_the_transcription():
    truth = trips(150, 1)
    sub = pd.concat([trips(120, 2).assign(epsilon=1), trips(130, 3).assign(epsilon=10)])

    def score(real: pd.DataFrame, made: pd.DataFrame) -> float:
        return 1000 * sum(transcribed.sprint3_table(real, made)) / 3

    assert sprint3(truth, sub).score == pytest.approx(transcribed.over_epsilons(score, truth, sub), abs=1e-9)


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
    roles = Roles("where", "when", "to")
    full = sprint3_coded(*tables, roles, (ids[0], ids[1]))
    assert 0 < full.score < 1000
    order = rng.permutation(500)
    shuffled = CodedTable(domain, tuple(c[order] for c in tables[0].columns))
    again = sprint3_coded(shuffled, tables[1], roles, (ids[0][order], ids[1]))
    assert again.score == pytest.approx(full.score, abs=1e-9)
    alone = sprint3_coded(*tables, roles)
    assert alone.score is None and "subject" in alone.reason
    assert (alone.k_marginal, alone.spatial) == (full.k_marginal, full.spatial)
