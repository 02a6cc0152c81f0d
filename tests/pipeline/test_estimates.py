"""Estimates of one column and of two: intervals hold as often as they say; one question has one answer or refusal."""

import io
import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline import bounds, estimate, load
from pipeline.inference import estimates
from pipeline.inference.coarse_figures import least_ratio
from pipeline.inference.estimate_questions import EstimateQuestion as question
from pipeline.inference.estimate_questions import bin_values, check_question
from pipeline.inference.estimates import _notes, _supported
from pipeline.inference.marginal_estimates import MarginalEstimate, ReleaseEvidence
from pipeline.inference.noise_bounds import NoiseTerm
from pipeline.inference.ratio_intervals import Interval, Sums, ratio_interval, sum_interval
from tests.pipeline.conftest import SCHEMA, people, reply

TOWN = parse_schema(yaml.safe_load(SCHEMA), where="town")
PEOPLE = people(3_000, seed=4)
JOBS = ("baker", "smith", "clerk")
#: The first code of each bin of ten years stands for its middle.
MIDDLE = PEOPLE.assign(age=PEOPLE["age"] // 10 * 10 + 4.5)


def counts(table, names):
    codes = {
        "age": table["age"].to_numpy() // 10,
        "sex": table["sex"].map({"f": 0, "m": 1}).to_numpy(),
        "job": table["job"].map({n: i for i, n in enumerate(JOBS)}).to_numpy(),
    }
    shape = TOWN.domain.shape(names)
    flat = np.ravel_multi_index([codes[n].astype(int) for n in names], shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(float)


def release(seed, cliques=(("age", "job"),), sigma=20.0, noise="gaussian", stated=1.0, table=PEOPLE):
    """Noisy answers about the people; the receipts say `stated` times the noise that was drawn."""
    rng = np.random.default_rng(seed)
    answers = []
    for clique in cliques:
        exact = counts(table, clique)
        values = exact + NOISE_KINDS[noise].simulate(rng, sigma, exact.size)
        answers.append(NoisyMarginal(clique, Identity(exact.size), values, noise, sigma * stated, "x"))
    return Measurements(TOWN.measured, tuple(answers))


def often_enough(hits, tried):
    """Whether so many hits are not significantly fewer than 95 % of so many independent trials."""
    return stats.binom.cdf(hits, tried, 0.95) > 1e-3


def true_figures(asked):
    groups = PEOPLE.groupby(asked.by[0])
    if asked.what == "count":
        return groups.size()
    if asked.what == "proportion":
        return groups["age"].agg(lambda a: (a < 50).mean())
    if asked.what == "mean":
        return (MIDDLE if asked.within_bin == "midpoint" else PEOPLE).groupby(asked.by[0])["age"].mean()
    return groups["age"].quantile(asked.part, interpolation="lower")


def held(asked, seeds, **how):
    """Over all seeds and groups, how often the true figure lies in its interval, and how often it was tried."""
    hits = tried = 0
    truth, clique = true_figures(asked), TOWN.domain.canonical(("age", *asked.by))
    for seed in range(seeds):
        lines = estimates.estimate(TOWN, release(seed, (clique,), **how), asked)
        lines = lines.set_index(asked.by[0]).loc[truth.index]
        hits += int(((lines["low"] - 1e-9 <= truth) & (truth <= lines["high"] + 1e-9)).sum())
        tried += len(truth)
    return hits, tried


SHARP = [
    question("count", by="job"),
    question("proportion", "age", by="sex", value=[0, 49]),
    question("mean", "age", by="job", within_bin="midpoint"),
]


@pytest.mark.parametrize("asked", SHARP, ids=lambda q: q.what)
@pytest.mark.parametrize(
    ("noise", "sigma", "seeds", "stated"),
    [
        ("gaussian", 20.0, 30, 0.5),
        *(
            pytest.param(noise, sigma, 200, 0.7, marks=pytest.mark.slow)
            for noise, sigma in (("gaussian", 5.0), ("gaussian", 20.0), ("gaussian", 60.0), ("laplace", 20.0))
        ),
    ],
)
def test_intervals_hold_in_95_of_100_and_with_less_noise_they_would_not(asked, noise, sigma, seeds, stated):
    assert often_enough(*held(asked, seeds, noise=noise, sigma=sigma))
    assert sigma > 20 or not often_enough(*held(asked, seeds, noise=noise, sigma=sigma, stated=stated))


@pytest.mark.parametrize(
    "asked",
    [
        question("mean", "age", by="job"),
        question("median", "age", by="job"),
        question("quantile", "age", by="job", quantile=0.9),
    ],
)
def test_intervals_over_bins_hold_whatever_lies_inside_the_bins(asked):
    assert often_enough(*held(asked, 10))


def test_exact_answers_give_exact_figures_and_the_width_of_bins_alone():
    known = release(0, sigma=1e-9)
    mean = estimates.estimate(TOWN, known, question("mean", "age", by="job")).set_index("job").loc[list(JOBS)]
    exact = MIDDLE.groupby("job")["age"].mean().loc[list(JOBS)]
    assert mean["estimate"].to_numpy() == pytest.approx(exact.to_numpy())
    assert (mean["high"] - mean["low"]).to_numpy() == pytest.approx(9.0)
    midpoint = estimates.estimate(TOWN, known, question("mean", "age", by="job", within_bin="midpoint"))
    assert (midpoint["high"] - midpoint["low"])[:3].to_numpy() == pytest.approx(0.0, abs=1e-6)
    assert any("may miss that of the values themselves" in note for note in midpoint.attrs["notes"])
    median = estimates.estimate(TOWN, known, question("median", "age")).iloc[0]
    true = PEOPLE["age"].median()
    assert (median["low"], median["high"]) == (true // 10 * 10, true // 10 * 10 + 9)


@pytest.mark.parametrize("sampling", ["false", 0, None, np.array([True, False])])
def test_whether_records_are_a_sample_is_true_or_false(sampling):
    """The texts "false" and "no" were taken for true, and arrays ended in an error of numpy's."""
    with pytest.raises(UserError, match="sampling: got "):
        estimates.estimate(TOWN, release(1, sigma=0.1), question("mean", "age", sampling=sampling))


def test_what_the_records_are_drawn_from_is_less_certain_than_the_records():
    known = release(1, sigma=0.1)
    of_records = estimates.estimate(TOWN, known, question("mean", "age", by="job", within_bin="midpoint"))
    drawn = question("mean", "age", by="job", within_bin="midpoint", sampling=True)
    of_population = estimates.estimate(TOWN, known, drawn)
    expected = MIDDLE.groupby("job")["age"].agg(["std", "size"]).loc[list(JOBS)]
    wanted = np.hypot(expected["std"] / np.sqrt(expected["size"]), of_records["standard_error"][:3].to_numpy())
    assert of_population["standard_error"][:3].to_numpy() == pytest.approx(wanted.to_numpy(), rel=0.02)
    assert "independent draws from a population" in of_population.attrs["notes"][0]


@pytest.mark.parametrize(("drawn", "share"), [(50, 0.02), (200, 0.02), (1_000, 0.005), (200, 0.3)])
def test_intervals_of_a_population_hold_for_values_that_few_records_have(drawn, share):
    """Where no record has the value, the variance of the records seen is 0, and an interval by it is noise alone."""
    rng, cells, one, tried = np.random.default_rng(5), np.ones(2), np.array([0.0, 1.0]), 500
    hits = np.zeros(2)
    for _ in range(tried):
        many = rng.binomial(drawn, share)
        answer = NoisyMarginal(("a",), Identity(2), rng.normal([drawn - many, many], 0.5), "gaussian", 0.5, "x")
        known = ReleaseEvidence(Measurements(Domain((Attribute("a", 2),)), (answer,))).estimate(("a",))
        sums, true = Sums(known, cells, sampling=True), (share, share * drawn)
        lines = ratio_interval(sums, one, one), sum_interval(sums, one, one, one)
        hits += [line.low <= figure <= line.high for line, figure in zip(lines, true, strict=True)]
    assert all(often_enough(many, tried) for many in hits)


def test_limits_of_these_records_are_none_of_a_population():
    """They were given as such: where all records have one job, they are as narrow as the noise of one column."""
    sides, asked = (
        release(0, (("age",), ("job",))),
        question("count", "age", by="job", value=[0, 49], unmeasured="bounds"),
    )
    assert "Fréchet" in set(estimates.estimate(TOWN, sides, asked)["how"])
    with pytest.raises(UserError, match="sampling: no answer tells"):
        estimates.estimate(TOWN, sides, replace(asked, sampling=True))


#: Three jobs with the same shares of ages in every one.
ALIKE = pd.DataFrame({"age": np.repeat(np.arange(10) * 10, 90), "sex": "f", "job": np.tile(list(JOBS), 300)})


def p_values(seeds, stated=1.0):
    """Of the test of their means, from one release each."""
    asked = question("equal_means", "age", by="job")
    known = (release(s, sigma=8.0, stated=stated, table=ALIKE) for s in range(seeds))
    return np.array([estimates.estimate(TOWN, k, asked)["p_value"][0] for k in known])


@pytest.mark.slow
def test_equal_means_are_called_unequal_in_5_of_100_and_with_less_noise_more_often():
    right, wrong = (p_values(40), p_values(40, stated=0.5))
    assert stats.binom.sf((right < 0.05).sum() - 1, 40, 0.05) > 1e-3
    assert stats.binom.sf((wrong < 0.05).sum() - 1, 40, 0.05) < 1e-3
    unequal = estimates.estimate(TOWN, release(1), question("equal_means", "age", by="job"))
    assert unequal["p_value"][0] < 1e-6 and (unequal["groups"][0], unequal["groups_too_small"][0]) == (5, 2)


def test_equal_means_are_called_unequal_as_often_where_groups_are_about_as_large_as_their_noise():
    """Those that looked small were left out: with twenty such groups 25 of 100 tests of equal means said unequal."""
    rng, shares, tried = np.random.default_rng(3), np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.01, 0.0]), 120
    sizes, values = np.array([3_000, *[200] * 20]), np.arange(8) * 10.0
    members = [np.repeat(np.arange(21) == i, 8).astype(float) for i in range(21)]
    unequal = 0
    for _ in range(tried):
        noisy = (sizes[:, None] * shares + rng.normal(0, 25, (21, 8))).ravel()
        counts = MarginalEstimate(("job", "age"), noisy, (NoiseTerm("gaussian", 25.0),), ())
        unequal += estimates.equal_means(counts, members, np.tile(values, 21), sampling=False)[2] < 0.05
    assert stats.binom.sf(unequal - 1, tried, 0.05) > 1e-3


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_far_statistic_of_means_is_less_rare_under_laplace_noise(noise):
    asked = question("equal_means", "age", by="job")
    known = (release(s, sigma=6.0, noise=noise, table=ALIKE) for s in range(40))
    lines = (estimates.estimate(TOWN, k, asked).iloc[0] for k in known)
    chances = [(line.p_value, stats.chi2.sf(line.statistic, line.degrees_of_freedom)) for line in lines]
    drawn, gaussian = min(chances, key=lambda pair: pair[1])
    assert drawn >= 1.2 * gaussian if noise == "laplace" else drawn == gaussian


def test_unmeasured_groups_are_refused_or_bounded_by_what_holds_for_every_table():
    asked = question("mean", "age", by="sex")
    with pytest.raises(UserError) as refused:
        estimates.estimate(TOWN, release(1), asked)
    assert "no measured marginal tells age × sex" in str(refused.value)
    assert '["age","sex"] in its list selection.marginals' in str(refused.value)
    sharp = release(1, (("age",), ("sex",)), sigma=1e-6)
    for what in ("count", "median", "mean"):
        asked = question(what, None if what == "count" else "age", by="sex", unmeasured="bounds")
        lines = estimates.estimate(TOWN, sharp, asked).set_index("sex")
        truth = PEOPLE.groupby("sex")["age"].agg({"mean": "mean", "median": "median", "count": "size"}[what])
        assert ((lines["low"] <= truth + 1e-3) & (truth <= lines["high"] + 1e-3)).all()
        if what != "count":
            assert set(lines["how"]) == {"Fréchet"} and lines["estimate"].isna().all()
    sorted_by_age = PEOPLE.sort_values("age")["age"].to_numpy()
    women = int((PEOPLE["sex"] == "f").sum())
    youngest = (sorted_by_age // 10 * 10)[:women].mean()
    assert lines["low"]["f"] == pytest.approx(youngest, abs=1e-3)


def test_the_command_the_function_and_a_loaded_release_answer_alike(one_run, capsys):
    said = reply(capsys, "query", f"from={one_run}/release", "estimate=mean", "column=age", "by=[job]")
    by_command = pd.read_csv(io.StringIO(said.out))
    by_call = estimate(one_run / "release", "mean", "age", by="job")
    assert by_command["low"].to_numpy() == pytest.approx(by_call["low"].to_numpy(), rel=1e-5)
    assert "clipping" in said.err and "bins are up to 9 wide" in said.err and "not of a population" in said.err
    loaded = load(one_run / "release")
    pd.testing.assert_frame_equal(loaded.estimate("mean", "age", by="job"), by_call)
    pd.testing.assert_frame_equal(loaded.bounds(["sex"]), bounds(one_run / "release", marginal=["sex"]))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (Interval(39.123456789, 38.98765432, 39.25925925, 0.0693219), (39.12346, 38.98765, 39.25926, 0.06932)),
        (Interval(1234567.891, 1234000.123, 1235135.659, 289.6789), (1234567.9, 1234000.1, 1235135.7, 289.7)),
        (Interval(None, -math.inf, 0.123456789), (None, -math.inf, 0.123457, None)),
        (Interval(0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
        (Interval(None, 12345672.2182, 12345680.9, None), (None, 12345672.218, 12345680.9, None)),
        (Interval(12345678.0, 12345678.0, 12345678.0, 0.0), (12345678.0, 12345678.0, 12345678.0, 0.0)),
    ],
)
def test_figures_have_the_digits_that_their_error_supports(line, shown):
    rounded = _supported(line)
    assert (rounded.value, rounded.low, rounded.high, rounded.error) == shown


def test_an_interval_that_leaves_every_answer_open_is_said_to_be_drowned():
    for what, column, more in (("mean", "age", {}), ("proportion", "job", {"value": "baker"})):
        asked = question(what, column, **more)
        notes = [estimates.estimate(TOWN, release(2, sigma=s), asked).attrs["notes"] for s in (1.0, 1e6)]
        assert f"1 of 1 {estimates.DROWNED}" not in notes[0] and f"1 of 1 {estimates.DROWNED}" in notes[1], what


def test_a_mean_that_noise_in_far_bins_decides_has_no_estimate_but_an_interval():
    """A mean of 38 thousand was told as 0.0, the least value of a column with bins up to a hundred million."""
    ages = "{kind: integer, min: 0, max: 99, missing: false, bins: {edges: [0, 2, 4, 100]}}"
    schema = parse_schema(yaml.safe_load(f"columns: {{age: {ages}}}"), where="far")
    exact, asked = np.array([500.0, 500.0, 0.0]), question("mean", "age")
    shown, hits = set(), 0
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(0, 30.0, 3)
        answer = NoisyMarginal(("age",), Identity(3), exact + noise, "gaussian", 30.0, "x")
        told = estimates.estimate(schema, Measurements(schema.measured, (answer,)), asked)
        (line,), said = told.itertuples(), f"1 of 1 {estimates.AT_END}" in told.attrs["notes"]
        assert said == math.isnan(line.estimate) and line.standard_error > 1
        assert said or line.estimate > line.standard_error
        shown, hits = shown | {said}, hits + (line.low <= 1.5 <= line.high)
    assert shown == {True, False} and often_enough(hits, 60)


def test_an_interval_whose_test_refuses_every_value_leaves_all_of_them_open():
    """A mean fee of 1,718 was told as 0 to 0.00000000000009, "95 % interval": noise in the last bin was far below 0."""
    values, domain = np.array([0.0, 10.0, 75_000.0]), Domain((Attribute("age", 3),))
    for exact in ([700.0, 900.0, -300.0], [-300.0, 0.0, 2_000.0]):
        counts = NoisyMarginal(("age",), Identity(3), np.array(exact), "gaussian", 100.0, "x")
        marginal = ReleaseEvidence(Measurements(domain, (counts,))).estimate(("age",))
        line = ratio_interval(Sums(marginal, np.ones(3), False), values, values)
        assert (line.low, line.high) == (0.0, 75_000.0)
    line = sum_interval(Sums(marginal, np.ones(3), False), *[np.array([1.0, 0, 0])] * 3)
    assert (line.value, line.low, round(line.high)) == (-300, 0, 196), "not one point, as if it were known"


CLINIC_SCHEMA = """
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
CLINIC = parse_schema(yaml.safe_load(CLINIC_SCHEMA), where="clinic")
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


def clinic_release(table, seed, clique, **noise):
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


def clinic_held(table, asked, known, seeds):
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


@pytest.mark.some(2)
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
    assert often_enough(*clinic_held(table, asked, lambda s: clinic_release(table, s, clique, **facts), seeds))
    if noise == "gaussian" and times <= 1:
        wrong = clinic_held(table, asked, lambda s: clinic_release(table, s, clique, **facts, stated=0.7), seeds)
        assert not often_enough(*wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "clique", "sigma"), OF_TWO, ids=["correlation", "odds_ratio"])
def test_columns_without_a_relation_are_called_related_as_often_as_the_level_says(asked, clique, sigma):
    """In the records, which are all that the interval is about, there is none: every combination is there as often."""
    shape = CLINIC.measured.shape(clique)
    codes = np.indices(shape).reshape(3, -1).repeat(6000 // math.prod(shape), axis=1)
    table, none = dict(zip(clique, codes, strict=True)), 0.0 if asked.what == "correlation" else 1.0

    def called(stated):
        releases = (clinic_release(table, seed, clique, sigma=sigma, stated=stated) for seed in range(200))
        lines = [estimates.estimate(CLINIC, known, asked) for known in releases]
        return sum(int(((f["low"] > none) | (f["high"] < none)).sum()) for f in lines)

    assert stats.binom.sf(called(1.0) - 1, 600, 0.05) > 1e-3
    assert stats.binom.sf(called(0.7) - 1, 600, 0.05) < 1e-3


def test_exact_answers_give_the_exact_figure():
    table = clinic()
    for asked, clique, _ in OF_TWO:
        line = estimates.estimate(CLINIC, clinic_release(table, 0, clique, sigma=1e-7), asked)
        truth = [true_figure(table, asked, w) for w in range(3)]
        for end in ("estimate", "low", "high"):
            assert line[end].to_numpy() == pytest.approx(truth, rel=1e-5)


def test_a_correlation_holds_whatever_lies_inside_the_bins():
    rng, table = np.random.default_rng(3), clinic()
    known, asked = clinic_release(table, 0, ("cost", "days"), sigma=1e-7), question("correlation", "cost", "days")
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
    assert often_enough(*clinic_held(table, asked, lambda s: coarse_release(table, s, sigma=sigma), seeds))
    lines = estimates.estimate(CLINIC, coarse_release(table, 0, sigma=1.0), asked)
    assert set(lines["how"]) == {"measured over coarser values"}
    assert "coarser values of cost" in lines.attrs["notes"][-1]


@pytest.mark.slow
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


def test_values_that_nobody_has_take_no_mean_its_estimate():
    """Shares of an empty coarse cell, of which noise divides noise, made standard errors of ten times the range."""
    table = clinic(2)
    table["cost"] = np.where(np.isin(COSTS[table["cost"]], [1, 2]), 0, table["cost"])
    lines = [estimates.estimate(CLINIC, coarse_release(table, s, sigma=30.0), OF_COARSE[0]) for s in range(60)]
    assert not np.isnan([f["estimate"] for f in lines]).any()
    off = np.std([f["estimate"] for f in lines], axis=0)
    assert (np.mean([f["standard_error"] for f in lines], axis=0) < 2 * off).all()


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


@pytest.mark.parametrize("asked", [{"column": ["x", "y"]}, {"other": ["y"]}, {"by": [["y"]]}])
def test_a_list_in_the_place_of_a_columns_name_is_told_and_not_a_fault_of_ours(asked):
    """`estimate("correlation", column=["x", "y"])` ended in "unhashable type: 'list'"."""
    with pytest.raises(UserError, match="is no name of a column"):
        check_question(TOWN, question("correlation", **{"column": "age", **asked}))


@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({"kind": "float", "bins": {"edges": [0, 0.5, 1, 1.25, 1.5]}, "multiple_of": 0.5}, [0, 0.5, 1, 1.5], None),
        ({"kind": "integer", "bins": {"edges": [0, 100, 201]}, "multiple_of": 20}, [0, 100], [80, 200]),
        ({"kind": "float", "bins": {"edges": [0, 0.5, 1.5]}, "decimals": 2}, [0, 0.5], [0.5, 1.5]),
    ],
)
def test_numbers_that_a_schema_calls_multiples_are_reckoned_with_as_such_and_notes_say_so(fields, low, high):
    """Of marks of half points, each in a bin of its own, the mean was a quarter of a point too high."""
    schema = parse_schema({"columns": {"x": {**fields, "missing": False}}}, where="test")
    values = bin_values(schema["x"], "mean")
    assert values.low.tolist() == low and values.high.tolist() == (high or low)
    told = any("declares x as multiples of" in note for note in _notes(schema, question("mean", column="x")))
    assert told is ("multiple_of" in fields)


PAY = parse_schema(
    {
        "columns": {
            "pay": {"kind": "integer", "min": 0, "max": 999, "bins": {"edges": [0, 500, 1000]}, "fine": 100},
            "job": {"kind": "categorical", "values": ["a", "b"], "missing": False},
        }
    },
    where="pay",
)


@pytest.mark.parametrize("by", [(), ("job",)])
@pytest.mark.parametrize(("sigma", "off"), [(0.001, 3.0), (3.0, 80.0)])
def test_a_mean_is_reckoned_by_the_fine_cells_of_a_wide_bin_where_they_were_measured(by, sigma, off):
    """Of pay in two bins, nearly all of it small, the mean was about the middle of the lower one."""
    rng, hits = np.random.default_rng(1), 0
    pay, job = np.minimum(rng.exponential(120, 4_000).astype(int), 999), rng.integers(0, 2, 4_000)
    exact = {
        ("pay", "job"): np.bincount((pay >= 500) * 2 + job, minlength=6),
        ("pay (fine)",): np.bincount(pay, minlength=1_001),
    }
    truth = [pay[job == code].mean() for code in (0, 1)] if by else [pay.mean()]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drawn = {clique: own + rng.normal(0, sigma, own.size) for clique, own in exact.items()}
        answers = [NoisyMarginal(c, Identity(v.size), v, "gaussian", sigma, str(c)) for c, v in drawn.items()]
        lines = estimates.estimate(PAY, Measurements(PAY.measured, tuple(answers)), question("mean", "pay", by=by))
        assert lines["estimate"].to_numpy() == pytest.approx(truth, abs=off)
        hits += int(((lines["low"] <= truth) & (truth <= lines["high"])).sum())
    assert often_enough(hits, 20 * len(truth))
    assert any("fine cells" in note for note in lines.attrs["notes"]) is bool(by)


def test_a_question_without_the_value_that_it_needs_or_with_one_too_many_says_so():
    for what, value, words in (("proportion", None, "of which value of age"), ("mean", 7, "of age takes no value")):
        with pytest.raises(UserError, match=f"a {what} {words}"):
            check_question(TOWN, question(what, column="age", value=value))
