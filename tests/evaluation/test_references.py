"""How scores read: references that hold, intervals that cover, labels that mean it; correlation difference and TSTR."""

import itertools
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from evaluation.accuracy.anita_accuracy import bucket_tables, n_way
from evaluation.core_metrics import MgdSettings
from evaluation.correlation import COLUMNS, RECORDS, correlation_maps, cramers_v
from evaluation.counts import MOST_PAIRS, pairs_looked_at
from evaluation.metric import Options
from evaluation.metrics import METRICS
from evaluation.mgd.marginal_difference import MGDResult, mgd
from evaluation.mgd.presets import chosen_targets
from evaluation.outcome import compute, floor, independent
from evaluation.readings.distance_ends import independent_tvd
from evaluation.readings.reading import Ends, mean_ends, reading
from evaluation.tvd import distances
from evaluation.values.value_tables import ValueColumn, Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.settings.scoring import asked_metrics, quick_metrics
from tests.evaluation.worlds import result_of
from tests.public.table_worlds import coded

SIX = Domain(tuple(Attribute(f"c{i}", 6, 6 * (i % 2)) for i in range(6)))


def crowd(rows: int, rng: np.random.Generator) -> CodedTable:
    """Columns that hang together through what nobody sees."""
    hidden = rng.normal(size=rows)
    noisy = [hidden * (0.9 if i % 2 else 0.4) + rng.normal(size=rows) for i in range(6)]
    return coded(SIX, (np.clip(np.floor((x + 2) * 1.5), 0, 5) for x in noisy))


def apart(table: CodedTable, rng: np.random.Generator) -> CodedTable:
    return coded(SIX, (c[rng.integers(0, table.rows, table.rows)] for c in table.columns))


def half_apart(table: CodedTable, rng: np.random.Generator) -> CodedTable:
    return coded(SIX, (rng.permutation(c) if i % 2 else c for i, c in enumerate(table.columns)))


@pytest.mark.some(2)
@pytest.mark.parametrize("make", [lambda t, rng: t, half_apart])
def test_the_spread_of_a_distance_is_the_spread_of_tables_drawn_anew(make):
    """Within 30 % but for few rows, where it is too wide: of an honest table, and of one that lost dependence."""
    rng = np.random.default_rng(1)
    found = [distances(crowd(2000, rng), make(crowd(1000, rng), rng)) for _ in range(40)]
    scores = np.array([f.score for f in found])
    half = np.mean([f.ends.high - f.ends.low for f in found]) / (2 * 1.96)
    assert 0.8 < half / scores.std() < 1.6
    honest = [distances(crowd(2000, rng), crowd(1000, rng)).score for _ in range(40)]
    assert np.mean([f.ends.honest for f in found]) == pytest.approx(np.mean(honest), rel=0.05)
    assert np.mean([f.ends.spread for f in found]) == pytest.approx(np.std(honest), rel=0.35)


def test_the_other_end_is_what_independent_columns_score():
    rng = np.random.default_rng(2)
    real = crowd(4000, rng)
    for score in (distances, lambda a, b: n_way(*bucket_tables(a, [b]), 3)):
        found = score(real, crowd(4000, rng))
        lost = score(real, apart(real, rng))
        value = lost.score if score is distances else lost.accuracy
        assert found.ends.poor == pytest.approx(value, rel=0.1)
        assert abs(found.ends.poor - found.ends.honest) > 5 * found.ends.spread


def test_cells_without_real_records_are_what_independent_columns_put_there():
    rng = np.random.default_rng(4)
    shares = rng.multinomial(299, np.full(1600, 1 / 1600)) / 299
    held, sides = np.flatnonzero(shares), shares.reshape(20, 8, 10)
    product = np.einsum("i,j,k", *(sides.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1)))).ravel()
    found = independent_tvd((20, 8, 10), np.arange(1600), shares, 599)
    assert found == pytest.approx(independent_tvd((20, 8, 10), held, shares[held], 599))
    drawn = np.mean([np.abs(rng.multinomial(599, product) / 599 - shares).sum() / 2 for _ in range(50)])
    assert found == pytest.approx(drawn, rel=0.03)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["correlation", "dependence"])
