"""What several runs may book: the arithmetic of the two filters, by brute force and by an independent accountant."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.currencies import gaussian_log_delta, zcdp_epsilon, zcdp_rho
from mechanisms.accounting.events import Exponential, Gaussian, Laplace
from mechanisms.accounting.filters import Filter, Limit, Spend, spend_of_pair, spend_of_plan
from mechanisms.accounting.plan import Plan, Reservation
from mechanisms.accounting.planning import Request, make_plan, reserve
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import Delta, Neighbouring
from mechanisms.selection.aim import Aim
from mechanisms.selection.papers.indif import Indif

LIMIT = Limit(3.0, 1e-6)
KINDS = ("gdp", "zcdp", "basic")
SMALL = Domain((Attribute("a", 3), Attribute("b", 4), Attribute("c", 5)))


def plan(epsilon: float = 1.0, delta: float = 1e-9, accountant: str = "gdp", mechanism: str = "gaussian") -> Plan:
    wanted = [Request(("a",)), Request(("b",)), Request(("a", "c"))]
    return make_plan(SMALL, wanted, Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, 3), mechanism=mechanism)


def with_reserve(accountant: str, epsilon: float = 1.0, delta: float = 1e-6) -> Plan:
    wanted = [Reservation("one-way", (n,), SMALL[n].size, 0.1) for n in SMALL.names]
    pure = accountant == "basic"
    method = Indif((("a", "b"),)) if pure else Aim((("a", "b"), ("b", "c")), (1.0, 1.0), 0.9, 10, 1000)
    budget, noise = Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, 1), "laplace" if pure else "gaussian"
    return reserve(wanted, budget, method=method.description, noise=noise, filter_share=0.7)


spends = st.builds(spend_of_pair, st.floats(0.01, 2.0), st.sampled_from([0.0, 1e-12, 1e-9, 1e-8])) | st.builds(
    lambda e, d, a: spend_of_plan(plan(e, d, a)),
    st.floats(0.05, 2.0),
    st.sampled_from([1e-12, 1e-9, 1e-7]),
    st.sampled_from(["gdp", "zcdp", "basic", "advanced"]),
)


class TestSpends:
    def test_a_run_by_gdp_books_the_mu_of_its_promise(self):
        spend = spend_of_plan(plan(1.0, 1e-9))
        assert gaussian_log_delta(spend.mu, 1.0) == pytest.approx(math.log(1e-9), rel=1e-6)
        assert spend.rho == pytest.approx(spend.mu**2 / 2, rel=1e-6)
        assert (spend.epsilon, spend.delta, spend.slack) == (1.0, 1e-9, 0.0)

    @pytest.mark.parametrize("accountant", ["basic", "advanced", "zcdp", "gdp"])
    def test_what_a_run_books_is_its_mechanisms_whatever_accountant_calibrated_them(self, accountant):
        made = plan(1.0, 1e-6, accountant)
        mu = math.sqrt(sum((e.l2_sensitivity / e.sigma) ** 2 for e in made.events))
        assert mu <= spend_of_plan(made).mu <= mu * (1 + 1e-6)

    def test_a_pure_run_books_no_delta(self):
        spend = spend_of_plan(plan(1.0, 1e-6, "basic", "laplace"))
        assert spend.delta == spend.slack == 0
        assert spend.rho < 0.5  # three events of a part of ε each cost less than one of ε

    def test_a_pair_is_a_pure_event_and_slack(self):
        spend = spend_of_pair(1.0, 1e-8)
        assert spend.slack == spend.delta == 1e-8
        assert spend.mu == pytest.approx(Gdp(Delta(0.1)).cost(Laplace("", 1.0, 1.0))["mu"])
        assert spend.rho == pytest.approx(0.5)
        for wrong in ((0.0, 0.0), (1.0, 1.0), (math.nan, 0.0), (1.0, -1e-9)):
            with pytest.raises(UserError):
                spend_of_pair(*wrong)

    def test_a_pure_run_with_a_reserve_books_the_whole_epsilon(self):
        assert spend_of_plan(with_reserve("basic")) == spend_of_pair(1.0, 0.0)

    @pytest.mark.parametrize("accountant", ["gdp", "zcdp"])
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
    @pytest.mark.parametrize("choice", [True, False])
    def test_no_sequence_of_events_that_the_ledger_of_a_run_lets_through_costs_more_than_it_booked(
        self, accountant, epsilon, choice
    ):
        """The ledger looks at the total of the run, so that a reserve may spend what rounding left of the slots."""
        made = with_reserve(accountant, epsilon)
        spend = spend_of_plan(made)
        gdp = Gdp(Delta(0.5))
        events: list[Gaussian | Exponential] = []
        parts = iter([*[0.02] * 60, *[0.002] * 60, *[1e-5] * 60, *[1e-8] * 60])
        for i, part in enumerate(parts):
            event = made.choice_event(f"{i}", part) if choice else made.measurement_event(f"{i}", part)
            assert not isinstance(event, Laplace)
            booked = [e for s in made.slots if (e := made.reserved(s.event))]
            if made.accountant.loss([*booked, *events, event]).epsilon <= made.budget.epsilon:
                events.append(event)
        every = [*(s.event for s in made.slots), *events]
        mu = math.sqrt(math.fsum(gdp.cost(e)["mu"] ** 2 for e in every))
        assert len(events) > 30
        assert mu <= spend.mu
        if not choice or accountant == "gdp":
            assert mu >= 0.79 * spend.mu  # √(2/π), where only Gaussian noise was bought under zcdp
        assert math.fsum(e.epsilon**2 / 8 if isinstance(e, Exponential) else mu_of(e) ** 2 / 2 for e in every) <= max(
            spend.rho, mu**2 / 2
        )

    def test_the_gdp_cost_of_a_pure_event_is_at_most_root_half_pi_times_its_epsilon(self):
        x = np.concatenate([np.linspace(1e-6, 3, 3_001), np.linspace(3, 30, 301)])
        assert (expit(x) <= ndtr(math.sqrt(math.pi / 8) * x)).all()
        for eps in (1e-6, 1e-3, 0.5, 1.0, 5.0, 40.0):
            pure, choice = (Gdp(Delta(0.5)).cost(e)["mu"] for e in (Laplace("", eps, 1.0), Exponential("", eps)))
            assert pure**2 <= math.pi * eps**2 / 2 * (1 + 1e-6)
            assert choice**2 <= math.pi * eps**2 / 8 * (1 + 1e-6)


def mu_of(event: Gaussian | Laplace | Exponential) -> float:
    return Gdp(Delta(0.5)).cost(event)["mu"]


class TestFilters:
    @pytest.mark.parametrize("kind", KINDS)
    def test_thirty_runs_of_a_tenth_fill_a_limit_of_three_and_one_more_does_not_fit(self, kind):
        pure = Spend(0.1, 0.0, math.inf, math.inf)
        assert Filter(kind).admits([pure] * 30, LIMIT)
        assert not Filter(kind).admits([pure] * 31, LIMIT)

    def test_the_plain_sum_of_delta_has_half_of_the_limit(self):
        run = Spend(0.001, 1e-7, math.inf, math.inf)
        assert Filter("gdp").admits([run] * 5, LIMIT)
        assert not Filter("gdp").admits([run] * 6, LIMIT)

    def test_the_accountant_lets_more_runs_in_than_the_sum(self):
        run = spend_of_plan(plan(1.0, 1e-9))
        most = {kind: max(n for n in range(60) if Filter(kind).admits([run] * n, LIMIT)) for kind in KINDS}
        assert most["basic"] == 3
        assert most["gdp"] > most["zcdp"] > 3
        mu = run.mu * math.sqrt(most["gdp"])
        assert gaussian_log_delta(mu, 3.0) <= math.log(5e-7)  # half of δ
        assert gaussian_log_delta(run.mu * math.sqrt(most["gdp"] + 1), 3.0) > math.log(5e-7)

    @pytest.mark.parametrize("kind", ["gdp", "zcdp"])
    def test_slack_has_its_own_part_of_delta_and_none_of_it_goes_to_the_conversion(self, kind):
        pairs = [spend_of_pair(0.5, 1e-7)] * 4
        pure = [replace(p, slack=0.0) for p in pairs]
        kept = Filter(kind, 0.4)
        assert (
            kept.composed(pairs, LIMIT) == kept.composed(pure, LIMIT) == Filter(kind).composed(pure, Limit(3.0, 2e-7))
        )
        assert kept.composed([*pairs, pairs[0]], LIMIT) == math.inf  # 5e-7 is more than 0.4 of 1e-6
        assert Filter(kind).composed(pairs[:1], LIMIT) == math.inf
        assert Filter(kind).admits(pairs, LIMIT)  # by the plain sums alone

    @pytest.mark.parametrize("slack", [-0.1, 0.41, math.nan])
    def test_slack_takes_part_of_one_half_alone(self, slack):
        with pytest.raises(UserError, match="budget\\.slack"):
            Filter("gdp", slack)

    @pytest.mark.parametrize(("pure", "close"), [(False, 1.01), (True, 1.6)])
    def test_runs_by_several_accountants_cost_no_less_than_an_independent_one_says(self, pure, close):
        """Composed by the privacy loss distributions of all events of all runs, at the same δ."""
        made = [plan(1.0, 1e-7, "gdp"), plan(0.5, 1e-6, "basic", "laplace" if pure else "gaussian")]
        made += [plan(0.7, 1e-8, "zcdp"), plan(0.6, 1e-8, "advanced")]
        exact = PLDAccountant(value_discretization_interval=1e-3)
        for event in itertools.chain.from_iterable(p.events for p in made):
            if isinstance(event, Gaussian):
                exact.compose(dp_accounting.GaussianDpEvent(event.sigma / event.l2_sensitivity))
            else:
                assert isinstance(event, Laplace)
                exact.compose(dp_accounting.LaplaceDpEvent(event.scale / event.l1_sensitivity))
        true = exact.get_epsilon(LIMIT.delta / 2)
        runs = [spend_of_plan(p) for p in made]
        by = {kind: Filter(kind).composed(runs, LIMIT) for kind in ("gdp", "zcdp")}
        assert true * 0.995 <= by["gdp"] <= by["zcdp"] * 1.3
        assert by["gdp"] <= true * close  # a pure event costs more under gdp than it is
        assert true * 0.995 <= by["zcdp"]

    @given(st.lists(spends, max_size=6), st.sampled_from(KINDS), st.randoms())
    @settings(max_examples=40)
    def test_the_order_of_runs_does_not_matter(self, runs, kind, random):
        mixed = runs[:]
        random.shuffle(mixed)
        assert Filter(kind).totals(mixed, LIMIT) == Filter(kind).totals(runs, LIMIT)
        assert Filter(kind).admits(mixed, LIMIT) == Filter(kind).admits(runs, LIMIT)

    @given(st.lists(spends, max_size=25), st.sampled_from(KINDS))
    @settings(max_examples=40)
    def test_no_sequence_of_runs_passes_the_limit_by_both_filters(self, runs, kind):
        booked: list[Spend] = []
        for run in runs:
            if Filter(kind).admits([*booked, run], LIMIT):
                booked.append(run)
        sums = sum(Fraction(s.epsilon) for s in booked), sum(Fraction(s.delta) for s in booked)
        by_sum = sums[0] <= 3 * (1 + Fraction(1, 10**15)) and sums[1] <= Fraction(5, 10**7) * (1 + Fraction(1, 10**15))
        left = float(Fraction(5, 10**7) - sum(Fraction(s.slack) for s in booked))
        mu, rho = math.sqrt(math.fsum(s.mu**2 for s in booked)), math.fsum(s.rho for s in booked)
        by_mu = left > 0 and (not mu or gaussian_log_delta(mu, 3.0) <= math.log(left))
        by_rho = left > 0 and rho + 2 * math.sqrt(rho * math.log(1 / left)) <= 3
        assert by_sum or {"gdp": by_mu, "zcdp": by_rho, "basic": False}[kind]

    @given(st.lists(spends, max_size=8), spends, st.sampled_from(KINDS))
    @settings(max_examples=100)
    def test_a_refused_run_never_fits_after_more_was_booked(self, runs, run, kind):
        assert Filter(kind).admits([*runs[:3], run], LIMIT) or not Filter(kind).admits([*runs, run], LIMIT)

    @given(st.lists(spends, max_size=6), st.sampled_from(KINDS), st.sampled_from([1e-12, 1e-9, 4e-7]))
    @settings(max_examples=40)
    def test_what_is_left_fits_and_a_little_more_does_not(self, runs, kind, delta):
        assume(Filter(kind).admits(runs, LIMIT))
        left = Filter(kind).room(runs, LIMIT)
        if left.epsilon > 1e-3:
            pure = Spend(left.epsilon * (1 - 1e-9), left.delta, math.inf, math.inf)
            assert Filter(kind).admits([*runs, pure], LIMIT)
            assert not Filter(kind).admits([*runs, replace(pure, epsilon=left.epsilon * 1.001)], LIMIT)
        if left.strength > 1e-3:
            field = {"gdp": "mu", "zcdp": "rho"}[kind]
            own = replace(Spend(99.0, 0.0, 0.0, 0.0), **{field: left.strength * (1 - 1e-7)})
            assert Filter(kind).admits([*runs, own], LIMIT)
            more = replace(own, **{field: left.strength * 1.001})
            assert not Filter(kind).admits([*runs, more], LIMIT)

    def test_the_conversion_of_zcdp_and_its_inverse_agree(self):
        for epsilon, delta in ((0.01, 1e-9), (1.0, 1e-6), (20.0, 1e-3)):
            assert zcdp_epsilon(zcdp_rho(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)

    @pytest.mark.parametrize(
        "wrong",
        [
            *(None, 3, "3", [3, 1e-6], {"epsilon": 3}, {"epsilon": 3, "delta": 1e-6, "mu": 1}),
            *({"epsilon": -1, "delta": 1e-6}, {"epsilon": "three", "delta": 1e-6}, {"epsilon": True, "delta": 0}),
            *({"epsilon": math.nan, "delta": 0}, {"epsilon": 3, "delta": -1e-9}, {"epsilon": 3, "delta": 1}),
            {"epsilon": 3, "delta": None},
        ],
    )
    def test_a_limit_that_is_none_is_refused_and_the_setting_named(self, wrong):
        with pytest.raises(UserError, match="budget\\.limit"):
            Limit.of(wrong, "budget.limit")


def leaky_response(epsilon: float, delta: float) -> dict[str, tuple[float, float]]:
    """Outcome → its probabilities on the two neighbours: the hardest (ε, δ) mechanism there is."""
    high, low = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    return {
        "left": (delta, 0.0),
        "right": (0.0, delta),
        "yes": ((1 - delta) * high, (1 - delta) * low),
        "no": ((1 - delta) * low, (1 - delta) * high),
    }


@given(
    st.dictionaries(
        st.integers(0, 4**4), st.tuples(st.sampled_from([0.1, 0.4, 0.7, 1.1]), st.sampled_from([0.0, 0.01, 0.03]))
    ),
    st.sampled_from(KINDS),
    st.floats(0.4, 2.5),
    st.sampled_from([0.05, 0.1, 0.3]),
    st.sampled_from([0.0, 0.2, 0.4]),
)
@settings(max_examples=60)
def test_an_analyst_who_chooses_each_run_by_the_answers_before_never_learns_more_than_the_limit(
    strategy, kind, epsilon, delta, slack
):
    """Every path of the interaction, enumerated: the exact δ at the limit's ε is at most the limit's δ."""
    limit, rule = Limit(epsilon, delta), Filter(kind, slack)

    def excess(path: tuple[int, ...], booked: list[Spend], left: float, right: float) -> float:
        place = sum((digit + 1) * 5**i for i, digit in enumerate(path)) % (4**4 + 1)
        asked = strategy.get(place, (0.4, 0.01) if place % 2 else (0.7, 0.0))
        run = spend_of_pair(*asked)
        if len(path) == 5 or not rule.admits([*booked, run], limit):
            return max(left - math.exp(epsilon) * right, 0.0)
        outcomes = leaky_response(*asked).values()
        return sum(
            excess((*path, i), [*booked, run], left * p, right * q) for i, (p, q) in enumerate(outcomes) if p + q > 0
        )

    assert excess((), [], 1.0, 1.0) <= delta
