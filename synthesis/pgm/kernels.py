"""Loops over the rows of a clique's table: one row per setting of the separator, one column per cell behind it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_with

#: Sums may be taken in any order.
LOOSE = {"reassoc", "contract", "nsz"}


@compiled
def shift_rows(table: NDArray[np.float64], top: NDArray[np.float64]) -> None:
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
def normalize_rows(table: NDArray[np.float64], top: NDArray[np.float64]) -> None:
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
def scale_rows(table: NDArray[np.float64], by: NDArray[np.float64]) -> None:
    """Multiply each row by a number."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] *= by[i]


@compiled
def least_of_rows(table: NDArray[np.float64], allowed: NDArray[np.float64], least: NDArray[np.float64]) -> None:
    """The smallest entry of each row among cells that are possible (`allowed` is 0; elsewhere -inf)."""
    for i in range(table.shape[0]):
        least[i] = np.inf
        for j in range(table.shape[1]):
            if allowed[i, j] == 0.0:
                least[i] = min(least[i], table[i, j])


@compiled
def mean_of_rows(table: NDArray[np.float64], weights: NDArray[np.float64], mean: NDArray[np.float64]) -> None:
    """The weighted mean of each row (0 where all weights are 0)."""
    for i in range(table.shape[0]):
        total, weight = 0.0, 0.0
        for j in range(table.shape[1]):
            total += weights[i, j] * table[i, j]
            weight += weights[i, j]
        mean[i] = total / weight if weight > 0 else 0.0


@compiled_with(fastmath=LOOSE)
def squared_gap(
    table: NDArray[np.float64],
    scale: float,
    mean: NDArray[np.float64],
    weight: float,
    slope: NDArray[np.float64],
) -> float:
    """½ weight · ‖scale · table − mean‖²; `slope` is added its gradient with respect to scale · table."""
    value = 0.0
    for i in range(len(table)):
        gap = scale * table[i] - mean[i]
        value += gap * gap
        slope[i] += weight * gap
    return 0.5 * weight * value


@compiled
def entries_by_cell(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    indptr: NDArray[np.int64],
    data: NDArray[np.float64],
    rows: NDArray[np.int32],
    entries: NDArray[np.float64],
    first: int,
) -> None:
    """A matrix row by row becomes one cell by cell: `starts` is where each cell's next entry goes, and moves on.

    The row's numbers are counted from `first`. The entries themselves are kept where `entries` has room for them.
    """
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            at = starts[cells[k]]
            starts[cells[k]] = at + 1
            rows[at] = row + first
            if len(entries):
                entries[at] = data[k]


@compiled
def add_to_rows(
    starts: NDArray[np.int64],
    rows: NDArray[np.int32],
    entries: NDArray[np.float64],
    cells: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out += matrix · cells, the matrix kept cell by cell; without `entries` every entry is 1."""
    if len(entries):
        for cell in range(len(cells)):
            for k in range(starts[cell], starts[cell + 1]):
                out[np.uint32(rows[k])] += entries[k] * cells[cell]
        return
    at = np.uint64(starts[0])
    for cell in range(len(cells)):
        value, end = cells[cell], np.uint64(starts[cell + 1])
        while at < end:
            out[np.uint32(rows[at])] += value
            at += np.uint64(1)


@compiled
def add_to_cells(
    starts: NDArray[np.int64],
    rows: NDArray[np.int32],
    entries: NDArray[np.float64],
    answers: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out += matrixᵀ · answers, the matrix kept cell by cell; without `entries` every entry is 1."""
    if not len(entries):
        at = np.uint64(starts[0])
        for cell in range(len(out)):
            total, end = 0.0, np.uint64(starts[cell + 1])
            while at < end:
                total += answers[np.uint32(rows[at])]
                at += np.uint64(1)
            out[cell] += total
        return
    for cell in range(len(out)):
        total = 0.0
        for k in range(starts[cell], starts[cell + 1]):
            total += entries[k] * answers[np.uint32(rows[k])]
        out[cell] += total


@compiled
def stepped(
    here: NDArray[np.float64],
    gradient: NDArray[np.float64],
    last: NDArray[np.float64],
    eta: float,
    momentum: float,
    ahead: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """A step down the gradient into `ahead`; in `out`, what it gained over the last such step goes on by `momentum`."""
    for i in range(len(here)):
        ahead[i] = here[i] - eta * gradient[i]
        out[i] = ahead[i] + momentum * (ahead[i] - last[i]) if momentum else ahead[i]


@compiled_with(fastmath=LOOSE)
def along(
    marginals: NDArray[np.float64],
    after_marginals: NDArray[np.float64],
    potentials: NDArray[np.float64],
    after_potentials: NDArray[np.float64],
    gradient: NDArray[np.float64],
    after_gradient: NDArray[np.float64],
) -> tuple[float, float]:
    """How the changes of the potentials, and of the gradient, lie along that of the marginals: two inner products."""
    entropy, curved = 0.0, 0.0
    for i in range(len(marginals)):
        moved = after_marginals[i] - marginals[i]
        entropy += (after_potentials[i] - potentials[i]) * moved
        curved += (after_gradient[i] - gradient[i]) * moved
    return entropy, curved
