"""The pair of noise and accountant with the least noise, against every other pair and every other split."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS, accountant_class, check_filter
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.pairs import POWER, Pair, possible_pairs
from mechanisms.accounting.plan import Reservation
from mechanisms.accounting.planning import Request, _shares, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import OWN_KINDS
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Schedule
from mechanisms.selection.papers.indif import Indif
from tests.accounting.test_accountants import true_delta

EVERY = list(itertools.product([law.name for law in OWN_KINDS], [a.kind for a in OWN_ACCOUNTANTS]))
BUDGET = Budget(1.0, 1e-9, "auto", Neighbouring.ADD_REMOVE, max_records=1)


def world(sizes):
    domain = Domain(tuple(Attribute(f"c{i}", size) for i, size in enumerate(sizes)))
    return domain, domain.names


def error(plan, domain, weights):
    """Σ over marginals of weight · cells · standard deviation; a weight is that of squares."""
    return math.fsum(
        w**1.5 * domain.cells(m.clique) * m.event.stddev for m, w in zip(plan.measurements, weights, strict=True)
    )


@pytest.mark.parametrize(("count", "pure", "gaussian"), [(1, 1.414214, 5.500), (10, 14.14214, 17.393)])
def test_one_and_ten_equal_marginals_take_laplace_noise_under_basic_composition(count, pure, gaussian):
    """Today's gdp has 5.50 and 17.4 at ε = 1, δ = 1e-9."""
    domain, names = world([4] * count)
    plan = make_plan(domain, [Request((n,)) for n in names], BUDGET, mechanism="auto")
    best, second = plan.compared[:2]
    assert (best.pair, second.pair) == (Pair("laplace", "basic"), Pair("gaussian", "gdp"))
    assert best.stddev == pytest.approx(pure, rel=1e-4)
    assert second.stddev == pytest.approx(gaussian, rel=1e-3)
    assert [m.event.stddev for m in plan.measurements] == [pytest.approx(best.stddev)] * count
    assert (plan.accountant.kind, plan.loss.delta) == ("basic", 0)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 60), min_size=1, max_size=8),
    weights=st.lists(st.sampled_from([0.25, 1.0, 2.0, 8.0]), min_size=8, max_size=8),
    epsilon=st.sampled_from([0.1, 1.0, 5.0]),
    delta=st.sampled_from([1e-12, 1e-6, 1e-2]),
    neighbouring=st.sampled_from(list(Neighbouring)),
    bound=st.integers(1, 3),
)
def test_no_pair_has_less_noise_than_the_one_that_is_taken(sizes, weights, epsilon, delta, neighbouring, bound):
    domain, names = world(sizes)
    requests = [Request((n,), w) for n, w in zip(names, weights, strict=False)]
    budget = Budget(epsilon, delta, "auto", neighbouring, bound)
    plan = make_plan(domain, requests, budget, mechanism="auto")
    least = error(plan, domain, weights[: len(sizes)])
    assert plan.loss.epsilon <= epsilon and plan.loss.delta <= delta
    half = [("laplace", "auto"), ("gaussian", "auto"), *(("auto", a.kind) for a in OWN_ACCOUNTANTS)]
    for mechanism, accountant in [*EVERY, *half]:
        other = make_plan(domain, requests, replace(budget, accountant=accountant), mechanism=mechanism)
        assert least <= error(other, domain, weights[: len(sizes)]) * (1 + 1e-8)


