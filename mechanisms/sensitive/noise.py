"""Noise on a lattice: continuous noise, rounded to whole multiples of 2**-bits records; secure by default."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mechanisms.accounting.events import Gaussian, NoiseEvent
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS

#: Up to this scale, in lattice units, every whole number up to 16 times the scale is a float of its own.
MAX_UNITS = 2.0**49
#: The width of the uniform number that smooths the steps of floats, as a share of the scale.
DITHER = 2.0**-12
#: Draws made at a time, to bound memory.
CHUNK = 1 << 20


class NoiseSource(Protocol):
    """Random bytes for one event."""

    def words(self, event_id: str, size: int) -> NDArray[np.uint64]:
        """`size` independent uniform 64-bit words; an event is served once."""
        ...


@dataclass(eq=False)
class SecureNoise:
    """The operating system's secure source."""

    served: set[str] = field(default_factory=set)

    def words(self, event_id: str, size: int) -> NDArray[np.uint64]:
        _once(self.served, event_id)
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


@dataclass(eq=False)
class SeededNoise:
    """One stream per event from (seed, event), for experiments: whoever knows the seed can subtract the noise."""

    seed: int
    served: set[str] = field(default_factory=set)

    def words(self, event_id: str, size: int) -> NDArray[np.uint64]:
        _once(self.served, event_id)
        digest = hashlib.blake2b(f"{self.seed}|{event_id}".encode(), digest_size=32).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        return generator.integers(0, 2**64, size=size, dtype=np.uint64)


def noise_source(seed: int | None) -> NoiseSource:
    """The secure source, or a seeded one where a seed is fixed."""
    return SecureNoise() if seed is None else SeededNoise(seed)


def _once(served: set[str], event_id: str) -> None:
    if event_id in served:
        raise RuntimeError(f"no stream serves two draws: {event_id}")
    served.add(event_id)


def lattice_noise(event: NoiseEvent, size: int, source: NoiseSource, *, bits: int = WEIGHT_BITS) -> NDArray[np.int64]:
    """`size` independent draws in lattice units of 2**-bits records.

    The answers it is added to are whole numbers of the same unit, so that the noisy answer equals the rounded output of
    the continuous mechanism: rounding is post-processing, and low bits of floats tell nothing (Mironov 2012).

    A Gaussian draw is the scaled sum of two, a Laplace draw the difference of two exponential ones, by the inverse
    distribution function at 64 random bits each. A float is coarser than the lattice in places: an independent uniform
    number, wider than those steps and far narrower than the noise, is added before rounding, which is post-processing
    too and leaves no parity or pattern; ties go up, whatever the answer. Parts beyond a probability of 2⁻⁶⁴ never
    occur.

    Args:
        bits: the lattice of the answers: a coarser one would leave the low bits of the true answers as they are.
    Raises:
        UserError: a scale beyond MAX_UNITS.
    """
    scale = event.scale
    if not 0 < scale * 2.0**bits <= MAX_UNITS:
        fix = "a larger privacy.epsilon, a smaller privacy.max_records, or fewer marginals"
        raise UserError(f"noise of scale {scale:.3g} records drowns any table", where="privacy.epsilon", fix=fix)
    words = source.words(event.id, 3 * size)
    units = scale * 2.0**bits
    width = max(1.0, units * DITHER)
    noise = np.empty(size, np.int64)
    for start in range(0, size, CHUNK):
        part = slice(start, min(start + CHUNK, size))
        first, second, third = words[:size][part], words[size : 2 * size][part], words[2 * size :][part]
        if isinstance(event, Gaussian):
            drawn = (_normal(first) + _normal(second)) * math.sqrt(0.5)
        else:
            drawn = _exponential(first) - _exponential(second)
        dither = (third.astype(np.float64) * 2.0**-64 - 0.5) * width
        noise[part] = np.floor(drawn * units + dither + 0.5).astype(np.int64)
    return noise


def _normal(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Standard normal: a sign bit, and the tail's probability from 63 bits."""
    tail = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
    return np.asarray(np.where(words & np.uint64(1), ndtri(tail), -ndtri(tail)), np.float64)


def _exponential(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Standard exponential from 64 bits."""
    return -np.log((words.astype(np.float64) + 0.5) * 2.0**-64)
