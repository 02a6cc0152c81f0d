"""AEMC along paths, for marginals with one finite ordinal attribute: an exact convex dynamic programme."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Of a row of breakpoints: the first in use, the one after the last, and how far all have moved.
Side = tuple[int, int, float]


@compiled
def path_costs(
    parts: tuple[Ints, Ints, NDArray[np.int32], NDArray[np.int32]],
    p: Floats,
    q: Floats,
    length: int,
    step: float,
    delta: float,
    alpha: float,
) -> Floats:
    """The least cost of each chosen part; the parts are independent paths of `length` cells, `step` apart.

    Let f be the mass that leaves the first j cells to the right, and V_j(f) the least cost so far. Then V_j is the
    infimal convolution of V_{j−1} with the cost α · dist(x, [max(q − Δ, 0), q + Δ]) of what stays in cell j, plus
    step · |f|. V is convex and piecewise linear; it is kept as its minimum and the weighted breakpoints to its left and
    right: the convolution moves the two sides apart by the length of the interval and cuts slopes at ±α.

    Args:
        parts: those chosen; where each starts in the order of the cells; that order; the position of each cell on its
            path: part b has the cells order[starts[b]:starts[b + 1]].
        p, q: synthetic and true mass of each cell.
    Returns:
        one cost per chosen part.
    """
    chosen, starts, order, place = parts
    costs = np.empty(len(chosen))
    dense_p, dense_q = np.zeros(length), np.zeros(length)
    at, weight = np.empty((2, 8 * length + 32)), np.empty((2, 8 * length + 32))
    for number in range(len(chosen)):
        dense_p[:] = 0.0
        dense_q[:] = 0.0
        for i in range(starts[chosen[number]], starts[chosen[number] + 1]):
            cell = order[i]
            dense_p[place[cell]] = p[cell]
            dense_q[place[cell]] = q[cell]
        costs[number] = _one_path(dense_p, dense_q, step, delta, alpha, at, weight)
    return costs


@compiled
def _one_path(p: Floats, q: Floats, step: float, delta: float, alpha: float, at: Floats, weight: Floats) -> float:
    """V_k(0) for one path.

    Row 0 of `at` holds the breakpoints left of the minimum, row 1 those right of it with their signs changed, so that
    both rows ascend towards the minimum and are handled alike; a row's true positions are at + move. Of a row, the
    entries from `begin` to before `end` are in use.
    """
    at[0, 0], at[1, 0], weight[0, 0], weight[1, 0] = 0.0, 0.0, alpha, alpha
    first, second = int(np.int64(0)), int(np.int64(1))  # typed: literals would compile what they are given to once more
    begin_0, end_0, begin_1, end_1 = first, second, first, second
    move_0, move_1, least = 0.0, 0.0, 0.0
    for j in range(len(p)):
        move_0 += p[j] - q[j] - delta
        move_1 -= p[j] - max(q[j] - delta, 0.0)
        if j == len(p) - 1:
            break
        if step > 0.0:
            left, right = (begin_0, end_0, move_0), (begin_1, end_1, move_1)
            begin_0, end_0, end_1, least = _bend(first, at, weight, left, right, step, least)
            left, right = (begin_0, end_0, move_0), (begin_1, end_1, move_1)
            begin_1, end_1, end_0, least = _bend(second, at, weight, right, left, step, least)
            begin_0 = _cut(weight[0], begin_0, end_0, step)
            begin_1 = _cut(weight[1], begin_1, end_1, step)
    value = least
    for i in range(begin_0, end_0):
        value += weight[0, i] * max(at[0, i] + move_0, 0.0)
    for i in range(begin_1, end_1):
        value += weight[1, i] * max(at[1, i] + move_1, 0.0)
    return value


@compiled
def _bend(
    row: int, at: Floats, weight: Floats, own: Side, opposite: Side, step: float, least: float
) -> tuple[int, int, int, float]:
    """Add step · max(±f, 0): a breakpoint at 0 enters one row, and as much weight next to the minimum changes rows.

    The minimum rises by what passes beyond 0.
    """
    begin, end, move = own
    other_begin, other_end, other_move = opposite
    i = end
    while i > begin and at[row, i - 1] > -move:
        at[row, i], weight[row, i] = at[row, i - 1], weight[row, i - 1]
        i -= 1
    at[row, i], weight[row, i] = -move, step
    end += 1
    left, other = step, 1 - row
    while left > 1e-300 and end > begin:
        taken = min(left, weight[row, end - 1])
        where = at[row, end - 1] + move
        least += taken * where
        i = other_end
        while i > other_begin and at[other, i - 1] > -where - other_move:
            at[other, i], weight[other, i] = at[other, i - 1], weight[other, i - 1]
            i -= 1
        at[other, i], weight[other, i] = -where - other_move, taken
        other_end += 1
        left -= taken
        weight[row, end - 1] -= taken
        if weight[row, end - 1] <= 0.0:
            end -= 1
    return begin, end, other_end, least


@compiled
def _cut(weight: Floats, begin: int, end: int, step: float) -> int:
    """Cut slopes back to α: take weight from the far end."""
    left = step
    while left > 1e-300 and begin < end:
        taken = min(left, weight[begin])
        weight[begin] -= taken
        left -= taken
        if weight[begin] <= 0.0:
            begin += 1
    return begin
