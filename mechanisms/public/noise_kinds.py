"""The kinds of noise: how wide each is at scale 1, and the norm that its sensitivity is taken in; a registry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import get_args

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.units import Norm

#: The name of a kind of noise, as settings and releases spell it.
NoiseKind = str
#: The setting that lets the plan choose the kind with the smaller expected error.
AUTO = "auto"


@dataclass(frozen=True)
class NoiseLaw:
    """A kind of noise; its event and its sampler stand left of this room.

    Attributes:
        name: as settings and releases spell it.
        norm: of the sensitivity that the scale is calibrated to.
        stddev: standard deviation at scale 1.
        mean_abs: mean absolute value at scale 1.
        pure: whether it is ε-DP, with ε = sensitivity / scale; other kinds need δ > 0.
        simulate: draws for estimates of errors, from (rng, scale, size); they protect nobody.
    Raises:
        UserError: another norm, of which no sensitivity is known, or a width that is no number above 0.
    """

    name: NoiseKind
    norm: Norm
    stddev: float
    mean_abs: float
    pure: bool
    simulate: Callable[[np.random.Generator, float, int], Floats]

    def __post_init__(self) -> None:
        one_of(self.norm, get_args(Norm), f"norm of the noise {self.name}")
        for name, width in (("stddev", self.stddev), ("mean_abs", self.mean_abs)):
            if not isinstance(width, int | float) or not 0 < width < math.inf:
                fix = f"the {name} of its draws at scale 1, a number above 0"
                raise UserError(f"got {width!r}", where=f"{name} of the noise {self.name}", fix=fix)


LAPLACE = NoiseLaw("laplace", "l1", math.sqrt(2.0), 1.0, True, lambda rng, b, size: rng.laplace(0.0, b, size))
GAUSSIAN = NoiseLaw(
    "gaussian", "l2", 1.0, math.sqrt(2.0 / math.pi), False, lambda rng, sigma, size: rng.normal(0.0, sigma, size)
)
#: The kinds that `auto` chooses among; where two do equally well, the earlier one is taken.
OWN_KINDS = (LAPLACE, GAUSSIAN)
#: All kinds by name: ours, and those of plugins, which are taken where they are named.
NOISE_KINDS: dict[NoiseKind, NoiseLaw] = {law.name: law for law in OWN_KINDS}

#: What the quantiles of the standard library may be off by, as a share (Wichura 1988: 1 in 10¹⁶), with room.
SLACK = 1e-12
#: The kinds of noise whose tails are known.
KINDS = (LAPLACE.name, GAUSSIAN.name)


def possible_kinds(setting: str, *, delta: float) -> tuple[NoiseKind, ...]:
    """The kinds that a setting leaves to choose from: the one it names, or all of ours that serve at this δ for `auto`.

    Raises:
        UserError: no kind of that name.
    """
    if setting == AUTO:
        return tuple(law.name for law in OWN_KINDS if law.pure or delta > 0)
    return (one_of(setting, (*NOISE_KINDS, AUTO), "mechanism"),)


def upper_quantile(kind: NoiseKind, probability: float) -> float:
    """The least x, rounded up, with P(Z > x) ≤ probability for a draw Z at scale 1.

    Args:
        probability: above 0, at most 1/2.
    Raises:
        UserError: noise of a kind whose tails are not known.
    """
    if kind not in KINDS:
        fix = f"mechanism={' or '.join(KINDS)}"
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
