"""Li et al. 2021a (MGD), item by item: what its sections print or claim, and what was missing before."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import yaml

from evaluation.core_metrics import MgdSettings
from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.mgd.aemc import aemc
from evaluation.mgd.aemc_graph import Axis, graph_of
from evaluation.mgd.marginal_difference import mgd
from evaluation.mgd.presets import chosen_targets
from evaluation.mgd.targets import Targets, target
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.experiments.challenge_scores import sampled
from pipeline.experiments.challenge_settings import stand_in
from pipeline.experiments.table1 import MARGINALS, as_printed, printed_order
from pipeline.settings.config import load_config
from tests.evaluation.worlds import each_solver, lp_cost_between_neighbours, result_of
from tests.public.table_worlds import uniform

CENSUS = """
columns:
  age: {kind: integer, min: 0, max: 19, missing: false}
  sex: {kind: categorical, values: [f, m], missing: false}
  city: {kind: categorical, values: [a, b, c, d, e], missing: false}
  race: {kind: categorical, values: [r, s, t], missing: false}
  wage: {kind: integer, min: 0, max: 29, missing: false}
"""
SCHEMA = parse_schema(yaml.safe_load(CENSUS), where="census.yaml")
HALF = Fraction(1, 2)
TABLE1 = load_config(["experiment=mgd_table1"]).experiment.options["table1"]
PAPER = as_printed(TABLE1)
people = partial(uniform, SCHEMA.domain)


@pytest.mark.parametrize("seed", [0, 3])
def test_3_3_density_estimation_is_a_preset_and_equals_the_challenges_score(seed):
    """300 random 3-way marginals, all weights ∞ and Δ = 0: the mean L1 distance, where the totals agree."""
    real, made = people(700, 1), people(700, 2)
    targets = chosen_targets(MgdSettings(preset="density"), SCHEMA, seed)
    assert sum(t.weight for t in targets.marginals) == 300
    assert all(len(t.attributes) == 3 and set(t.weights) == {None} and t.delta == 0 for t in targets.marginals)
    official = result_of("density", real, made, seed=seed).score
    assert 1e6 * (1 - mgd(real, made, SCHEMA, targets).score / 2) == pytest.approx(official, rel=1e-12)


def test_3_3_the_preset_puts_random_samples_in_the_order_of_the_three_scores():
    """Fewer true rows, each counted so much more often; means of four draws."""
    real, rng = stand_in(SCHEMA, 1500, 1), np.random.default_rng(4)
    settings = {"preset": "pums", "attributes": ["city", "sex", "wage"]}
    options = Options(settings=settings | {"group": "city", "sex": "sex", "income": "wage"}, seed=0)
    found = {name: [] for name in ("mgd", "density", "range_2018", "gini")}
    for share in (0.01, 0.05, 0.3):
        drawn = [sampled(real, share, rng) for _ in range(4)]
        assert all(made.rows == real.rows for made in drawn)
        assert len(set(zip(*drawn[0].columns, strict=True))) <= share * real.rows
        for name, scores in found.items():
            inputs = [Inputs(METRICS[name], real, made, SCHEMA, options) for made in drawn]
            scores.append(float(np.mean([METRICS[name].computed(given)[0] for given in inputs])))
    distances = found.pop("mgd")
    assert distances == sorted(distances, reverse=True), distances
    assert all(scores == sorted(scores) for scores in found.values()), found


def test_1_2_unnormalised_distances_count_records_that_are_missing():
    real = people(700, 1)
    fewer = replace(real, columns=tuple(c[:350] for c in real.columns))
    targets = chosen_targets(MgdSettings("density", max_marginals=20), SCHEMA, 0)
    assert mgd(real, fewer, SCHEMA, targets).score == pytest.approx(0.5), "half of the records must be added"


def test_4_4_the_linear_programme_of_4_3_takes_thousands_of_bins_and_says_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    p, q = rng.poisson(3, (2, 50, 80)).astype(float)
    axes = [Axis.path(50, 50, HALF), Axis.tree(80, [[i // 10 for i in range(80)], [0] * 8], HALF)]
    programme = lp_cost_between_neighbours(p.ravel(), q.ravel(), graph_of(axes), 1.0, 1.0) / q.sum()
    for _ in each_solver(monkeypatch):
        assert aemc(p, q, axes, 1.0).value == pytest.approx(programme, rel=1e-9) and programme > 0


def test_4_4_marginals_whose_cells_are_nearly_all_low_are_named():
    """ "If most cells in the ground truth have very low count, not much meaningful information can be obtained." """
    real, made = people(300, 1), people(300, 2)
    wide, small = target(SCHEMA, ["age", "city", "wage"]), target(SCHEMA, ["sex", "race"])
    result = mgd(real, made, SCHEMA, Targets((wide, small)))
    (said,) = result.note
    assert said.startswith("1 of 2 marginals have nearly only cells of very few true records") and "age × city" in said
    counts = np.bincount(real.column("sex") * 3 + real.column("race"), minlength=6)
    assert result.marginals[1].low == (float(np.mean(counts <= 2)), 0.0)
    low, records = result.marginals[0].low
    assert low > 0.99 and records > 0.9
    assert not mgd(people(60_000, 1), people(60_000, 2), SCHEMA, Targets((small,))).note


def test_4_4_many_empty_cells_beside_full_ones_are_no_warning():
    """The tolerance Δ is there for them (5.2): the few high counts tell something."""
    real = people(3000, 1)
    one = replace(real, columns=tuple(c if i in (1, 3) else c * 0 for i, c in enumerate(real.columns)))
    assert not mgd(one, one, SCHEMA, Targets((target(SCHEMA, ["age", "sex", "wage"]),))).note


def test_5_1_the_score_over_delta():
    """Each value is the score at that tolerance; it falls as Δ grows, and is 0 once Δ is the largest difference."""
    real, made = people(400, 1), people(400, 2)
    kway = MgdSettings(max_marginals=4)
    targets = chosen_targets(kway, SCHEMA, 0)
    result = mgd(real, made, SCHEMA, targets, deltas=[0, 1, 5, 400])
    for delta, score in result.over_delta.items():
        alone = chosen_targets(replace(kway, delta=delta), SCHEMA, 0)
        assert score == pytest.approx(mgd(real, made, SCHEMA, alone).score, rel=1e-12)
    scores = [s for _, s in sorted(result.over_delta.items())]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[1] and scores[-1] == 0
    assert [p["delta"] for p in result.to_json()["over_delta"]] == [0, 1, 5, 400]
    with pytest.raises(UserError, match=r"evaluation\.deltas"):
        chosen_targets(MgdSettings(deltas=[-1]), SCHEMA, 0)


def test_b_table_1_as_printed_has_the_correlations_of_section_3_2():
    """MGD follows the error of range queries more closely than AEMC, and AEMC more closely than the pie chart."""
    rho = printed_order(TABLE1)
    assert rho["mgd"] == pytest.approx(0.977, abs=5e-4)
    assert rho["AEMC 3-way"] == pytest.approx(0.908, abs=5e-4)
    assert rho["inverse_pie"] == pytest.approx(0.750, abs=5e-4)


def test_b_the_example_files_are_the_baseline_at_4_and_a_half():
    """ "mediocre" and "very-poor" are not published: their printed AEMC are those of lap-4 and lap-0.5 within 0.3 %."""
    for name, same in (("mediocre", "lap-4"), ("very-poor", "lap-0.5")):
        for marginal in MARGINALS:
            assert PAPER[name][f"AEMC {marginal}"] == pytest.approx(PAPER[same][f"AEMC {marginal}"], rel=3e-3)


def test_b_the_laplace_rows_tell_one_and_a_half_million_records():
    """Noise of scale b on 580,464 cells, cut at 0, adds b / 2 a cell, which one-way marginals lose wholly."""
    for epsilon in (0.25, 0.5, 1, 2, 4, 10):
        added = 580_464 * (20 / epsilon) / 2
        assert 1.44e6 < added / PAPER[f"lap-{epsilon:g}"]["AEMC M"] < 1.95e6, epsilon
    assert 580_464 * 80 / 2 / PAPER["lap-0.25"]["AEMC M"] == pytest.approx(1.48e6, rel=0.01)
