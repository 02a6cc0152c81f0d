"""One promise in other terms: at another δ, for a group of units, and in the accountant's own currency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mechanisms.accounting.accountants import Accountant, PrivacyLoss, make_accountant, zcdp_epsilon
from mechanisms.accounting.adaptive import AdaptivePlan, AnyPlan
from mechanisms.accounting.events import Event, Gaussian, Laplace
from mechanisms.accounting.gaussian_curve import gaussian_epsilon
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.accounting.spend import spend_of_plan
from mechanisms.public.units import Delta, Mu, delta, round_up

#: The δ at which every statement says its ε, so that two of them can be compared.
DELTAS = (1e-5, 1e-6, 1e-9)
#: Sizes of the groups that a statement names.
GROUPS = (2, 5, 10)


def worst_case(plan: AnyPlan) -> tuple[Event, ...]:
    """What the guarantee of one try composes: all that the plan may charge, whatever part of it a run uses.

    A part of it would be no guarantee: how much is charged may depend on answers. With a purse it is all that the
    ledger's filter lets through, as one event.
    """
    if not isinstance(plan, AdaptivePlan) or plan.purse is None:
        return plan.events
    most = spend_of_plan(replace(plan, selection=ONE_TRY))
    if plan.accountant.kind == "gdp":
        return (Gaussian("all", most.mu, 1.0),)
    if plan.accountant.kind == "zcdp":
        return (Gaussian("all", math.sqrt(2 * most.rho), 1.0),)
    return (Laplace("all", plan.epsilon, 1.0),)


def guarantee(plan: AnyPlan) -> PrivacyLoss:
    """The (ε, δ) of everything that the plan may charge, in all its tries; never more than what the ledger keeps to."""
    loss = plan.accountant.loss(worst_case(plan))
    return plan.selection.total(PrivacyLoss(min(loss.epsilon, plan.epsilon), min(loss.delta, plan.delta)))


def slots_of(accountant: Accountant) -> int:
    """Over how many Gaussian events the accountant splits its δ; 0 where it does not."""
    return int(getattr(accountant, "slots", 0))


def original(accountant: Accountant, events: Sequence[Event]) -> dict[str, float]:
    """The composition before any δ is chosen: μ (gdp) or ρ (zcdp), rounded up; empty for the other accountants."""
    name = {"gdp": "mu", "zcdp": "rho"}.get(accountant.kind)
    if name is None:
        return {}
    power = 2 if name == "mu" else 1
    total = math.fsum(accountant.cost(e)[name] ** power for e in events)
    return {name: _up(math.sqrt(total) if power == 2 else total)}


def epsilon_of(kind: str, value: float, at: Delta) -> float:
    """ε at δ of a μ (Dong, Roth & Su 2019, corollary 2.13) or ρ (Bun & Steinke 2016, proposition 1.3), rounded up."""
    return gaussian_epsilon(Mu(value), at) if kind == "gdp" else zcdp_epsilon(value, at)


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
    again = make_accountant(accountant.kind, delta=each, slots=slots_of(accountant))
    return _total(selection, again.loss(events)).epsilon


def group_loss(
    accountant: Accountant, events: Sequence[Event], units: int, selection: PrivateSelection = ONE_TRY
) -> PrivacyLoss:
    """The (ε, δ) that holds for `units` units at once, rounded up.

    μ grows k-fold (Dong, Roth & Su 2019, theorem 2.14), ρ k²-fold (Bun & Steinke 2016, proposition 1.9), both at the
    same δ; (ε, δ) becomes (kε, δ (e^{kε} − 1)/(e^ε − 1)) (Vadhan 2017, lemma 2.2).
    """
    own, loss = original(accountant, events), _total(selection, accountant.loss(events))
    if selection.tries == 1 and own and loss.delta > 0:
        value = own["mu"] * units if "mu" in own else own["rho"] * units**2
        return PrivacyLoss(epsilon_of(accountant.kind, _up(value), delta(loss.delta)), loss.delta)
    epsilon = _up(units * loss.epsilon)
    if loss.delta == 0 or loss.epsilon == 0:
        return PrivacyLoss(epsilon, _up(units * loss.delta))
    if not epsilon < 700:  # e^{kε} is no float
        return PrivacyLoss(epsilon, 1.0)
    return PrivacyLoss(epsilon, min(_up(loss.delta * math.expm1(epsilon) / math.expm1(loss.epsilon)), 1.0))


def _total(selection: PrivateSelection, one: PrivacyLoss) -> PrivacyLoss:
    return selection.total(one) if math.isfinite(one.epsilon) else one


def _up(value: float) -> float:
    return round_up(value * (1 + 1e-10)) if value > 0 else 0.0
