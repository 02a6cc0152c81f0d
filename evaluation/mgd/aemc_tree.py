"""AEMC over trees, for marginals with one finite hierarchical attribute: an exact convex dynamic programme.

Let V_v(f) be the least cost inside the subtree of node v when the net mass f leaves it upwards. At a leaf it is
α · dist(p − f, [max(q − Δ, 0), q + Δ]); at an inner node it is the infimal convolution of V_c(f) + edge · |f| over its
children c. All are convex and piecewise linear, with slopes of −α and α at the ends (what would cost more than α to
send is added or removed where it is needed). The paper's trees have edges of one length e, so that all slopes are i · e
or ±(α − i · e): a function is kept as the length of its stretch of each slope, its first breakpoint and the value
there, and infimal convolution is addition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.geometry import Axis, rational
from mechanisms.public.jit import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree axis as the dynamic programme needs it.

    Attributes:
        parent: of each node; leaves first, the root last.
        leaves: how many leaves lie below each node.
        level_starts: the first node of each level from the leaves up, and the number of nodes.
        slopes: all slopes strictly between −α and α, ascending.
        more, less: the class of a slope plus or minus one edge; −1 where it reaches ±α.
        empty: per height h > 0, the class of −h · edge (where empty leaves take what Δ tolerates).
        rising, falling, flat: the classes of −α + edge, of α − edge and of 0.
        edge: the cost of one edge.
    """

    parent: NDArray[np.int64]
    leaves: NDArray[np.int64]
    level_starts: NDArray[np.int64]
    slopes: NDArray[np.float64]
    more: NDArray[np.int64]
    less: NDArray[np.int64]
    empty: NDArray[np.int64]
    rising: int
    falling: int
    flat: int
    edge: float


def tree_of(axis: Axis, alpha: float) -> Tree:
    """The slopes that may occur, in exact order, and how they change along an edge."""
    top, edge, depth = rational(alpha), axis.step, axis.depth
    distances = [i * edge for i in range(-depth, depth + 1)]
    distances += [sign * (top - i * edge) for sign in (1, -1) for i in range(1, depth + 1)]
    slopes = sorted({s for s in distances if -top < s < top})
    number = {s: k for k, s in enumerate(slopes)}
    counts = np.array([level.size for level in axis.parents] + [1])
    leaves = np.zeros(counts.sum(), np.int64)
    leaves[: axis.length] = 1
    for node, above in enumerate(axis.parent[:-1]):
        leaves[above] += leaves[node]
    return Tree(
        axis.parent,
        leaves,
        np.concatenate([[0], np.cumsum(counts)]),
        np.array([float(s) for s in slopes]),
        np.array([number.get(s + edge, -1) for s in slopes]),
        np.array([number.get(s - edge, -1) for s in slopes]),
        np.array([number.get(-h * edge, -1) for h in range(depth + 1)]),
        number.get(edge - top, -1),
        number.get(top - edge, -1),
        number[rational(0)],
        float(edge),
    )


def tree_costs(
    chosen: NDArray[np.int64],
    starts: NDArray[np.int64],
    order: NDArray[np.int32],
    place: NDArray[np.int32],
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    tree: Tree,
    delta: float,
    alpha: float,
) -> NDArray[np.float64]:
    """The least cost of each chosen part; the parts are copies of one tree, `place` the leaf.

    Cost: occupied leaves × depth × slopes.
    """
    shape = (tree.parent, tree.leaves, tree.level_starts, tree.slopes, tree.more, tree.less, tree.empty)
    classes = np.array([tree.rising, tree.falling, tree.flat])
    return _trees(chosen, starts, order, place, p, q, *shape, classes, tree.edge, float(delta), float(alpha))


