"""A network simplex for counts that move along the edges of a graph, or are added and removed through a bank.

Every node has three arcs to the bank, which is the root of the spanning tree: a free one for what Δ tolerates, and one
each way at the price α. The first tree is the star around the bank, which is feasible at once: few and local exchanges
remain where tables are close. Counts and costs are whole numbers, so that the result is exact.

Source: the method and the tie-breaking rule that keeps it from cycling are those of Cunningham's strongly feasible
trees; an entering arc is the best of a block of √arcs.
"""

from __future__ import annotations

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.jit import compiled

#: Whole numbers of 64 bits throughout, so that each loop is compiled once.
Table = Ints

#: The row of the edges with the cost of one unit, behind those of their two ends.
PRICE = 2
#: Rows of the tree, a column per node and one for the bank: the parent, the arc to it, whether that points up, and its
#: flow; the potential; what the free arc to the bank can carry, and whether it is full; the first child, the next and
#: the previous sibling, and the depth.
PARENT, PRED, UP, FLOW, POTENTIAL, ROOM, FULL, CHILD, AFTER, BEFORE, DEPTH = range(11)
ROWS = 11
#: Beyond any flow.
UNLIMITED = 2**62
#: The arcs of a node to the bank, in the order of their numbers behind those of the edges.
FREE, OUT, IN = 0, 1, 2


@compiled
def network_simplex(counts: Table, edges: Table, alpha: int) -> int:
    """The least cost of bringing every node of every part into its range.

    Args:
        counts: 3 × parts × nodes: what lies at each node, and the least and the most that may lie there in the end.
        edges: 3 × edges: their two ends, and the cost ≥ 0 of one unit along each; open both ways.
        alpha: cost of adding or removing one unit.
    """
    total = 0
    for part in range(counts.shape[1]):
        total += _simplex(np.ascontiguousarray(counts[:, part]), edges, alpha)
    return total


