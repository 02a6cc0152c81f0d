"""The exponential mechanism in whole numbers: no floating-point rounding between the scores and the choice."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import accumulate

from mechanisms.accounting.events import Exponential
from mechanisms.public.errors import UserError
from mechanisms.sensitive.noise import NoiseSource

#: Weights are whole multiples of 2**-WEIGHT_DIGITS of the largest.
WEIGHT_DIGITS = 140
#: No weight is below e**-LOWEST_EXPONENT of the largest: scores further down count as if they lay there.
LOWEST_EXPONENT = 64
#: The part of ε that pays for rounding the weights.
ROUNDING = Decimal(2) ** -40
#: Random 64-bit words of one choice.
WORDS = 4

_EXACT = Context(prec=60)


def choice_weights(scores: Sequence[int], sensitivity: int, epsilon: float) -> list[int]:
    """Whole numbers in proportion to e^(ε s / 2Δ), one per score.

    Guarantee: a choice with these odds is ε-DP, and its privacy loss stays in an interval of length ε (bounded range:
        ρ = ε²/8 under zCDP), if no score moves by more than Δ between neighbours, in whatever direction. Scores are
        raised to the largest less a constant, which moves by at most Δ too; a weight is rounded down by less than one
        part in 2⁴⁷, which ε gives up 2⁻⁴⁰ for.
    Args:
        scores: larger is better; whole numbers.
        sensitivity: Δ ≥ 1, in the scores' unit.
    Raises:
        UserError: ε is too small for the rounding.
    """
    if sensitivity < 1 or not scores:
        raise ValueError(f"{len(scores)} scores of sensitivity {sensitivity}")
    rate = rate_of(epsilon)
    best, one = max(scores), Decimal(1 << WEIGHT_DIGITS)
    per_unit = _EXACT.divide(rate, Decimal(2 * sensitivity))
    weights = []
    for score in scores:
        exponent = max(_EXACT.multiply(Decimal(score - best), per_unit), Decimal(-LOWEST_EXPONENT))
        weights.append(int(_EXACT.multiply(_EXACT.exp(exponent), one)))
    return weights


def rate_of(epsilon: float) -> Decimal:
    """What is left of ε when the rounding of the weights is paid.

    Raises:
        UserError: nothing is left; ask before the charge.
    """
    rate = Decimal(epsilon) - ROUNDING
    if rate <= 0:
        raise UserError(f"ε = {epsilon:.3g} is too small for a choice", where="privacy.epsilon", fix="a larger ε")
    return rate


def choose_index(scores: Sequence[int], sensitivity: int, event: Exponential, source: NoiseSource) -> int:
    """One draw of the exponential mechanism at `event.epsilon`: the place of the chosen score.

    The draw is a 256-bit number; each choice's odds are those of `choice_weights` to within 2⁻²⁵⁶, less than 2⁻¹⁴⁰ of
    the smallest, which the guarantee's reserve covers. Charge the event before the call.
    """
    weights = choice_weights(scores, sensitivity, event.epsilon)
    number = int.from_bytes(source.stream(event.id)(WORDS).tobytes(), "little")
    place = (number * sum(weights)) >> (64 * WORDS)
    return next(i for i, upto in enumerate(accumulate(weights)) if place < upto)
