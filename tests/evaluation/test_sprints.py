"""The scorers of sprints 1, 2 and 3 against transcriptions of their definitions, and in every edge case."""

import numpy as np
import pandas as pd
import pytest

from evaluation.papers.challenges import pie_chart as module
from evaluation.papers.challenges.kmarginal import draw_marginals
from evaluation.papers.challenges.pie_chart import pie_chart_counts
from evaluation.papers.challenges.sprint3 import PLACE, TIME
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from tests.evaluation import transcribed
from tests.evaluation.contest_frames import SURVEY_EDGES, TO, TRIP_EDGES, UNIT, sprint2_table, sprint3_table
from tests.evaluation.transcribed import SURVEY, sprint1, sprint1_row
from tests.evaluation.worlds import result_of


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


TOWN = Domain((Attribute("month", 3, 3), Attribute("place", 4), Attribute("type", 5), Attribute("note", 2)))


def calls(rows: int, seed: int) -> CodedTable:
    rng = np.random.default_rng(seed)
    return CodedTable(TOWN, tuple(rng.integers(0, a.size, rows).astype(code_dtype(a.size)) for a in TOWN.attributes))


def scored(real, made, **columns):
    return result_of("pie_chart", real, made, {"segment": "place", "time": "month", "kind": "type", **columns})


def test_two_tables_are_scored_per_place_and_month():
    real, made = calls(200, 1), calls(230, 2)
    got = scored(real, made)
    counts = [count_cliques(table, [("place", "month", "type")])[0].reshape(12, 5) for table in (real, made)]
    assert got.score == pytest.approx(sprint1(*counts))
    assert got.segments.size == 12


def test_weights_count():
    real = calls(100, 1)
    heavy = CodedTable(TOWN, real.columns, np.full(100, 1 << 20, np.uint32))
    assert scored(real, heavy).inverse == 0


def test_mistakes_are_named(monkeypatch):
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
    tables = [
        CodedTable(domain, tuple(rng.integers(0, 4, 300).astype(np.uint8) for _ in domain.names)) for _ in range(2)
    ]
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
