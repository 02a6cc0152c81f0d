"""Where the mass of one marginal moves in an optimum of Equation 1: the deep dive of Li et al. 2021a, section 2.4.

An optimum is seldom unique: another one may move other mass at the same total cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import Cells
from evaluation.mgd.aemc import check_graph, check_settings, dense_parts
from evaluation.mgd.aemc_flow import Flow, flow_cost
from evaluation.mgd.aemc_graph import Axis, FlowParts, graph_of, split
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.jit import compiled

#: Masses below this, in records, are rounding; weights are multiples of 2^-20.
NO_FLOW = 1e-9

#: Source, target, mass and cost of movements.
_Columns = tuple[Ints, Ints, Floats, Floats]


@dataclass(frozen=True, eq=False)
class Movements:
    """One optimum, in records and records × distance; divide costs by the true records for shares of the AEMC.

    Attributes:
        total: the cost of the optimum.
        error: the most by which `total` may exceed the least cost.
        along: cost of moving along each attribute; with adding and removing they sum to `total`.
        adding, removing: cost of added and of removed records, α each.
        source, target, mass, cost: the movements: from cell to cell, by their numbers in C order.
        ids: the cells that take part, ascending.
        added, removed: records added to and removed from each of them.
        contribution: the cost each of them is charged: of its added and removed records, and half of its movements'.
    """

    total: float
    error: float
    along: tuple[float, ...]
    adding: float
    removing: float
    source: Ints
    target: Ints
    mass: Floats
    cost: Floats
    ids: Ints
    added: Floats
    removed: Floats
    contribution: Floats

    def of_cells(self, ids: Ints) -> Ints:
        """The numbers of the movements from or to these cells, the dearest first."""
        places = np.flatnonzero(np.isin(self.source, ids) | np.isin(self.target, ids))
        return places[np.argsort(-self.cost[places], kind="stable")]

    def top(self, count: int) -> Ints:
        """Places in `ids` of the cells that contribute most."""
        return np.argsort(-self.contribution, kind="stable")[:count]


def movements(cells: Cells, axes: Sequence[Axis], *, delta: float = 2.0, alpha: float = 1.0) -> Movements:
    """An optimum of Equation 1 with all that moves.

    Cost: a min-cost flow over the parts beyond tolerance.

    Raises:
        UserError: settings that make no sense, a flow too large.
    """
    check_settings(cells, axes, delta, alpha)
    check_graph(axes)
    lengths = np.array([a.length if a.moves else 0 for a in axes])
    alone = np.flatnonzero((cells.codes >= lengths[:, None]).all(axis=0))
    gap = cells.p[alone] - cells.q[alone]
    changes = [(cells.ids[alone], np.maximum(-gap - delta, 0.0), np.maximum(gap - delta, 0.0))]
    pieces = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))]
    along, error = np.zeros(len(axes)), 0.0
    parts = split(cells, axes, delta)
    for moving, chosen in parts.groups():
        used = [axes[i] for i in moving]
        p, q = dense_parts(cells, parts, chosen, used)
        flow = flow_cost(p, q, used, delta, alpha, keep=True)
        error += flow.error
        names = _names(cells, parts, chosen, moving, used)
        changes.append((names.ravel(), flow.added.ravel(), flow.removed.ravel()))
        piece, spent = _moves(flow, used, names)
        along[list(moving)] += spent
        pieces.append(piece)
    moved, changed = ([np.concatenate(c) for c in zip(*each, strict=True)] for each in (pieces, changes))
    return _sum_up(moved, changed, along, error, alpha)


def _sum_up(
    moved: Sequence[NDArray[Any]], changed: Sequence[NDArray[Any]], along: Floats, error: float, alpha: float
) -> Movements:
    """One optimum.

    Args:
        moved: sources, targets, mass and cost of the movements; changed: cells, and what is added and removed there.
    """
    (source, target, mass, cost), (cell, more, fewer) = moved, changed
    some = (more > 0) | (fewer > 0)
    cell, more, fewer = cell[some], more[some], fewer[some]
    ids, place = np.unique(np.concatenate([cell, source, target]), return_inverse=True)
    own, out, into = np.split(place, [cell.size, cell.size + source.size])
    added, removed = (np.bincount(own, x, ids.size).astype(np.float64) for x in (more, fewer))
    halves = np.bincount(out, cost / 2, ids.size) + np.bincount(into, cost / 2, ids.size)
    adding, removing = alpha * float(more.sum()), alpha * float(fewer.sum())
    total = math.fsum([*along, adding, removing])
    share = np.asarray(halves + alpha * (added + removed), np.float64)
    spent = tuple(map(float, along))
    return Movements(
        total, error, spent, adding, removing, source, target, mass, cost, ids.astype(np.int64), added, removed, share
    )


def _names(cells: Cells, parts: FlowParts, chosen: Ints, moving: tuple[int, ...], used: Sequence[Axis]) -> Ints:
    """The numbers of all cells of some parts, parts × cells."""
    steps = [math.prod(cells.shape[i + 1 :]) for i in moving]
    offset = np.zeros(1, np.int64)
    for axis, step in zip(used, steps, strict=True):
        offset = np.add.outer(offset, np.arange(axis.length) * step).ravel()
    first = parts.order[parts.starts[chosen]]
    base = cells.ids[first] - offset[parts.place[first]]
    return np.asarray(base[:, None] + offset, np.int64)


def _moves(flow: Flow, used: Sequence[Axis], names: Ints) -> tuple[_Columns, Floats]:
    """The movements of parts with the same moving axes, and what they cost along each of these axes."""
    graph = graph_of(used)
    price = np.array([float(c) for c in graph.costs])[graph.cost]
    spent = np.asarray(np.bincount(graph.axis, flow.along.sum(axis=0) * price, len(used)), np.float64)
    cell_of = np.full(graph.nodes, -1, np.int64)
    cell_of[graph.first] = np.arange(graph.first.size)
    cell_of[graph.last] = np.arange(graph.last.size)
    by_tail = np.argsort(graph.tail, kind="stable")
    starts = np.searchsorted(graph.tail[by_tail], np.arange(graph.nodes + 1))
    walks = [_walk(row[by_tail], starts, graph.head[by_tail], price[by_tail], NO_FLOW) for row in flow.along]
    part = np.repeat(np.arange(len(walks)), [len(f[0]) for f in walks])
    source, target, mass, cost = (np.concatenate(column) for column in zip(*walks, strict=True))
    apart = cell_of[source] != cell_of[target]
    ends = (names[part, cell_of[source]][apart], names[part, cell_of[target]][apart])
    return (*ends, mass[apart], cost[apart]), spent


@compiled
def _walk(flow: Floats, starts: Ints, head: NDArray[np.int32], price: Floats, dust: float) -> _Columns:
    """Take a flow apart into movements from nodes that send to nodes that receive: ends, mass, cost."""
    nodes = len(starts) - 1
    net = np.zeros(nodes)
    used = nodes
    for v in range(nodes):
        for arc in range(starts[v], starts[v + 1]):
            if flow[arc] > dust:
                net[v] += flow[arc]
                net[head[arc]] -= flow[arc]
                used += 1
    source, target = np.empty(used, np.int64), np.empty(used, np.int64)
    mass, cost = np.empty(used), np.empty(used)
    now, step = starts[:-1].copy(), np.full(nodes, -1, np.int64)
    path = np.empty(nodes + 1, np.int64)
    count = 0
    for origin in range(nodes):
        v, length = origin, 0
        while net[origin] > dust:
            if net[v] < -dust:
                taken, paid = min(net[origin], -net[v]), 0.0
                for i in range(length):
                    taken = min(taken, flow[path[i]])
                for i in range(length):
                    flow[path[i]] -= taken
                    paid += price[path[i]]
                net[origin] -= taken
                net[v] += taken
                source[count], target[count], mass[count], cost[count] = origin, v, taken, paid * taken
                count += 1
                _forget(origin, 0, path, length, step, head)
                v, length = origin, 0
                continue
            while now[v] < starts[v + 1] and flow[now[v]] <= dust:
                now[v] += 1
            if now[v] == starts[v + 1]:
                break
            arc = now[v]
            step[v], path[length] = length, arc
            length += 1
            v = head[arc]
            if step[v] >= 0:
                begin, least = step[v], flow[arc]
                for i in range(begin, length):
                    least = min(least, flow[path[i]])
                for i in range(begin, length):
                    flow[path[i]] -= least
                _forget(v, begin, path, length, step, head)
                length = begin
        _forget(origin, 0, path, length, step, head)
    return source[:count], target[:count], mass[:count], cost[:count]


@compiled
def _forget(v: int, begin: int, path: Ints, length: int, step: Ints, head: NDArray[np.int32]) -> None:
    """The nodes of a path from `begin` on, with its first one, are on no path any more."""
    step[v] = -1
    for i in range(begin, length):
        step[head[path[i]]] = -1
