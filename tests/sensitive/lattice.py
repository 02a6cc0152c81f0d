"""Draws of noise on a lattice that one int64 holds."""

import numpy as np

from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.noise import NoiseSource, split_noise


def lattice_noise(event: NoiseEvent, size: int, source: NoiseSource, *, bits: int = WEIGHT_BITS) -> np.ndarray:
    return split_noise(event, size, source, bits=bits, split=0)[0]
