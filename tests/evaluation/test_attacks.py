"""Attacks with a control group: arithmetic, brute force on tiny worlds, copies and honest tables, units, bounds."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from evaluation.attacks.attack_tables import rate, risk, sides_of
from evaluation.attacks.attribute_inference import worst_of
from evaluation.attacks.membership import ATTACKS, told_apart
from evaluation.attacks.promise_bounds import AttackPromise
from evaluation.attacks.singling_out import _conditions, _meets
from evaluation.core_metrics import AttackSettings
from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from evaluation.verdict.random_split import wilson
from evaluation.verdict.verdict import verdict
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from tests.evaluation.test_verdict import FINE, odd_tables, persons, thirds

NAMES = ("singling_out", "linkage", "attribute_inference", "membership_inference")
SMALL = {"attacks": 300, "attack_rows": 900}


def attacked(name, training, synthetic, holdout, **options):
    settings = {**SMALL, **options.pop("settings", {})}
    outcome = compute(METRICS[name], training, synthetic, None, Options(settings=settings, holdout=holdout, **options))
    json.dumps(outcome.to_json(), allow_nan=False)
    return outcome


def sides(training, synthetic, holdout, **options):
    inputs = Inputs(METRICS["linkage"], training, synthetic, None, Options(holdout=holdout, **options))
    return sides_of(inputs, AttackSettings(**SMALL), np.random.default_rng(0))


def test_a_risk_is_what_is_won_of_what_the_control_leaves():
    found = risk(rate(60, 100), rate(20, 100))
    assert found.value == pytest.approx((0.6 - 0.2) / (1 - 0.2))
    assert 0 < found.low < found.value < found.high < 1
    assert risk(rate(10, 100), rate(30, 100)).value == 0
    assert risk(rate(100, 100), rate(100, 100)).value == 0
    assert (rate(7, 50).value, rate(7, 50).error) == pytest.approx(wilson(7 / 50, 50))


def test_intervals_of_a_risk_hold_the_truth():
    rng = np.random.default_rng(0)
    truth = (0.3 - 0.2) / 0.8
    held = 0
    for _ in range(1000):
        found = risk(rate(rng.binomial(400, 0.3), 400), rate(rng.binomial(400, 0.2), 400))
        held += found.low <= truth <= found.high
    assert 0.93 <= held / 1000 <= 0.985


def test_the_auc_is_that_of_all_pairs_and_its_error_that_of_repeated_draws():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 9, 40) + 1.0, rng.integers(0, 9, 30) * 1.0
    pairs = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
    assert told_apart(a, b, rng).auc == pytest.approx(pairs)
    drawn = [told_apart(rng.normal(0.7, 1, 200), rng.normal(0, 1, 150), rng) for _ in range(300)]
    truth = norm.cdf(0.7 / math.sqrt(2))
    spread = np.std([d.auc for d in drawn])
    width = np.mean([d.high - d.low for d in drawn]) / 2 / -norm.ppf(0.05 / 6)
    assert width == pytest.approx(spread, rel=0.2)
    assert np.mean([d.low <= truth <= d.high for d in drawn]) >= 0.96
    advantage = 2 * norm.cdf(0.35) - 1
    assert np.mean([d.advantage for d in drawn]) == pytest.approx(advantage, abs=0.03)
    assert np.mean([d.advantage for d in (told_apart(*rng.normal(size=(2, 90)), rng) for _ in range(300))]) < 0.02


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_the_bounds_hold_for_a_gaussian_and_are_not_far_from_it(mu):
    """A release that is μ-GDP, with its (ε, δ) at many δ: AUC Φ(μ/√2), advantage 2Φ(μ/2) − 1 (Dong et al. 2019)."""
    epsilons = np.linspace(0.01, 8, 60)
    deltas = norm.cdf(-epsilons / mu + mu / 2) - np.exp(epsilons) * norm.cdf(-epsilons / mu - mu / 2)
    promise = AttackPromise(tuple(zip(epsilons.tolist(), deltas.tolist(), strict=True)))
    auc, advantage = norm.cdf(mu / math.sqrt(2)), 2 * norm.cdf(mu / 2) - 1
    assert auc <= promise.auc <= auc + 0.005
    assert advantage <= promise.advantage + 1e-12 <= advantage + 0.01


def test_the_bounds_of_randomized_response_are_reached():
    """It answers truly with probability e^ε / (1 + e^ε): no (ε, 0) tells more."""
    promise = AttackPromise(((1.0, 0.0),))
    assert promise.advantage == pytest.approx((math.e - 1) / (math.e + 1))
    assert promise.auc == pytest.approx(math.e / (1 + math.e), abs=1e-3)
    assert promise.auc >= math.e / (1 + math.e)
    assert AttackPromise(((1000.0, 1e-6),)).advantage == 1 and AttackPromise(((1000.0, 1e-6),)).auc == pytest.approx(
        1, abs=1e-3
    )


def test_a_condition_singles_out_one_synthetic_row_and_is_met_as_it_says():
    made = thirds(300, 1)[1]
    found = _conditions(made, 40, 2, np.random.default_rng(0))
    assert len(set(found)) == 40
    for condition in found:
        met = [
            all(
                {"==": x == v, "<=": x <= v, ">=": v <= x < a.ordered}[sign]
                for i, sign, v in condition
                for x, a in [(row[i], FINE.attributes[i])]
            )
            for row in zip(*(c.tolist() for c in made.columns), strict=True)
        ]
        assert met == _meets(made, condition).tolist() and sum(met) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_copies_is_at_risk_and_a_fresh_one_is_not(name):
    training, synthetic, holdout = thirds(900, 3)
    copies, fresh = (attacked(name, training, made, holdout) for made in (training, synthetic))
    if name == "membership_inference":
        assert copies.score > 0.95 and tuple(copies.result.details["attacks"]) == ATTACKS
        for attack in fresh.result.details["attacks"].values():
            assert attack["auc"]["low"] <= 0.5 <= attack["auc"]["high"]
            assert attack["advantage"]["low"] <= 0 <= attack["advantage"]["high"]
    else:
        assert copies.result.ends.low > 0.2 and fresh.result.ends.low < 0.02
        columns = fresh.result.details.get("columns", {})
        assert all(c["low"] < 0.02 for c in columns.values()) and len(columns) == 4 * (name == "attribute_inference")


def test_an_attack_acts_on_whole_units():
    """Records of a person are nearly alike; the synthetic table has one of each person's eight."""
    (training, ids), (holdout, others) = persons(1), persons(2)
    made = training.at(slice(0, None, 8))
    known = {"unit": ids, "holdout_unit": others + 10_000}
    units = sides(training, made, holdout, **known)
    assert units.several and units.counts()["training_units"] == units.counts()["holdout_units"] == 112
    assert np.unique(units.units[0], return_counts=True)[1].tolist() == [8] * 112
    one_row_each = units.targets(500, np.random.default_rng(0))
    assert [t.rows for t in one_row_each] == [112, 112]
    by_person = attacked("membership_inference", training, made, holdout, settings={"attacks": 500}, **known).result
    assert by_person.details["units"]["members"] == 112 and by_person.score > 0.95
    guesses = attacked("singling_out", training, made, holdout, settings={"attacks": 100}, **known).result.details
    assert guesses["training"]["successes"] > 60  # all rows that meet a condition are of one person
    assert attacked("linkage", training, made, holdout, settings={"attacks": 200}, **known).result.ends.low > 0.3


