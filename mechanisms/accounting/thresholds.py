"""The safe threshold of a private set union: what one unit alone holds is hardly ever released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from mechanisms.accounting.events import Event
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind, of_each, upper_quantile
from mechanisms.public.units import MIN_DELTA, WEIGHT_BITS, Delta, Norm, round_down, round_up

#: Values per unit: each number up to this is bounded alone; larger numbers in runs that double.
ONE_BY_ONE = 1024


class MayFail(Protocol):
    """An event, or a charge for one, that a threshold may stand on."""

    @property
    def failure(self) -> float: ...


def weight_of(values: int, norm: Norm) -> int:
    """w_t, in units of 2**-WEIGHT_BITS: what each of the t values of one unit counts.

    1/t under L1, 1/√t under L2, rounded down, so that the norm of the unit's weights is at most 1.
    """
    one = 1 << WEIGHT_BITS
    return one // values if norm == "l1" else math.isqrt(one * one // values)


def safe_failure(failure: float, delta: float) -> float:
    """The probability that the threshold is made for, where `failure` of the whole δ stands for it.

    For two neighbours let P and Q be the laws of all that is released, and P̃, Q̃ those without the values that one of
    the two tables alone holds: P = (1 − a) P̃ + a R, with a the probability that such a value is released, and likewise
    b for Q (the noise of those values is independent of all else). Where the rest is (ε, δ₀)-DP,
    P(S) ≤ a + (1 − a) (e^ε Q̃(S) + δ₀) and Q ≥ (1 − b) Q̃, so that P(S) ≤ e^ε Q(S) + δ₀ + s/(1 − s) with s the larger of
    a and b. With all a_j below failure_j (1 − δ), s/(1 − s) is at most the sum of the failures, for which δ has room
    beside δ₀.
    """
    return round_down(failure * (1 - delta) * (1 - 2.0**-40))


def safe_threshold(kind: NoiseKind, scale: float, failure: float, most: int) -> int:
    """T in units of 2**-WEIGHT_BITS: a value is released where its noisy weight is at least that.

    Guarantee: whatever one unit holds alone, at most `most` values, all of them stay below T with probability at least
        1 − failure: T ≥ max over t of w_t + scale · F⁻¹((1 − failure)^(1/t)), F the noise's distribution at scale 1
        (Gopi et al. 2020, for weights 1/√t).
    Args:
        scale: of the noise, in records.
        failure: above 0, below 1/2; as of `safe_failure`.
        most: the largest t.
    Raises:
        UserError: noise of a kind whose tails are not known.
    """
    norm, unit = NOISE_KINDS[kind].norm, 2.0**WEIGHT_BITS
    highest, first = 0, 1
    while first <= most:
        last = first if first <= ONE_BY_ONE else min(2 * first - 1, most)
        noise = scale * upper_quantile(kind, of_each(failure, last)) * unit
        highest = max(highest, weight_of(first, norm) + math.ceil(math.nextafter(noise, math.inf)))
        first = last + 1
    return highest + 1  # noise is rounded to the nearest unit


def failures(events: Sequence[MayFail]) -> float:
    """What thresholds on noisy answers add to δ, rounded up; 0 where none stands there."""
    total = math.fsum(e.failure for e in events)
    return round_up(total) if total else 0.0


def delta_left(whole: float, events: Sequence[MayFail]) -> Delta:
    """What thresholds leave of δ for the noise: with what they add, it is no more than the whole.

    Raises:
        UserError: nothing is left.
    """
    used = failures(events)
    if not used:
        return Delta(whole)
    left = whole - used
    while left + used > whole:
        left = round_down(left)
    if not left >= MIN_DELTA:
        fix = "a larger privacy.delta, or bounds and values from public knowledge"
        raise UserError(f"thresholds leave nothing of δ = {whole:g}", where="privacy.delta", fix=fix)
    return Delta(left)


def failure_cost(event: Event) -> dict[str, float]:
    """What a threshold adds to δ, as a part of an event's cost; nothing where there is none."""
    return {"delta": event.failure} if event.failure else {}
