"""Plans: the pair with the least noise, the cost of discovery, and choosing among releases, each by brute force."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import erfc as mp_erfc
from mpmath import mp, mpf

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS, accountant_class, check_filter
from mechanisms.accounting.budget import POWER, Budget, Pair, possible_pairs
from mechanisms.accounting.events import Gaussian, booked_event, event_of
from mechanisms.accounting.filters import spend_of_plan
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.plan import Reservation
from mechanisms.accounting.planning import Request, _shares, make_plan, plan_discovery
from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.accounting.restatements import worst_case
from mechanisms.accounting.thresholds import safe_failure, safe_threshold, weight_of
from mechanisms.public.discovery.discovery_questions import DiscoveryQuestion, LeafTree, union_sensitivity
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import OWN_KINDS
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.selection.base import Schedule
from mechanisms.selection.papers.indif import Indif
from mechanisms.sensitive.noise import SecureNoise, SeededNoise
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


@settings(max_examples=40)
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


UNIT = 2.0**WEIGHT_BITS
TOWN = Domain((Attribute("a", 5), Attribute("b", 7)))
WANTED = (
    DiscoveryQuestion("a", ("bounds",), LeafTree(40, 1)),
    DiscoveryQuestion("b", ("values",)),
    DiscoveryQuestion("c", ("values",)),
)


def tail(kind, x):
    """P(Z > x) of noise at scale 1, at 40 digits."""
    return mp_erfc(x / mp.sqrt(2)) / 2 if kind == "gaussian" else mp.exp(-x) / 2


def lets_through(kind, scale, threshold, t):
    """The probability that one of t values that one unit alone holds is released, noise rounded to the lattice."""
    with mp.workdps(40):
        norm = "l2" if kind == "gaussian" else "l1"
        least = (mpf(threshold) - weight_of(t, norm) - mpf("0.5")) / UNIT / mpf(scale)
        return 1 - (1 - tail(kind, least)) ** t


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("failure", [1e-2, 1e-10, 1e-25])
@pytest.mark.parametrize("scale", [0.05, 3.7, 2000.0])
def test_what_one_unit_alone_holds_is_released_with_at_most_the_stated_probability_and_hardly_less(
    kind, failure, scale
):
    for most in (1, 2, 3, 17):
        threshold = safe_threshold(kind, scale, failure, most)
        worst = max(lets_through(kind, scale, threshold, t) for t in range(1, most + 1))
        assert worst <= failure
        assert worst > failure * 0.99 or scale * UNIT < 1e6  # the lattice rounds thresholds of little noise up
        assert max(lets_through(kind, scale, math.floor(0.7 * threshold), t) for t in range(1, most + 1)) > failure


def test_a_threshold_for_many_values_is_no_lower_than_for_each_number_of_them():
    every = max(safe_threshold("gaussian", 5.0, 1e-9, t) for t in (1, 2, 1024, 1025, 1500, 3000))
    assert safe_threshold("gaussian", 5.0, 1e-9, 3000) >= every
    assert lets_through("gaussian", 5.0, safe_threshold("gaussian", 5.0, 1e-9, 3000), 3000) <= 1e-9


@pytest.mark.parametrize(("norm", "power"), [("l1", 1), ("l2", 2)])
def test_the_weights_of_one_unit_have_norm_at_most_one_and_hardly_less(norm, power):
    for t in (1, 2, 3, 10, 1000):
        total = t * weight_of(t, norm) ** power
        assert (1 - 1e-2) * (1 << WEIGHT_BITS) ** power < total <= (1 << WEIGHT_BITS) ** power
    assert union_sensitivity(norm, Neighbouring.ADD_REMOVE) == 1
    assert union_sensitivity(norm, Neighbouring.REPLACE) == pytest.approx(2 ** (1 / power), rel=1e-12)
    assert union_sensitivity(norm, Neighbouring.REPLACE) >= 2 ** (1 / power)


def test_all_failures_together_leave_room_beside_the_rest_of_delta():
    for delta, columns in ((0.3, 3), (1e-9, 7)):
        failure = delta / 10 / columns
        with mp.workdps(60):
            missed = 1 - (1 - mpf(safe_failure(failure, delta))) ** columns
            assert missed / (1 - missed) <= mpf(failure) * columns


def planned(accountant="gdp", mechanism="auto", neighbouring=Neighbouring.ADD_REMOVE, most=3, **changed):
    facts = {"delta": 1e-6, "share": 0.1} | changed
    budget = Budget(1.0, facts["delta"], accountant, neighbouring, most)
    first = plan_discovery(WANTED, budget, mechanism=mechanism, share=facts["share"])
    noise, wanted = "laplace" if accountant == "basic" else mechanism, [Request(("a",)), Request(("a", "b"))]
    rest = make_plan(TOWN, wanted, first.budget, mechanism=noise, discovered=first.charges)
    return first, rest


@pytest.mark.parametrize("neighbouring", Neighbouring)
@pytest.mark.parametrize(
    ("accountant", "mechanism"), [("gdp", "auto"), ("gdp", "laplace"), ("zcdp", "gaussian"), ("basic", "auto")]
)
def test_discovery_and_the_rest_cost_the_whole_budget_together_and_each_its_share(accountant, mechanism, neighbouring):
    first, rest = planned(accountant, mechanism, neighbouring)
    assert 0.999 < rest.loss.epsilon <= 1 and rest.loss.delta <= 1e-6
    costs = [rest.accountant.cost(e) for e in rest.events]
    name = {"gdp": "mu", "zcdp": "rho", "basic": "epsilon"}[accountant]
    parts = [c[name] ** 2 if accountant == "gdp" else c[name] for c in costs]
    assert sum(parts[: len(WANTED)]) / sum(parts) == pytest.approx(0.1, rel=2e-2 if mechanism == "laplace" else 1e-6)
    assert [s.share for s in first.charges] == pytest.approx([0.1 / 3] * 3)
    failures = [e.failure for e in first.events]
    assert failures[0] == 0 and sum(failures) == pytest.approx(1e-7) and sum(failures) <= 1e-7
    again = [booked_event(r) for r in rest.receipts({e.id: e for e in rest.events})]
    assert rest.accountant.loss(again) == rest.loss


def test_the_tree_is_as_sensitive_as_it_has_levels_and_records():
    first, _ = planned(neighbouring=Neighbouring.REPLACE, most=3)
    tree = first.charges[0]
    assert tree.event.sensitivity == pytest.approx(3 * math.sqrt(2 * LeafTree(40, 1).levels))
    assert [s.event.sensitivity for s in first.charges[1:]] == [union_sensitivity("l2", Neighbouring.REPLACE)] * 2


def test_what_is_promised_is_all_of_the_budget_whatever_the_rest_is():
    for accountant in ("gdp", "zcdp", "basic"):
        _, rest = planned(accountant)
        promise, spend = worst_case(rest).within(rest.budget.whole), spend_of_plan(rest)
        assert promise.epsilon == pytest.approx(1, rel=1e-6) and promise.delta <= 1e-6
        assert spend.epsilon == 1 and spend.delta == 1e-6 and spend.slack >= 9.99e-8
        assert math.isinf(worst_case(rest).epsilon_at(5e-8))  # less than the thresholds take
        assert worst_case(rest).original == {}
        pair = worst_case(rest).of_group(2)
        assert pair.epsilon >= 2 * promise.epsilon * (1 - 1e-9) and pair.delta > promise.delta


def test_a_ledger_goes_on_under_the_plan_of_the_rest_and_counts_what_came_before(tmp_path):
    first, rest = planned()
    ledger = Ledger.open(tmp_path / "l.jsonl", first)
    for event in first.events:
        ledger.charge(event)
    with pytest.raises(BudgetExceeded):
        ledger.charge(rest.measurements[0].event)
    whole = ledger.continued(rest)
    for m in rest.measurements:
        whole.charge(m.event)
    assert whole.spent.epsilon > 0.999 and 0.9999e-6 < whole.spent.delta <= 1e-6
    again = Ledger.open(tmp_path / "l.jsonl", first)
    assert again.events == ledger.events and again.continued(rest).events == whole.events
    with pytest.raises(UserError, match="goes on with another plan"):
        again.continued(replace(rest, budget=replace(rest.budget, epsilon=2.0)))
    text = (tmp_path / "l.jsonl").read_bytes()
    (tmp_path / "l.jsonl").write_bytes(text[:-9])  # cut off while the last charge was written
    assert list(Ledger.open(tmp_path / "l.jsonl", first).continued(rest).events) == list(whole.events)[:-1]


def test_a_threshold_that_fails_more_often_is_another_event():
    event = Gaussian("x", 1.0, 2.0, 1e-9)
    assert event_of(event.to_json()) == event and "failure" not in Gaussian("x", 1.0, 2.0).to_json()
    assert event.admits(replace(event, failure=0.0)) and not event.admits(replace(event, failure=2e-9))


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"delta": 0.0, "accountant": "basic"}, "privacy.delta"),
        ({"accountant": "advanced"}, "privacy.accountant"),
        ({"accountant": "basic", "mechanism": "gaussian"}, "mechanism"),
        ({"share": 0.95}, "privacy.discovery_share"),
        ({"share": -0.1}, "privacy.discovery_share"),
    ],
)
def test_what_cannot_be_paid_for_is_refused(changed, where):
    with pytest.raises(UserError) as refusal:
        planned(**changed)
    assert refusal.value.where == where


def released(outcomes, odds, tries, threshold):
    """Outcome → the exact probability that it is released; "nothing" → that there is none."""
    stop, on = Fraction(1, tries), 1 - Fraction(1, tries)
    if threshold:
        accepted = sum(p for o, p in zip(outcomes, odds, strict=True) if o[0])
        last = stop + on * accepted
        found = {o: p / last for o, p in zip(outcomes, odds, strict=True) if o[0]}
        return found | {"nothing": stop * (1 - accepted) / last}
    found = {}
    for outcome, p in zip(outcomes, odds, strict=True):
        better = sum(q for o, q in zip(outcomes, odds, strict=True) if o[1] < outcome[1])
        equal = sum(q for o, q in zip(outcomes, odds, strict=True) if o[1] == outcome[1])
        found[outcome] = stop * p / (stop + on * better) / (stop + on * (better + equal))
    return found | {"nothing": Fraction(0)}


def divergence(mine, theirs, epsilon):
    """The δ that these two distributions need at ε: Σ (p − e^ε q)⁺."""
    return math.fsum(max(0.0, float(mine[o]) - math.exp(epsilon) * float(theirs[o])) for o in mine)


def worst_pair(epsilon, delta, kinds):
    """Outcomes and the odds of each on two neighbours: an (ε, δ)-DP try that uses all of its budget.

    It is randomized response at ε, and with probability δ it tells the truth; `kinds` says for each (truth, answer)
    pair how rare the outcome is, and what its accepted flag and score are.
    """
    outcomes, left, right = [], [], []
    e = Fraction(math.exp(epsilon)).limit_denominator(10**9)  # its own ε is log(e)
    for number, (weight, flip, accepted, score) in enumerate(kinds):
        outcomes.append((accepted, score, number))
        high, low = e / (1 + e), 1 / (1 + e)
        left.append((1 - delta) * weight * (low if flip else high))
        right.append((1 - delta) * weight * (high if flip else low))
    for number, side in enumerate((left, right)):
        outcomes.append((True, -1.0, 100 + number))
        for other in (left, right):
            other.append(delta if other is side else Fraction(0))
    return outcomes, left, right, math.log(e)


#: A rare, an uncommon and a common outcome for each answer of the randomized response.
WEIGHTS = [Fraction(1, 10**7), Fraction(1, 100), 1 - Fraction(1, 100) - Fraction(1, 10**7)]


@pytest.mark.parametrize("threshold", [True, False])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("tries", [2, 10, 1000])
def test_what_is_released_stays_within_the_claim_whatever_tries_are_accepted(tries, epsilon, delta, threshold):
    """All ways to accept or to order the six outcomes of a try; the set of outcomes is the worst for each."""
    selection = PrivateSelection(tries, threshold)
    for flags in itertools.product([True, False], repeat=4):
        for ranks in [(0, 0, 1, 1), (0, 1, 1, 0), (0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 0, 3)]:
            each = enumerate(itertools.product((False, True), WEIGHTS))
            kinds = [(w, f, flags[i % 4], float(ranks[i % 4])) for i, (f, w) in each]
            outcomes, left, right, exact = worst_pair(epsilon, delta, kinds)
            claim = selection.total(PrivacyLoss(exact, float(delta)))
            for a, b in ((left, right), (right, left)):
                one, two = (released(outcomes, odds, tries, threshold) for odds in (a, b))
                assert sum(one.values()) == 1
                assert divergence(one, two, claim.epsilon) <= claim.delta + 1e-15


@pytest.mark.parametrize("threshold", [True, False])
def test_the_claim_is_nearly_attained(threshold):
    """A rare good outcome, and a commoner one that stops the tries: less than 2 % of ε is given away."""
    epsilon, tries = 1.0, 1000
    rare, common = Fraction(1, 10**9), Fraction(3, 10)
    kinds = [(rare, False, True, 1.0), (rare, True, True, 3.0)]
    kinds += [(common, False, False, 3.0), (common, True, True, 0.0 if not threshold else 1.0)]
    kinds += [(1 - common - rare, f, False, 3.0) for f in (False, True)]
    outcomes, left, right, exact = worst_pair(epsilon, Fraction(0), kinds)
    one, two = (released(outcomes, odds, tries, threshold) for odds in (left, right))
    largest = max(abs(math.log(one[o] / two[o])) for o in one if one[o] and two[o])
    claim = PrivateSelection(tries, threshold).total(PrivacyLoss(exact, 0.0))
    assert 0.98 * claim.epsilon < largest <= claim.epsilon
    assert claim.epsilon == pytest.approx((2 if threshold else 3) * epsilon)


@pytest.mark.parametrize("threshold", [True, False])
def test_delta_times_the_number_of_tries_is_nearly_attained(threshold):
    """A try that is good with probability δ on one side alone, and never else."""
    delta, tries = Fraction(1, 10**6), 1000
    kinds = [(Fraction(1), f, False, 3.0) for f in (False, True)]
    outcomes, left, right, _ = worst_pair(0.0, delta, kinds)
    mine, theirs = (released(outcomes, odds, tries, threshold) for odds in (left, right))
    found = divergence(mine, theirs, 0.0)
    assert 0.99 * float(tries * delta) < found <= float(tries * delta)


@settings(max_examples=300)
@given(
    odds=st.lists(st.integers(1, 50), min_size=4, max_size=4),
    changes=st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    flags=st.lists(st.booleans(), min_size=4, max_size=4),
    ranks=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    tries=st.integers(2, 60),
    threshold=st.booleans(),
    epsilon=st.floats(0.01, 1.5),
)
def test_any_two_tries_stay_within_the_claim_for_their_own_epsilon_and_delta(
    odds, changes, flags, ranks, tries, threshold, epsilon
):
    """Any pair of distributions, any ε: its δ is what that pair needs in the worse direction."""
    mine = [Fraction(o, sum(odds)) for o in odds]
    raw = [Fraction(o) * Fraction(2) ** c for o, c in zip(odds, changes, strict=True)]
    theirs = [r / sum(raw) for r in raw]
    outcomes = [(f, float(r), i) for i, (f, r) in enumerate(zip(flags, ranks, strict=True))]
    named = [dict(zip(outcomes, o, strict=True)) for o in (mine, theirs)]
    delta = max(divergence(*named, epsilon), divergence(*named[::-1], epsilon))
    claim = PrivateSelection(tries, threshold).total(PrivacyLoss(epsilon, delta))
    one, two = (released(outcomes, o, tries, threshold) for o in (mine, theirs))
    assert max(divergence(one, two, claim.epsilon), divergence(two, one, claim.epsilon)) <= claim.delta + 1e-12


@pytest.mark.parametrize("threshold", [True, False])
def test_the_loop_releases_what_the_formula_says(threshold):
    """All sequences of up to seven tries through `pick` itself; what is beyond has a known probability."""
    outcomes = [(True, 1.0, 0), (not threshold, 0.0, 1), (True, 1.0, 2)]
    odds, tries, longest = [Fraction(1, 5), Fraction(1, 2), Fraction(3, 10)], 2, 7
    selection = PrivateSelection(tries, threshold)
    found = dict.fromkeys([*outcomes, "nothing"], Fraction(0))
    for most in range(1, longest + 1):
        weight = Fraction(1, tries) * (1 - Fraction(1, tries)) ** (most - 1)
        for drawn in itertools.product(range(3), repeat=most):
            verdicts = [outcomes[i][1] if outcomes[i][0] else None for i in drawn]
            place = selection.pick(most, lambda n, v=verdicts: v[n - 1])
            chance = weight * math.prod((odds[i] for i in drawn), start=Fraction(1))
            found["nothing" if place is None else outcomes[drawn[place - 1]]] += chance
    exact = released(outcomes, odds, tries, threshold)
    beyond = (1 - Fraction(1, tries)) ** longest
    assert sum(found.values()) == 1 - beyond
    assert all(0 <= exact.get(o, 0) - found[o] <= beyond for o in found)


def test_a_lost_score_never_wins():
    assert PrivateSelection(5, False).pick(3, lambda n: 7.0 if n == 2 else None) == 2
    assert PrivateSelection(5, False).pick(2, lambda n: None) is None
    assert PrivateSelection(5, True).pick(2, lambda n: None) is None


@settings(max_examples=200)
@given(
    epsilon=st.floats(1e-6, 50),
    delta=st.one_of(st.just(0.0), st.floats(1e-12, 0.5)),
    tries=st.integers(1, 1000),
    threshold=st.booleans(),
)
def test_what_a_try_gets_adds_up_to_no_more_than_the_budget_and_to_nearly_all_of_it(epsilon, delta, tries, threshold):
    selection = PrivateSelection(tries, threshold)
    one = PrivacyLoss(*selection.of_one_try(epsilon, delta))
    total = selection.total(one)
    factor, times = (1, 1) if tries == 1 else (3 - threshold, tries)
    assert Fraction(one.epsilon) * factor <= Fraction(total.epsilon) <= Fraction(epsilon)
    assert Fraction(one.delta) * times <= Fraction(total.delta) <= Fraction(delta)
    assert total.epsilon >= epsilon * (1 - 1e-14)
    assert total.delta >= delta * (1 - 1e-14)


def test_the_coins_stop_as_often_as_said():
    for tries in (2, 7):
        drawn = np.array(
            [PrivateSelection(tries, True).most_tries(SeededNoise(s).stream("coins")) for s in range(4000)]
        )
        assert drawn.mean() == pytest.approx(tries, rel=0.07)
        assert (drawn == 1).mean() == pytest.approx(1 / tries, rel=0.15)
        assert drawn.min() == 1
    assert PrivateSelection(1, True).most_tries(SecureNoise().stream("coins")) == 1
    assert PrivateSelection(1000, True).most_tries(SeededNoise(3).stream("coins")) > 256, "beyond one block of coins"


def test_several_tries_are_booked_with_all_that_they_may_cost():
    """As a pair (ε, δ): never as one try's events, whatever accountant calibrated them."""
    domain = Domain((Attribute("a", 4),))
    for threshold, factor in ((True, 2), (False, 3)):
        selection = PrivateSelection(10, threshold)
        epsilon, delta = selection.of_one_try(1.0, 1e-6)
        budget = Budget(epsilon, delta, "gdp", Neighbouring.ADD_REMOVE, max_records=1)
        one = make_plan(domain, [Request(("a",))], budget, mechanism="gaussian")
        alone, booked = spend_of_plan(one), spend_of_plan(replace(one, tries=selection))
        assert (booked.epsilon, booked.delta) == pytest.approx((1.0, 1e-6))
        assert booked.slack == booked.delta
        assert alone.epsilon == pytest.approx(1 / factor)
        assert booked.mu > factor * alone.mu


def test_numbers_out_of_range_are_refused():
    for tries in (0, -1, 1001):
        with pytest.raises(UserError, match="accept_tries"):
            PrivateSelection(tries, True)
    with pytest.raises(UserError, match=r"privacy\.delta"):
        PrivateSelection(1000, True).of_one_try(1.0, 1e-28)
