"""Charges for what is discovered: thresholds by exact calculation, a fixed part of the budget, totals that add up."""

import math
from dataclasses import replace

import pytest
from mpmath import erfc as mp_erfc
from mpmath import mp, mpf

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Gaussian, booked_event, event_of
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.planned_discovery import plan_discovery
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.accounting.restatements import guarantee, worst_case
from mechanisms.accounting.spend import spend_of_plan
from mechanisms.accounting.thresholds import safe_failure, safe_threshold, weight_of
from mechanisms.public.discovery.leaf_tree import LeafTree
from mechanisms.public.discovery.wanted import Wanted, union_sensitivity
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS, Neighbouring

UNIT = 2.0**WEIGHT_BITS
TOWN = Domain((Attribute("a", 5), Attribute("b", 7)))
WANTED = (
    Wanted("a", ("bounds",), LeafTree(40, 1)),
    Wanted("b", ("values",)),
    Wanted("c", ("values",)),
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
        promise, spend = guarantee(rest), spend_of_plan(rest)
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
