"""Loops over the rows of a clique's table: one row per setting of the separator, one column per cell behind it."""

from __future__ import annotations

import math

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.jit import compiled, compiled_with

#: Sums may be taken in any order.
LOOSE = {"reassoc", "contract", "nsz"}


@compiled
def shift_rows(table: Floats, top: Floats) -> None:
    """Subtract from each row its largest entry, kept in `top` (a row of -inf alone stays as it is: its top is 0)."""
    for i in range(table.shape[0]):
        largest = -np.inf
        for j in range(table.shape[1]):
            largest = max(largest, table[i, j])
        if largest == -np.inf:
            largest = 0.0
        top[i] = largest
        for j in range(table.shape[1]):
            table[i, j] -= largest


@compiled
def normalize_rows(table: Floats, top: Floats) -> None:
    """Divide each row by its sum, and add the sum's logarithm to `top` (rows of zeros stay; their top is -inf)."""
    for i in range(table.shape[0]):
        total = 0.0
        for j in range(table.shape[1]):
            total += table[i, j]
        if total > 0:
            share = 1 / total
            for j in range(table.shape[1]):
                table[i, j] *= share
            top[i] += math.log(total)
        else:
            top[i] = -np.inf


@compiled
def scale_rows(table: Floats, by: Floats) -> None:
    """Multiply each row by a number."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] *= by[i]


@compiled_with(fastmath=LOOSE)
def squared_gap(table: Floats, scale: float, mean: Floats, weight: float, slope: Floats) -> float:
    """½ weight · ‖scale · table − mean‖²; `slope` is added its gradient with respect to scale · table."""
    value = 0.0
    for i in range(len(table)):
        gap = scale * table[i] - mean[i]
        value += gap * gap
        slope[i] += weight * gap
    return 0.5 * weight * value


@compiled_with(fastmath=LOOSE)
def _projected(table: Floats, out: Floats) -> None:
    """A table less its means along both axes; it may be written over itself."""
    count, along = table.shape
    sides = np.zeros(along)
    for i in range(count):
        total = 0.0
        for j in range(along):
            total += table[i, j]
        mean = total / along
        for j in range(along):
            out[i, j] = table[i, j] - mean
            sides[j] += out[i, j]
    for j in range(along):
        sides[j] /= count
    for i in range(count):
        for j in range(along):
            out[i, j] -= sides[j]


@compiled_with(fastmath=LOOSE)
def residual_gap(table: Floats, scale: float, mean: Floats, weight: float, unit: float, slope: Floats) -> float:
    """`squared_gap` of `unit` times the residual of a pair, in one pass of loops: most residuals are small."""
    gap, value = np.empty_like(table), 0.0
    _projected(table, gap)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            gap[i, j] = scale * unit * gap[i, j] - mean[i, j]
            value += gap[i, j] * gap[i, j]
    _projected(gap, gap)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            slope[i, j] += weight * unit * gap[i, j]
    return 0.5 * weight * value


@compiled
def stepped(
    here: Floats, gradient: Floats, last: Floats, eta: float, momentum: float, ahead: Floats, out: Floats
) -> None:
    """A step down the gradient into `ahead`; in `out`, what it gained over the last such step goes on by `momentum`."""
    for i in range(len(here)):
        ahead[i] = here[i] - eta * gradient[i]
        out[i] = ahead[i] + momentum * (ahead[i] - last[i]) if momentum else ahead[i]


@compiled_with(fastmath=LOOSE)
def along(
    marginals: Floats,
    after_marginals: Floats,
    potentials: Floats,
    after_potentials: Floats,
    gradient: Floats,
    after_gradient: Floats,
) -> tuple[float, float]:
    """How the changes of the potentials, and of the gradient, lie along that of the marginals: two inner products."""
    entropy, curved = 0.0, 0.0
    for i in range(len(marginals)):
        moved = after_marginals[i] - marginals[i]
        entropy += (after_potentials[i] - potentials[i]) * moved
        curved += (after_gradient[i] - gradient[i]) * moved
    return entropy, curved