def test_means_over_pairs_know_their_honest_score_and_their_spread(name):
    score = partial(result_of, name)
    rng = np.random.default_rng(8)
    honest = [score(crowd(3000, rng), crowd(2000, rng)) for _ in range(30)]
    scores = np.array([f.score for f in honest])
    assert np.mean([f.ends.honest for f in honest]) == pytest.approx(scores.mean(), rel=0.1)
    assert np.mean([f.ends.spread for f in honest]) == pytest.approx(scores.std(), rel=0.5)
    lost = [score(crowd(3000, rng), half_apart(crowd(2000, rng), rng)) for _ in range(30)]
    half = np.mean([f.ends.high - f.ends.low for f in lost]) / (2 * 1.96)
    assert 0.7 < half / np.std([f.score for f in lost]) < 1.8, "where a score ends at 0 it is wide"
    gone = score(crowd(3000, rng), apart(crowd(2000, rng), rng))
    assert gone.ends.poor == pytest.approx(gone.score, abs=0.15 * abs(gone.ends.honest - gone.ends.poor))


def mgd_cost(real: CodedTable, synthetic: CodedTable) -> MGDResult:
    """The cost of two crowds whose columns are all numbers."""
    columns = {f"c{i}": {"kind": "integer", "min": 0, "max": 5, "missing": False} for i in range(6)}
    schema = parse_schema({"columns": columns}, where="six.yaml")
    tables = (CodedTable(schema.domain, t.columns) for t in (real, synthetic))
    return mgd(*tables, schema, chosen_targets(MgdSettings(), schema, 0))


@pytest.mark.slow
def test_mgd_is_read_against_counts_that_are_drawn_anew():
    rng = np.random.default_rng(9)
    honest = [mgd_cost(crowd(5000, rng), crowd(5000, rng)) for _ in range(12)]
    scores = np.array([f.score for f in honest])
    assert np.mean([f.ends.honest for f in honest]) == pytest.approx(scores.mean(), rel=0.15)
    assert np.mean([f.ends.spread for f in honest]) > 0.8 * scores.std(), "never too narrow"
    assert np.mean([f.ends.high - f.ends.low for f in honest]) / (2 * 1.96) > 0.8 * scores.std()
    real = crowd(5000, rng)
    gone = mgd_cost(real, apart(real, rng))
    assert gone.ends.poor == pytest.approx(gone.score, rel=0.25) and gone.ends.honest < 0.6 * gone.score
    fewer = mgd_cost(real, crowd(2000, rng)).ends
    assert fewer.honest is None and fewer.high > fewer.low, (
        "records that lack are charged, and no honest score is known"
    )


