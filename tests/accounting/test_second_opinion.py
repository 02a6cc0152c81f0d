"""The curve of Gaussian noise against 60 digits and against autodp; autodp's say about every plan."""

from __future__ import annotations

import math

import mpmath
import pytest
from autodp.dp_bank import get_eps_ana_gaussian
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.registered import ACCOUNTANTS, accountant_class
from mechanisms.accounting.autodp_check import check_with_autodp
from mechanisms.accounting.events import Exponential, Gaussian, Laplace
from mechanisms.accounting.gaussian_curve import SLACK, ULPS, gaussian_epsilon, log_ndtr
from mechanisms.public.units import Delta, Mu

DELTA = Delta(1e-7)
NOISE = [Gaussian("a", 1.0, 9.0), Gaussian("b", 3.0, 40.0), Gaussian("c", 1.0, 9.0)]
MIXED = [*NOISE, Laplace("l", 2.0, 30.0), Exponential("e", 0.05)]


@given(st.one_of(st.floats(-60, 9), st.floats(-2500, 0), st.floats(-20.001, -19.999)))
def test_the_normal_distribution_function_keeps_its_digits_in_the_tail(x):
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
        assert abs(log_ndtr(x) - exact) <= ULPS / 2 * (1 + abs(exact))


@given(st.floats(1e-3, 500.0), st.floats(-66.0, -5.0))
def test_epsilon_is_that_of_autodp_and_never_below_it(mu, log_delta):
    delta = math.exp(log_delta)
    theirs, ours = float(get_eps_ana_gaussian(1 / mu, delta)), gaussian_epsilon(Mu(mu), Delta(delta))
    assert theirs <= ours * (1 + 1e-12) + 1e-11
    assert ours == pytest.approx(theirs, rel=10 * SLACK, abs=1e-10)


@pytest.mark.parametrize("kind", ACCOUNTANTS)
@pytest.mark.parametrize("events", [NOISE, MIXED, MIXED[3:]], ids=["noise", "mixed", "pure"])
def test_the_claims_of_every_accountant_stand_before_autodp(kind, events):
    accountant = accountant_class(kind).of(DELTA, len(NOISE))
    check_with_autodp(accountant, events, accountant.loss(events))


@pytest.mark.parametrize("kind", ACCOUNTANTS)
def test_a_claim_below_the_exact_total_of_the_noise_is_refused(kind):
    accountant = accountant_class(kind).of(DELTA, len(NOISE))
    exact = accountant_class("gdp").of(DELTA, 0).loss(NOISE).epsilon
    with pytest.raises(ArithmeticError, match="disagree"):
        check_with_autodp(accountant, MIXED, PrivacyLoss(0.9999 * exact, DELTA))


def test_an_exact_accountant_claims_no_more_than_the_exact_total():
    accountant = accountant_class("gdp").of(DELTA, 0)
    more = PrivacyLoss(1.0001 * accountant.loss(NOISE).epsilon, DELTA)
    with pytest.raises(ArithmeticError, match="disagree"):
        check_with_autodp(accountant, NOISE, more)
    check_with_autodp(accountant, MIXED, more)


@pytest.mark.parametrize("delta", [0.0, 1e-320])
def test_gaussian_noise_costs_a_delta_whatever_an_accountant_says(delta):
    accountant = accountant_class("zcdp").of(DELTA, 0)
    with pytest.raises(ArithmeticError, match="disagree"):
        check_with_autodp(accountant, NOISE, PrivacyLoss(accountant.loss(NOISE).epsilon, delta))
    check_with_autodp(accountant, MIXED[3:], PrivacyLoss(0.2, 0.0))
