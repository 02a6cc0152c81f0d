"""Noise on a lattice: continuous noise, rounded to whole multiples of 2**-WEIGHT_BITS records; secure by default."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS

#: Beyond this scale (records) a draw might not fit the lattice's 63 bits.
MAX_SCALE = 2.0**36


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


def lattice_noise(event: Gaussian | Laplace, size: int, source: NoiseSource) -> NDArray[np.int64]:
    """`size` independent draws in lattice units of 2**-WEIGHT_BITS records.

    The answers it is added to are whole numbers of the same unit, so that the noisy answer equals the rounded output of
    the continuous mechanism: rounding is post-processing, and low bits of floats tell nothing (Mironov 2012).

    A draw is the inverse distribution function at a uniform of 63 bits and a sign: values beyond a probability of 2⁻⁶⁴
    never occur.

    Raises:
        UserError: a scale so large that a draw would not fit.
    """
    scale = event.sigma if isinstance(event, Gaussian) else event.scale
    if not 0 < scale < MAX_SCALE:
        raise UserError(f"a noise scale of {scale:g} records", where="privacy.epsilon", fix="a larger ε or a smaller C")
    words = source.words(event.id, size)
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    tail = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # in (0, 1/2]
    size_of = -ndtri(tail) if isinstance(event, Gaussian) else -np.log(2 * tail)
    return np.rint(sign * size_of * (scale * 2.0**WEIGHT_BITS)).astype(np.int64)
