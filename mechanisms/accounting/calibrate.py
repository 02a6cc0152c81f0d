"""From shares of a budget to events: one multiplier is searched so that the accountant's total stays within (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import log_ndtr

from mechanisms.accounting.accountants import Accountant, gaussian_mu
from mechanisms.accounting.events import Event, Exponential, Gaussian, Laplace
from mechanisms.public.errors import UserError
from mechanisms.public.units import Delta, Epsilon, round_down, round_up

#: The smallest level that is searched.
LEAST = 1e-9


@dataclass(frozen=True)
class Charge:
    """What is to be calibrated.

    Attributes:
        id: the ledger's name for it.
        kind: the noise, or a choice by the exponential mechanism.
        bound: the sensitivity of the answers, in records; of no account for a choice.
        share: its part of the budget, in the accountant's additive currency.
    """

    id: str
    kind: Literal["gaussian", "laplace", "exponential"]
    bound: float
    share: float


def calibrate(
    charges: Sequence[Charge], keeper: Accountant, epsilon: Epsilon, delta: Delta
) -> tuple[Gaussian | Laplace | Exponential, ...]:
    """Each charge's event, such that all together cost at most (ε, δ); the search ends on the noisier side.

    Shares are parts of ε (basic), ε² (advanced), ρ (zcdp) or μ² (gdp).

    Raises:
        UserError: the budget is too small for any noise.
    """

    def made(level: float) -> tuple[Gaussian | Laplace | Exponential, ...]:
        return tuple(_event(c, keeper, _strength(c, keeper, level)) for c in charges)

    def fits(level: float) -> bool:
        return keeper.loss([_stand_in(c, keeper, _strength(c, keeper, level)) for c in charges]).epsilon <= epsilon

    level = _largest(fits)
    events, step = made(level), 1e-9
    while (loss := keeper.loss(events)).epsilon > epsilon or loss.delta > delta:  # rounding up: one part in 10⁹
        level, step = level * (1 - step), min(2 * step, 0.5)
        if level < LEAST:
            raise _too_small()
        events = made(level)
    return events


def _strength(charge: Charge, keeper: Accountant, level: float) -> float:
    """ε_i or μ_i: level · share where ε adds up (basic), level · √share where squares do.

    A choice takes the ε whose cost is that of a Gaussian event of the same share: ρ = ε²/8 = μ²/2 (zcdp),
    μ = 2Φ⁻¹(e^(ε/2)/(1+e^(ε/2))) (gdp).
    """
    if keeper.kind == "basic":
        return round_down(level * charge.share)
    strength = round_down(level * math.sqrt(charge.share))
    if charge.kind != "exponential" or keeper.kind == "advanced":
        return strength
    return choice_epsilon(keeper, strength)


def choice_epsilon(keeper: Accountant, mu: float) -> float:
    """The ε of a choice that costs as much as a Gaussian event with Δ/σ = μ, under zcdp or gdp; rounded down."""
    if keeper.kind == "zcdp":
        return 2 * mu
    return round_down(2 * float(log_ndtr(mu / 2) - log_ndtr(-mu / 2)))


def _stand_in(charge: Charge, keeper: Accountant, strength: float) -> Event:
    """An event of the same cost: where Gaussian events count by (ε_i, δ_i), the pure event of the same ε_i."""
    if charge.kind == "exponential":
        return Exponential("", strength)
    if charge.kind == "laplace" or keeper.delta_each is not None:
        return Laplace("", strength, 1.0)
    return Gaussian("", strength, 1.0)


def _event(charge: Charge, keeper: Accountant, strength: float) -> Gaussian | Laplace | Exponential:
    """The event of that strength: b = Δ₁/ε_i; σ = Δ₂/μ_i, where (ε_i, δ_i) gives μ_i by the analytic formula."""
    name, bound = charge.id, charge.bound
    if charge.kind == "exponential":
        return Exponential(name, strength)
    if charge.kind == "laplace":
        return Laplace(name, bound, round_up(bound / strength))
    each = keeper.delta_each
    return Gaussian(name, bound, round_up(bound / (strength if each is None else gaussian_mu(strength, each))))


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest level that fits, to one part in 10⁹, from below."""
    low, high = LEAST, LEAST
    while fits(high) and high < 1e12:
        low, high = high, high * 4
    if high >= 1e12:
        raise UserError("the budget is beyond any promise", where="privacy.epsilon", fix="an ε of at most 100 or so")
    if low == high:
        raise _too_small()
    while high / low > 1 + 1e-10:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _too_small() -> UserError:
    return UserError("the budget is too small for this plan", where="privacy.epsilon", fix="a larger ε")
