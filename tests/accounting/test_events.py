"""Events know themselves: noise, whom they cover, what the ledger writes of them; and what autodp says of plans."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest
from autodp.dp_bank import get_eps_ana_gaussian
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.registered import ACCOUNTANTS, accountant_class, check_filter
from mechanisms.accounting.autodp_check import check_with_autodp
from mechanisms.accounting.currencies import SLACK, ULPS, gaussian_epsilon, log_ndtr
from mechanisms.accounting.events import NOISE_EVENTS, Exponential, Gaussian, Laplace, event_of
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, OWN_KINDS, possible_kinds
from mechanisms.public.units import Delta, Mu, joint_sensitivity

ROOT = Path(__file__).parents[2]
EVENTS = [Gaussian("g", 3.0, 40.0), Laplace("l", 2.0, 30.0), Exponential("e", 0.05)]
NUMBERS = st.floats(0.01, 100.0)


def test_the_ledgers_form_is_that_of_old_runs_and_is_taken_back():
    assert [e.to_json() for e in EVENTS] == [
        {"kind": "Gaussian", "id": "g", "l2_sensitivity": 3.0, "sigma": 40.0},
        {"kind": "Laplace", "id": "l", "l1_sensitivity": 2.0, "scale": 30.0},
        {"kind": "Exponential", "id": "e", "epsilon": 0.05},
    ]
    assert [event_of(json.loads(json.dumps(e.to_json()))) for e in EVENTS] == EVENTS


@given(st.sampled_from(list(NOISE_KINDS)), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_whom_an_event_admits_costs_no_more_under_any_accountant(kind, sensitivity, scale, other, noise):
    mine, theirs = NOISE_EVENTS[kind]("x", sensitivity, scale), NOISE_EVENTS[kind]("x", other, noise)
    if mine.admits(theirs):
        for name in ACCOUNTANTS:
            accountant = accountant_class(name).of(Delta(1e-6), 1)
            assert accountant.loss([theirs]).epsilon <= accountant.loss([mine]).epsilon
    assert mine.admits(theirs) == (other <= sensitivity and noise >= scale)


@pytest.mark.parametrize("name", ACCOUNTANTS)
@pytest.mark.parametrize("kind", [*NOISE_KINDS, "choice"])
def test_the_next_number_above_never_costs_less(name, kind):
    """Neighbouring floats, from tiny to large: rounding must not turn their order round."""
    rng, accountant = np.random.default_rng(1), accountant_class(name).of(Delta(1e-6), 1)
    for strength in 10 ** rng.uniform(-8, 1.5, 150):
        costs = []
        for _ in range(4):
            event = Exponential("x", strength) if kind == "choice" else NOISE_EVENTS[kind]("x", strength, 1.0)
            costs.append(accountant.loss([event]).epsilon)
            strength = math.nextafter(strength, math.inf)
        assert costs == sorted(costs)


def test_an_event_admits_no_other_id_or_kind():
    for event in EVENTS:
        assert event.admits(event)
        assert not event.admits(replace(event, id="another"))
        assert not any(event.admits(replace(e, id=event.id)) for e in EVENTS if e is not event)
    assert not EVENTS[2].admits(Exponential("e", 0.051))


def test_strengths_and_shares_are_inverse_under_every_accountant():
    """A part of a budget buys an event whose cost is that part, for noise that the accountant counts exactly."""
    for name in ACCOUNTANTS:
        accountant = accountant_class(name).of(Delta(1e-6), 4)
        whole = NOISE_EVENTS[accountant.natural_noise]("w", 1.0, 20.0)
        part = NOISE_EVENTS[accountant.natural_noise]("p", 1.0, 20.0 / accountant.strength(0.3))
        assert accountant.share(part, whole) == pytest.approx(0.3, rel=1e-6)
        assert accountant.strength(np.array([0.3]))[0] == accountant.strength(0.3)


def test_only_filters_take_events_whose_sizes_depend_on_answers():
    for name, noise in [("zcdp", "gaussian"), ("gdp", "gaussian"), ("basic", "laplace")]:
        check_filter(name, noise)
    for name, noise in [("zcdp", "laplace"), ("gdp", "laplace"), ("basic", "gaussian"), ("advanced", "laplace")]:
        with pytest.raises(UserError, match="no sound accounting"):
            check_filter(name, noise)
    with pytest.raises(UserError, match="no sound accounting") as refused:
        check_filter("basic", "laplace", squares=True)
    assert "basic" not in str(refused.value.fix)


def test_without_delta_only_pure_noise_is_possible():
    assert possible_kinds("auto", delta=0.0) == ("laplace",)
    assert set(possible_kinds("auto", delta=1e-9)) == {law.name for law in OWN_KINDS}
    with pytest.raises(UserError, match="laplace"):
        possible_kinds("laplac", delta=0.0)


def test_joint_sensitivity_is_never_below_the_exact_one():
    for count in range(1, 200):
        assert joint_sensitivity(2.0, count, "l1") == 2.0 * count
        assert joint_sensitivity(2.0, count, "l2") >= 2.0 * math.sqrt(count)


def test_nobody_else_asks_for_the_class_or_kind_of_an_event():
    """Events, accountants and samplers do; everybody else asks the event. Advisories name the kind at fault."""
    allowed = {"events.py", "noise_kinds.py", "noise.py", "advisories.py"}
    asks = re.compile(
        r"isinstance\([^)\n]*\b(Gaussian|Laplace|Exponential)\b|case (Gaussian|Laplace|Exponential)\("
        r"|[!=]= *\"(gaussian|laplace)\"|\"(gaussian|laplace)\" *[!=]=|in \(\"(gaussian|laplace)\""
    )
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ("mechanisms", "synthesis", "evaluation", "pipeline")
        for path in (ROOT / room).rglob("*.py")
        if path.name not in allowed and path.parent.name != "accountants"
        for line in path.read_text(encoding="utf-8").splitlines()
        if asks.search(line)
    ]
    assert not found


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
