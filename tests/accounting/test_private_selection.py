"""Choosing among releases: the exact probabilities of what comes out, on neighbours, against what is claimed."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.accounting.spend import spend_of_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.noise import SecureNoise, SeededNoise


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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=200, deadline=None)
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
