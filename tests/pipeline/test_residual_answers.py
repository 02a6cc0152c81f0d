"""A run that asks for residuals: what it costs, what the release tells of such pairs, and how surely."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.queries.residual_query import ResidualQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.release_files import load_measurements
from pipeline import Release, load
from pipeline.inference.decided import decided
from pipeline.inference.marginal_estimates import marginal_estimate
from pipeline.report.answer_noise import signal_to_noise
from pipeline.statement.verify import verify
from tests.pipeline.conftest import TOWN, done_once, statement_of

PAIR = ("age", "job")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = ["selection=auto", "privacy.epsilon=20", "seed=3", "evaluation.enabled=false", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("residuals"), "run", *TOWN, *settings) / "out"


def test_a_residual_costs_its_part_and_has_less_noise(run):
    """The ledger booked μ = sensitivity / σ of each answer; all of them together are the stated ε."""
    known = load_measurements(run / "release" / "measurements")
    asked = [a for a in known.answers if isinstance(a.query, ResidualQuery)]
    assert any(a.clique == PAIR for a in asked)
    said = statement_of(run)
    events = {e["id"]: e for e in said["events"]}
    for answer in asked:
        event = events[answer.event]
        norm = answer.query.largest_column_norm("l2")
        assert norm <= event["sensitivity"] <= norm * (1 + 1e-12) < 1
        share = (event["sensitivity"] / event["scale"]) ** 2
        assert answer.query.noise(answer.stddev) < 0.9 / np.sqrt(share)  # of all cells for the same share
    assert said["spent"]["epsilon"] == pytest.approx(20, rel=1e-3)
    unsound = [c.name for c in verify(run / "release").checks if c.holds is False]
    assert unsound == ["private"]  # for its fixed seed alone


def test_the_release_tells_the_pair_like_any_other(run):
    release: Release = load(run / "release")
    table = release.marginal(PAIR)
    assert len(table) == 50 and table["count"].sum() == pytest.approx(600, abs=20)
    counted = release.estimate("count", by=PAIR)
    assert (counted["how"] == "measured").all()
    assert counted["standard_error"].to_numpy() == pytest.approx(table["standard_error"].to_numpy(), abs=0.006)
    assert len(release.sample(50, seed=1)) == 50
    bound = release.bounds(PAIR)
    assert bound["how"].tolist() == ["measured"]


AB = Domain((Attribute("a", 6), Attribute("b", 5)))
TRUTH = np.random.default_rng(1).integers(20, 400, (6, 5)).astype(float)
ASKED = [(("a",), Identity(6), TRUTH.sum(axis=1), 9.0), (("b",), Identity(5), TRUTH.sum(axis=0), 7.0)]
ASKED.append((("a", "b"), ResidualQuery((6, 5)), TRUTH.ravel(), 4.0))


def release_of(seed: int, factor: float = 1.0) -> Measurements:
    """A release whose noise is so many times what it says."""
    rng, made = np.random.default_rng(seed), []
    for clique, query, cells, sigma in ASKED:
        exact = query.answer(cells)
        values = exact + rng.normal(0, sigma * factor, exact.size)
        made.append(NoisyMarginal(clique, query, values, "gaussian", sigma, "x"))
    return Measurements(AB, tuple(made))


@pytest.mark.parametrize("large", [False, True])
def test_the_noise_of_all_cells_is_bounded_as_stated(monkeypatch, large):
    if large:
        monkeypatch.setattr("pipeline.inference.marginal_estimates.SIMULATED_CELLS", 1)
    bound = marginal_estimate(release_of(0), ("a", "b")).sum_bound(0.05)
    off = [np.abs(marginal_estimate(release_of(s), ("a", "b")).values - TRUTH.ravel()).sum() for s in range(1_000)]
    assert stats.binom.sf((np.array(off) > bound).sum() - 1, 1_000, 0.05) > 1e-4
    if not large:  # Cantelli's inequality stands above the quantile by design
        assert stats.binom.sf((1.3 * np.array(off) > bound).sum() - 1, 1_000, 0.05) < 1e-4
    assert bound < 2 * np.mean(off)


def test_each_cell_and_each_sum_has_the_error_that_is_told():
    known = marginal_estimate(release_of(0), ("a", "b"))
    rows = np.zeros((2, 30))
    rows[0, :5], rows[1, ::5] = 1.0, 1.0  # a row and a column of the pair: what its sides tell
    values = np.array([marginal_estimate(release_of(s), ("a", "b")).values for s in range(1_000)])
    assert values.std(axis=0).mean() == pytest.approx(known.errors[0], rel=0.05)
    sums = values @ rows.T
    assert sums.std(axis=0) == pytest.approx([known.spread(r) for r in rows], rel=0.1)
    assert np.cov(sums.T)[0, 1] == pytest.approx(known.covariance(rows)[0, 1], abs=0.1 * np.prod(sums.std(axis=0)))
    assert known.spread(rows[0]) < 9.0


def test_a_pair_whose_residual_was_asked_counts_as_measured_in_every_cell():
    found = decided(release_of(0))
    assert (found.pairs, found.measured, found.coarse) == (1, 1, 0) and found.noise is not None
    signal = {s.clique: s for s in signal_to_noise(release_of(0))}
    assert not signal["a", "b"].merged and signal["a", "b"].mean == pytest.approx(TRUTH.mean(), rel=0.1)
