"""The budget of a plan and for whom it holds, events calibrated to its shares, and the noise with the least error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.registered import (
    ACCOUNTANTS,
    OWN_ACCOUNTANTS,
    accountant_class,
    serves_as_filter,
)
from mechanisms.accounting.events import NOISE_EVENTS, Event, Exponential, Laplace, with_failure
from mechanisms.accounting.plugin_costs import blamed
from mechanisms.accounting.thresholds import MayFail, delta_left
from mechanisms.public import units
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.files import JsonDict
from mechanisms.public.noise_kinds import AUTO, NOISE_KINDS, NoiseKind, possible_kinds
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, sensitivity
from mechanisms.public.units import Neighbouring, Norm, round_down, round_up


class Movable(Protocol):
    """A question that knows how far its answers move."""

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float: ...


@dataclass(frozen=True)
class Budget:
    """The terms of a promise.

    Attributes:
        epsilon, delta: of all charges together; of several tries, of each.
        accountant: its name; settings may leave it open (auto), a plan has chosen one.
        neighbouring: which two tables are compared.
        max_records: C, the largest total weight of one unit.
    Raises:
        UserError: a parameter out of range.
    """

    epsilon: float
    delta: float
    accountant: str
    neighbouring: Neighbouring
    max_records: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", units.epsilon(self.epsilon))
        object.__setattr__(self, "delta", units.delta(self.delta))
        if self.max_records < 1:
            raise UserError(f"got {self.max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")

    @property
    def whole(self) -> PrivacyLoss:
        """All of it, as a loss."""
        return PrivacyLoss(self.epsilon, self.delta)

    def keeper(self, kinds: Iterable[NoiseKind], charged: Sequence[MayFail]) -> Accountant:
        """The accountant of these charges: it has the δ that their thresholds leave, and splits it if it has to.

        Args:
            kinds: of the noise of each charge that is no choice.
            charged: all charges, with those that came before.
        Raises:
            UserError: no such accountant, or one of a plugin that `of` does not make; δ = 0 where it needs more, or
                nothing left of δ.
        """
        slots, own = sum(not NOISE_KINDS[kind].pure for kind in kinds), accountant_class(self.accountant)
        if isinstance(keeper := own.of(delta_left(self.delta, charged), slots), own):
            return keeper
        whose, gave = f"a plugin's accountant {self.accountant!r} (module {own.__module__})", type(keeper).__name__
        raise UserError(f"{whose}: of() gave {gave}", where="privacy.accountant", fix=f"return a {own.__name__}")

    def moved(self, asked: Movable, norm: Norm) -> float:
        """The most by which answers to a question move when one unit changes, in its own unit."""
        return asked.sensitivity(norm=norm, neighbouring=self.neighbouring, max_records=self.max_records)

    def sensitivity(self, query: QueryMatrix, norm: Norm) -> float:
        """The most by which answers to a query over one marginal move when one unit changes, in records."""
        return sensitivity(query, norm=norm, neighbouring=self.neighbouring, max_records=self.max_records)

    def distances_bound(self, count: int, norm: Norm) -> float:
        """How far that many L1 distances to fixed marginals move together when a unit changes, in records; rounded up.

        Each moves by at most the L1 change of its marginal, Δ = C under add_remove and 2C under replace (derived at
        `noisy_scores`); together by m · Δ in L1 and √m · Δ in L2.
        """
        return units.joint_sensitivity(self.sensitivity(Identity(2), "l1"), count, norm)


#: The smallest level that is searched.
LEAST = 1e-9


@dataclass(frozen=True)
class Charge:
    """What is to be calibrated.

    Attributes:
        id: the ledger's name for it.
        noise: its kind; None for a choice by the exponential mechanism.
        bound: the sensitivity of the answers, in records; unused by a choice.
        share: its part of the budget, in the accountant's additive currency.
        failure: the part of δ of a threshold on the answers.
    """

    id: str
    noise: NoiseKind | None
    bound: float
    share: float
    failure: float = 0.0


def calibrate(charges: Sequence[Charge], budget: Budget, *, before: Sequence[Event] = ()) -> tuple[Event, ...]:
    """Each charge's event, such that all together cost at most (ε, δ); the search ends on the noisier side.

    Shares are parts of ε (basic), ε² (advanced), ρ (zcdp) or μ² (gdp).

    Args:
        before: what is charged before these, and counts with them.
    Raises:
        UserError: the budget is too small for any noise; what `Budget.keeper` refuses.
    """
    noises = [c.noise for c in charges if c.noise is not None]
    accountant = budget.keeper(noises, [*before, *charges])
    with blamed(accountant, [NOISE_EVENTS[kind] for kind in noises]):
        return _within(accountant, charges, budget, before)


def _within(
    accountant: Accountant, charges: Sequence[Charge], budget: Budget, before: Sequence[Event]
) -> tuple[Event, ...]:
    """The search of `calibrate`, by an accountant that may be of others."""

    def events_at(level: float) -> tuple[Event, ...]:
        return tuple(_event(c, accountant, _strength(c, accountant, level)) for c in charges)

    def fits(level: float) -> bool:
        stand_ins = [_stand_in(c, accountant, _strength(c, accountant, level)) for c in charges]
        return accountant.loss([*before, *stand_ins]).epsilon <= budget.epsilon

    level = _largest(fits)
    events, step = events_at(level), 1e-9
    # rounding up: one part in 10⁹
    while (loss := accountant.loss([*before, *events])).epsilon > budget.epsilon or loss.delta > budget.delta:
        level, step = level * (1 - step), min(2 * step, 0.5)
        if level < LEAST:
            raise _too_small()
        events = events_at(level)
    return events


def _strength(charge: Charge, accountant: Accountant, level: float) -> float:
    """ε_i or μ_i: level · share where ε adds up (basic), level · √share where squares do; a choice's ε is its own."""
    strength = round_down(level * accountant.strength(charge.share))
    return accountant.choice_epsilon(strength) if charge.noise is None else strength


