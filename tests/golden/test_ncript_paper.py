"""N-CRiPT 2021, item by item: what its sections print or claim, and what was missing until it was brought in."""

import json

import numpy as np
import pytest
import yaml

from evaluation.cube import cubes_from_arrays
from evaluation.papers.challenges.range_query import pie_chart_counts
from evaluation.papers.ncript.combined_loss import ncript, total_loss
from evaluation.papers.ncript.ncript_rows import (
    NcriptSpec,
    bias_penalty,
    heavy_hitters,
    jaccard_distance,
    jsd,
    violating_types,
)
from mechanisms.public.errors import UserError
from pipeline.conf_folder import CONF
from pipeline.experiments.ncript_figures import (
    EXAMPLE,
    EXAMPLE_DELTA,
    EXAMPLE_H,
    EXAMPLE_K,
    LOSSES,
    PANELS,
    Table2,
    facts_of,
    table2_rows,
)

SHAPE = (12, 40, 20)


@pytest.fixture(scope="module")
def maps() -> tuple[np.ndarray, dict[float, np.ndarray]]:
    """A small town of about Baltimore's calls per cell, with Laplace noise of scale 20 / ε at ε = 0.5 and 4 (3.1.1)."""
    rng = np.random.default_rng(5)
    rate = rng.lognormal(1.0, 1.0, SHAPE[1:]) * rng.pareto(1.2, SHAPE[2])
    truth = rng.poisson(rate * (2.6 / rate.mean()), SHAPE).astype(float)
    noisy = {e: np.maximum(np.rint(truth + rng.laplace(0, 20 / e, SHAPE)), 0) for e in (0.5, 4)}
    return truth, noisy


def test_1_1_the_official_penalty_counts_types_below_five_per_cent_too():
    """Section 1.1 says "actually zero"; the official scorer takes 0.2 for a type of 4 % of the truth as well."""
    truth, made = np.array([[96, 4]]), np.array([[90, 10]])
    assert pie_chart_counts(truth, made).segments[0] == pytest.approx(1 - jsd(truth, made)[0] - 0.2, abs=2e-3)


def test_1_2_heavy_hitters_of_the_whole_year_and_the_whole_area():
    truth, made = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))
    truth[..., 0], made[..., 1] = 10, 10
    result = ncript(cubes_from_arrays(truth, made))
    assert result.heavy_whole == pytest.approx(0.04), "one type lost and one invented, at h = 0.02 each"


def test_2_2_1_the_bias_penalty_of_the_formula_can_be_set():
    """2.2.1 prints 0.2, the defaults (3.1.2) 0.1."""
    truth, made = np.full((1, 1, 2), 400.0), np.full((1, 1, 2), 100.0)
    assert ncript(cubes_from_arrays(truth, made)).parts["bp"].item() == 0.1
    assert ncript(cubes_from_arrays(truth, made), NcriptSpec(bias_penalty=0.2)).parts["bp"].item() == 0.2
    assert bias_penalty(truth, made, cutoff=700).item() == 0


def test_2_2_2_one_invented_type_beside_one_true_one_is_half():
    """ "If there is only 1 type of incident in gt, 1 misleading presence in dp will cause 50% error." """
    assert jaccard_distance(np.array([5, 0, 0]), np.array([5, 1, 0])) == 0.5
    sizes = [float(jaccard_distance(np.eye(n + 1).sum(axis=0) - np.eye(n + 1)[n], np.ones(n + 1))) for n in (1, 4, 9)]
    assert sizes == pytest.approx([1 / 2, 1 / 5, 1 / 10]), "the larger the true set, the smaller the distance"


def test_2_2_3_figure_1_and_its_example():
    """k = 250, Δ = h = 0.2: H' loses nothing, as printed; H~ one type, which is 0.2 by the definition (printed: 1)."""
    truth, alone, without = (np.array(EXAMPLE[n]) for n in ("H", "H'", "H~"))
    assert {sum(h) for h in EXAMPLE.values()} == {1000}
    settings = {"k": EXAMPLE_K / 1000, "delta": EXAMPLE_DELTA}
    assert heavy_hitters(truth, alone, h=EXAMPLE_H, **settings) == 0
    assert violating_types(truth, without, **settings).sum() == 1
    assert heavy_hitters(truth, without, h=EXAMPLE_H, **settings) == pytest.approx(0.2)
    # Were 250 itself heavy, E2 to E5 would be invented only above (1 + Δ)k = 300: five violations are never counted.
    assert violating_types(truth, without + 51, **settings).sum() == 1 + 4
    assert jsd(truth, alone) > jsd(truth, without), "what the example is about"


