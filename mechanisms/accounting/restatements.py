"""One promise in other terms: at another δ, for a group of units, and in the accountant's own currency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import make_accountant
from mechanisms.accounting.currencies import above
from mechanisms.accounting.events import Event, Laplace
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.accounting.thresholds import delta_left, failures
from mechanisms.public.units import MIN_DELTA, Epsilon, delta

#: The δ at which every statement says its ε, so that two of them can be compared.
DELTAS = (1e-5, 1e-6, 1e-9)
#: Sizes of the groups that a statement names.
GROUPS = (2, 5, 10)


def worst_case(plan: Plan) -> tuple[Event, ...]:
    """What the guarantee of one try composes: all that the plan may charge, whatever part of it a run uses.

    A part of it would be no guarantee: how much is charged may depend on answers. With a reserve, or where the plan of
    the rest follows from what was discovered, it is all that the ledger lets through, as one event.
    """
    if not plan.open_ended:
        return plan.events
    return all_of_budget(plan.accountant, plan.budget.whole, failures(plan.events))


def all_of_budget(accountant: Accountant, most: PrivacyLoss, failure: float = 0.0) -> tuple[Event, ...]:
    """All that an accountant's filter lets through within (ε, δ), as one event.

    Args:
        most: ε and δ.
        failure: the part of δ that thresholds take.
    """
    currency = accountant.currency
    if currency is None:
        return (Laplace("all", most.epsilon, 1.0, failure),)
    mu, rho = currency.whole_run(Epsilon(most.epsilon), delta_left(most.delta, [Laplace("", 1.0, 1.0, failure)]))
    return (replace(currency.event("all", {"mu": mu, "rho": rho}[currency.name]), failure=failure),)


def guarantee(plan: Plan) -> PrivacyLoss:
    """The (ε, δ) of everything that the plan may charge, in all its tries; never more than what the ledger keeps to."""
    loss, most = plan.accountant.loss(worst_case(plan)), plan.budget
    return plan.tries.total(PrivacyLoss(min(loss.epsilon, most.epsilon), min(loss.delta, most.delta)))


def original(accountant: Accountant, events: Sequence[Event]) -> dict[str, float]:
    """The composition before any δ is chosen: μ (gdp) or ρ (zcdp), rounded up; empty for the other accountants."""
    currency = accountant.currency
    if currency is None or failures(events):  # with a threshold there is no currency for all of it
        return {}
    return {currency.name: above(currency.total(accountant.cost(e)[currency.name] for e in events))}


def epsilon_at(
    accountant: Accountant, events: Sequence[Event], at: float, selection: PrivateSelection = ONE_TRY
) -> float:
    """ε of the composition at another δ, by the same accountant; infinite where it has no bound.

    Args:
        at: the δ, above 0.
        selection: of tries of these events; what holds for a try at its part of δ holds for all at δ.
    """
    if not events:
        return 0.0
    each = selection.of_one_try(1.0, at)[1]
    if failures(events) and not each - failures(events) >= MIN_DELTA:
        return math.inf
    again = make_accountant(accountant.kind, delta=delta_left(each, events), slots=accountant.slots)
    return _total(selection, again.loss(events)).epsilon


def group_loss(
    accountant: Accountant, events: Sequence[Event], units: int, selection: PrivateSelection = ONE_TRY
) -> PrivacyLoss:
    """The (ε, δ) that holds for `units` units at once, rounded up.

    μ and ρ grow as `of_group` says, at the same δ; (ε, δ) becomes (kε, δ (e^{kε} − 1)/(e^ε − 1)) (Vadhan 2017, lemma
    2.2).
    """
    currency, loss = accountant.currency, _total(selection, accountant.loss(events))
    if not selection.several and currency is not None and loss.delta > 0 and not failures(events):
        value = currency.of_group(original(accountant, events)[currency.name], units)
        return PrivacyLoss(currency.epsilon(above(value), delta(loss.delta)), loss.delta)
    epsilon = above(units * loss.epsilon)
    if loss.delta == 0 or loss.epsilon == 0:
        return PrivacyLoss(epsilon, above(units * loss.delta))
    if not epsilon < 700:  # e^{kε} is no float
        return PrivacyLoss(epsilon, 1.0)
    return PrivacyLoss(epsilon, min(above(loss.delta * math.expm1(epsilon) / math.expm1(loss.epsilon)), 1.0))


def _total(selection: PrivateSelection, one: PrivacyLoss) -> PrivacyLoss:
    return selection.total(one) if math.isfinite(one.epsilon) else one
