"""What every kind of noise owes: draws of the law that it states, and an event that costs what those draws reveal."""

import numpy as np
import pytest
from scipy import stats

from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.events import NOISE_EVENTS, event_of
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.units import Delta
from mechanisms.sensitive.noise import SAMPLERS, SeededNoise, split_noise
from tests.sensitive.lattice import lattice_noise

DRAWS = 100_000
#: Draws for estimates, which protect nobody and cost little.
MANY = 1_500_000


def drawn(kind: str, scale: float, seed: int = 5) -> np.ndarray:
    """Draws of the sampler, in records."""
    return lattice_noise(NOISE_EVENTS[kind]("x", 1.0, scale), DRAWS, SeededNoise(seed), bits=20) / 2.0**20


def test_laws_events_and_samplers_are_of_the_same_kinds():
    assert set(NOISE_KINDS) == set(NOISE_EVENTS) == set(SAMPLERS)


@pytest.mark.parametrize("kind", NOISE_EVENTS)
class TestEveryKindOfNoise:
    def test_its_draws_are_as_wide_as_its_event_says(self, kind):
        event = NOISE_EVENTS[kind]("x", 1.0, 7.0)
        for draws in (drawn(kind, 7.0), NOISE_KINDS[kind].simulate(np.random.default_rng(1), 7.0, DRAWS)):
            assert draws.std() == pytest.approx(event.stddev, rel=0.015)
            assert np.abs(draws).mean() == pytest.approx(event.mean_abs, rel=0.015)
            assert abs(draws.mean()) < 5 * event.stddev / np.sqrt(DRAWS)

    def test_its_draws_follow_the_law_that_estimates_use(self, kind):
        law = NOISE_KINDS[kind].simulate(np.random.default_rng(2), 7.0, DRAWS)
        assert stats.ks_2samp(drawn(kind, 7.0), law).pvalue > 1e-3
        for wrong in (0.7, 1.3):
            assert stats.ks_2samp(drawn(kind, 7.0 * wrong), law).pvalue < 1e-6

    def test_a_finer_lattice_draws_the_same_numbers(self, kind):
        event = NOISE_EVENTS[kind]("x", 1.0, 0.4)
        whole, rest = split_noise(event, 5000, SeededNoise(3), bits=20, split=16)
        assert np.array_equal((whole << 16) + rest, lattice_noise(event, 5000, SeededNoise(3), bits=20))
        assert (rest >= 0).all() and (rest < 1 << 16).all() and (whole < 0).any()

    @pytest.mark.parametrize("scale", [0.7, 2.0])
    def test_no_half_line_tells_neighbours_apart_by_more_than_its_event_says(self, kind, scale):
        """P(x + Δ > t) against P(x > t): within e^ε and below the trade-off curve of its μ; tight somewhere."""
        event = NOISE_EVENTS[kind]("x", 1.0, scale)
        draws = np.sort(NOISE_KINDS[kind].simulate(np.random.default_rng(4), scale, MANY))
        ends = np.quantile(draws, np.linspace(0.002, 0.998, 200))
        out, moved = (1 - np.searchsorted(draws, e) / MANY for e in (ends, ends - event.sensitivity))
        mu = Gdp(Delta(1e-6)).cost(event)["mu"]

        def allowed(factor: float) -> np.ndarray:
            curve = stats.norm.cdf(stats.norm.ppf(out) + factor * mu)
            return np.minimum(curve, np.exp(factor * event.epsilon_alone) * out)

        slack = 5 * np.sqrt(moved * (1 - moved) / MANY) + 5 * np.exp(min(event.epsilon_alone, 3.0)) * np.sqrt(
            out / MANY
        )
        assert (moved <= allowed(1.0) + slack).all()
        assert (moved > allowed(0.7) + slack).any(), "a claim that is 30 % too small would pass"

    def test_what_a_ledger_writes_of_its_event_is_taken_back(self, kind):
        event = NOISE_EVENTS[kind]("x", 3.0, 40.0)
        assert event_of(event.to_json()) == event
        assert (event.id, event.kind, event.sensitivity, event.scale) == ("x", kind, 3.0, 40.0)
        assert event.with_sensitivity(1.5) == NOISE_EVENTS[kind]("x", 1.5, 40.0)

    def test_more_noise_costs_less_under_every_measure(self, kind):
        near, far = (NOISE_EVENTS[kind]("x", 1.0, s) for s in (5.0, 8.0))
        assert far.epsilon_alone <= near.epsilon_alone
        assert far.loss_range <= near.loss_range
        for accountant, name in ((Gdp(Delta(1e-6)), "mu"), (Zcdp(Delta(1e-6)), "rho")):
            assert accountant.cost(far)[name] < accountant.cost(near)[name]
        assert near.admits(far) and not far.admits(near)
        assert near.law.pure == np.isfinite(near.epsilon_alone)
