"""A network simplex for counts that move along the edges of a graph, or are added and removed through a bank.

Every node has three arcs to the bank, which is the root of the spanning tree: a free one for what Δ tolerates, and one
each way at the price α. The first tree is the star around the bank, which is feasible at once: few and local exchanges
remain where tables are close. Counts and costs are whole numbers, so that the result is exact.

Source: the method and the tie-breaking rule that keeps it from cycling are those of Cunningham's strongly feasible
trees; an entering arc is the best of a block of √arcs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]
Flags = NDArray[np.bool_]
#: What lies at each node, the least and the most that may; tail, head and price of the edges.
Ranges = tuple[Ints, Ints, Ints]
Edges = tuple[Nodes, Nodes, Ints]
#: Tail, head and price of the edges; least and most that may lie at each node; α.
Arcs = tuple[Nodes, Nodes, Ints, Ints, Ints, int]
#: Of each node: its parent in the tree, the arc to it, whether that points up, and its flow; the potential; whether the
#: free arc to the bank is full.
State = tuple[Nodes, Ints, Flags, Ints, Ints, Flags]
#: Child, next and previous sibling, and depth of each node.
Links = tuple[Nodes, Nodes, Nodes, Nodes]

#: Beyond any flow.
UNLIMITED = 2**62
#: The arcs of a node to the bank, in the order of their numbers behind those of the edges.
FREE, OUT, IN = 0, 1, 2
#: Arcs scanned that count as one step of work.
SCANNED = 8


@compiled
def network_simplex(ranges: Ranges, edges: Edges, alpha: int, limit: int) -> int:
    """The least cost of bringing every node of every part into its range; −1 where `limit` did not suffice.

    Args:
        ranges: what lies at each node, and the least and the most that may lie there in the end, parts × nodes each.
        edges: their two ends and the cost ≥ 0 of one unit along each; open both ways.
        alpha: cost of adding or removing one unit.
        limit: how many tree nodes may be touched in a part.
    """
    have, low, high = ranges
    total = 0
    for part in range(len(have)):
        cost = _simplex(have[part], (edges[0], edges[1], edges[2], low[part], high[part], alpha), limit)
        if cost < 0:
            return -1
        total += cost
    return total


@compiled
def _simplex(have: Ints, arcs: Arcs, limit: int) -> int:
    """`network_simplex` of one part."""
    tail, price, low, high, alpha = arcs[0], arcs[2], arcs[3], arcs[4], arcs[5]
    nodes, edges = len(have), len(tail)
    state = _star(have, low, high, edges, alpha)
    links = _lists(nodes)
    flow, pred = state[3], state[1]
    place, idle, work = int(np.int64(0)), 0, 0  # typed: a literal would compile what it is given to once more
    block = max(64, int(np.sqrt(edges + nodes)))
    while idle < edges + nodes:
        stop = min(place + block, edges + nodes)
        chosen = _price(place, stop, arcs, pred, state[4], state[5])
        idle += stop - place
        work += (stop - place) // SCANNED
        place = stop if stop < edges + nodes else 0
        if chosen >= 0:
            work += _pivot(chosen, arcs, state, links)
            idle = 0
        if work > limit:
            return -1
    total = 0
    for j in range(nodes):
        if pred[j] < 2 * edges:
            total += flow[j] * price[pred[j] // 2]
        elif (pred[j] - 2 * edges) % 3 != FREE:
            total += flow[j] * alpha
    return total


@compiled
def _price(place: int, stop: int, arcs: Arcs, pred: Ints, pi: Ints, at_upper: Flags) -> int:
    """The arc of a block that lowers the cost most per unit; −1 where none does. Bank arcs follow the edges."""
    tail, head, price, low, high, alpha = arcs
    edges = len(tail)
    best, chosen = 0, -1
    for i in range(place, min(stop, edges)):
        gap = pi[tail[i]] - pi[head[i]]
        if abs(gap) - price[i] > best:
            best = abs(gap) - price[i]
            chosen = 2 * i if gap < 0 else 2 * i + 1
    for i in range(max(place, edges), stop):
        j = i - edges
        arc = 2 * edges + 3 * j
        if abs(pi[j]) - alpha > best:
            best = abs(pi[j]) - alpha
            chosen = arc + (OUT if pi[j] < 0 else IN)
        elif pred[j] != arc + FREE and high[j] > low[j]:
            wrong = pi[j] if at_upper[j] else -pi[j]
            if wrong > best:
                best, chosen = wrong, arc + FREE
    return chosen


@compiled
def _star(have: Ints, low: Ints, high: Ints, edges: int, alpha: int) -> State:
    """The first tree: every node hangs on the bank by the arc that carries its surplus, shortage or slack.

    From every node some flow can still be sent to the root (a strongly feasible tree), so that pivots never cycle.
    """
    nodes = len(have)
    parent = np.full(nodes + 1, nodes, np.int32)
    pred = np.empty(nodes + 1, np.int64)
    up = np.ones(nodes + 1, np.bool_)
    flow = np.zeros(nodes + 1, np.int64)
    pi = np.zeros(nodes + 1, np.int64)
    at_upper = np.zeros(nodes, np.bool_)
    parent[nodes] = -1
    for j in range(nodes):
        arc = 2 * edges + 3 * j
        if have[j] >= high[j]:
            pred[j], flow[j], pi[j], at_upper[j] = arc + OUT, have[j] - high[j], -alpha, True
        elif have[j] < low[j]:
            pred[j], flow[j], pi[j], up[j] = arc + IN, low[j] - have[j], alpha, False
        else:
            pred[j], flow[j] = arc + FREE, have[j] - low[j]
    return parent, pred, up, flow, pi, at_upper


@compiled
def _lists(nodes: int) -> Links:
    """The children of each node as a doubly linked list, and the depths: all nodes below the root."""
    child = np.full(nodes + 1, -1, np.int32)
    after = np.full(nodes + 1, -1, np.int32)
    before = np.full(nodes + 1, -1, np.int32)
    depth = np.ones(nodes + 1, np.int32)
    depth[nodes] = 0
    child[nodes] = 0
    for j in range(nodes):
        before[j] = j - 1
        after[j] = j + 1 if j + 1 < nodes else -1
    return child, after, before, depth


@compiled
def _ends(arc: int, tail: Nodes, head: Nodes, nodes: int) -> tuple[int, int]:
    """Source and target of an arc."""
    edges = len(tail)
    if arc < 2 * edges:
        i = arc // 2
        return (tail[i], head[i]) if arc % 2 == 0 else (head[i], tail[i])
    j = (arc - 2 * edges) // 3
    return (nodes, j) if (arc - 2 * edges) % 3 == IN else (j, nodes)


@compiled
def _room(x: int, more: bool, arcs: Arcs, state: State) -> int:
    """How much more (or less) the tree arc of node x can carry."""
    pred, flow, low, high, edges = state[1], state[3], arcs[3], arcs[4], len(arcs[0])
    if not more:
        return int(flow[x])
    if pred[x] >= 2 * edges and (pred[x] - 2 * edges) % 3 == FREE:
        return int(high[x] - low[x] - flow[x])
    return UNLIMITED


@compiled
def _leaving(
    first: int, second: int, arcs: Arcs, state: State, links: Links, amount: int
) -> tuple[int, int, int, bool, int]:
    """The join of the cycle, how much can go round it, and the last node whose tree arc blocks that (−1: none does)."""
    parent, up, depth = state[0], state[2], links[3]
    x, y, work = first, second, 0
    least_x, least_y, leave_x, leave_y = UNLIMITED, UNLIMITED, -1, -1
    while x != y:
        work += 1
        if depth[x] >= depth[y]:
            room = _room(x, not up[x], arcs, state)
            if room < least_x:
                least_x, leave_x = room, x
            x = parent[x]
        else:
            room = _room(y, up[y], arcs, state)
            if room <= least_y:
                least_y, leave_y = room, y
            y = parent[y]
    if leave_y >= 0 and least_y <= min(amount, least_x):
        return x, least_y, leave_y, False, work
    if least_x < amount:
        return x, least_x, leave_x, True, work
    return x, amount, -1, False, work


@compiled
def _pivot(arc: int, arcs: Arcs, state: State, links: Links) -> int:
    """One arc enters the tree and the last blocking one leaves it; returns the steps of work."""
    tail, head, price, low, high, alpha = arcs
    parent, pred, up, flow, pi, at_upper = state
    child, after, depth = links[0], links[1], links[3]
    edges = len(tail)
    source, target = _ends(arc, tail, head, len(low))
    free = arc >= 2 * edges and (arc - 2 * edges) % 3 == FREE
    owner = (arc - 2 * edges) // 3
    capacity = high[owner] - low[owner] if free else UNLIMITED
    back = free and at_upper[owner]
    first, second = (target, source) if back else (source, target)
    join, amount, leave, on_first, work = _leaving(first, second, arcs, state, links, capacity)
    if amount > 0:
        _send(first, join, -amount, parent, up, flow)
        _send(second, join, amount, parent, up, flow)
    if leave < 0:
        at_upper[owner] = not back
        return work
    if pred[leave] >= 2 * edges and (pred[leave] - 2 * edges) % 3 == FREE:
        at_upper[leave] = flow[leave] > 0
    u, v = (first, second) if on_first else (second, first)
    carried = capacity - amount if back else amount
    _hang(u, v, leave, (arc, source == u, carried), state, links)
    cost = alpha
    if arc < 2 * edges:
        cost = price[arc // 2]
    elif free:
        cost = 0
    shift = (pi[v] - cost if source == u else pi[v] + cost) - pi[u]
    return work + _shift(u, shift, parent, pi, child, after, depth)


@compiled
def _send(node: int, join: int, amount: int, parent: Nodes, up: Flags, flow: Ints) -> None:
    """Send more towards the root (less, where negative) from a node up to the join of the cycle."""
    while node != join:
        flow[node] += amount if up[node] else -amount
        node = parent[node]


@compiled
def _hang(u: int, v: int, leave: int, entering: tuple[int, bool, int], state: State, links: Links) -> None:
    """Hang the subtree of `leave` below v by its node u: the path from u to `leave` turns round.

    Args:
        entering: the arc, whether it points from u to v, and its flow.
    """
    parent, pred, up, flow, _, _ = state
    child, after, before, _ = links
    arc, upward, carried = entering
    node, to = u, v
    while True:
        old, old_arc, old_up, old_flow = parent[node], pred[node], up[node], flow[node]
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
        parent[node], pred[node], up[node], flow[node] = to, arc, upward, carried
        if node == leave:
            return
        to, node, arc, upward, carried = node, old, old_arc, not old_up, old_flow


@compiled
def _shift(u: int, shift: int, parent: Nodes, pi: Ints, child: Nodes, after: Nodes, depth: Nodes) -> int:
    """New potentials and depths below u; returns how many nodes that were."""
    node, work = u, 0
    while True:
        work += 1
        pi[node] += shift
        depth[node] = depth[parent[node]] + 1
        if child[node] >= 0:
            node = child[node]
            continue
        while node != u and after[node] < 0:
            node = parent[node]
        if node == u:
            return work
        node = after[node]
