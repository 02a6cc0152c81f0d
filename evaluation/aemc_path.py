"""AEMC along paths, for marginals with one finite ordinal attribute: an exact convex dynamic programme."""

from __future__ import annotations

import numpy as np

from mechanisms.public.jit import compiled


@compiled
def path_costs(chosen, starts, order, place, p, q, length, step, delta, alpha):
    """The least cost of each chosen part; the parts are independent paths of `length` cells, `step` apart.

    Let f be the mass that leaves the first j cells to the right, and V_j(f) the least cost so far. Then V_j is the
    infimal convolution of V_{j−1} with the cost α · dist(x, [max(q − Δ, 0), q + Δ]) of what stays in cell j, plus
    step · |f|. V is convex and piecewise linear; it is kept as its minimum and the weighted breakpoints to its left and
    right: the convolution moves the two sides apart by the length of the interval and cuts slopes at ±α.

    Args:
        chosen: the parts, int64; part b has the cells order[starts[b]:starts[b + 1]].
        place: position of each cell on the path, int32.
        p, q: synthetic and true mass of each cell.
    Returns:
        one cost per chosen part.
    """
    costs = np.empty(len(chosen))
    dense_p, dense_q = np.zeros(length), np.zeros(length)
    size = 4 * length + 16
    left_at, left_w = np.empty(size), np.empty(size)
    right_at, right_w = np.empty(size), np.empty(size)
    for number in range(len(chosen)):
        dense_p[:] = 0.0
        dense_q[:] = 0.0
        for i in range(starts[chosen[number]], starts[chosen[number] + 1]):
            cell = order[i]
            dense_p[place[cell]] = p[cell]
            dense_q[place[cell]] = q[cell]
        costs[number] = _one_path(dense_p, dense_q, step, delta, alpha, left_at, left_w, right_at, right_w)
    return costs


@compiled
def _one_path(p, q, step, delta, alpha, left_at, left_w, right_at, right_w):
    """V_k(0) for one path; breakpoints are kept with the one next to the minimum last."""
    lows, highs = 1, 1  # how many breakpoints are left and right of the minimum
    left_at[0], left_w[0], right_at[0], right_w[0] = 0.0, alpha, 0.0, alpha
    move_left, move_right = 0.0, 0.0
    least = 0.0
    for j in range(len(p)):
        low, high = max(q[j] - delta, 0.0), q[j] + delta
        move_left += p[j] - high
        move_right += p[j] - low
        if j == len(p) - 1:
            break
        lows = _insert(left_at, left_w, lows, -move_left, step, 1.0)
        lows, highs, least = _pass(
            left_at, left_w, lows, move_left, right_at, right_w, highs, move_right, step, least, 1.0
        )
        highs = _insert(right_at, right_w, highs, -move_right, step, -1.0)
        highs, lows, least = _pass(
            right_at, right_w, highs, move_right, left_at, left_w, lows, move_left, step, least, -1.0
        )
        lows = _cut(left_at, left_w, lows, step)
        highs = _cut(right_at, right_w, highs, step)
    value = least
    for i in range(lows):
        value += left_w[i] * max(left_at[i] + move_left, 0.0)
    for i in range(highs):
        value += right_w[i] * max(-(right_at[i] + move_right), 0.0)
    return value


@compiled
def _insert(at, weight, count, where, w, sign):
    """Insert a breakpoint in order (ascending for sign 1, descending for −1)."""
    i = count
    while i > 0 and sign * at[i - 1] > sign * where:
        at[i], weight[i] = at[i - 1], weight[i - 1]
        i -= 1
    at[i], weight[i] = where, w
    return count + 1


@compiled
def _pass(at, weight, count, move, other_at, other_w, others, other_move, w, least, sign):
    """Pass weight `w` over the minimum to the other side; the minimum rises by what it passes beyond 0."""
    left = w
    while left > 1e-300 and count > 0:
        taken = min(left, weight[count - 1])
        where = at[count - 1] + move
        least += taken * sign * where
        others = _insert(other_at, other_w, others, where - other_move, taken, -sign)
        left -= taken
        weight[count - 1] -= taken
        if weight[count - 1] <= 0.0:
            count -= 1
    return count, others, least


@compiled
def _cut(at, weight, count, w):
    """Cut slopes back to α: take weight `w` from the far end."""
    left, first = w, 0
    while left > 1e-300 and first < count:
        taken = min(left, weight[first])
        weight[first] -= taken
        left -= taken
        if weight[first] <= 0.0:
            first += 1
    if first:
        for i in range(first, count):
            at[i - first], weight[i - first] = at[i], weight[i]
    return count - first
