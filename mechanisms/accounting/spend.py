"""What one run may cost at most, in every currency that a ledger of several runs can count in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.currencies import MARGIN, Currency, above
from mechanisms.accounting.events import Event, Laplace
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.thresholds import delta_left, failures
from mechanisms.public import units
from mechanisms.public.units import Delta, Epsilon, round_up

#: The accountants' costs of one event do not depend on δ.
_ANY = Delta(0.5)


@dataclass(frozen=True)
class Spend:
    """The worst case of one run, fixed before any of its noise is drawn.

    Guarantee: as a whole the run is (ε, δ)-DP; and outside of events of probability `slack` (in the sense of
        δ-approximate DP, Bun & Steinke 2016, section 8) it is μ-GDP and ρ-zCDP.

    Attributes:
        epsilon, delta: what the run promises by its own accountant; where that is a plugin's, no less than ours count.
        mu, rho: what its mechanisms cost, whatever its own accountant says about them; infinite without a bound.
        slack: the part of δ that μ and ρ do not contain.
    """

    epsilon: float
    delta: float
    mu: float
    rho: float
    slack: float = 0.0

    def within(self, currency: Currency) -> float:
        """What the mechanisms cost in that currency."""
        return {"mu": self.mu, "rho": self.rho}[currency.name]


def spend_of_pair(epsilon: float, delta: float) -> Spend:
    """The spend of something of which only (ε, δ) is known.

    It is δ-approximately ε-DP (Kairouz, Oh & Viswanath 2015; Bun & Steinke 2016, lemma 8.8): the pure part costs what a
    pure event of that ε costs, and δ is slack.

    Raises:
        UserError: ε or δ out of range.
    """
    eps, dlt = units.epsilon(epsilon, where="epsilon"), units.delta(delta, where="delta")
    mu, rho = _composed([Laplace("", eps, 1.0)])
    return Spend(eps, dlt, mu, rho, slack=dlt)


def spend_of_plan(plan: Plan) -> Spend:
    """The spend of a run that keeps to its plan; of one with several tries, that of all that there may be.

    μ and ρ are the composition of the slots' worst cases: the mechanisms are what they are, whichever accountant
    calibrated them, and their own δ (basic, advanced) is a matter of that accountant alone.

    A reserve is spent in parts that depend on answers; the run's ledger stops it where the run's own accountant reaches
    (ε, δ), so that the whole run, slots and reserve together, is bounded by the most that this accountant lets through:

    - with a currency: `whole_run` of it, where the proofs stand.
    - without: the whole run is (ε, δ)-DP and nothing more is used.

    So is a run that discovers: the plan of the rest is made from noisy answers. What its thresholds let through is
    slack: they fail with at most that probability, and all else is as without them.

    Raises:
        UserError: an accountant of a plugin's calibrated events of which ours know no bound.
    """
    budget, epsilon = plan.budget, plan.budget.epsilon
    delta = budget.delta if plan.loss.delta > 0 else 0.0
    if type(plan.accountant) not in OWN_ACCOUNTANTS:
        epsilon, delta = units.epsilon(max(epsilon, _own_epsilon(plan)), where="privacy.accountant"), budget.delta
    if plan.tries.several:  # private selection is known by its (ε, δ) alone
        total = plan.tries.total(PrivacyLoss(epsilon, delta))
        return spend_of_pair(total.epsilon, total.delta)
    if not plan.open_ended:
        mu, rho = _composed(plan.events)
        return Spend(epsilon, delta, mu, rho)
    currency = plan.accountant.currency
    if currency is None:
        return spend_of_pair(epsilon, delta)
    slack, left = failures(plan.events), delta_left(budget.delta, plan.events)
    return Spend(epsilon, delta, *currency.whole_run(Epsilon(epsilon), left), slack)


def _own_epsilon(plan: Plan) -> float:
    """The least ε that accountants of ours know of all that a plan may charge, at its δ."""
    pure = above(math.fsum(e.epsilon_alone for e in plan.composed))
    if not plan.budget.delta:
        return pure
    return min(pure, *(ours(Delta(plan.budget.delta)).loss(plan.composed).epsilon for ours in (Gdp, Zcdp)))


def _composed(events: tuple[Event, ...] | list[Event] | list[Laplace]) -> tuple[float, float]:
    """μ and ρ of all events together, rounded up."""
    gdp, zcdp = Gdp(_ANY), Zcdp(_ANY)
    mu = math.sqrt(math.fsum(gdp.cost(e)["mu"] ** 2 for e in events))
    rho = math.fsum(zcdp.cost(e)["rho"] for e in events)
    return round_up(mu * (1 + MARGIN)), round_up(rho * (1 + MARGIN))
