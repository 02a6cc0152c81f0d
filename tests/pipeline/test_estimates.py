"""Estimates for analysts: intervals hold as often as they say, and one question has one clear answer or refusal."""

import io
import math

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline import bounds, estimate, load
from pipeline.inference import estimates
from pipeline.inference.estimate_questions import EstimateQuestion as question
from pipeline.inference.estimates import _supported
from pipeline.inference.marginal_estimates import ReleaseEvidence
from pipeline.inference.ratio_intervals import Interval, Sums, ratio_interval, sum_interval
from tests.pipeline.conftest import SCHEMA, people, reply

TOWN = parse_schema(yaml.safe_load(SCHEMA), where="town")
PEOPLE = people(3_000, seed=4)
JOBS = ("baker", "smith", "clerk")
#: The first code of each bin of ten years stands for its middle.
MIDDLE = PEOPLE.assign(age=PEOPLE["age"] // 10 * 10 + 4.5)


def counts(table, names):
    """The exact counts over all codes of the schema, in C order."""
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
    median = estimates.estimate(TOWN, known, question("median", "age")).iloc[0]
    true = PEOPLE["age"].median()
    assert (median["low"], median["high"]) == (true // 10 * 10, true // 10 * 10 + 9)


def test_what_the_records_are_drawn_from_is_less_certain_than_the_records():
    known = release(1, sigma=0.1)
    of_records = estimates.estimate(TOWN, known, question("mean", "age", by="job", within_bin="midpoint"))
    drawn = question("mean", "age", by="job", within_bin="midpoint", sampling=True)
    of_population = estimates.estimate(TOWN, known, drawn)
    expected = MIDDLE.groupby("job")["age"].agg(["std", "size"]).loc[list(JOBS)]
    wanted = np.hypot(expected["std"] / np.sqrt(expected["size"]), of_records["standard_error"][:3].to_numpy())
    assert of_population["standard_error"][:3].to_numpy() == pytest.approx(wanted.to_numpy(), rel=0.02)
    assert "independent draws from a population" in of_population.attrs["notes"][0]


def p_values(seeds, stated=1.0):
    """Of three jobs with the same shares of ages in every one."""
    table = pd.DataFrame({"age": np.repeat(np.arange(10) * 10, 90), "sex": "f", "job": np.tile(list(JOBS), 300)})
    asked = question("equal_means", "age", by="job")
    known = (release(s, sigma=8.0, stated=stated, table=table) for s in range(seeds))
    return np.array([estimates.estimate(TOWN, k, asked)["p_value"][0] for k in known])


def test_equal_means_are_called_unequal_in_5_of_100_and_with_less_noise_more_often():
    right, wrong = (p_values(40), p_values(40, stated=0.5))
    assert stats.binom.sf((right < 0.05).sum() - 1, 40, 0.05) > 1e-3
    assert stats.binom.sf((wrong < 0.05).sum() - 1, 40, 0.05) < 1e-3
    unequal = estimates.estimate(TOWN, release(1), question("equal_means", "age", by="job"))
    assert unequal["p_value"][0] < 1e-6 and unequal["groups"][0] == 3


def test_unmeasured_groups_are_refused_or_bounded_by_what_holds_for_every_table():
    asked = question("mean", "age", by="sex")
    with pytest.raises(UserError) as refused:
        estimates.estimate(TOWN, release(1), asked)
    assert "no measured marginal tells age × sex" in str(refused.value)
    assert "[age,sex] in its list selection.marginals" in str(refused.value)
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
