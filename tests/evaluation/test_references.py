"""Correlation difference, TSTR and the references: small cases with known answers."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from evaluation.accuracy.anita_accuracy import n_way
from evaluation.correlation import COLUMNS, RECORDS, correlation_maps, cramers_v
from evaluation.counts import MOST_PAIRS, pairs_looked_at
from evaluation.references import floor, independent, ladder
from evaluation.values.value_tables import ValueColumn, Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from tests.evaluation.worlds import result_of

DOMAIN = Domain((Attribute("x", 9, 8), Attribute("y", 8, 8), Attribute("job", 3), Attribute("sex", 2)))


def linked(rows: int, seed: int, strength: float = 0.8) -> CodedTable:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, rows)
    y = np.where(rng.random(rows) < strength, x, rng.integers(0, 8, rows))
    sex = np.where(rng.random(rows) < strength, x > 3, rng.integers(0, 2, rows))
    job = np.where(rng.random(rows) < strength, y // 3, rng.integers(0, 3, rows))
    x = np.where(rng.random(rows) < 0.1, 8, x)
    return CodedTable(DOMAIN, tuple(np.asarray(c, np.uint8) for c in (x, y, job, sex)))


def shift(real: CodedTable, synthetic: CodedTable) -> float | None:
    accuracy = n_way(real, synthetic, 2).accuracy
    return None if accuracy is None else 1 - accuracy


def correlation_difference(real, synthetic):
    return result_of("correlation", real, synthetic)


def tstr(real, synthetic, holdout=None, *, targets=(), **options):
    return result_of("tstr", real, synthetic, {"predict": [*targets]}, holdout=holdout, **options)


def test_pearson_ignores_missing_and_cramers_v_is_the_textbook_one():
    table = linked(500, 1)
    frame = correlation_difference(table, table).frame.set_index(["a", "b"])
    known = table.columns[0] < 8
    expected = np.corrcoef(table.columns[0][known].astype(float), table.columns[1][known].astype(float))[0, 1]
    assert frame.loc[("x", "y"), "real"] == pytest.approx(expected)
    assert frame.loc[("job", "sex"), "kind"] == "cramers_v"
    assert cramers_v(np.array([[10, 0], [0, 10]])) == pytest.approx(1)
    assert cramers_v(np.array([[5, 5], [5, 5]])) == 0
    assert cramers_v(np.array([[5, 5], [0, 0]])) == 0


def test_pairs_of_wide_tables_are_drawn_and_summed_one_by_one_as_those_of_others(monkeypatch):
    names = [f"c{i}" for i in range(260)]
    every = list(itertools.combinations(names, 2))
    drawn = np.sort(np.random.default_rng(0).choice(len(every), MOST_PAIRS, replace=False))
    assert pairs_looked_at(names) == [every[i] for i in drawn] and len(pairs_looked_at(names[:200])) == 19_900
    lines = Domain((*DOMAIN.attributes[:2], Attribute("z", 3, 3), Attribute("sex", 2)))
    one, two = (CodedTable(lines, linked(500, seed).columns) for seed in (1, 2))
    together = correlation_difference(one, two).frame
    monkeypatch.setattr("evaluation.correlation.WIDE", 2)
    pd.testing.assert_frame_equal(correlation_difference(one, two).frame, together)


def test_correlation_difference_sees_lost_dependence_and_keeps_constant_columns():
    real = linked(3000, 1)
    assert correlation_difference(real, real).score == 0
    assert correlation_difference(real, linked(3000, 2)).score < 0.03 < 0.2
    assert correlation_difference(real, linked(3000, 2, strength=0)).score > 0.2
    flat = CodedTable(DOMAIN, tuple(np.zeros_like(c) for c in real.columns))
    result = correlation_difference(real, flat)
    assert result.details["constant"] == {"real": [], "synthetic": [*DOMAIN.names]}
    assert len(result.frame) == 6 and result.score > 0.2
    same = correlation_difference(flat, flat)
    assert same.score == same.ends.honest == 0, (
        "a second sample of constant columns is no farther: nothing is suspicious"
    )
    json.dumps(result.to_json(), allow_nan=False)


def test_tstr_learns_what_the_synthetic_table_keeps():
    real, good, bad = linked(1500, 1), linked(1500, 2), linked(1500, 3, strength=0)
    near, far = (tstr(real, s, targets=["sex"]) for s in (good, bad))
    assert abs(near.score) < 0.06
    assert far.score > 0.2
    assert near.frame["model"].tolist() == ["linear", "trees"]
    for _, row in near.frame.iterrows():
        assert row["balanced_real"] > 0.75 > row["guessing"] == row["balanced_majority"] == row["auc_majority"] == 0.5
        assert row["auc_synthetic"] > 0.75 and row["f1_synthetic"] > 0.7 > row["f1_majority"]
    assert near.ends.low < near.score < near.ends.high and near.ends.poor > 0.2


def test_tstr_predicts_numbers_as_numbers():
    real, good, bad = linked(1500, 1), linked(1500, 2), linked(1500, 3, strength=0)
    wide = Domain((*DOMAIN.attributes[1:], Attribute("sum", 40, 39)))
    real, good, bad = (
        CodedTable(wide, (*t.columns[1:], (t.columns[1].astype(int) * 4 + 3 * t.columns[3]).astype(np.uint8)))
        for t in (real, good, bad)
    )
    bad = CodedTable(wide, (*bad.columns[:-1], np.random.default_rng(1).permutation(bad.columns[-1])))
    squares = [ValueColumn(a.name, "number", np.arange(a.ordered) ** 2.0, ("missing",)) for a in wide.attributes]
    near, far = (tstr(real, s, values=Values(tuple(squares), {})) for s in (good, bad))
    assert near.frame["kind"].tolist() == ["numbers"] * 2
    assert near.frame["r2_real"].min() > 0.9 and near.frame["r2_majority"].max() <= 0
    assert abs(near.score) < 0.02 and far.score > 0.7
    assert near.ends.high < far.ends.low
    missing = CodedTable(wide, (*real.columns[:-1], np.full_like(real.columns[-1], 39)))
    assert tstr(real, missing).score is None and "no number to learn from" in tstr(real, missing).to_json()["reason"]
    every = tstr(real, good, targets=wide.names)
    assert every.frame["target"].nunique() == len(wide) and every.score is not None


def test_tstr_with_a_holdout_and_at_its_edges():
    real = linked(600, 1)
    result = tstr(real, linked(600, 2), linked(300, 3), targets=["job", "sex"])
    assert result.details["rows"] == {"real": 600, "synthetic": 600, "test": 300}
    assert result.frame["classes"].tolist() == [3, 3, 2, 2]
    single = CodedTable(DOMAIN, (*real.columns[:3], np.zeros_like(real.columns[3])))
    assert tstr(real, single, targets=["sex"]).frame["balanced_synthetic"].iloc[0] == 0.5
    failed = tstr(single, real, targets=["sex"])
    assert failed.score is None and "single class" in failed.to_json()["reason"]
    part = tstr(single, real, targets=["sex", "job"])  # what has a result counts
    assert part.score is not None and part.to_json()["reason"] == "sex: the test records show a single class"
    with pytest.raises(UserError, match="no column 'sx'"):
        tstr(real, real, targets=["sx"])


def test_the_floor_lies_between_perfect_and_independent():
    real = linked(2000, 1)
    low, high = floor(shift, real, 1000), independent(shift, real, 1000)
    assert 0 < low.value < high.value
    assert len(low.values) == 3 and "2000 and 1000" in low.note
    expected = n_way(real, real.at(slice(0, 1000)), 2).frame["floor"].mean()
    assert low.value == pytest.approx(expected, rel=0.2)


def test_whole_units_are_drawn():
    table = CodedTable(Domain((Attribute("a", 2000),)), (np.arange(2000, dtype=np.uint16),))
    unit = np.random.default_rng(0).permutation(2000) // 4
    sizes = []

    def spy(real: CodedTable, synthetic: CodedTable) -> float:
        sizes.append((real.rows, synthetic.rows))
        drawn = synthetic.columns[0].reshape(-1, 4)
        assert all(len(set(four)) == 4 and len(set(unit[four])) == 1 for four in drawn)
        return 0.0

    said = floor(spy, table, 400, repeats=2, unit=unit).note
    assert sizes == [(2000, 400)] * 2
    assert "whole units" in said


def test_records_of_one_unit_are_alike_and_raise_the_floor():
    people = linked(300, 1)
    table = CodedTable(DOMAIN, tuple(np.repeat(c, 10) for c in people.columns))
    alone, together = (floor(shift, table, 3000, unit=u).value for u in (None, np.repeat(np.arange(300), 10)))
    assert together > 2 * alone


def test_the_ladder_names_a_subsample():
    real = linked(2000, 1)
    steps = ladder(shift, real, goal="low")
    assert steps.frame["rows"].tolist()[:3] == [20, 100, 200]
    assert steps.frame["score"].is_monotonic_decreasing
    assert steps.as_good_as(0.0) == "as good as a 90% sample of the real rows"
    assert steps.as_good_as(steps.frame["score"][2]) == "as good as a 10% sample of the real rows"
    assert steps.as_good_as(1.0) == "worse than a 1% sample of the real rows"
    assert steps.as_good_as(None) == "no comparison: no score"


def test_undefined_scores_make_undefined_references():
    real = linked(50, 1)
    none = floor(lambda a, b: None, real, 10)
    assert none.value is None
    assert ladder(lambda a, b: None, real, goal="high").to_json()[0]["score"] is None
    assert isinstance(ladder(lambda a, b: None, real, goal="high").frame, pd.DataFrame)


def test_correlation_maps_are_those_of_pandas_and_of_the_counts():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(800, 3))
    x[:, 1] = np.exp(x[:, 0]) + 0.3 * x[:, 1]
    x[rng.random((800, 3)) < 0.1] = np.nan
    flat = np.column_stack([x, np.full(800, 7.0)])
    domain = Domain((Attribute("a", 4, 0), Attribute("b", 3, 0), Attribute("c", 2, 0)))
    a = rng.integers(0, 4, 800)
    codes = (a, np.minimum(a, 2), np.zeros(800, int))
    table = CodedTable(domain, tuple(c.astype(np.uint8) for c in codes))
    other = CodedTable(domain, (table.columns[0], rng.permutation(table.columns[1]), table.columns[2]))
    maps = correlation_maps(["x", "y", "z", "flat"], (flat, flat[:400]), (table, other))
    frame = pd.DataFrame(flat)
    for side, own in (("real", frame), ("synthetic", frame[:400])):
        expected = own.corr("pearson").to_numpy(copy=True)
        np.fill_diagonal(expected, np.nan)
        np.testing.assert_allclose(maps["pearson"][side], expected, atol=1e-9)
        np.testing.assert_allclose(
            np.array(maps["spearman"][side])[:3, :3][np.triu_indices(3, 1)],
            own.rank().corr("pearson").to_numpy()[:3, :3][np.triu_indices(3, 1)],
            atol=1e-9,
        )
    assert maps["cramers_v"]["real"][0][1] == pytest.approx(1.0)
    assert maps["cramers_v"]["synthetic"][0][1] < 0.15 and maps["cramers_v"]["difference"][0][1] < -0.85
    assert np.isnan(maps["cramers_v"]["real"][0][2]), "a column of one value has none"
    assert maps["rows"] == {"real": 800, "synthetic": 400}


def test_correlation_maps_take_a_sample_of_rows_and_columns():
    domain = Domain(tuple(Attribute(f"c{i}", 2, 0) for i in range(COLUMNS + 2)))
    codes = np.random.default_rng(1).integers(0, 2, RECORDS + 50_000).astype(np.uint8)
    table = CodedTable(domain, (codes,) * (COLUMNS + 2))
    maps = correlation_maps([], (np.zeros((1, 0)), np.zeros((1, 0))), (table, table))
    assert set(maps) == {"rows", "cramers_v"} and len(maps["cramers_v"]["names"]) == COLUMNS
    assert np.nanmin(maps["cramers_v"]["real"]) == pytest.approx(1.0)