def test_2_2_6_the_weights_and_the_bounds_of_2_4_1():
    assert total_loss(1, 0.1, 1, 1, 1, 1) == pytest.approx(1.0)
    assert total_loss(1, 0.1, 1, 1, 1, 1, weights=(1, 0, 0, 0, 0)) == pytest.approx(1.1)


def test_2_3_2_k_is_a_tenth_of_the_row_rounded_down():
    truth = np.array([19, 0, 0])
    assert violating_types(truth, np.array([0, 2, 0])).sum() == 1 + 1, "k = 1: the first is lost, the second invented"
    assert violating_types(truth, np.array([19, 1, 0])).sum() == 0


def test_2_4_2_table_2_as_printed_adds_up_and_is_the_experiments():
    """The six rows, each total within a thousandth of equation 5; HC and VC are the same in all months of a place."""
    rows = yaml.safe_load((CONF / "experiment" / "ncript_table2.yaml").read_text())["experiment"]["table2"]
    assert len(rows) == 6
    for row in rows:
        parts = [row[n] for n in ("JSD", "BP", "JD", "HH", "HC", "VC")]
        assert total_loss(*parts) == pytest.approx(row["Total"], abs=1.01e-3)
    for place in (213, 214):
        assert len({(r["HC"], r["VC"]) for r in rows if r["place"] == place}) == 1
    assert np.mean([r["Total"] for r in rows]) == pytest.approx(0.229, abs=5e-4)


def test_2_4_2_table_2_has_its_own_shape_and_the_temporal_chart_its_six_losses(maps):
    truth, noisy = maps
    rows = [{"place": 3, "time": t, "epsilon": 4, **dict.fromkeys(LOSSES, 0.25)} for t in (1, 2)]
    table = Table2(rows, [f"place {i}" for i in range(SHAPE[1])])
    lines = table2_rows({e: facts_of(truth, made, table) for e, made in noisy.items()}, table)
    assert [line[:4] for line in lines] == [[e, 3, "place 2", t] for e in (4, 0.5) for t in (1, 2)]
    assert lines[0][-len(LOSSES) :] == [0.25] * 7 and lines[2][-len(LOSSES) :] == [None] * 7
    whole = ncript(cubes_from_arrays(truth, noisy[4]))
    assert lines[1][4] == whole.parts["jsd"][1, 2] and lines[1][10] == whole.total[1, 2]
    course = json.loads(json.dumps(whole.to_json()))["temporal"][0]
    assert set(course) == {"segment", *LOSSES} and all(len(course[name]) == 12 for name in LOSSES)
    with pytest.raises(UserError, match=r"experiment\.table2"):
        Table2([{"place": 0}], [])


def test_3_1_3_figure_2_all_losses_are_larger_at_the_smaller_budget(maps):
    """ "The scores from the poor quality data-set (ε = 0.5) are much larger than those from ε = 4." """
    truth, noisy = maps
    poor, moderate = (facts_of(truth, noisy[e], Table2([], []))["sums"] for e in (0.5, 4))
    for name in PANELS:
        assert np.sum(poor[name]) > np.sum(moderate[name]), name
        assert np.mean(np.array(poor[name]) >= np.array(moderate[name])) > 0.6, name


def test_3_1_4_figure_3_a_larger_delta_loosens_the_heavy_hitters(maps):
    """The penalty falls with Δ row by row; the high ones grow rare at 0.4."""
    truth, noisy = maps
    counts = [violating_types(truth, noisy[0.5], delta=d).sum(axis=-1) for d in (0.1, 0.2, 0.4)]
    assert (counts[0] >= counts[1]).all() and (counts[1] >= counts[2]).all()
    assert counts[2].sum() < 0.97 * counts[0].sum()
    spread = facts_of(truth, noisy[0.5], Table2([], []))["heavy_hitters"]
    assert [sum(v) for v in spread.values()] == [12 * 40] * 3


def test_3_2_2_both_limitations_of_the_source_are_answered(maps):
    """The ranking of frequent types, and which type causes the loss."""
    truth, noisy = maps
    result = ncript(cubes_from_arrays(truth, noisy[4]))
    assert {"rank", "synthetic_rank", "Total"} <= set(result.types)
    assert 0.5 < result.to_json()["order_of_frequent_types"]["whole_map_all_times"] <= 1
