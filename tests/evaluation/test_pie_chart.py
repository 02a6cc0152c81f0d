"""The pie chart score of sprint 1: the published edge values, a transcription of its definition, and its laws."""

import numpy as np
import pytest

from evaluation.papers.challenges import pie_chart as module
from evaluation.papers.challenges.pie_chart import pie_chart_counts
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from tests.evaluation.transcribed import sprint1, sprint1_row
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