@pytest.mark.slow
def test_mgd_of_few_rows_tells_independent_columns_from_an_honest_table():
    """Marginals move together far less than wholly: a spread that says so calls all that few rows tell good."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        real, other = crowd(500, rng), crowd(500, rng)
        honest, lost = (mgd_cost(real, made) for made in (other, apart(other, rng)))
        one, two = (reading(r.score, r.ends, "", low_is_good=True).label for r in (honest, lost))
        assert one == "good" and two in {"fair", "weak"}


def labels(real: CodedTable, synthetic: CodedTable, **options: object) -> dict[str, str]:
    names = ("tvd", "anita_1way", "anita_2way", "anita_3way")
    found = {name: compute(METRICS[name], real, synthetic, None, Options(**options)) for name in names}
    return {name: o.reading.label for name, o in found.items()}


def test_tables_are_labelled_by_what_they_keep():
    rng = np.random.default_rng(3)
    real = crowd(5000, rng)
    assert set(labels(real, crowd(5000, rng)).values()) == {"good"}
    lost = labels(real, apart(real, rng))
    assert lost == {"tvd": "weak", "anita_1way": "good", "anita_2way": "weak", "anita_3way": "weak"}
    assert set(labels(real, real).values()) == {"suspicious"}
    # A private release may have measured what a sample cannot know: no suspicion, and it is said.
    assert set(labels(real, real, private=True).values()) == {"good"}
    lost_columns = apart(real, rng).columns
    part = coded(SIX, (np.concatenate([a[:3500], b[:1500]]) for a, b in zip(real.columns, lost_columns, strict=True)))
    assert labels(real, part)["tvd"] in {"fair", "good"}


@pytest.mark.slow
def test_few_honest_tables_are_called_suspicious_or_weak():
    rng = np.random.default_rng(4)
    found = [label for _ in range(25) for label in labels(crowd(1500, rng), crowd(700, rng)).values()]
    assert found.count("good") >= 97 and "suspicious" not in found


def test_a_label_needs_a_reference_and_knows_both_directions():
    assert reading(0.3, Ends(), "lost {x}", low_is_good=True).label == ""
    for low_is_good, worse in ((True, 1), (False, -1)):
        ends = Ends(0.5, 0.01, 0.5 + worse)
        given = {0.0: "good", 0.015: "good", 0.15: "good", 0.4: "fair", 0.7: "weak", -0.03: "good", -0.05: "suspicious"}
        assert {d: reading(0.5 + worse * d, ends, "", low_is_good=low_is_good).label for d in given} == given
    wide = Ends(0.1, None, 1.0, low=0.05, high=0.9)
    assert reading(0.5, wide, "", low_is_good=True).label == "good"  # its interval reaches the honest score
    assert reading(0.6, wide, "", low_is_good=True).label == "weak"
    assert reading(0.5, Ends(0.4, 0.001, 0.3), "", low_is_good=True).label == "", "nothing lies between the two"
    both = mean_ends([Ends(0.2, 0.1, 0.4, 0.1, 0.3), Ends(0.4, 0.1, 0.8)])
    assert both.honest == pytest.approx(0.3) and both.poor == pytest.approx(0.6) and both.low is None


def test_a_scorer_without_a_formula_says_how_to_get_a_label():
    rng = np.random.default_rng(6)
    tables, told = (crowd(300, rng), crowd(300, rng)), "no label: evaluation.references=true"
    alone = compute(METRICS["density"], *tables)
    assert alone.reading.label == "" and told in alone.reading.words
    measured = compute(METRICS["density"], *tables, references=True)
    assert measured.reading.label and told not in measured.reading.words
    assert told not in compute(METRICS["tvd"], *tables).reading.words


def separation(real, synthetic, rows, holdout=None):
    return result_of("two_sample_auc", real, synthetic, {"auc_rows": rows}, holdout=holdout)


@pytest.mark.slow
def test_a_classifier_tells_what_is_not_real_and_stands_beside_real_records():
    rng = np.random.default_rng(5)
    real, other, held = (crowd(1000, rng) for _ in range(3))
    honest = separation(real, other, 700, held)
    assert honest.ends.low < 0.5 < honest.ends.high + 0.01
    beside, against = honest.details["reference"], honest.details["reference"]["of"]
    assert beside["auc"] == honest.ends.honest == pytest.approx(0.5, abs=0.06) and against == "the holdout"
    lost = separation(real, apart(real, rng), 700)
    assert lost.ends.low > 0.56 and lost.details["reference"]["of"].startswith("the other half")
    assert lost.to_json()["rows"] == 700 and lost.to_json()["reference"]["rows"] == 500
    assert separation(real, other, 700, held).to_json() == honest.to_json()


@pytest.mark.slow
def test_copies_err_more_often_than_chance_and_are_suspicious():
    """A model that has seen one of two equal records is wrong about the other."""
    rng = np.random.default_rng(6)
    wide = Domain(tuple(Attribute(f"v{i}", 200, 200) for i in range(8)))
    real = coded(wide, rng.integers(0, 200, (8, 1500)))
    outcome = compute(METRICS["two_sample_auc"], real, real, None, Options())
    assert outcome.score < 0.4 and outcome.reading.label == "suspicious"


def test_too_few_records_are_a_reason():
    rng = np.random.default_rng(7)
    few = separation(crowd(15, rng), crowd(100, rng), 100)
    assert few.score is None and "fewer than 20 records" in few.to_json()["reason"]
    assert separation(crowd(30, rng), crowd(30, rng), 100).details["reference"] is None


def test_without_its_library_a_metric_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("mechanisms.public.members.find_spec", lambda name: None)
    real = crowd(100, np.random.default_rng(1))
    for name in ("two_sample_auc", "tstr"):
        outcome = compute(METRICS[name], real, real, None, Options())
        assert outcome.score is None and outcome.reading is None
        assert outcome.reason.startswith(
            "not computed: needs the library sklearn: pip install scikit-learn threadpoolctl (the extra `ml`"
        )
    assert compute(METRICS["tvd"], real, real, None, Options()).score == 0
    assert added("holdout") == ["singling_out", "linkage", "attribute_inference"]


def added(*met):
    """The metrics that a report adds to the quick ones."""
    quick = asked_metrics("quick", met)
    assert {*quick} <= {*quick_metrics()}
    return [name for name in asked_metrics("quick", met, report=True) if name not in quick]


def test_a_report_adds_what_takes_long_and_attacks_where_there_is_a_holdout():
    assert added() == ["two_sample_auc", "tstr"]
    attacks = ["singling_out", "linkage", "attribute_inference", "membership_inference"]
    assert added("holdout") == [*attacks, "two_sample_auc", "tstr"]


DOMAIN = Domain((Attribute("x", 9, 8), Attribute("y", 8, 8), Attribute("job", 3), Attribute("sex", 2)))


def linked(rows: int, seed: int, strength: float = 0.8) -> CodedTable:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, rows)
    y = np.where(rng.random(rows) < strength, x, rng.integers(0, 8, rows))
    sex = np.where(rng.random(rows) < strength, x > 3, rng.integers(0, 2, rows))
    job = np.where(rng.random(rows) < strength, y // 3, rng.integers(0, 3, rows))
    x = np.where(rng.random(rows) < 0.1, 8, x)
    return coded(DOMAIN, [x, y, job, sex])


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
    flat = coded(DOMAIN, np.zeros((4, real.rows)))
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


def test_tstr_predicts_every_column_in_turn_and_learns_from_a_sample_where_that_is_asked():
    asked = {"predict_all": True, "predict": ["sex"], "predict_rows": 90}
    every = result_of("tstr", linked(300, 1), linked(300, 2), asked, holdout=linked(300, 3))
    assert [*dict.fromkeys(every.frame["target"])] == [*DOMAIN.names]
    assert every.to_json()["rows"] == {"real": 90, "synthetic": 90, "test": 90}


@pytest.mark.slow
def test_tstr_predicts_numbers_as_numbers():
    real, good, bad = linked(1500, 1), linked(1500, 2), linked(1500, 3, strength=0)
    wide = Domain((*DOMAIN.attributes[1:], Attribute("sum", 40, 39)))
    real, good, bad = (
        coded(wide, [*t.columns[1:], t.columns[1].astype(int) * 4 + 3 * t.columns[3]]) for t in (real, good, bad)
    )
    bad = coded(wide, [*bad.columns[:-1], np.random.default_rng(1).permutation(bad.columns[-1])])
    squares = [ValueColumn(a.name, "number", np.arange(a.ordered) ** 2.0, ("missing",)) for a in wide.attributes]
    near, far = (tstr(real, s, values=Values(tuple(squares), {})) for s in (good, bad))
    assert near.frame["kind"].tolist() == ["numbers"] * 2
    assert near.frame["r2_real"].min() > 0.9 and near.frame["r2_majority"].max() <= 0
    assert abs(near.score) < 0.02 and far.score > 0.7
    assert near.ends.high < far.ends.low
    missing = coded(wide, [*real.columns[:-1], np.full_like(real.columns[-1], 39)])
    assert tstr(real, missing).score is None and "no number to learn from" in tstr(real, missing).to_json()["reason"]
    every = tstr(real, good, targets=wide.names)
    assert every.frame["target"].nunique() == len(wide) and every.score is not None


@pytest.mark.slow
def test_tstr_with_a_holdout_and_at_its_edges():
    real = linked(600, 1)
    result = tstr(real, linked(600, 2), linked(300, 3), targets=["job", "sex"])
    assert result.details["rows"] == {"real": 600, "synthetic": 600, "test": 300}
    assert result.frame["classes"].tolist() == [3, 3, 2, 2]
    single = coded(DOMAIN, [*real.columns[:3], np.zeros_like(real.columns[3])])
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
    table = coded(Domain((Attribute("a", 2000),)), [range(2000)])
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
    table = coded(DOMAIN, (np.repeat(c, 10) for c in people.columns))
    alone, together = (floor(shift, table, 3000, unit=u).value for u in (None, np.repeat(np.arange(300), 10)))
    assert together > 2 * alone


def test_undefined_scores_make_undefined_references():
    real = linked(50, 1)
    none = floor(lambda a, b: None, real, 10)
    assert none.value is None


def test_correlation_maps_are_those_of_pandas_and_of_the_counts():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(800, 3))
    x[:, 1] = np.exp(x[:, 0]) + 0.3 * x[:, 1]
    x[rng.random((800, 3)) < 0.1] = np.nan
    flat = np.column_stack([x, np.full(800, 7.0)])
    domain = Domain((Attribute("a", 4, 0), Attribute("b", 3, 0), Attribute("c", 2, 0)))
    a = rng.integers(0, 4, 800)
    table = coded(domain, [a, np.minimum(a, 2), np.zeros(800)])
    other = coded(domain, [table.columns[0], rng.permutation(table.columns[1]), table.columns[2]])
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
