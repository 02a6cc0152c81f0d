"""Correlations, odds ratios, and estimates over coarser values: intervals hold as often as they say, and tests do not
call noise a relation."""

import itertools
import math

import numpy as np
import pytest
import yaml
from scipy import stats

from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.inference import estimates
from pipeline.inference.coarse_figures import least_ratio
from pipeline.inference.estimate_questions import EstimateQuestion as question
from tests.pipeline.conftest import reply
from tests.pipeline.test_estimates import often_enough

SCHEMA = """
name: clinic
source: invented for the tests
confirmed_public: true
columns:
  cost: {kind: integer, min: 0, max: 99, bins: {count: 10}, missing: false}
  days: {kind: integer, min: 0, max: 49, bins: {count: 5}, missing: false}
  smokes: {kind: categorical, values: ["no", "yes"], missing: false}
  ill: {kind: categorical, values: ["no", "yes"], missing: false}
  ward: {kind: categorical, values: [east, west, north], missing: false}
"""
CLINIC = parse_schema(yaml.safe_load(SCHEMA), where="clinic")
#: Groups of the ten codes of cost, and of the five of days.
COSTS, DAYS = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 3]), np.array([0, 0, 1, 2, 2])


def clinic(seed=0, rows=6_000, r=0.5, odds=3.0):
    """Codes of a table with a correlation and an odds ratio."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, rows))
    second = r * first + math.sqrt(1 - r * r) * second
    smokes = rng.random(rows) < 0.4
    ill = rng.random(rows) < 1 / (1 + np.exp(0.8 - math.log(odds) * smokes))
    return {
        "cost": np.clip(45 + 22 * first, 0, 99).astype(int) // 10,
        "days": np.clip(25 + 11 * second, 0, 49).astype(int) // 10,
        "smokes": smokes.astype(int),
        "ill": ill.astype(int),
        "ward": rng.integers(0, 3, rows),
    }


def noisy(table, clique, query, seed, *, sigma, noise="gaussian", stated=1.0):
    """An answer whose receipt says `stated` times the noise that was drawn."""
    shape = CLINIC.measured.shape(clique)
    flat = np.ravel_multi_index([table[n] for n in clique], shape)
    exact = query.answer(np.bincount(flat, minlength=math.prod(shape)).astype(float))
    rng = np.random.default_rng([seed, *map(ord, "".join(clique))])
    values = exact + NOISE_KINDS[noise].simulate(rng, sigma, exact.size)
    return NoisyMarginal(clique, query, values, noise, sigma * stated, "x")


def release(table, seed, clique, **noise):
    return Measurements(CLINIC.measured, (whole(table, clique, seed, **noise),))


def whole(table, clique, seed, **noise):
    return noisy(table, clique, Identity(CLINIC.measured.cells(clique)), seed, **noise)


def coarse_release(table, seed, costs=COSTS, **noise):
    """Columns alone, and pairs over coarser costs and days."""
    ones = [whole(table, (n,), seed, **noise) for n in CLINIC.measured.names]
    labels = {"cost": costs, "days": DAYS, "ward": np.arange(3)}
    coarse = {pair: MergedQuery(tuple(labels[n] for n in pair)) for pair in itertools.combinations(labels, 2)}
    pairs = [noisy(table, pair, query, seed, **noise) for pair, query in coarse.items()]
    return Measurements(CLINIC.measured, (*ones, *pairs))


def middles(table):
    return table["cost"] * 10 + 4.5, table["days"] * 10 + 4.5


def true_figure(table, asked, ward):
    own = {n: codes[table["ward"] == ward] for n, codes in table.items()} if asked.by else table
    if asked.what == "correlation":
        return np.corrcoef(*middles(own))[0, 1]
    if asked.what == "odds_ratio":
        both = np.bincount(own["smokes"] * 2 + own["ill"], minlength=4)
        return both[3] * both[0] / (both[1] * both[2])
    costs = middles(own)[0]
    return {"mean": costs.mean(), "proportion": (costs < 30).mean(), "median": np.median(costs)}[asked.what]


def held(table, asked, known, seeds):
    """Over seeds and wards, how often the true figure lies in its interval, and how often it was tried."""
    truth = [true_figure(table, asked, w) for w in range(3 if asked.by else 1)]
    hits = 0
    for seed in range(seeds):
        lines = estimates.estimate(CLINIC, known(seed), asked)
        hits += int(((lines["low"] - 1e-9 <= truth) & (truth <= lines["high"] + 1e-9)).sum())
    return hits, seeds * len(truth)


OF_TWO = [
    (question("correlation", "cost", "days", by="ward", within_bin="midpoint"), ("cost", "days", "ward"), 3.0),
    (question("odds_ratio", "smokes", "ill", by="ward"), ("smokes", "ill", "ward"), 20.0),
]


@pytest.mark.parametrize(("asked", "clique", "sigma"), OF_TWO, ids=["correlation", "odds_ratio"])
@pytest.mark.parametrize(
    ("noise", "times", "strength", "seeds"),
    [
        ("gaussian", 1, 0, 80),  # sums of Laplace noise are simulated
        *(
            pytest.param(noise, times, strength, seeds, marks=pytest.mark.slow)
            for noise, times, strength, seeds in (
                *(("gaussian", 0.3, 2, 200), ("gaussian", 3, 1, 200)),
                *(("laplace", 1, 1, 70), ("gaussian", 1, 3, 200)),
            )
        ),
    ],
)
def test_intervals_of_two_columns_hold_and_with_a_noise_stated_30_percent_too_small_they_do_not(
    asked, clique, sigma, noise, times, strength, seeds
):
    table = clinic(1, r=0.3 * strength, odds=2.0**strength) if strength else clinic()
    facts = {"sigma": sigma * times, "noise": noise}
    assert often_enough(*held(table, asked, lambda s: release(table, s, clique, **facts), seeds))
    if noise == "gaussian" and times <= 1:
        wrong = held(table, asked, lambda s: release(table, s, clique, **facts, stated=0.7), seeds)
        assert not often_enough(*wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "clique", "sigma"), OF_TWO, ids=["correlation", "odds_ratio"])
def test_columns_without_a_relation_are_called_related_as_often_as_the_level_says(asked, clique, sigma):
    """In the records, which are all that the interval is about, there is none: every combination is there as often."""
    shape = CLINIC.measured.shape(clique)
    codes = np.indices(shape).reshape(3, -1).repeat(6000 // math.prod(shape), axis=1)
    table, none = dict(zip(clique, codes, strict=True)), 0.0 if asked.what == "correlation" else 1.0

    def called(stated):
        releases = (release(table, seed, clique, sigma=sigma, stated=stated) for seed in range(200))
        lines = [estimates.estimate(CLINIC, known, asked) for known in releases]
        return sum(int(((f["low"] > none) | (f["high"] < none)).sum()) for f in lines)

    assert stats.binom.sf(called(1.0) - 1, 600, 0.05) > 1e-3
    assert stats.binom.sf(called(0.7) - 1, 600, 0.05) < 1e-3


def test_exact_answers_give_the_exact_figure():
    table = clinic()
    for asked, clique, _ in OF_TWO:
        line = estimates.estimate(CLINIC, release(table, 0, clique, sigma=1e-7), asked)
        truth = [true_figure(table, asked, w) for w in range(3)]
        for end in ("estimate", "low", "high"):
            assert line[end].to_numpy() == pytest.approx(truth, rel=1e-5)


def test_a_correlation_holds_whatever_lies_inside_the_bins():
    rng, table = np.random.default_rng(3), clinic()
    known, asked = release(table, 0, ("cost", "days"), sigma=1e-7), question("correlation", "cost", "days")
    line = estimates.estimate(CLINIC, known, asked).iloc[0]
    costs, days = table["cost"] * 10, table["days"] * 10
    together = np.where(costs + rng.normal(0, 1, costs.size) > 45, 9, 0), np.where(days > 25, 9, 0)
    apart = np.where(costs > 45, 9, 0), np.where(days > 25, 0, 9)
    drawn = rng.integers(0, 10, (2, costs.size))
    for x, y in (together, apart, drawn):
        assert line["low"] < np.corrcoef(costs + x, days + y)[0, 1] < line["high"]
    assert line["high"] - line["low"] > 0.2


OF_COARSE = [
    question("mean", "cost", by="ward", within_bin="midpoint"),
    question("proportion", "cost", by="ward", value=[0, 29]),
    question("median", "cost", by="ward"),
    question("correlation", "cost", "days", within_bin="midpoint"),
]


@pytest.mark.parametrize("asked", OF_COARSE, ids=lambda q: q.what)
@pytest.mark.parametrize(
    ("sigma", "seeds"), [(1.0, 12), (15.0, 12), *(pytest.param(s, 200, marks=pytest.mark.slow) for s in (2, 20, 60))]
)
def test_estimates_over_coarser_values_hold_what_the_coarse_cells_hide(asked, sigma, seeds):
    """The hardest table: within each coarse cell one ward has all the small costs."""
    table = clinic(2)
    table["ward"] = np.where(np.isin(table["cost"], [0, 2, 4, 7]), 0, np.maximum(table["ward"], 1))
    assert often_enough(*held(table, asked, lambda s: coarse_release(table, s, sigma=sigma), seeds))
    lines = estimates.estimate(CLINIC, coarse_release(table, 0, sigma=1.0), asked)
    assert set(lines["how"]) == {"measured over coarser values"}
    assert "coarser values of cost" in lines.attrs["notes"][-1]


def test_means_on_whole_coarse_cells_are_as_sharp_as_the_noise():
    table = clinic(4)
    table["cost"] = np.array([0, 0, 3, 3, 4, 4, 4, 9, 9, 9])[table["cost"]]
    asked = question("proportion", "cost", by="ward", value=[0, 39])
    truth = [(table["cost"][table["ward"] == w] < 4).mean() for w in range(3)]
    hits = {1.0: 0, 0.7: 0}
    for stated in hits:
        for seed in range(60):
            f = estimates.estimate(CLINIC, coarse_release(table, seed, sigma=20.0, stated=stated), asked)
            hits[stated] += int(((f["low"] <= truth) & (truth <= f["high"])).sum())
    assert often_enough(hits[1.0], 180) and not often_enough(hits[0.7], 180)


@pytest.mark.parametrize(
    "asked", [OF_COARSE[0], question("count", "cost", by="ward", value=[0, 29])], ids=lambda q: q.what
)
def test_standard_errors_over_coarser_values_hold_the_noise_of_the_column_alone(asked):
    """A mean that followed from the column alone, since one coarse cell held all costs, stood with an error of 0."""
    for costs in (np.zeros(10, int), COSTS):
        releases = (coarse_release(clinic(2), seed, costs, sigma=30.0) for seed in range(60))
        lines = [estimates.estimate(CLINIC, known, asked) for known in releases]
        stated = np.mean([f["standard_error"] for f in lines], axis=0)
        assert stated == pytest.approx(np.std([f["estimate"] for f in lines], axis=0), rel=0.3)


def test_a_group_inside_a_coarse_value_has_limits_and_an_estimate_between_them():
    table = clinic(6)
    asked = question("mean", "days", by="cost", within_bin="midpoint")
    lines = estimates.estimate(CLINIC, coarse_release(table, 0, sigma=2.0), asked)
    days = middles(table)[1]
    truth = np.array([days[table["cost"] == c].mean() for c in range(10)])
    assert ((lines["low"] <= truth) & (truth <= lines["high"])).all()
    assert ((lines["low"] <= lines["estimate"]) & (lines["estimate"] <= lines["high"])).all()
    assert (lines["high"] - lines["low"]).iloc[4] < 30, "narrower than all that days can be"


def test_a_refused_test_of_means_names_what_was_asked_over_coarser_values_and_offers_no_bounds():
    asked = question("equal_means", "cost", by="ward", unmeasured="bounds")
    with pytest.raises(UserError) as refused:
        estimates.estimate(CLINIC, coarse_release(clinic(), 0, sigma=1.0), asked)
    assert "cost × ward over coarser values" in str(refused.value.fix) and "unmeasured" not in str(refused.value)


def test_the_least_mean_takes_the_smallest_values_that_there_is_room_for():
    values, room = np.array([5.0, 1.0, 3.0]), np.array([10.0, 2.0, 4.0])
    assert least_ratio(values, 0 * room, room, 2.0) == 1.0
    assert least_ratio(values, 0 * room, room, 5.0) == pytest.approx((2 * 1 + 3 * 3) / 5)
    assert least_ratio(values, 0 * room, room, 100.0) == pytest.approx((2 * 1 + 4 * 3 + 10 * 5) / 16)
    assert least_ratio(values, 0 * room, room, -1.0) == 1.0


@pytest.mark.parametrize(
    ("asked", "where", "said"),
    [
        (question("correlation", "cost"), "other", "which other column"),
        (question("mean", "cost", "days"), "other", "which other column"),
        (question("correlation", "cost", "cost"), "by", "named twice"),
        (question("correlation", "cost", "ward"), "correlation", "holds texts"),
        (question("odds_ratio", "smokes", "ward"), "value", "which of them"),
        (question("odds_ratio", "smokes", "ill", value="yes"), "value", "got yes"),
        (question("odds_ratio", "smokes", "cost", value={"cost": [0, 14]}), "value", "cuts a bin"),
        (question("correlation", "cost", "days", unmeasured="bounds"), "estimate", "no measured marginal"),
        (question("equal_means", "cost", by="smokes"), "estimate", "no measured marginal"),
    ],
)
def test_a_question_about_two_columns_without_an_answer_says_why(asked, where, said):
    table, cliques = clinic(), [("cost", "ward"), ("smokes", "ward"), ("cost", "smokes"), ("smokes", "ill")]
    cliques = [c for c in cliques if asked.what != "equal_means" or c[1] == "ward"]
    known = Measurements(CLINIC.measured, tuple(whole(table, c, 0, sigma=1.0) for c in cliques))
    with pytest.raises(UserError) as refused:
        estimates.estimate(CLINIC, known, asked)
    assert where in str(refused.value.where) and said in refused.value.what and refused.value.fix


def test_the_command_asks_about_two_columns(one_run, capsys):
    asked = ["estimate=odds_ratio", "column=sex", "other=job", "value={job: baker}"]
    said = reply(capsys, "query", f"from={one_run}/release", *asked)
    assert said.out.startswith("estimate,standard_error,low,high,how") and "95 % interval" in said.err
