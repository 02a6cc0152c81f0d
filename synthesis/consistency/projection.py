"""Projections of one noisy marginal: onto non-negative cells of a given sum, onto given sides, and away from noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.noise_kinds import GAUSSIAN, NOISE_KINDS, NoiseKind, upper_quantile

Axes = tuple[int, ...]

#: Alternations between non-negativity and the sides, at most.
ALTERNATIONS = 60
#: They stop when no cell of a side is further off than this share of the total.
NEAR = 1e-5
#: Rounds of proportional fitting, at most.
FITTINGS = 60
#: A sum below this is none: what a side asks for, divided by less, may be beyond all numbers.
NOTHING = 1e-250
#: Cells of like expectation are drawn towards it alike, this many at least; those of less noise than this count as one.
LIKE_CELLS, LEAST_LOG = 16, -4.0
#: Noise alone has a difference that counts whole in one marginal of so many.
SELDOM = 50


def product(sides: Sequence[Floats], total: float) -> Floats:
    """The marginal of that total whose attributes are independent and have these one-way marginals."""
    result = np.full((), total)
    for side in sides:
        result = np.multiply.outer(result, side / total)
    return result


def soften(
    values: Floats, base: Floats, stddev: float, *, sparse: bool = False, noise: NoiseKind = GAUSSIAN.name
) -> Floats:
    """`values` drawn towards `base`: differences lose a threshold, those below it vanish.

    The threshold is the one with the smallest unbiased estimate of the squared error (Stein 1981; Donoho and Johnstone
    1995): 0 where the signal is strong in every cell, the largest difference where all of it may be noise.

    Args:
        sparse: that estimate errs most where few cells of many differ. Where the squares tell no more than noise does,
            the threshold is the one that noise alone hardly ever passes, √(2 ln n) (ibid., section 2.4: SureShrink),
            and differences that the largest noise of all cells has in one marginal of `SELDOM` lose nothing.
        noise: whose tails tell how large that is.
    """
    return _softened(values, base, stddev, sparse, noise)[0]


def _softened(
    values: Floats, base: Floats, stddev: float, sparse: bool, noise: NoiseKind = GAUSSIAN.name
) -> tuple[Floats, float]:
    """`soften`, and its estimated squared error in units of the noise."""
    gap = values - base
    sizes = np.sort(np.abs(gap), axis=None) / stddev
    count = sizes.size
    if sparse and float((sizes**2).mean()) - 1 <= math.log2(max(count, 2)) ** 1.5 / math.sqrt(count):
        threshold = math.sqrt(2 * math.log(max(count, 2)))
        certain = upper_quantile(noise, 1 / (2 * SELDOM * count)) / NOISE_KINDS[noise].stddev
        drawn = base + np.sign(gap) * np.maximum(np.abs(gap) - threshold * stddev, 0.0)
        return np.where(np.abs(gap) > certain * stddev, values, drawn), math.nan
    below = np.arange(1, count + 1)
    risk = count - 2 * below + np.cumsum(sizes**2) + (count - below) * sizes**2
    best = int(np.argmin(risk))
    if risk[best] >= count:
        return values, float(count)
    drawn = base + np.sign(gap) * np.maximum(np.abs(gap) - sizes[best] * stddev, 0.0)
    return np.asarray(drawn), float(risk[best])


def soften_alike(values: Floats, base: Floats) -> Floats:
    """`values`, of noise 1, drawn towards `base`: cells of like expectation by a rule of their own.

    Full cells differ from a model by much, each of them, and empty cells by nothing: one threshold for all takes
    from the first what it should leave. Each group, of expectations within a factor of two where these are enough,
    follows the threshold of `soften` or a common factor (James & Stein 1961), whichever has the smaller unbiased
    estimate of the squared error.
    """
    sizes = np.floor(np.log2(np.maximum(base, 2.0**LEAST_LOG))).ravel()
    values_flat, base_flat, drawn = values.ravel(), base.ravel(), np.empty(values.size)
    order = np.argsort(sizes, kind="stable")
    _, counts = np.unique(sizes, return_counts=True)
    ends, start = np.cumsum(counts).tolist(), 0
    for end in ends:
        if end != ends[-1] and (end - start < LIKE_CELLS or ends[-1] - end < LIKE_CELLS):
            continue
        group = order[start:end]
        drawn[group], start = _group_drawn(values_flat[group], base_flat[group]), end
    return drawn.reshape(values.shape)


def _group_drawn(values: Floats, base: Floats) -> Floats:
    softened, risk = _softened(values, base, 1.0, False)
    gap = values - base
    most, square = max(gap.size - 2, 0), max(float((gap**2).sum()), 1e-300)
    if most < square and gap.size - most**2 / square < risk:
        return np.asarray(base + gap * (1 - most / square))
    return softened


def between(base: Floats, sides: Mapping[Axes, Floats]) -> Floats:
    """`base` multiplied until it has the given marginals: with `base` a product, the one of largest entropy."""
    wide = {axes: side for axes, side in sides.items() if len(axes) > 1}
    for _ in range(FITTINGS if len(wide) > 1 else len(wide)):
        worst = 0.0
        for axes, side in wide.items():
            base, off = raked(base, axes, side)
            worst = max(worst, off)
        if worst <= NEAR * float(base.sum()):
            break
    return base


def raked(values: Floats, axes: Axes, side: Floats) -> tuple[Floats, float]:
    """The array multiplied until its marginal over some axes is `side`, and how far a cell of that was off before."""
    others = others_of(values.ndim, axes)
    now = values.sum(axis=others)
    factor = np.divide(side, now, out=np.zeros_like(now), where=now > NOTHING)
    return values * np.expand_dims(factor, others), float(np.abs(now - side).max(initial=0.0))


def fit(values: Floats, total: float, sides: Mapping[Axes, Floats], *, impossible: Flags | None = None) -> Floats:
    """A non-negative array near `values` that sums to `total` and has the given marginals (`sides`, by their axes).

    Alternates the way to non-negative cells with the equal shift that restores each side, until both hold nearly.
    Where no two sides share an axis and all cells are possible, what is left is mended exactly; else non-negativity
    and the total are exact and the sides hold as nearly as they can.

    Args:
        impossible: cells that stay 0.
    """
    possible = None if impossible is None else ~impossible
    result = nearest(values, total, possible)
    others_of_sides = [(others_of(result.ndim, axes), side) for axes, side in sides.items()]
    for _ in range(ALTERNATIONS):
        worst = 0.0
        for others, side in others_of_sides:
            gap = np.expand_dims(side - result.sum(axis=others), others)
            worst = max(worst, float(np.abs(gap).max(initial=0.0)))
            if possible is None:
                result = result + gap * (gap.size / result.size)
            else:
                cells = np.maximum(possible.sum(axis=others, keepdims=True), 1)
                result = result + np.where(possible, gap / cells, 0.0)
        if worst <= NEAR * total:
            break
        result = nearest(result, total, possible)
    result = np.maximum(result, 0.0)
    shared = [axis for axes in sides for axis in axes]
    if total <= 0 or len(shared) != len(set(shared)) or possible is not None:
        return nearest(result, total, possible)
    return _mended(result, total, sides)


def nearest(values: Floats, total: float, possible: Flags | None) -> Floats:
    """The nearest non-negative array of that total, on the possible cells (None: all)."""
    if possible is None:
        return norm_sub(values, total)
    projected = np.zeros_like(values)
    if possible.any():
        projected[possible] = norm_sub(values[possible], total)
    return projected


def _mended(values: Floats, total: float, sides: Mapping[Axes, Floats]) -> Floats:
    """Exact sides, none sharing an axis: scale down what is over, then fill what is missing by a product.

    After the scaling no side is over, and every side lacks the same sum (Altschuler, Weed and Rigollet 2017, for two
    sides).
    """
    for axes, side in sides.items():
        others = others_of(values.ndim, axes)
        now = values.sum(axis=others)
        share = np.divide(side, now, out=np.ones_like(now), where=now > side)
        values = values * np.expand_dims(share, others)
    missing = total - float(values.sum())
    if missing <= 1e-12 * total:
        return values
    filling = np.full((1,) * values.ndim, missing)
    for axes, side in sides.items():
        others = others_of(values.ndim, axes)
        lacking = np.maximum(side - values.sum(axis=others), 0.0)
        filling = filling * np.expand_dims(lacking / max(float(lacking.sum()), 1e-300), others)
    free = others_of(values.ndim, tuple(axis for axes in sides for axis in axes))
    cells_free = int(np.prod([values.shape[axis] for axis in free]))
    return np.asarray(values + np.broadcast_to(filling / cells_free, values.shape))


def others_of(ndim: int, axes: Axes) -> Axes:
    """The axes of an array that are not among these."""
    return tuple(axis for axis in range(ndim) if axis not in axes)


def norm_sub(values: Floats, total: float) -> Floats:
    """The closest array (in L2) that is non-negative and sums to `total`: cells lose a constant, and stop at 0.

    Cost: a few passes over the cells; those that a smaller constant already stops are left out of the next pass.
    Source: Wang et al. 2020.
    """
    if total <= 0:
        return np.zeros_like(values)
    active = values.ravel()
    while True:
        constant = (active.sum() - total) / active.size
        positive = active[active > constant]
        if positive.size == active.size or not positive.size:
            break
        active = positive
    return np.asarray(np.maximum(values - constant, 0.0))
