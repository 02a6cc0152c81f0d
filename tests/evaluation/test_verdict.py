"""The verdict on privacy, and attacks with a control group: tiny worlds, copies, honest tables, drift, bad input."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtri
from scipy.stats import binomtest, hypergeom, norm

from evaluation.attacks.membership import ATTACKS, _words, separation
from evaluation.attacks.promise_bounds import AttackPromise
from evaluation.attacks.unit_attacks import _conditions, _meets, rate, risk, sides_of, worst_of
from evaluation.core_metrics import AttackSettings
from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from evaluation.verdict.drift import equal_pairs
from evaluation.verdict.near_rows import APART, affordable_rows, affordable_search, nearest_rows, places
from evaluation.verdict.rare_matches import (
    DRAWS,
    Pool,
    clopper_pearson,
    excess,
    match_test,
    neighbours,
    split_p,
    wilson,
)
from evaluation.verdict.verdict import verdict
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from pipeline.report.score_sections import _member_rows
from tests.public.table_worlds import coded

#: Hardly a row repeats in it.
FINE = Domain((Attribute("age", 60, 60), Attribute("job", 40), Attribute("wage", 400, 398), Attribute("town", 50)))
#: Rows repeat by nature.
COARSE = Domain((Attribute("age", 5, 5), Attribute("sex", 2), Attribute("job", 6)))


def people(rows: int, seed: int, domain: Domain = FINE) -> CodedTable:
    """Skewed columns that depend on the first one."""
    rng = np.random.default_rng(seed)
    first = rng.random(rows)
    shares = [(0.5 * first + 0.5 * rng.random(rows)) ** 1.5 for _ in domain.attributes]
    return coded(domain, (u * a.size for u, a in zip(shares, domain.attributes, strict=True)))


def joined(*tables: CodedTable) -> CodedTable:
    return coded(tables[0].domain, (np.concatenate(c) for c in zip(*(t.columns for t in tables), strict=True)))


def thirds(rows: int, seed: int, domain: Domain = FINE) -> list[CodedTable]:
    whole = people(3 * rows, seed, domain)
    return [whole.at(slice(i * rows, (i + 1) * rows)) for i in range(3)]


def rows_of(table: CodedTable) -> list[tuple[int, ...]]:
    return list(zip(*(c.tolist() for c in table.columns), strict=True))


def copied(training: CodedTable, synthetic: CodedTable, share: float, seed: int) -> CodedTable:
    """The synthetic table with a share of its rows replaced by random training rows."""
    count = round(share * synthetic.rows)
    chosen = np.random.default_rng(seed).choice(training.rows, count, replace=False)
    return joined(training.at(chosen), synthetic.at(slice(count, None)))


@pytest.mark.parametrize(("sizes", "hits"), [((30, 30), (7, 1)), ((400, 100), (20, 1)), ((50, 200), (3, 4))])
def test_the_test_of_matches_is_the_exact_one_where_all_weigh_alike(sizes, hits):
    sides = [np.repeat([1, 0], [hit, size - hit]) for size, hit in zip(sizes, hits, strict=True)]
    exact = hypergeom.sf(hits[0] - 1, sum(sizes), sum(hits), sizes[0])
    assert split_p(*sides, np.random.default_rng(1)) == pytest.approx(exact, abs=4 * np.sqrt(exact / DRAWS) + 1 / DRAWS)


def test_intervals_are_clopper_and_pearsons_and_wilsons():
    for count, of in ((0, 9), (3, 40), (40, 40)):
        share = clopper_pearson(count, of)
        ci = binomtest(count, of).proportion_ci(method="exact")
        assert (share.low, share.high) == pytest.approx((ci.low, ci.high), abs=1e-9)
        ci = binomtest(count, of).proportion_ci(method="wilson")
        centre, width = wilson(count / of, of)
        assert (centre - width, centre + width) == pytest.approx((ci.low, ci.high), abs=1e-9)


def test_the_variance_of_an_excess_is_that_of_all_random_splits():
    rng = np.random.default_rng(0)
    weights = np.sort(rng.random(60))
    splits = np.array([rng.permutation(weights)[:20].sum() for _ in range(20_000)])
    chosen = np.concatenate([weights[15:35], weights[:15], weights[35:]])
    spread = (chosen[:20].sum() - splits.mean()) / -ndtri(excess(chosen[:20], chosen[20:]).p)
    assert spread == pytest.approx(splits.std(), rel=0.03)
    assert excess(np.ones(5), np.ones(9)).p == 1 and excess(np.zeros(5), np.zeros(3)) is None


def test_nearest_rows_and_ties_are_brute_force():
    asked, pool = people(40, 1, COARSE), people(1100, 2, COARSE)
    whole = places([asked, pool])
    asked_places, pool_places = whole.only(np.arange(40)), whole.only(np.arange(40, whole.rows))
    found = nearest_rows(asked_places, pool_places)
    given, standing_out = np.zeros(pool.rows), np.zeros(pool.rows)
    for i in range(40):
        apart = np.abs(asked_places.ordered[:, i].astype(int)[:, None] - pool_places.ordered).sum(axis=0)
        apart += APART * (asked_places.others[:, i][:, None] != pool_places.others).sum(axis=0)
        two = np.sort(apart)[:2]
        assert (found.first[i], found.second[i], found.ties[i]) == (*two, (apart == two[0]).sum())
        nearest = (apart == two[0]) / (apart == two[0]).sum()
        given += nearest
        standing_out += nearest * (2 * two[0] <= two[1] and two[1] > 0)
    assert found.nearest_of == pytest.approx(given) and found.outstanding_of == pytest.approx(standing_out)
    alone = nearest_rows(pool_places, pool_places, same=True)
    assert (alone.index != np.arange(pool.rows)).all()


def test_missing_values_lie_apart_from_all_others():
    domain = Domain((Attribute("a", 4, 3),))
    table = coded(domain, [range(4)])
    found = nearest_rows(places([table]), places([table]), same=True)
    assert (found.first[:3] < APART).all() and found.first[3] >= APART


def test_neighbours_and_equal_pairs_are_brute_force():
    training, holdout = people(60, 1, COARSE), people(50, 2, COARSE)
    pool = Pool.of(training, holdout)
    rows = rows_of(training) + rows_of(holdout)
    asked = np.array([0, 7, 80, 109])
    counted = [sum(sum(x != y for x, y in zip(rows[i], row, strict=True)) == 1 for row in rows) for i in asked]
    assert neighbours(pool, asked).tolist() == counted
    twice = {row for row in rows if rows.count(row) == 2}
    across = sum(row in rows[:60] and row in rows[60:] for row in twice)
    assert equal_pairs(pool, None) == (across, len(twice) - across)


@pytest.mark.slow
def test_one_per_cent_of_copies_is_flagged_in_19_of_20_draws():
    flagged = 0
    for seed in range(20):
        training, synthetic, holdout = thirds(1500, seed)
        found = verdict(training, copied(training, synthetic, 0.01, seed), holdout)
        assert found.repeats.value < 0.01
        flagged += found.lines[0].startswith("privacy: failed (copies of training rows)")
    assert flagged >= 19


def test_few_copies_pass_and_are_said():
    training, synthetic, holdout = thirds(5000, 2)
    found = verdict(training, copied(training, synthetic, 0.004, 2), holdout)
    assert found.result == "passed" and "more often than the holdout's" in found.lines[0]
    assert "more often" not in verdict(training, synthetic, holdout).lines[0]


@pytest.mark.slow
def test_exchangeable_tables_pass():
    results = [verdict(*thirds(2500, seed)).result for seed in range(10)]
    assert "failed" not in results and results.count("passed") >= 9


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "sizes"), [(FINE, (1500, 1500, 1500)), (COARSE, (900, 300, 200))])
def test_at_most_two_of_400_exchangeable_tables_are_flagged(domain, sizes):
    flagged = 0
    for seed in range(400):
        whole, ends = people(sum(sizes), seed, domain), np.cumsum([0, *sizes])
        parts = [whole.at(slice(a, b)) for a, b in pairwise(ends)]
        flagged += verdict(*parts, seed=seed).result == "failed"
    assert flagged <= 2


def test_a_holdout_of_another_size_is_no_disadvantage_to_anybody():
    whole = people(4000, 5)
    training, holdout = whole.at(slice(0, 2600)), whole.at(slice(2600, 3000))
    fresh = whole.at(slice(3000, 4000))
    honest = verdict(training, fresh, holdout)
    assert honest.result != "failed"
    assert honest.nearer.expected == pytest.approx(2600 / 3000)
    assert honest.nearer.low < honest.nearer.expected < honest.nearer.high
    assert verdict(training, copied(training, fresh, 0.1, 1), holdout).result == "failed"


def test_where_rows_repeat_by_nature_nothing_is_judged_but_a_whole_copy():
    training, synthetic, holdout = thirds(500, 1, COARSE)
    found = verdict(training, synthetic, holdout)
    assert found.result == "not judged" and "repeat by nature" in found.why
    fine, _, aside = thirds(500, 1)
    assert verdict(fine, fine, aside).result == "failed"


def test_a_small_holdout_says_what_it_would_have_noticed():
    training, synthetic, holdout = thirds(500, 2)
    found = verdict(training, synthetic, holdout.at(slice(0, 25)))
    assert found.result == "not judged" and "too few rows" in found.why
    assert found.noticed is None or found.noticed > 0.01


def test_a_drifting_holdout_is_noticed_and_copies_are_flagged_all_the_same():
    whole = people(3000, 4)
    order = np.argsort(whole.columns[2], kind="stable")
    training, synthetic, holdout = (whole.at(order[i * 1000 : (i + 1) * 1000]) for i in range(3))
    found = verdict(training, synthetic, holdout)
    assert found.result == "not judged" and "drifts" in found.why and "wage" in found.why
    assert verdict(training, training, holdout).result == "failed"


def test_a_drift_of_pairs_alone_is_noticed_by_neighbours():
    rng = np.random.default_rng(0)
    domain = Domain((Attribute("a", 50, 50), Attribute("b", 50, 50)))
    a, flat = rng.integers(0, 50, (2, 2000))
    bound = coded(domain, [a, (a + rng.integers(0, 3, 2000)) % 50])
    loose = coded(domain, [a[:1000], flat[:1000]])
    found = verdict(bound, bound, loose)
    assert found.drift.columns == () and "same side" in found.drift.reason


def test_a_holdout_that_overlaps_the_training_table_is_noticed():
    training, synthetic, holdout = thirds(600, 6)
    overlapping = joined(training.at(slice(0, 100)), holdout.at(slice(0, 500)))
    assert "overlaps" in verdict(training, synthetic, overlapping).why


def persons(seed: int, count: int = 150, records: int = 8) -> tuple[CodedTable, np.ndarray]:
    """Records of persons: those of one person are nearly alike."""
    base = people(count, seed)
    unit = np.repeat(np.arange(count), records)
    rng = np.random.default_rng(seed)
    wage = np.minimum(base.columns[2][unit] + rng.integers(0, 3, unit.size), 397)
    return coded(FINE, (wage if i == 2 else c[unit] for i, c in enumerate(base.columns))), unit


@pytest.mark.slow
def test_where_persons_have_several_records_whole_persons_are_split():
    flagged = 0
    for seed in range(6):
        (training, ids), (holdout, others) = persons(seed), persons(seed + 100)
        made = persons(seed + 200)[0]
        found = verdict(training, made, holdout, units=(ids, others + 10_000))
        assert found.drift.reason == ""
        flagged += found.result == "failed"
    assert flagged == 0
    assert verdict(training, training, holdout, units=(ids, others + 10_000)).result == "failed"
    assert verdict(training, made, holdout).drift.clusters < 1e-6
    assert "units have rows" in verdict(training, made, holdout, units=(ids, others)).why


def odd_tables(rows: int) -> dict[str, tuple[CodedTable, ...]]:
    """Three tables of which hardly anything can be told, by what is odd."""
    training, synthetic, holdout = thirds(rows, 1)
    constant = coded(FINE, np.zeros((len(FINE), rows)))
    return {
        "empty": (training, synthetic.at(slice(0, 0)), holdout),
        "one row": tuple(t.at([0]) for t in (training, synthetic, holdout)),
        "constant": (constant, constant, constant),
        "all alike": (joined(training, training), constant, constant),
        "no columns": (CodedTable(Domain(()), ()),) * 3,
        "tiny holdout": (training, synthetic, holdout.at(slice(0, 3))),
    }


@pytest.mark.parametrize("odd", ["empty", "one row", "constant", "all alike", "no columns"])
def test_bad_input_is_not_judged_and_says_why(odd):
    found = verdict(*odd_tables(300)[odd])
    assert found.result == "not judged" and found.why
    json.dumps(found.to_json(), allow_nan=False)


def test_the_order_of_rows_does_not_matter():
    training, synthetic, holdout = thirds(400, 8)
    turned = [t.at(np.random.default_rng(1).permutation(400)) for t in (training, synthetic, holdout)]
    first, second = verdict(training, synthetic, holdout), verdict(*turned)
    assert (first.result, first.matches, first.nearer.share) == (second.result, second.matches, second.nearer.share)


def test_weights_do_not_depend_on_who_trained():
    training, synthetic, holdout = thirds(400, 9)
    hits = []
    for a, b in ((training, holdout), (holdout, training)):
        found = match_test(Pool.of(a, b), synthetic, np.random.default_rng(0))
        weights = zip(rows_of(a) + rows_of(b), found.weights[found.pool.value], strict=True)
        hits.append({row: weight for row, weight in weights if weight})
    both = hits[0].keys() & hits[1].keys()
    assert both and sum(abs(hits[0][r] - hits[1][r]) <= 2 for r in both) >= 0.9 * len(both)


def test_rows_of_large_tables_are_searched_among_all_real_rows(monkeypatch):
    """Of 6,000 rows of each table only 600 could be compared with each other: nine of ten sources would be missing."""
    assert affordable_search(4_000_000, 35) == (2_000_000, 300)
    assert affordable_search(1_000, 35) == (1_000, affordable_rows(35))
    monkeypatch.setattr("evaluation.verdict.near_rows.COMPARISONS", 4 * len(FINE) * 600**2)
    training, other, holdout = thirds(6_000, 3)
    rng = np.random.default_rng(3)
    mixed = [np.where(rng.random(training.rows) < 0.3, rng.permutation(c), c) for c in training.columns]
    found = verdict(training, coded(FINE, mixed), holdout)
    assert found.compared == {"training": 6000, "synthetic": 300, "holdout": 6000}
    assert (found.result, found.drift.reason) == ("failed", "")
    assert verdict(training, other, holdout).result == "passed"


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
    assert separation(a, b, rng).auc == pytest.approx(pairs)
    drawn = [separation(rng.normal(0.7, 1, 200), rng.normal(0, 1, 150), rng) for _ in range(300)]
    truth = norm.cdf(0.7 / math.sqrt(2))
    spread = np.std([d.auc for d in drawn])
    width = np.mean([d.high - d.low for d in drawn]) / 2 / -norm.ppf(0.05 / 6)
    assert width == pytest.approx(spread, rel=0.2)
    assert np.mean([d.low <= truth <= d.high for d in drawn]) >= 0.96
    advantage = 2 * norm.cdf(0.35) - 1
    assert np.mean([d.advantage for d in drawn]) == pytest.approx(advantage, abs=0.03)
    assert np.mean([d.advantage for d in (separation(*rng.normal(size=(2, 90)), rng) for _ in range(300))]) < 0.02


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


def ranked_together(units: int, epsilon: float) -> float:
    """The largest expected AUC of an ε-DP release that names half of so many units, of which half are members.

    The probability of a half of which k are members, where m are, is p[m, k]; a unit more changes it by e^ε at most.
    """
    half, least = units // 2, math.exp(-epsilon)
    halves = [(m, k) for m in range(units + 1) for k in range(max(0, m - half), min(m, half) + 1)]
    place, several = {s: i for i, s in enumerate(halves)}, {(m, k): math.comb(m, k) for m, k in halves}
    ways = np.array([several[m, k] * math.comb(units - m, half - k) / math.comb(units, half) for m, k in halves])
    sums = np.array([[ways[place[s]] if s[0] == m else 0.0 for s in halves] for m in range(units + 1)])
    bounds = []
    for (m, k), i in place.items():
        named, others = half - k, units - half - (m - k)  # who may come: named already, or not
        for j in [place[s] for s, there in (((m + 1, k + 1), named), ((m + 1, k), others)) if there]:
            for a, b in ((i, j), (j, i)):
                bounds.append(least * np.eye(len(halves))[a] - np.eye(len(halves))[b])
    gain = np.array([-k / half if m == half else 0.0 for m, k in halves]) * ways
    found = linprog(gain, A_ub=np.array(bounds), b_ub=np.zeros(len(bounds)), A_eq=sums, b_eq=np.ones(units + 1))
    return -float(found.fun)


def test_few_units_ranked_together_may_win_more_than_one_alone_which_is_all_that_the_bound_is_for():
    one, two = AttackPromise(((1.0, 0.0),)).auc, 1 - math.exp(-1) / 2
    assert ranked_together(2, 1.0) == pytest.approx(two)
    assert round(ranked_together(20, 1.0), 3) == 0.740 > one
    assert round(ranked_together(40, 1.0), 3) == 0.735 > one, "less so among more"
    rng = np.random.default_rng(0)
    attacks = {"distance": separation(rng.normal(size=20), rng.normal(size=20), rng)}
    assert _words(attacks, AttackPromise(((1.0, 0.0),))).count("at most by ε for one unit alone") == 2
    bound = {"epsilon": 1.0, "delta": 0.0, "auc": one, "advantage": 0.4}
    assert _member_rows({"attacks": {}, "bound": bound})[-1][0].startswith("one unit alone at most, by ε = 1")


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


def test_the_secrets_that_are_named_are_inferred_alone_and_a_condition_has_as_many_columns_as_asked():
    tables, secret = thirds(300, 3), FINE.names[1]
    inferred = attacked("attribute_inference", *tables, settings={"secrets": [secret]}).result.details
    assert [*inferred["columns"]] == [secret]
    for width, of in ((2, 2), (9, len(FINE))):
        guesses = attacked("singling_out", *tables, settings={"attacks": 30, "condition_columns": width}).result.details
        assert guesses["columns_per_condition"] == of


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


@pytest.mark.slow
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