@compiled
def _simplex(counts: Table, edges: Table, alpha: int) -> int:
    """`network_simplex` of one part."""
    nodes, arcs = counts.shape[1], edges.shape[1]
    tree = _star(counts, arcs, alpha)
    flow, pred, price = tree[FLOW], tree[PRED], edges[PRICE]
    place, idle = int(np.int64(0)), 0  # typed: a literal would compile what it is given to once more
    block = max(64, int(np.sqrt(arcs + nodes)))
    while idle < arcs + nodes:
        stop = min(place + block, arcs + nodes)
        chosen = _price(place, stop, edges, tree, alpha)
        idle += stop - place
        place = stop if stop < arcs + nodes else 0
        if chosen >= 0:
            _pivot(chosen, edges, tree, alpha)
            idle = 0
    total = 0
    for j in range(nodes):
        if pred[j] < 2 * arcs:
            total += flow[j] * price[pred[j] // 2]
        elif (pred[j] - 2 * arcs) % 3 != FREE:
            total += flow[j] * alpha
    return total


@compiled
def _price(place: int, stop: int, edges: Table, tree: Table, alpha: int) -> int:
    """The arc of a block that lowers the cost most per unit; −1 where none does. Bank arcs follow the edges."""
    tail, head, price = edges
    pi, pred, room, full = tree[POTENTIAL], tree[PRED], tree[ROOM], tree[FULL]
    arcs = len(tail)
    best, chosen = 0, -1
    for i in range(place, min(stop, arcs)):
        gap = pi[tail[i]] - pi[head[i]]
        if abs(gap) - price[i] > best:
            best = abs(gap) - price[i]
            chosen = 2 * i if gap < 0 else 2 * i + 1
    for i in range(max(place, arcs), stop):
        j = i - arcs
        arc = 2 * arcs + 3 * j
        if abs(pi[j]) - alpha > best:
            best = abs(pi[j]) - alpha
            chosen = arc + (OUT if pi[j] < 0 else IN)
        elif pred[j] != arc + FREE and room[j] > 0:
            wrong = pi[j] if full[j] else -pi[j]
            if wrong > best:
                best, chosen = wrong, arc + FREE
    return chosen


@compiled
def _star(counts: Table, arcs: int, alpha: int) -> Table:
    """The first tree: every node hangs on the bank by the arc that carries its surplus, shortage or slack.

    From every node some flow can still be sent to the root (a strongly feasible tree), so that pivots never cycle.
    """
    have, low, high = counts
    nodes = len(have)
    tree = np.zeros((ROWS, nodes + 1), np.int64)
    tree[PARENT], tree[UP], tree[DEPTH], tree[CHILD] = nodes, 1, 1, -1
    tree[PARENT, nodes], tree[CHILD, nodes], tree[DEPTH, nodes] = -1, 0, 0
    for j in range(nodes):
        tree[BEFORE, j], tree[AFTER, j] = j - 1, j + 1 if j + 1 < nodes else -1
        tree[ROOM, j] = high[j] - low[j]
        arc, carried = FREE, have[j] - low[j]
        if have[j] >= high[j]:
            arc, carried, tree[POTENTIAL, j], tree[FULL, j] = OUT, have[j] - high[j], -alpha, 1
        elif have[j] < low[j]:
            arc, carried, tree[POTENTIAL, j], tree[UP, j] = IN, low[j] - have[j], alpha, 0
        tree[PRED, j], tree[FLOW, j] = 2 * arcs + 3 * j + arc, carried
    tree[BEFORE, nodes] = tree[AFTER, nodes] = -1
    return tree


@compiled
def _room(x: int, more: bool, tree: Table, arcs: int) -> int:
    """How much more (or less) the tree arc of node x can carry."""
    if not more:
        return int(tree[FLOW, x])
    if tree[PRED, x] >= 2 * arcs and (tree[PRED, x] - 2 * arcs) % 3 == FREE:
        return int(tree[ROOM, x] - tree[FLOW, x])
    return UNLIMITED


@compiled
def _leaving(first: int, second: int, tree: Table, arcs: int, amount: int) -> tuple[int, int, int, bool]:
    """The join of the cycle, how much can go round it, and the last node whose tree arc blocks that (−1: none does)."""
    parent, up, depth = tree[PARENT], tree[UP], tree[DEPTH]
    x, y = first, second
    least_x, least_y, leave_x, leave_y = UNLIMITED, UNLIMITED, -1, -1
    while x != y:
        if depth[x] >= depth[y]:
            room = _room(x, up[x] == 0, tree, arcs)
            if room < least_x:
                least_x, leave_x = room, x
            x = parent[x]
        else:
            room = _room(y, up[y] != 0, tree, arcs)
            if room <= least_y:
                least_y, leave_y = room, y
            y = parent[y]
    if leave_y >= 0 and least_y <= min(amount, least_x):
        return x, least_y, leave_y, False
    if least_x < amount:
        return x, least_x, leave_x, True
    return x, amount, -1, False


@compiled
def _pivot(arc: int, edges: Table, tree: Table, alpha: int) -> None:
    """One arc enters the tree and the last blocking one leaves it."""
    tail, head, price = edges
    flow, pi, full, bank = tree[FLOW], tree[POTENTIAL], tree[FULL], 2 * len(tail)
    owner, kind = (arc - bank) // 3, (arc - bank) % 3
    free = arc >= bank and kind == FREE
    source, target = owner, tree.shape[1] - 1
    if arc < bank:
        source, target = tail[arc // 2], head[arc // 2]
    if (arc < bank and arc % 2) or (arc >= bank and kind == IN):
        source, target = target, source
    capacity = tree[ROOM, owner] if free else UNLIMITED
    back = free and full[owner] != 0
    first, second = (target, source) if back else (source, target)
    join, amount, leave, on_first = _leaving(first, second, tree, len(tail), capacity)
    if amount > 0:
        _send(first, join, -amount, tree)
        _send(second, join, amount, tree)
    if leave < 0:
        full[owner] = 0 if back else 1
        return
    if tree[PRED, leave] >= bank and (tree[PRED, leave] - bank) % 3 == FREE:
        full[leave] = 1 if flow[leave] > 0 else 0
    u, v = (first, second) if on_first else (second, first)
    carried = capacity - amount if back else amount
    _hang(u, v, leave, (arc, 1 if source == u else 0, carried), tree)
    cost = price[arc // 2] if arc < bank else 0 if free else alpha
    shift = (pi[v] - cost if source == u else pi[v] + cost) - pi[u]
    _shift(u, shift, tree)


@compiled
def _send(node: int, join: int, amount: int, tree: Table) -> None:
    """Send more towards the root (less, where negative) from a node up to the join of the cycle."""
    while node != join:
        tree[FLOW, node] += amount if tree[UP, node] else -amount
        node = tree[PARENT, node]


@compiled
def _hang(u: int, v: int, leave: int, entering: tuple[int, int, int], tree: Table) -> None:
    """Hang the subtree of `leave` below v by its node u: the path from u to `leave` turns round.

    Args:
        entering: the arc, whether it points from u to v, and its flow.
    """
    child, after, before = tree[CHILD], tree[AFTER], tree[BEFORE]
    arc, upward, carried = entering
    node, to = u, v
    while True:
        old, old_arc = tree[PARENT, node], tree[PRED, node]
        old_up, old_flow = tree[UP, node], tree[FLOW, node]
        if before[node] >= 0:
            after[before[node]] = after[node]
        else:
            child[old] = after[node]
        if after[node] >= 0:
            before[after[node]] = before[node]
        before[node] = -1
        after[node] = child[to]
        if child[to] >= 0:
            before[child[to]] = node
        child[to] = node
        tree[PARENT, node], tree[PRED, node], tree[UP, node], tree[FLOW, node] = to, arc, upward, carried
        if node == leave:
            return
        to, node, arc, upward, carried = node, old, old_arc, 1 - old_up, old_flow


@compiled
def _shift(u: int, shift: int, tree: Table) -> None:
    """New potentials and depths below u."""
    parent, child, after = tree[PARENT], tree[CHILD], tree[AFTER]
    node = u
    while True:
        tree[POTENTIAL, node] += shift
        tree[DEPTH, node] = tree[DEPTH, parent[node]] + 1
        if child[node] >= 0:
            node = child[node]
            continue
        while node != u and after[node] < 0:
            node = parent[node]
        if node == u:
            return
        node = after[node]