@compiled
def _trees(
    chosen: Ints,
    starts: Ints,
    order: NDArray[np.int32],
    place: NDArray[np.int32],
    p: Floats,
    q: Floats,
    parent: Ints,
    leaves: Ints,
    level_starts: Ints,
    slopes: Floats,
    more: Ints,
    less: Ints,
    empty: Ints,
    classes: Ints,
    edge: float,
    delta: float,
    alpha: float,
) -> Floats:
    """One cost per chosen part; `Tree` says what the columns are, `classes` are rising, falling and flat."""
    nodes, kinds = len(parent), len(slopes)
    first, value = np.zeros(nodes), np.zeros(nodes)
    length = np.zeros((nodes, kinds))
    seen = np.zeros(nodes, np.int64)
    touched, above = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    costs = np.empty(len(chosen))
    for number in range(len(chosen)):
        begin, end = starts[chosen[number]], starts[chosen[number] + 1]
        count = end - begin
        for i in range(count):
            cell = order[begin + i]
            leaf = place[cell]
            high, low = q[cell] + delta, max(q[cell] - delta, 0.0)
            first[leaf], value[leaf] = p[cell] - high, 0.0
            length[leaf, classes[2]] = high - low
            touched[i], seen[leaf] = leaf, 1
        for height in range(1, len(level_starts) - 1):
            met = 0
            for i in range(count):
                node = touched[i]
                up = parent[node]
                if seen[up] == 0:
                    above[met] = up
                    met += 1
                _lift(node, up, first, value, length, slopes, more, less, classes, edge, alpha)
                seen[up] += seen[node]
                seen[node] = 0
            for i in range(met):
                node = above[i]
                touched[i] = node
                kind = empty[height]
                if kind >= 0:
                    spare = (leaves[node] - seen[node]) * delta
                    first[node] -= spare
                    value[node] += height * edge * spare
                    length[node, kind] += spare
                seen[node] = leaves[node]
            count = met
        seen[nodes - 1] = 0
        costs[number] = _at_zero(nodes - 1, first, value, length, slopes, alpha)
    return costs


@compiled
def _lift(
    node: int,
    up: int,
    first: Floats,
    value: Floats,
    length: Floats,
    slopes: Floats,
    more: Ints,
    less: Ints,
    classes: Ints,
    edge: float,
    alpha: float,
) -> None:
    """Add V(f) + edge · |f| of a node to its parent, and clear the node."""
    at, v = first[node], value[node]
    begin, begin_v = at, v + edge * abs(at)
    if at > 0.0 and edge > 0.0:
        begin, begin_v = 0.0, v + alpha * at
        if classes[0] >= 0:
            length[up, classes[0]] += at
    for kind in range(len(slopes)):
        stretch = length[node, kind]
        if stretch == 0.0:
            continue
        length[node, kind] = 0.0
        left = min(max(-at, 0.0), stretch)
        if left > 0.0:
            if less[kind] >= 0:
                length[up, less[kind]] += left
            else:
                begin = at + left
                begin_v = v + slopes[kind] * left + edge * abs(begin)
        if stretch > left and more[kind] >= 0:
            length[up, more[kind]] += stretch - left
        at += stretch
        v += slopes[kind] * stretch
    if at < 0.0 and edge > 0.0:
        if classes[1] >= 0:
            length[up, classes[1]] -= at
        else:
            begin, begin_v = 0.0, v - alpha * at
    first[up] += begin
    value[up] += begin_v
    first[node], value[node] = 0.0, 0.0


@compiled
def _at_zero(node: int, first: Floats, value: Floats, length: Floats, slopes: Floats, alpha: float) -> float:
    """V(0) of a node, which is cleared."""
    at, v = first[node], value[node]
    first[node], value[node] = 0.0, 0.0
    result = v + alpha * max(at, 0.0)
    for kind in range(len(slopes)):
        stretch = length[node, kind]
        length[node, kind] = 0.0
        if at < 0.0:
            result = v + slopes[kind] * min(stretch, -at)
        at += stretch
        v += slopes[kind] * stretch
    if at < 0.0:
        result = v - alpha * at
    return float(result)
