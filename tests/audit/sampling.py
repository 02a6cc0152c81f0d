"""The sampler itself: its law on the lattice, its tails' low digits, and that no two streams are alike."""

import multiprocessing

import numpy as np
from scipy.stats import chi2, laplace, norm

from mechanisms.accounting.events import Gaussian, Laplace, NoiseEvent
from mechanisms.public.arrays import Ints
from mechanisms.public.units import WEIGHT_BITS
from tests.audit.hooks import Broken, current

#: A test that a right sampler fails once in so many times.
RARE = 1e-6


def drawn(event: NoiseEvent, size: int, seed: int | None, bits: int = WEIGHT_BITS) -> Ints:
    """Draws in lattice units, by the real sampler."""
    found: Ints = current("noise")(event, size, current("source")(seed), bits=bits, split=0)[0]
    return found


def laws() -> dict[str, tuple[type[NoiseEvent], object]]:
    """Each kind of noise, with its distribution function at scale 1."""
    return {"gaussian": (Gaussian, norm), "laplace": (Laplace, laplace)}


def check_law(kind: str, size: int) -> float:
    """At a few lattice units of scale the draws follow the rounded continuous law, cell by cell; the p-value."""
    event, law = laws()[kind]
    units = 3.3
    found = np.asarray(drawn(event("law", 1.0, units * 2.0**-WEIGHT_BITS), size, 11))
    if found.dtype != np.int64:
        raise Broken(f"{kind}: draws of type {found.dtype}, not whole lattice units")
    edges = np.arange(-9, 10)
    cells = np.concatenate([[0.0], law.cdf((edges - 0.5) / units), [1.0]])  # type: ignore[attr-defined]
    expected = np.diff(cells) * size
    counts = np.bincount(np.searchsorted(edges, found, side="right"), minlength=expected.size)
    value = float(chi2.sf(((counts - expected) ** 2 / expected).sum(), expected.size - 1))
    if value < RARE:
        raise Broken(f"{kind}: the draws do not follow the stated law (p = {value:.2g})")
    return value


def check_tails(kind: str, size: int) -> float:
    """Far out the low digits are as random as near by: at the largest scales, beyond 8 scales (Gaussian: 3)."""
    event, _ = laws()[kind]
    units = 2.0**49
    found = drawn(event("tail", 1.0, units * 2.0**-WEIGHT_BITS), size, 12)
    far = found[np.abs(found) > (8 if kind == "laplace" else 3) * units]
    odd = np.count_nonzero(far & 1) / max(far.size, 1)
    if far.size < 100 or abs(odd - 0.5) > 2.5 / np.sqrt(far.size):
        raise Broken(f"{kind}: {odd:.3f} of the {far.size} draws in the tail are odd")
    digits = np.bincount(found & 1023, minlength=1024)
    value = float(chi2.sf(((digits - size / 1024) ** 2 / (size / 1024)).sum(), 1023))
    if value < RARE:
        raise Broken(f"{kind}: the last ten digits of the draws have a pattern (p = {value:.2g})")
    return value


def _some(event_id: str) -> list[int]:
    return [int(x) for x in drawn(Laplace(event_id, 1.0, 1e6), 8, None)]


def check_streams() -> int:
    """Draws of other events, other sources and other processes have nothing in common; how many were compared."""
    found = [_some("one"), _some("one"), _some("two")]
    for _ in range(2):  # one process each: a pool of two may leave all the work to one of them
        with multiprocessing.get_context("fork").Pool(1) as pool:
            found += pool.map(_some, ["one"] * 2)
    fixed = current("source")(5)
    found += [[int(x) for x in current("noise")(Laplace(e, 1.0, 1e6), 8, fixed, bits=20, split=0)[0]] for e in "ab"]
    if len({tuple(f) for f in found}) < len(found):
        raise Broken("two streams of noise are the same")
    return len(found)
