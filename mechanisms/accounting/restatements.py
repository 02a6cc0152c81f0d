"""One promise in other terms: at another δ, for a group of units, and in the accountant's own currency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import accountant_class
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


@dataclass(frozen=True)
class Composition:
    """What a promise composes: the charges of one try, and the rule by which tries compose.

    Attributes:
        accountant: who adds up the charges.
        events: the charges of a try.
        tries: the rule; what holds for a try at its part of δ holds for all at δ.
    """

    accountant: Accountant
    events: Sequence[Event]
    tries: PrivateSelection = ONE_TRY

    def within(self, most: PrivacyLoss) -> PrivacyLoss:
        """The (ε, δ) of all tries, each of which the ledger keeps within `most`."""
        loss = self.accountant.loss(self.events)
        return self.tries.total(PrivacyLoss(min(loss.epsilon, most.epsilon), min(loss.delta, most.delta)))

    @property
    def original(self) -> dict[str, float]:
        """The composition before any δ is chosen: μ (gdp) or ρ (zcdp), rounded up; empty where there is none.

        None is known of other accountants, of several tries, and of charges with a threshold.
        """
        currency = self.accountant.currency
        if currency is None or self.tries.several or failures(self.events):
            return {}
        return {currency.name: above(currency.total(self.accountant.cost(e)[currency.name] for e in self.events))}

    def epsilon_at(self, at: float) -> float:
        """ε at another δ, above 0, by the same accountant; infinite where it has no bound."""
        if not self.events:
            return 0.0
        each = self.tries.of_one_try(1.0, at)[1]
        if failures(self.events) and not each - failures(self.events) >= MIN_DELTA:
            return math.inf
        own = self.accountant
        again = accountant_class(own.kind).of(delta_left(each, self.events), own.slots)
        return self._total(again.loss(self.events)).epsilon

    def promised_at(self, at: float, promise: PrivacyLoss) -> float:
        """The same; what is (ε, δ)-DP is so at every larger δ, and `epsilon_at` rounds up."""
        return min(self.epsilon_at(at), promise.epsilon if at >= promise.delta else math.inf)

    def of_group(self, units: int) -> PrivacyLoss:
        """The (ε, δ) that holds for `units` units at once, rounded up.

        μ and ρ grow as `of_group` says, at the same δ; (ε, δ) becomes (kε, δ (e^{kε} − 1)/(e^ε − 1)) (Vadhan 2017,
        lemma 2.2).
        """
        loss, currency = self._total(self.accountant.loss(self.events)), self.accountant.currency
        if currency is not None and loss.delta > 0 and (own := self.original):
            value = currency.of_group(own[currency.name], units)
            return PrivacyLoss(currency.epsilon(above(value), delta(loss.delta)), loss.delta)
        epsilon = above(units * loss.epsilon)
        if loss.delta == 0 or loss.epsilon == 0:
            return PrivacyLoss(epsilon, above(units * loss.delta))
        if not epsilon < 700:  # e^{kε} is no float
            return PrivacyLoss(epsilon, 1.0)
        return PrivacyLoss(epsilon, min(above(loss.delta * math.expm1(epsilon) / math.expm1(loss.epsilon)), 1.0))

    def _total(self, one: PrivacyLoss) -> PrivacyLoss:
        return self.tries.total(one) if math.isfinite(one.epsilon) else one


def worst_case(plan: Plan) -> Composition:
    """What the guarantee composes: all that the plan may charge in a try, whatever part of it a run uses.

    A part of it would be no guarantee: how much is charged may depend on answers. With a reserve, or where the plan of
    the rest follows from what was discovered, it is all that the ledger lets through, as one event.
    """
    events = plan.events
    if plan.open_ended:
        events = all_of_budget(plan.accountant, plan.budget.whole, failures(plan.events))
    return Composition(plan.accountant, events, plan.tries)


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
