"""Laws that every accountant owes, and their claims against an independent numerical composition."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.accounting.accountants.registered import ACCOUNTANTS, accountant_class
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.currencies import gaussian_epsilon, gaussian_mu
from mechanisms.accounting.events import Exponential, Gaussian, Laplace
from mechanisms.accounting.plan import Reservation
from mechanisms.accounting.planning import Request, make_plan, reserve
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import MAX_SCALE, MIN_DELTA, MOST_DELTA, MOST_EPSILON, Delta, Mu, Neighbouring
from mechanisms.public.units import delta as checked_delta
from mechanisms.public.units import epsilon as checked_epsilon

DELTA = Delta(1e-6)
MIXED = [Gaussian("g", 1.0, 9.0), Laplace("l", 2.0, 30.0), Exponential("e", 0.05), Gaussian("h", 3.0, 40.0)]
EVERY = [accountant_class(kind).of(DELTA, 4) for kind in ACCOUNTANTS]


@pytest.mark.parametrize("accountant", EVERY, ids=lambda a: a.kind)
class TestEveryAccountant:
    def test_the_order_of_events_does_not_matter(self, accountant):
        forwards, backwards = accountant.loss(MIXED), accountant.loss(MIXED[::-1])
        assert forwards.epsilon == pytest.approx(backwards.epsilon, rel=1e-12)
        assert forwards.delta == backwards.delta

    def test_nothing_costs_nothing_and_more_events_never_cost_less(self, accountant):
        assert (accountant.loss([]).epsilon, accountant.loss([]).delta) == (0, 0)
        for n in range(len(MIXED)):
            assert accountant.loss(MIXED[:n]).epsilon <= accountant.loss(MIXED[: n + 1]).epsilon

    def test_delta_never_exceeds_the_whole(self, accountant):
        assert accountant.loss(MIXED).delta <= DELTA

    @pytest.mark.parametrize("number", [1, 4])
    @pytest.mark.parametrize("sigma", [2.0, 40.0])
    def test_no_claim_is_below_the_exact_loss_of_gaussian_noise(self, accountant, number, sigma):
        loss = accountant.loss([Gaussian(str(i), 1.0, sigma) for i in range(number)])
        exact = gaussian_epsilon(Mu(math.sqrt(number) / sigma), Delta(loss.delta))
        assert loss.epsilon >= exact * (1 - 1e-9)

    @pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
    def test_no_claim_is_below_the_exact_loss_of_laplace_noise_and_of_a_choice(self, accountant, epsilon):
        """δ(ε') of Laplace noise is 1 − e^((ε' − ε)/2).

        That of a choice is the largest p (1 − e^(ε' − t)), p = (e^ε − e^t)/(e^ε − 1): the loss is t or t − ε.
        """
        laplace, choice = accountant.loss([Laplace("l", epsilon, 1.0)]), accountant.loss([Exponential("e", epsilon)])
        assert 1 - math.exp((laplace.epsilon - epsilon) / 2) <= laplace.delta
        most = np.linspace(0, epsilon, 1001)
        exact = (
            (math.exp(epsilon) - np.exp(most))
            / math.expm1(epsilon)
            * -np.expm1(np.minimum(choice.epsilon - most, 700.0))
        )
        assert exact.max() <= choice.delta

    def test_its_epsilon_is_that_of_its_currency_or_it_has_none(self, accountant):
        """Ledgers, groups and statements convert by the currency: a tighter claim under its name would be false."""
        currency = accountant.currency
        if currency is not None:
            total = currency.total(accountant.cost(e)[currency.name] for e in MIXED)
            assert accountant.loss(MIXED).epsilon == pytest.approx(currency.epsilon(total, DELTA), rel=1e-8)

    def test_an_unknown_event_is_refused(self, accountant):
        with pytest.raises(TypeError, match="no accountant knows"):
            accountant.loss(["an event of another kind"])


@pytest.mark.parametrize("epsilon", [1e-12, 3e-9, 1.7e-7, 4.4e-6, 1e-3, 0.7, 30.0])
def test_the_mu_of_a_choice_is_never_below_the_exact_one(epsilon):
    mu = accountant_class("gdp").of(DELTA, 0).cost(Exponential("e", epsilon))["mu"]
    with mpmath.workdps(60):
        assert mpmath.ncdf(-mpmath.mpf(mu) / 2) <= 1 / (1 + mpmath.exp(mpmath.mpf(epsilon) / 2))


@pytest.mark.parametrize("accountant", EVERY, ids=lambda a: a.kind)
def test_a_cost_that_is_no_number_has_no_bound(accountant):
    """An event of somebody else whose loss is NaN must not be free."""
    assert not accountant.loss([Laplace("l", math.nan, 1.0), Exponential("e", 0.1)]).epsilon <= 1e300


def test_costs_are_those_of_the_literature():
    zcdp, gdp = accountant_class("zcdp").of(DELTA, 0), accountant_class("gdp").of(DELTA, 0)
    assert zcdp.cost(Gaussian("", 2.0, 4.0))["rho"] == pytest.approx(1 / 8)
    assert zcdp.cost(Laplace("", 1.0, 2.0))["rho"] == pytest.approx(1 / 8)
    assert zcdp.cost(Exponential("", 0.5))["rho"] == pytest.approx(0.25 / 8)
    assert gdp.cost(Gaussian("", 2.0, 4.0))["mu"] == pytest.approx(0.5)
    assert gdp.cost(Laplace("", 1.0, 1.0))["mu"] == pytest.approx(2 * norm.ppf(math.e / (1 + math.e)))
    assert math.isfinite(gdp.cost(Laplace("", 50.0, 1.0))["mu"])


def true_delta(events, epsilon: float) -> float:
    """δ(ε) of the composition for the worst pair, by convolving the distributions of the privacy loss on a fine grid.

    Losses are rounded down to the grid, so that the result is a lower bound of the true δ: an accountant that claims
    less than this is wrong.
    """
    step, size = 2e-4, 1 << 17
    spectrum = None
    for event in events:
        if isinstance(event, Gaussian):
            mu = event.l2_sensitivity / event.sigma
            edges = (np.arange(size + 1) - size // 2) * step
            cdf = norm.cdf((edges - mu**2 / 2) / mu)
            mass = np.diff(cdf)
        else:
            loss = event.l1_sensitivity / event.scale
            edges = (np.arange(size + 1) - size // 2) * step
            # under the first of the two worlds the loss is ±ε at the ends and (ε − 2t) between, t ~ Exp/Laplace
            cdf = np.where(edges < -loss, 0.0, np.where(edges >= loss, 1.0, 0.5 * np.exp((edges - loss) / 2)))
            mass = np.diff(cdf)
        transform = np.fft.rfft(np.roll(mass, -(size // 2)))
        spectrum = transform if spectrum is None else spectrum * transform
    mass = np.roll(np.fft.irfft(spectrum, size), size // 2)
    losses = (np.arange(size) - size // 2) * step
    above = losses > epsilon
    return float(np.sum(np.clip(mass[above], 0, None) * -np.expm1(epsilon - losses[above])))


TOWN = Domain((Attribute("a", 2), Attribute("b", 5), Attribute("c", 30)))


@pytest.mark.parametrize("kind", ACCOUNTANTS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_what_a_plan_claims_holds_under_exact_composition(kind, mechanism, neighbouring):
    requests = [Request(("a",)), Request(("b",)), Request(("c",)), Request(("a", "b")), Request(("b", "c"))]
    options = {"accountant": kind, "epsilon": 1.0, "delta": 1e-4, "neighbouring": neighbouring, "max_records": 3}
    plan = make_plan(TOWN, requests, Budget(**options), mechanism=mechanism)
    assert plan.loss.epsilon <= 1.0
    assert plan.loss.epsilon > 0.9999
    exact = true_delta(plan.events, plan.loss.epsilon)
    assert exact <= plan.loss.delta * 1.001 + 1e-9
    if kind == "gdp" and mechanism == "gaussian":
        assert exact >= 0.97 * plan.loss.delta, "the exact dual leaves nothing unused"


@pytest.mark.parametrize("kind", ["gdp", "zcdp", "advanced"])
def test_delta_0_is_refused_where_the_accountant_needs_more(kind):
    with pytest.raises(UserError, match=r"privacy\.delta"):
        accountant_class(kind).of(Delta(0.0), 0)


def test_more_gaussian_events_than_slots_are_refused():
    with pytest.raises(ValueError, match="split over 1"):
        accountant_class("basic").of(DELTA, 1).loss([MIXED[0], MIXED[3]])


def test_shares_follow_cells_to_two_thirds():
    budget = Budget(1.0, 1e-4, "zcdp", Neighbouring.ADD_REMOVE, max_records=1)
    plan = make_plan(TOWN, [Request(("a",)), Request(("b", "c"), 2.0)], budget, mechanism="gaussian")
    assert plan.measurements[1].share / plan.measurements[0].share == pytest.approx(2 * (150 / 2) ** (2 / 3))
    rho = [plan.accountant.cost(e)["rho"] for e in plan.events]
    assert rho[1] / rho[0] == pytest.approx(2 * (150 / 2) ** (2 / 3), rel=1e-6)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
def test_a_plan_whose_noise_no_answer_holds_is_refused(mechanism):
    """Before anything is charged, for plans of one round; it was once refused after some charges."""
    requests = [Request(("a",)), Request(("b",)), Request(("c",), 1e-6)]
    quiet = Budget(10.0, 1e-9, "basic", Neighbouring.ADD_REMOVE, max_records=100)
    with pytest.raises(UserError, match=r"noise scale .* exceeds the supported maximum 2\.68e\+08 records"):
        make_plan(TOWN, requests, replace(quiet, epsilon=1e-3), mechanism=mechanism)
    loudest = max(m.event.scale for m in make_plan(TOWN, requests, quiet, mechanism=mechanism).measurements)
    assert loudest < MAX_SCALE


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_adaptive_plan_whose_noise_no_answer_holds_is_refused(share):
    wanted, method = [Reservation("given", ("a",), 2, 1.0)], {"kind": "aim"}
    for bound, fits in ((1, True), (10**5, not share), (10**12, False)):
        try:
            budget = Budget(1e-2, 1e-9, "gdp", Neighbouring.ADD_REMOVE, bound)
            reserve(wanted, budget, method=method, noise="gaussian", filter_share=share)
        except UserError as error:
            assert not fits and "supported maximum" in str(error)
        else:
            assert fits


@pytest.mark.parametrize("epsilon", [1e4, 1e6, MOST_EPSILON])
@pytest.mark.parametrize("kind", ACCOUNTANTS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_budget_that_promises_nothing_is_spent_to_the_end(kind, mechanism, epsilon):
    """From ε = 6,700 a plan came out far below its budget, and was called NOT sound, or failed after its charges."""
    requests = [Request(("a",)), Request(("b",)), Request(("c",))]
    budget = Budget(epsilon, 1e-9, kind, Neighbouring.ADD_REMOVE, max_records=1)
    assert make_plan(TOWN, requests, budget, mechanism=mechanism).loss.epsilon > 0.9999 * epsilon


@pytest.mark.parametrize("half", [650.0, 701.0, 1e4, 4e8])
def test_the_mu_of_noise_far_out_is_that_of_80_digits_from_above(half):
    mu = accountant_class("gdp").of(DELTA, 0).cost(Laplace("a", half, 1.0))["mu"]
    with mpmath.workdps(80):
        tail = mpmath.log(mpmath.erfc(mpmath.mpf(mu) / 2 / mpmath.sqrt(2)) / 2)
        assert -1e-9 * half < tail + half < 0


def test_an_epsilon_beyond_all_accountants_is_refused():
    assert checked_epsilon(MOST_EPSILON) == MOST_EPSILON
    for wrong in (2 * MOST_EPSILON, math.inf, math.nan, 0.0):
        with pytest.raises(UserError, match="at most 1e"):
            checked_epsilon(wrong)


def test_a_delta_below_the_smallest_is_refused():
    assert checked_delta(MIN_DELTA) == MIN_DELTA
    assert checked_delta(MOST_DELTA) == MOST_DELTA
    for wrong in (MIN_DELTA / 2, -1e-9, 0.9999, 1.0, math.nan):
        with pytest.raises(UserError, match="δ"):
            checked_delta(wrong)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *((2e-8, 1e-16), (2e-9, 1.6e-24), (1.7e-6, 1e-13), (2.4e-4, 7e-30), (1e-3, 1e-9), (1.0, 1e-9)),
        *((e, MIN_DELTA) for e in (1e-3, 0.1, 1.0, 8.0, 100.0, 1e6, MOST_EPSILON)),
    ],
)
def test_the_exact_delta_of_a_calibrated_mu_is_never_above_the_claim(epsilon, delta):
    """At 80 digits, also where two nearly equal terms cancel; and hardly below it, so that no noise is wasted."""
    with mpmath.workdps(80):

        def exact(mu, at):
            m, e = mpmath.mpf(mu), mpmath.mpf(at)
            return float((mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)) / mpmath.mpf(delta))

        mu = gaussian_mu(epsilon, Delta(delta))
        assert 0.99 < exact(mu, epsilon) <= 1
        assert 0.99 < exact(mu, gaussian_epsilon(mu, Delta(delta))) <= 1
