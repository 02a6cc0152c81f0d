"""From shares of a budget to events: one multiplier is searched so that the accountant's total stays within (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NOISE_EVENTS, Event, Exponential, Laplace, with_failure
from mechanisms.accounting.plugin_costs import blamed
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.units import round_down, round_up

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
