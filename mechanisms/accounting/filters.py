"""The limits of one run in every currency of a ledger, and of several runs on the same people: two privacy filters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import OWN_ACCOUNTANTS, accountant_class
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.currencies import MARGIN, Currency, above
from mechanisms.accounting.events import Event, Laplace
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.thresholds import delta_left, failures
from mechanisms.public import units
from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.files import Json, is_number
from mechanisms.public.units import MIN_DELTA, Delta, Epsilon, round_down, round_up

#: The accountant of a ledger where nobody names one.
USUAL = Gdp.kind
#: No run spends more, in any currency: ε has a bound far below, and ρ grows with its square.
MOST_AMOUNT = 1e100


@dataclass(frozen=True)
class Limit:
    """What all runs together may cost: (ε, δ)."""

    epsilon: float
    delta: float

    @classmethod
    def of(cls, value: object, where: str) -> Limit:
        """A limit as a person writes it.

        Raises:
            UserError: not a mapping of epsilon and delta, or one of them out of range.
        """
        fix = f"{where}='{{epsilon: 3, delta: 1e-6}}'"
        if not isinstance(value, Mapping) or set(value) != {"epsilon", "delta"}:
            raise UserError(f"got {value!r}, but a limit is an epsilon and a delta", where=where, fix=fix)
        for number in value.values():
            if not is_number(number):
                raise UserError(f"got {number!r}, but a limit is made of numbers", where=where, fix=fix)
        amounts = {k: float(v) for k, v in value.items()}
        eps = units.epsilon(amounts["epsilon"], where=f"{where}.epsilon")
        return cls(eps, units.delta(amounts["delta"], where=f"{where}.delta"))

    def above(self, other: Limit) -> bool:
        """Whether any part of it is above the other's."""
        return self.epsilon > other.epsilon or self.delta > other.delta

    def to_json(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class Totals:
    """What was booked, by both filters.

    Attributes:
        epsilon, delta: the plain sums.
        composed: ε by the accountant at its part of the limit's δ; infinite where it has none.
    """

    epsilon: float
    delta: float
    composed: float

    def to_json(self) -> dict[str, float | None]:
        composed = self.composed if math.isfinite(self.composed) else None
        return {"epsilon_sum": self.epsilon, "delta_sum": self.delta, "epsilon_composed": composed}


@dataclass(frozen=True)
class Filter:
    """Two privacy filters over what runs book: a run is let in where either holds.

    Guarantee: whoever starts runs only where `admits` holds for all that is booked, the new run included, releases
        something (ε, δ)-DP in all, with the limit's ε and δ, however each run depends on the releases before it.

    Each of the two holds where the costs of later runs depend on earlier answers:

    - The plain sums, Σ ε_i ≤ ε and Σ δ_i ≤ δ/2: (ε, δ/2) (Rogers et al. 2016, basic composition).
    - The accountant's: √(Σ μ_i²)-GDP (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023) or Σ ρ_i-zCDP (Feldman
      & Zrnic 2021), converted to ε at (1/2 − s) δ, where s is the part of δ kept for slack, and Σ slack_i ≤ s δ.
      A run's slack is the probability that it leaves its μ or ρ: where each step is, given the past, a mixture that is
      good with probability 1 − slack_i, some step is bad with probability at most s δ, the bound on every path; the
      good parts on two neighbouring tables, weighted by equal factors (1 − slack_i), are an interaction that the filter
      of μ or ρ covers (Whitehouse et al. 2023 for zCDP). Both bounds are fixed when the ledger is made: where unused
      slack went to the conversion, an analyst could take the one on some paths and the other on the rest, and reach
      nearly twice the δ.

    A run is let in where either holds. Both totals grow with every booking, so that on each path of the interaction one
    of them held from its beginning to its end. Let A be the interaction that ends before the sums would exceed their
    bounds, B the one that ends before the accountant's total would. Every outcome of the real one in which the sums
    held has the probability that it has in A, every other one that of B: for any set S of outcomes,
    P(S) = P_A(S ∩ sums) + P_B(S ∖ sums) ≤ e^ε P′_A(S ∩ sums) + δ/2 + e^ε P′_B(S ∖ sums) + δ/2 = e^ε P′(S) + δ.

    What a run books is the worst case of what it may do, and is fixed when it books: runs at work at the same time are
    an interaction in the order of their bookings.

    Attributes:
        kind: an accountant that is a filter; one without a currency (basic) has the sums alone.
        slack: s, the part of the limit's δ that is kept for runs of which only (ε, δ) is known; with 0, the sums alone
            count for everything once such a run with δ > 0 is booked.
    """

    kind: str
    slack: float = 0.0

    def __post_init__(self) -> None:
        serving = [each.kind for each in OWN_ACCOUNTANTS if each.is_filter]
        if self.kind not in serving:
            fix = f"{choices_fix(self.kind, serving)}, which have a privacy filter"
            raise UserError(f"got {self.kind!r}", where="budget.accountant", fix=fix)
        if isinstance(self.slack, bool) or not 0 <= self.slack <= 0.4:
            fix = "a part of the limit's delta, 0 to 0.4"
            raise UserError(f"got {self.slack}", where="budget.slack", fix=fix)

    @property
    def currency(self) -> Currency | None:
        """What it adds up beside the plain sums; None: nothing."""
        return accountant_class(self.kind).currency

    def admits(self, spends: Sequence[Spend], limit: Limit) -> bool:
        """Whether runs that booked all this stay within the limit, by one filter or the other."""
        epsilon, delta = _sums(spends)
        if epsilon <= _exact(limit.epsilon) and delta <= _exact(limit.delta) / 2:
            return True
        return self.currency is not None and self.composed(spends, limit) <= limit.epsilon

    def totals(self, spends: Sequence[Spend], limit: Limit) -> Totals:
        """What the spends add up to."""
        epsilon, delta = _sums(spends)
        return Totals(float(epsilon), float(delta), self.composed(spends, limit))

    def composed(self, spends: Sequence[Spend], limit: Limit) -> float:
        """ε of all spends by the accountant at its part of δ, rounded up; infinite where that has no room for them."""
        if not spends:
            return 0.0
        currency = self.currency
        if currency is None:
            epsilon, delta = _sums(spends)
            return float(epsilon) if delta <= _exact(limit.delta) / 2 else math.inf
        at, strength = self._delta(spends, limit), self._strength(spends)
        if at is None or not math.isfinite(strength):
            return math.inf
        return currency.epsilon(strength, at)

    def room(self, spends: Sequence[Spend], limit: Limit) -> Room:
        """What is left, to be shown: rounded down, but only `admits` decides."""
        epsilon, delta = _sums(spends)
        left = _exact(limit.epsilon) - epsilon, _exact(limit.delta) / 2 - delta
        plain = (float(left[0]), float(left[1])) if min(left) >= 0 else (0.0, 0.0)
        strength, currency, at = 0.0, self.currency, self._delta(spends, limit)
        if currency is not None and at is not None:
            strength = currency.left(currency.largest(limit.epsilon, at), self._strength(spends))
        return Room(currency, *plain, round_down(strength) if strength > 0 else 0.0)

    def _delta(self, spends: Sequence[Spend], limit: Limit) -> Delta | None:
        """The δ at which the accountant is asked; None where there is none, or slack beyond its part."""
        part = _exact(self.slack) * _exact(limit.delta)
        if sum((_exact(s.slack) for s in spends), Fraction()) > part:
            return None
        left = float(_exact(limit.delta) / 2 - part)
        return Delta(left) if left >= MIN_DELTA else None

    def _strength(self, spends: Sequence[Spend]) -> float:
        """All spends in the currency, rounded up."""
        currency = self.currency
        if not spends or currency is None:
            return 0.0
        return round_up(currency.total(s.within(currency) for s in spends))


@dataclass(frozen=True)
class Room:
    """What one more run may book: by the plain sums, or by the accountant; 0 where nothing is left.

    Attributes:
        currency: of the filter; None: the plain sums alone.
        epsilon, delta: by the plain sums.
        strength: in the currency.
    """

    currency: Currency | None
    epsilon: float
    delta: float
    strength: float

    def epsilon_at(self, delta: float) -> float:
        """The ε of one more run with that δ whose own accountant is the ledger's, the better of both filters."""
        plain = self.epsilon if delta <= self.delta else 0.0
        if not delta or not self.strength or self.currency is None:
            return plain
        return max(plain, self.currency.epsilon(self.strength, Delta(delta)))

    def to_json(self) -> dict[str, float]:
        strength = {} if self.currency is None else {self.currency.name: self.strength}
        return {"epsilon_sum": self.epsilon, "delta_sum": self.delta, **strength}


def _exact(value: float) -> Fraction:
    """The decimal number that a person wrote: thirty runs of 0.1 make 3.

    It differs from the float by less than 2⁻⁵³ of it; each run's own total was rounded up by a part in 10¹⁰.
    """
    return Fraction(Decimal(repr(value)))


def _sums(spends: Sequence[Spend]) -> tuple[Fraction, Fraction]:
    """Σ ε_i and Σ δ_i, exactly: no order of the runs matters."""
    zero = Fraction()
    return sum((_exact(s.epsilon) for s in spends), zero), sum((_exact(s.delta) for s in spends), zero)


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

    @classmethod
    def of(cls, entry: Json) -> Spend:
        """A spend as a file has it, null where there is no bound.

        Raises:
            LookupError, ValueError: a part that is missing, or that no run spends.
        """
        amounts = {f.name: entry[f.name] for f in fields(cls)}
        for name, amount in amounts.items():
            if amount is None and name in ("mu", "rho"):
                amounts[name] = math.inf
            elif not is_number(amount) or not 0 <= amount <= MOST_AMOUNT:
                raise ValueError(f"{name} is {amount!r}")
        return cls(**amounts)

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
