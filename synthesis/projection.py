"""Projections of one noisy marginal: onto non-negative cells of a given sum, onto given sides, and away from noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Axes = tuple[int, ...]

#: Alternations between non-negativity and the sides, at most.
ALTERNATIONS = 60
#: They stop when no cell of a side is further off than this share of the total.
NEAR = 1e-5


def norm_sub(values: Values, total: float) -> Values:
    """The closest array (in L2) that is non-negative and sums to `total`: cells lose a constant, and stop at 0.

    Cost: a few passes over the cells; those that a smaller constant already stops are left out of the next pass.
    """
    if total <= 0:
        return np.zeros_like(values)
    active = values.ravel()
    while True:
        constant = (active.sum() - total) / active.size
        kept = active[active > constant]
        if kept.size == active.size or not kept.size:
            break
        active = kept
    return np.asarray(np.maximum(values - constant, 0.0))


def product(sides: Sequence[Values], total: float) -> Values:
    """The marginal of that total whose attributes are independent and have these one-way marginals."""
    result = np.full((), total)
    for side in sides:
        result = np.multiply.outer(result, side / total)
    return result


def soften(values: Values, base: Values, stddev: float) -> Values:
    """`values` drawn towards `base`: differences lose a threshold, those below it vanish.

    The threshold is the one with the smallest unbiased estimate of the squared error (Stein 1981; Donoho and Johnstone
    1995): 0 where the signal is strong in every cell, the largest difference where all of it may be noise.
    """
    gap = values - base
    sizes = np.sort(np.abs(gap), axis=None) / stddev
    count = sizes.size
    below = np.arange(1, count + 1)
    risk = count - 2 * below + np.cumsum(sizes**2) + (count - below) * sizes**2
    best = int(np.argmin(risk))
    if risk[best] >= count:
        return values
    return np.asarray(base + np.sign(gap) * np.maximum(np.abs(gap) - sizes[best] * stddev, 0.0))


def fit(values: Values, total: float, sides: Mapping[Axes, Values]) -> Values:
    """A non-negative array near `values` that sums to `total` and has the given marginals (`sides`, by their axes).

    Alternates norm-sub with the equal shift that restores each side, until both hold nearly. Where no two sides share
    an axis, what is left is mended exactly; else non-negativity and the total are exact and the sides hold as nearly
    as they can.
    """
    result = norm_sub(values, total)
    for _ in range(ALTERNATIONS):
        worst = 0.0
        for axes, side in sides.items():
            gap = side - result.sum(axis=_others(result.ndim, axes))
            worst = max(worst, float(np.abs(gap).max(initial=0.0)))
            result = result + np.expand_dims(gap * (gap.size / result.size), _others(result.ndim, axes))
        if worst <= NEAR * total:
            break
        result = norm_sub(result, total)
    result = np.maximum(result, 0.0)
    shared = [axis for axes in sides for axis in axes]
    if total <= 0 or len(shared) != len(set(shared)):
        return norm_sub(result, total)
    return _mended(result, total, sides)


def _mended(values: Values, total: float, sides: Mapping[Axes, Values]) -> Values:
    """Exact sides, none sharing an axis: scale down what is over, then fill what is missing by a product.

    After the scaling no side is over, and every side lacks the same sum (Altschuler, Weed and Rigollet 2017, for two
    sides).
    """
    for axes, side in sides.items():
        others = _others(values.ndim, axes)
        now = values.sum(axis=others)
        share = np.divide(side, now, out=np.ones_like(now), where=now > side)
        values = values * np.expand_dims(share, others)
    missing = total - float(values.sum())
    if missing <= 1e-12 * total:
        return values
    filling = np.full((1,) * values.ndim, missing)
    for axes, side in sides.items():
        others = _others(values.ndim, axes)
        lacking = np.maximum(side - values.sum(axis=others), 0.0)
        filling = filling * np.expand_dims(lacking / max(float(lacking.sum()), 1e-300), others)
    free = _others(values.ndim, tuple(axis for axes in sides for axis in axes))
    cells_free = int(np.prod([values.shape[axis] for axis in free]))
    return np.asarray(values + np.broadcast_to(filling / cells_free, values.shape))


def _others(ndim: int, axes: Axes) -> Axes:
    return tuple(axis for axis in range(ndim) if axis not in axes)