@pytest.mark.parametrize("accountant", ["basic", "gdp", "zcdp"])
def test_no_other_split_has_less_noise(accountant):
    """Brute force over the splits of a budget among three marginals."""
    wanted, power = [(3, 1.0), (40, 1.0), (7, 5.0)], accountant_class(accountant).best_power
    strength = accountant_class(accountant).of(1e-9, 3).strength

    def total(shares):
        return math.fsum(
            cells * weight / strength(share) for (cells, weight), share in zip(wanted, shares, strict=True)
        )

    def split(power):
        return _shares([Reservation("", ("a",), cells, weight**POWER) for cells, weight in wanted], power, 1.0)

    best = total(split(power))
    steps = [(i / 60, j / 60) for i in range(1, 59) for j in range(1, 59 - i)]
    others = [total((a, b, 1 - a - b)) for a, b in steps]
    assert best <= min(others) <= 1.01 * best
    assert total(split({1 / 2: 2 / 3, 2 / 3: 1 / 2}[power])) > best


def test_the_taken_plan_keeps_to_its_budget_by_the_textbook():
    """Σ Δ/b for pure noise; for Gaussian noise the exact δ of all charges together."""
    for count in (3, 25):
        domain, names = world(range(2, count + 2))
        plan = make_plan(domain, [Request((n,)) for n in names], BUDGET, mechanism="auto")
        if plan.accountant.kind == "basic":
            assert 0.999999 < math.fsum(e.sensitivity / e.scale for e in plan.events) <= 1.0
        else:
            assert true_delta(list(plan.events), 1.0) <= 1e-9
        assert plan.accountant.kind == {3: "basic", 25: "gdp"}[count]


def test_delta_0_leaves_pure_noise():
    assert possible_pairs("auto", replace(BUDGET, delta=0.0)) == (Pair("laplace", "basic"),)
    domain, names = world([4] * 30)
    requests = [Request((n,)) for n in names]
    plan = make_plan(domain, requests, replace(BUDGET, delta=0.0), mechanism="auto")
    assert (plan.accountant.kind, plan.loss.delta, plan.events[0].kind) == ("basic", 0, "laplace")
    with pytest.raises(UserError, match=r"privacy\.delta"):
        make_plan(domain, requests, replace(BUDGET, delta=0.0), mechanism="gaussian")


@pytest.mark.parametrize("squares", [False, True])
def test_a_reserve_takes_only_pairs_that_have_a_filter(squares):
    pairs = possible_pairs("auto", BUDGET, reserve=True, squares=squares)
    for pair in pairs:
        check_filter(pair.accountant, pair.noise, squares=squares)
    pure = set() if squares else {Pair("laplace", "basic")}
    assert set(pairs) == {Pair("gaussian", "gdp"), Pair("gaussian", "zcdp"), *pure}
    named = possible_pairs("gaussian", BUDGET, noise_alone=True, reserve=True)
    assert {p.accountant for p in named} == {"gdp"}  # nobody counts Gaussian noise alone better


def test_a_word_that_is_no_accountant_is_refused():
    with pytest.raises(UserError, match=r"privacy\.accountant.*\n.*auto"):
        possible_pairs("auto", replace(BUDGET, accountant="aut"))


def test_stages_keep_their_parts_and_split_them_by_the_power_of_the_pair():
    domain, _ = world([2, 16, 54])
    slots, left = Indif((("c0", "c1"),)).slots(domain, [2, 1, 7])
    schedule = Schedule(Indif((("c0", "c1"),)), slots, left)
    assert schedule.with_power(POWER) == schedule
    other = schedule.with_power(1 / 2)
    ones = [s.weight for s in other.slots if s.stage == "given"]
    assert math.fsum(ones) == pytest.approx(2)
    assert [w / ones[0] for w in ones] == pytest.approx([math.sqrt(n / 2) for n in (2, 16, 54)])
    assert [s.weight for s in other.slots if s.stage == "scores"] == pytest.approx([1])
    assert other.reserve == 7


def test_slots_of_one_stage_may_have_any_weights():
    slots = [Reservation("given", ("c0",), 4, 8.0), Reservation("given", ("c1",), 4, 1.0)]
    first, second = (s.weight for s in Schedule(Indif(()), slots).with_power(1 / 2).slots)
    assert (first + second, first / second) == (pytest.approx(9), pytest.approx(8 ** (3 / 4)))
