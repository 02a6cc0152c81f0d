"""Faults of the noise, of the choices, and of the streams that they are drawn from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.public.units import WEIGHT_BITS
from tests.audit.mutants import mutant

TIGHT, SAMPLING, REPLAY = "tight", "sampling", "replay"


def scaled(event: Any, factor: float) -> Any:
    """The event with another scale."""
    if isinstance(event, Gaussian):
        return replace(event, sigma=event.sigma * factor)
    return replace(event, scale=event.scale * factor)


def _of_kind(original: Any, kind: type, factor: float) -> Any:
    def noise(event: Any, size: int, source: Any, **named: Any) -> Any:
        return original(scaled(event, factor) if isinstance(event, kind) else event, size, source, **named)

    return noise


@mutant(TIGHT, "noise")
def gaussian_noise_30_percent_too_small(original: Any) -> Any:
    """A factor that is left out."""
    return _of_kind(original, Gaussian, 0.7)


@mutant(TIGHT, "noise")
def laplace_noise_30_percent_too_small(original: Any) -> Any:
    """A factor that is left out."""
    return _of_kind(original, Laplace, 0.7)


@mutant(TIGHT, "noise")
def gaussian_noise_30_percent_too_large(original: Any) -> Any:
    """Safe, but not what is stated: half of the budget buys nothing."""
    return _of_kind(original, Gaussian, 1.3)


@mutant(TIGHT, "noise")
def scale_of_laplace_taken_as_deviation(original: Any) -> Any:
    """b where √2 b is the standard deviation."""
    return _of_kind(original, Laplace, math.sqrt(0.5))


@mutant(TIGHT, "noise")
def sigma_taken_as_variance(original: Any) -> Any:
    """A sampler that takes the variance, given the deviation."""

    def noise(event: Any, size: int, source: Any, **named: Any) -> Any:
        if isinstance(event, Gaussian) and event.sigma > 1:
            event = replace(event, sigma=math.sqrt(event.sigma))
        return original(event, size, source, **named)

    return noise


@mutant(SAMPLING, "noise")
def ties_round_to_even(original: Any) -> Any:
    """From 2⁵² on a float plus a half is a tie: far out all noise is even, and shows the parity of the answer."""

    def noise(event: Any, size: int, source: Any, **named: Any) -> Any:
        whole, rest = original(event, size, source, **named)
        return np.where(np.abs(whole) >= 2**52, whole & ~np.int64(1), whole), rest

    return noise


@mutant(SAMPLING, "noise")
def noise_on_a_coarser_lattice(original: Any) -> Any:
    """The low digits of the answers stay as they are (Mironov 2012)."""

    def noise(event: Any, size: int, source: Any, **named: Any) -> Any:
        whole, rest = original(event, size, source, **named)
        return (whole >> 10) << 10, rest

    return noise


@mutant(SAMPLING, "noise")
def tails_cut_off(original: Any) -> Any:
    """Noise within three scales alone: an answer outside of them rules a table out."""

    def noise(event: Any, size: int, source: Any, *, bits: int, split: int) -> Any:
        whole, rest = original(event, size, source, bits=bits, split=split)
        most = int(2 * event.scale * 2.0 ** (bits - split))
        return np.clip(whole, -most, most), rest

    return noise


@mutant(REPLAY, "noisy")
def noise_in_floating_point(original: Any) -> Any:
    """Textbook noise on floats, whose steps and low digits tell the answer."""

    def noisy(exact: Any, event: Any, source: Any) -> Any:
        answers = (exact.whole + exact.rest * 2.0**-exact.bits) * 2.0**-WEIGHT_BITS
        return answers + np.random.default_rng(1).laplace(0.0, event.scale, answers.size)

    return noisy


class _Words:
    """A source whose words come from a generator that is made once."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def stream(self, event_id: str) -> Any:
        generator = self.of(event_id)
        return lambda size: generator.integers(0, 2**64, size=size, dtype=np.uint64)


@mutant(SAMPLING, "source")
def seed_shared_by_workers(original: Any) -> Any:
    """A generator made before the workers are forked: all of them draw the same."""
    one = np.random.default_rng(3)
    return lambda seed: _Words(lambda event_id: one) if seed is None else original(seed)


@mutant(SAMPLING, "source")
def same_noise_in_every_run(original: Any) -> Any:
    """A fixed seed where nobody set one."""
    return lambda seed: original(0 if seed is None else seed)


@mutant(SAMPLING, "source")
def same_noise_for_every_event(original: Any) -> Any:
    """The seed without the event: two answers tell their exact difference."""
    return lambda seed: original(None) if seed is None else _Words(lambda event_id: np.random.default_rng(seed))


@mutant(TIGHT, "weights of choices")
def choice_without_the_half(original: Any) -> Any:
    """e^(ε s/Δ) where scores move both ways."""
    return lambda scores, sensitivity, epsilon: original(scores, sensitivity, 2 * epsilon)


@mutant(TIGHT, "choice")
def choice_of_the_largest_score(original: Any) -> Any:
    """No noise at all: the exact largest."""
    return lambda scores, sensitivity, event, source: max(range(len(scores)), key=scores.__getitem__)


@mutant(TIGHT, "choice")
def choice_at_twice_its_epsilon(original: Any) -> Any:
    """Two candidates drawn for one charge, the better one taken."""

    def choose(scores: Any, sensitivity: int, event: Any, source: Any) -> int:
        found = [original(scores, sensitivity, replace(event, id=f"{event.id}/{i}"), source) for i in range(2)]
        return int(max(found, key=lambda i: scores[i]))

    return choose


@mutant(TIGHT, "noisy")
def noise_forgotten(original: Any) -> Any:
    """The exact answer leaves."""
    return lambda exact, event, source: (exact.whole + exact.rest * 2.0**-exact.bits) * 2.0**-WEIGHT_BITS
