"""Noise scales that others published or that follow from a published formula; a number and its source each."""

import pytest

from mechanisms.accounting.plan import Plan, Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.units import Neighbouring

COIN = Domain((Attribute("side", 2),))


def plan(k: int, mechanism: str, accountant: str, epsilon: float, delta: float, bound: int = 1) -> Plan:
    return make_plan(
        COIN,
        [Request(("side",))] * k,
        mechanism=mechanism,
        accountant=accountant,
        epsilon=epsilon,
        delta=delta,
        neighbouring=Neighbouring.ADD_REMOVE,
        max_records=bound,
    )


@pytest.mark.parametrize(
    ("accountant", "epsilon", "sigma"),
    [("gdp", 1, 3.520615), ("zcdp", 1, 4.709777), ("gdp", 10, 0.482593), ("zcdp", 10, 0.551091)],
)
def test_one_unit_sensitivity_gaussian_at_delta_25_in_a_million(accountant, epsilon, sigma):
    """The exact dual (Balle & Wang 2018; McKenna 2021) and ρ + 2√(ρ ln 1/δ) (Li et al. 2021b, section 2.4)."""
    (m,) = plan(1, "gaussian", accountant, epsilon, 2.5e-5).measurements
    assert m.event.scale == pytest.approx(sigma, abs=1e-6)


@pytest.mark.parametrize(
    ("accountant", "epsilon", "bound", "sigma"),
    [
        ("zcdp", 1, 150, 5739.36),
        ("gdp", 1, 150, 4290.24),
        ("zcdp", 10, 200, 895.42),
        ("gdp", 10, 200, 784.12),
    ],
)
def test_66_marginals_of_the_taxi_challenge(accountant, epsilon, bound, sigma):
    """Paper 003, noise calibration: C√66/μ; its printed 5739.36 and 895 are the zCDP figures."""
    scales = {m.event.scale for m in plan(66, "gaussian", accountant, epsilon, 2.5e-5, bound).measurements}
    assert len(scales) == 1
    assert scales.pop() == pytest.approx(sigma, abs=0.005)


def test_465_two_way_marginals_of_a_public_log():
    """A public DPSyn log: ε = 10, δ = 3.4498908254380166e-11, 465 marginals: σ = 16.386725928253217."""
    found = plan(465, "gaussian", "zcdp", 10, 3.4498908254380166e-11).measurements[0].event.scale
    assert found == pytest.approx(16.386725928253217, rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "last"), [(0.01, 1e-8, 18), (0.01, 1e-12, 27), (1, 1e-8, 18), (1, 1e-12, 28)]
)
def test_where_gaussian_noise_under_zcdp_beats_laplace_noise_under_basic_composition(epsilon, delta, last):
    """Li et al. 2021b, Figure 2 (it prints the crossings 18, 28, 19 and 28): Laplace wins to `last`, Gaussian after."""

    def wins(k: int) -> bool:
        laplace = plan(k, "laplace", "basic", epsilon, delta).measurements[0].event.stddev
        return plan(k, "gaussian", "zcdp", epsilon, delta).measurements[0].event.stddev < laplace

    assert not wins(last)
    assert wins(last + 1)


def test_auto_takes_the_noise_with_the_smaller_error():
    """Paper 002, section 2.5: few marginals, Laplace; many, Gaussian."""
    assert plan(1, "auto", "basic", 1, 1e-8).measurements[0].event.kind == "laplace"
    assert plan(200, "auto", "zcdp", 1, 1e-8).measurements[0].event.kind == "gaussian"
