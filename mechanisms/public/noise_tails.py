"""How far noise goes: the value that a draw at scale 1 exceeds with a given probability, rounded up."""

from __future__ import annotations

import math
from statistics import NormalDist

from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NoiseKind

#: What the quantiles of the standard library may be off by, as a share (Wichura 1988: 1 in 10¹⁶), with room.
SLACK = 1e-12
#: The kinds of noise whose tails are known.
KNOWN = (LAPLACE.name, GAUSSIAN.name)


def upper_quantile(kind: NoiseKind, probability: float) -> float:
    """The least x, rounded up, with P(Z > x) ≤ probability for a draw Z at scale 1.

    Args:
        probability: above 0, at most 1/2.
    Raises:
        UserError: noise of a kind whose tails are not known.
    """
    if kind not in KNOWN:
        fix = f"mechanism={' or '.join(KNOWN)}"
        raise UserError(f"no thresholds are known for {kind} noise", where="mechanism", fix=fix)
    if not 0 < probability <= 0.5:
        raise ValueError(f"a tail of probability {probability}")
    value = -math.log(2 * probability) if kind == LAPLACE.name else -NormalDist().inv_cdf(probability)
    return math.nextafter(value * (1 + SLACK), math.inf)


def of_each(failure: float, count: int) -> float:
    """The probability that each of `count` independent draws may have for all together to have `failure`, rounded down.

    1 − (1 − failure)^(1/count).
    """
    return -math.expm1(math.log1p(-failure) / count) * (1 - SLACK)
