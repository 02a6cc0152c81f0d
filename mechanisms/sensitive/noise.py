"""Noise on a lattice: continuous draws, rounded exactly to whole multiples of 2**-bits records; secure by default."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.arrays import Ints
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NoiseKind
from mechanisms.public.units import MAX_UNITS, check_scale
from mechanisms.sensitive.deviates import (
    BLOCK,
    PIECE,
    SATURATED,
    Dyadic,
    Half,
    Reader,
    Words,
    exponential,
    half_normal,
    signed,
)
from mechanisms.sensitive.fast_draws import fill

#: Words that a draw takes on average, with room.
WORDS = 10
#: Bits by which the lattice of the noise may be finer than the unit of its range.
MAX_SPLIT = 32

#: (stream, how many, scale, split) → the draws in two parts.
Sampler = Callable[[Reader, int, Dyadic, int], tuple[Ints, Ints]]


class NoiseSource(Protocol):
    """Random words for events."""

    def stream(self, event_id: str) -> Words:
        """Independent uniform 64-bit words for one event, as many as it asks for; an event is served once."""
        ...


@dataclass(eq=False)
class SecureNoise:
    """The operating system's secure source."""

    served: set[str] = field(default_factory=set)

    def stream(self, event_id: str) -> Words:
        _once(self.served, event_id)
        return lambda size: np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


@dataclass(eq=False)
class SeededNoise:
    """One stream per event from (seed, event), for experiments: whoever knows the seed can subtract the noise."""

    seed: int
    served: set[str] = field(default_factory=set)

    def stream(self, event_id: str) -> Words:
        _once(self.served, event_id)
        digest = hashlib.blake2b(f"{self.seed}|{event_id}".encode(), digest_size=32).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        return lambda size: generator.integers(0, 2**64, size=size, dtype=np.uint64)


def noise_source(seed: int | None) -> NoiseSource:
    """The secure source, or a seeded one where a seed is fixed."""
    return SecureNoise() if seed is None else SeededNoise(seed)


def _once(served: set[str], event_id: str) -> None:
    if event_id in served:
        raise RuntimeError(f"no stream serves two draws: {event_id}")
    served.add(event_id)


def split_noise(event: NoiseEvent, size: int, source: NoiseSource, *, bits: int, split: int) -> tuple[Ints, Ints]:
    """`size` independent draws in lattice units of 2**-bits records: the continuous law, rounded to the nearest.

    Guarantee: exactly that law, given uniform words (proof: docs/decisions/028-exact-noise.md). The answers it is
        added to are whole numbers of the same unit, so that the noisy answer equals the rounded output of the
        continuous mechanism: rounding is post-processing, and low bits of floats tell nothing (Mironov 2012). A draw
        beyond 2**62 units of a counts as 2**62; `noisy` clips its sums so that this shows nowhere.
    Args:
        bits: the lattice of the answers: a coarser one would leave the low bits of the true answers as they are.
        split: for lattices too fine for one int64.
    Returns:
        (a, b): a draw is a · 2**split + b with 0 ≤ b < 2**split.
    Raises:
        UserError: a scale beyond MAX_UNITS of a; a sampler that does not give each answer a draw of its own.
    """
    check_scale(event.scale, MAX_UNITS * 2.0 ** (split - bits))
    if not 0 <= split <= MAX_SPLIT:
        raise ValueError(f"noise split at {split} bits")
    reader = Reader(source.stream(event.id))
    draws = SAMPLERS[event.kind](reader, size, Dyadic.of(event.scale, bits), split)
    if not _is_draws(draws, size, split):  # one draw would be added to all answers, a large b would run over in sums
        problem = f"the sampler does not give {size:,} draws in two parts, whole numbers of 64 bits, 0 ≤ b < 2**{split}"
        raise UserError(problem, where=f"mechanism={event.kind}", fix="mend the plugin; the charge stays spent")
    return np.clip(draws[0], -SATURATED, SATURATED), draws[1]  # larger ones of others would run over in some sums


def _is_draws(draws: object, size: int, split: int) -> bool:
    """Whether a sampler, which may be of others, gave what `split_noise` promises."""
    if not isinstance(draws, tuple | list | np.ndarray) or len(draws) != 2:
        return False
    if not all(isinstance(part, np.ndarray) and part.shape == (size,) and part.dtype == np.int64 for part in draws):
        return False
    return not size or bool(draws[1].min() >= 0 and draws[1].max() < 1 << split)


def drawn(reader: Reader, size: int, scale: Dyadic, split: int, *, normal: bool) -> tuple[Ints, Ints]:
    """`size` normal or Laplace draws: in compiled loops as far as these decide them, each other one by `signed`."""
    draws, done = np.empty((2, size), np.int64), 0
    terms = (np.uint64(scale.mantissa), 2 * PIECE - scale.exponent, split)
    while done < size:
        reader.ahead = min(WORDS * (size - done) + PIECE, BLOCK)
        reader.fetch()
        done, reader.at = fill(normal, reader.block, reader.at, terms, draws, done)
        if done < size:
            draws[:, done] = signed(reader, half_normal if normal else exponential, scale, split=split)
            done += 1
    return draws[0], draws[1]


def symmetric(half: Half) -> Sampler:
    """The sampler of a law that is symmetric about 0, one draw after the other (some tens of thousands a second).

    Args:
        half: draws |Z| at scale 1 exactly, as `deviates.exponential` does for Laplace noise.
    """

    def sample(reader: Reader, size: int, scale: Dyadic, split: int) -> tuple[Ints, Ints]:
        draws = [signed(reader, half, scale, split=split) for _ in range(size)]
        whole, rest = np.array(draws, dtype=np.int64).reshape(size, 2).T
        return whole, rest

    return sample


#: Kind of noise → draws of its law at a scale in lattice units, split as of `split_noise`; no other kind is drawn.
SAMPLERS: dict[NoiseKind, Sampler] = {
    LAPLACE.name: partial(drawn, normal=False),
    GAUSSIAN.name: partial(drawn, normal=True),
}