def test_what_a_promise_allows_stands_beside_the_attacks():
    training, synthetic, holdout = thirds(400, 3)
    with_promise = attacked("membership_inference", training, synthetic, holdout, promise=AttackPromise(((1.0, 1e-6),)))
    bound = with_promise.to_json()["details"]["bound"]
    assert bound["epsilon"] == 1 and 0.73 < bound["auc"] < 0.74 and 0.46 < bound["advantage"] < 0.47
    assert "bound" not in attacked("membership_inference", training, synthetic, holdout).to_json()["details"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("odd", ["tiny holdout", "constant", "all alike", "one column", "one row"])
def test_odd_tables_have_a_score_or_a_reason(name, odd):
    lone = Domain((Attribute("a", 9, 9),))
    outcome = attacked(name, *(thirds(120, 1, lone) if odd == "one column" else odd_tables(120)[odd]))
    assert (outcome.score is None) == bool(outcome.reason), outcome.reason
    assert "failed:" not in outcome.reason
    assert outcome.score is None or 0 <= outcome.score <= 1


def test_copies_overfitting_and_an_honest_model_are_told_apart():
    """Copies, rows with one changed column, and rows of the same law, by the verdict and by an attack."""
    wide = Domain(tuple(Attribute(f"c{i}", 12, 12 * (i % 2)) for i in range(8)))
    training, fresh, holdout = thirds(1200, 5, wide)
    rng = np.random.default_rng(0)
    place = rng.integers(0, 8, 1200)
    near = tuple(np.where(place == i, (c + rng.integers(1, 12, 1200)) % 12, c) for i, c in enumerate(training.columns))
    tables = (training, CodedTable(wide, near), fresh)
    copied, overfit, honest = (verdict(training, made, holdout) for made in tables)
    assert copied.result == overfit.result == "failed" != honest.result
    assert "nearer" in overfit.why and overfit.nearer.low > overfit.nearer.expected
    risks = [attacked("membership_inference", training, made, holdout).score for made in tables]
    assert risks[0] > risks[1] > risks[2] + 0.1


#: Right guesses on either side, and how many there were: of a column that is nearly always so, and of another one.
TRIED = ((998, 992, 1000), (510, 500, 1000))


def test_the_worst_column_is_one_of_which_something_is_known():
    """Of a column that everybody guesses a few hits more are no risk; with a risk above 0 it comes before all."""
    nearly, known = (risk(rate(a, n, level=0.001), rate(b, n, level=0.001)) for a, b, n in TRIED)
    assert nearly.value > 0.7 and nearly.low == 0 and nearly.high - nearly.low > 0.5
    assert worst_of({"flag": nearly, "town": known}) == "town"
    sure = risk(rate(1000, 1000), rate(900, 1000))
    assert worst_of({"flag": nearly, "town": known, "wage": sure}) == "wage"
    assert worst_of({"flag": nearly}) == "flag"
