"""The kinds of noise: how wide each is at scale 1, and the norm that its sensitivity is taken in; a registry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import one_of
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
    """

    name: NoiseKind
    norm: Norm
    stddev: float
    mean_abs: float
    pure: bool
    simulate: Callable[[np.random.Generator, float, int], NDArray[np.float64]]


LAPLACE = NoiseLaw("laplace", "l1", math.sqrt(2.0), 1.0, True, lambda rng, b, size: rng.laplace(0.0, b, size))
GAUSSIAN = NoiseLaw(
    "gaussian", "l2", 1.0, math.sqrt(2.0 / math.pi), False, lambda rng, sigma, size: rng.normal(0.0, sigma, size)
)
#: The kinds that `auto` chooses among; where two do equally well, the earlier one is taken.
OWN_KINDS = (LAPLACE, GAUSSIAN)
#: All kinds by name: ours, and those of plugins, which are taken where they are named.
NOISE_KINDS: dict[NoiseKind, NoiseLaw] = {law.name: law for law in OWN_KINDS}


def possible_kinds(setting: str, *, delta: float) -> tuple[NoiseKind, ...]:
    """The kinds that a setting leaves to choose from: the one it names, or all of ours that serve at this δ for `auto`.

    Raises:
        UserError: no kind of that name.
    """
    if setting == AUTO:
        return tuple(law.name for law in OWN_KINDS if law.pure or delta > 0)
    return (one_of(setting, (*NOISE_KINDS, AUTO), "mechanism"),)
