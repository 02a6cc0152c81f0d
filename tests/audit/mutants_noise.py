"""Faults of the noise, of the choices, and of the streams that they are drawn from."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.public.units import WEIGHT_BITS
from tests.audit.mutants import MUTANTS, Mutant, Words, mutant, mutant_maker

TIGHT, SAMPLING, REPLAY = "tight", "sampling", "replay"
TOO_LARGE = "Safe, but not what is stated: half of the budget buys nothing."


def scaled(event: Any, factor: float) -> Any:
    if isinstance(event, Gaussian):
        return replace(event, sigma=event.sigma * factor)
    return replace(event, scale=event.scale * factor)


def _of_kind(original: Any, kind: type, factor: float) -> Any:
    def noise(event: Any, size: int, source: Any, **named: Any) -> Any:
        return original(scaled(event, factor) if isinstance(event, kind) else event, size, source, **named)

    return noise


#: By name: the noise whose scale is multiplied, by how much, and the fault.
SCALED: dict[str, tuple[type, float, str]] = {
    "gaussian noise 30 percent too small": (Gaussian, 0.7, "A factor that is left out."),
    "laplace noise 30 percent too small": (Laplace, 0.7, "A factor that is left out."),
    "gaussian noise 30 percent too large": (Gaussian, 1.3, TOO_LARGE),
    "scale of laplace taken as deviation": (Laplace, math.sqrt(0.5), "b where √2 b is the standard deviation."),
}
for _name, (_kind, _factor, _fault) in SCALED.items():
    MUTANTS[_name] = Mutant(_name, _fault, (("noise", partial(_of_kind, kind=_kind, factor=_factor)),), TIGHT)


@mutant(TIGHT, "noise")
def sigma_taken_as_variance(original: Any, event: Any, size: int, source: Any, **named: Any) -> Any:
    """A sampler that takes the variance, given the deviation."""
    if isinstance(event, Gaussian) and event.sigma > 1:
        event = replace(event, sigma=math.sqrt(event.sigma))
    return original(event, size, source, **named)


@mutant(SAMPLING, "noise")
def ties_round_to_even(original: Any, event: Any, size: int, source: Any, **named: Any) -> Any:
    """From 2⁵² on a float plus a half is a tie: far out all noise is even, and shows the parity of the answer."""
    whole, rest = original(event, size, source, **named)
    return np.where(np.abs(whole) >= 2**52, whole & ~np.int64(1), whole), rest


@mutant(SAMPLING, "noise")
def noise_on_a_coarser_lattice(original: Any, event: Any, size: int, source: Any, **named: Any) -> Any:
    """The low digits of the answers stay as they are (Mironov 2012)."""
    whole, rest = original(event, size, source, **named)
    return (whole >> 10) << 10, rest


@mutant(SAMPLING, "noise")
def tails_cut_off(original: Any, event: Any, size: int, source: Any, *, bits: int, split: int) -> Any:
    """Noise within three scales alone: an answer outside of them rules a table out."""
    whole, rest = original(event, size, source, bits=bits, split=split)
    most = int(2 * event.scale * 2.0 ** (bits - split))
    return np.clip(whole, -most, most), rest


@mutant(REPLAY, "noisy")
def noise_in_floating_point(original: Any, exact: Any, event: Any, source: Any) -> Any:
    """Textbook noise on floats, whose steps and low digits tell the answer."""
    answers = (exact.whole + exact.rest * 2.0**-exact.bits) * 2.0**-WEIGHT_BITS
    return answers + np.random.default_rng(1).laplace(0.0, event.scale, answers.size)


@mutant_maker(SAMPLING, "source")
def seed_shared_by_workers(original: Any) -> Any:
    """A generator made before the workers are forked: all of them draw the same."""
    one = np.random.default_rng(3)
    return lambda seed: Words(lambda event_id: one) if seed is None else original(seed)


@mutant(SAMPLING, "source")
def same_noise_in_every_run(original: Any, seed: Any) -> Any:
    """A fixed seed where nobody set one."""
    return original(0 if seed is None else seed)


@mutant(SAMPLING, "source")
def same_noise_for_every_event(original: Any, seed: Any) -> Any:
    """The seed without the event: two answers tell their exact difference."""
    return original(None) if seed is None else Words(lambda event_id: np.random.default_rng(seed))


@mutant(TIGHT, "weights of choices")
def choice_without_the_half(original: Any, scores: Any, sensitivity: Any, epsilon: Any) -> Any:
    """e^(ε s/Δ) where scores move both ways."""
    return original(scores, sensitivity, 2 * epsilon)


@mutant(TIGHT, "choice")
def choice_of_the_largest_score(original: Any, scores: Any, sensitivity: Any, event: Any, source: Any) -> Any:
    """No noise at all: the exact largest."""
    return max(range(len(scores)), key=scores.__getitem__)


@mutant(TIGHT, "choice")
def choice_at_twice_its_epsilon(original: Any, scores: Any, sensitivity: int, event: Any, source: Any) -> int:
    """Two candidates drawn for one charge, the better one taken."""
    found = [original(scores, sensitivity, replace(event, id=f"{event.id}/{i}"), source) for i in range(2)]
    return int(max(found, key=lambda i: scores[i]))


@mutant(TIGHT, "noisy")
def noise_forgotten(original: Any, exact: Any, event: Any, source: Any) -> Any:
    """The exact answer leaves."""
    return (exact.whole + exact.rest * 2.0**-exact.bits) * 2.0**-WEIGHT_BITS