def _stand_in(charge: Charge, accountant: Accountant, strength: float) -> Event:
    """An event of the same cost: where Gaussian events count by (ε_i, δ_i), the pure event of the same ε_i."""
    if charge.noise is None:
        return Exponential("", strength)
    if accountant.delta_each is not None:
        return Laplace("", strength, 1.0)
    return NOISE_EVENTS[charge.noise]("", strength, 1.0)


def _event(charge: Charge, accountant: Accountant, strength: float) -> Event:
    """The event of that strength: scale = Δ / strength, as the accountant counts that kind of noise."""
    if charge.noise is None:
        return Exponential(charge.id, strength)
    each = accountant.noise_strength(NOISE_KINDS[charge.noise], strength)
    event = NOISE_EVENTS[charge.noise](charge.id, charge.bound, round_up(charge.bound / each))
    return with_failure(event, charge.failure) if charge.failure else event


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest level that fits, to one part in 10⁹, from below."""
    low, high = LEAST, LEAST
    while fits(high) and high < 1e12:
        low, high = high, high * 4
    if high >= 1e12:
        raise UserError("ε is too large to calibrate", where="privacy.epsilon", fix="an ε of at most 100 or so")
    if low == high:
        raise _too_small()
    while high / low > 1 + 1e-10:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _too_small() -> UserError:
    return UserError("the budget is too small for this plan", where="privacy.epsilon", fix="a larger ε")


#: Shares of what adds up in squares of strengths, as a power of a marginal's total noise: PrivSyn's optimum.
POWER = 2 / 3


@dataclass(frozen=True)
class Pair:
    """A kind of noise, and the accountant that counts it."""

    noise: NoiseKind
    accountant: str

    def of(self, budget: Budget) -> Budget:
        """The budget under this accountant."""
        return replace(budget, accountant=self.accountant)


@dataclass(frozen=True)
class PairNoise:
    """How much noise a plan has under a pair.

    Attributes:
        stddev: of the noise of a cell, in records: the mean over all cells, each by the weight of its marginal.
    """

    pair: Pair
    stddev: float

    def to_json(self) -> JsonDict:
        return {"mechanism": self.pair.noise, "accountant": self.pair.accountant, "stddev": self.stddev}


def possible_pairs(
    mechanism: str,
    budget: Budget,
    *,
    noise_alone: bool = False,
    reserve: bool = False,
    squares: bool = False,
) -> tuple[Pair, ...]:
    """The pairs that the settings leave to choose from, those of pure noise first.

    `auto` stands for all of ours that serve at this δ: δ = 0 leaves basic composition of pure noise.

    Args:
        noise_alone: whether the plan is noise of one kind, without choices. Then an accountant that is exact for a kind
            leaves the others nothing to win with it.
        reserve: whether only pairs serve that have a privacy filter, for charges whose number and sizes depend on
            answers; where none has, all are returned, for `check_filter` to refuse.
        squares: whether only accountants serve whose costs are squares of strengths.
    Raises:
        UserError: no such kind, or no such accountant.
    """
    kinds = possible_kinds(mechanism, delta=budget.delta)
    names = [one_of(budget.accountant, (*ACCOUNTANTS, AUTO), "privacy.accountant")]
    best: dict[NoiseKind, str] = {}
    if budget.accountant == AUTO:
        ours = [a for a in OWN_ACCOUNTANTS if budget.delta > 0 or a is Basic]
        names = [a.kind for a in ours]
        best = {a.natural_noise: a.kind for a in ours if noise_alone and a.is_exact}
    pairs = tuple(Pair(kind, name) for kind in kinds for name in names if best.get(kind, name) == name)
    serving = tuple(p for p in pairs if serves_as_filter(p.accountant, p.noise, squares=squares))
    return (serving or pairs) if reserve else pairs


def shares_power(pair: Pair, setting: str) -> float:
    """The power of a marginal's total noise that its share of the budget is in proportion to.

    The one with the least error where the accountant was left open; where it is named, that of squares for all, so that
    a split of the budget means the same under every accountant.
    """
    return accountant_class(pair.accountant).best_power if setting == AUTO else POWER


def mean_stddev(loads: Sequence[float], stddevs: Sequence[float]) -> float:
    """The mean standard deviation of marginals' cells, each marginal by its load."""
    return math.fsum(n * s for n, s in zip(loads, stddevs, strict=True)) / math.fsum(loads)
