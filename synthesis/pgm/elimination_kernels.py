"""Sizes of models with one marginal more, for thousands of candidates: greedy elimination in compiled loops."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled

Graph = NDArray[np.bool_]
Floats = NDArray[np.float64]

#: The heuristics: smallest joint table, fewest new edges, least weight of new edges.
MIN_SIZE, MIN_FILL, MIN_WEIGHTED_FILL = 0, 1, 2
RULES = 3


@compiled
def _cost(graph: Graph, left: NDArray[np.bool_], i: int, logs: Floats, rule: int) -> float:
    """What eliminating attribute i costs under a rule."""
    count = graph.shape[0]
    cost = logs[i] if rule == MIN_SIZE else 0.0
    for j in range(count):
        if not (left[j] and graph[i, j]):
            continue
        if rule == MIN_SIZE:
            cost += logs[j]
            continue
        for k in range(j + 1, count):
            if left[k] and graph[i, k] and not graph[j, k]:
                cost += 1.0 if rule == MIN_FILL else logs[j] * logs[k]
    return cost


@compiled
def _eliminated(graph: Graph, logs: Floats, rule: int) -> tuple[NDArray[np.int64], Graph]:
    """A greedy order, and beside each attribute those that were joined to it when it went; the graph is changed."""
    count = graph.shape[0]
    left, joined = np.ones(count, np.bool_), np.zeros((count, count), np.bool_)
    costs, order = np.empty(count), np.empty(count, np.int64)
    for i in range(count):
        costs[i] = _cost(graph, left, i, logs, rule)
    for step in range(count):
        gone = -1
        for i in range(count):
            if left[i] and (gone < 0 or costs[i] < costs[gone]):
                gone = i
        order[step], left[gone] = gone, False
        touched = np.zeros(count, np.bool_)
        for j in range(count):
            joined[gone, j] = left[j] and graph[gone, j]
        for j in range(count):
            if not joined[gone, j]:
                continue
            touched[j] = True
            for k in range(count):
                graph[j, k] = graph[j, k] or (joined[gone, k] and k != j)
                touched[k] = touched[k] or (rule != MIN_SIZE and graph[j, k])
        for j in range(count):
            if left[j] and touched[j]:
                costs[j] = _cost(graph, left, j, logs, rule)
    return order, joined


@compiled
def _cells(order: NDArray[np.int64], joined: Graph, logs: Floats) -> float:
    """Cells of the maximal cliques of an order: one lies in an earlier one where that had just one attribute more."""
    count = order.size
    place, larger = np.empty(count, np.int64), np.zeros(count, np.int64)
    for step in range(count):
        place[order[step]] = step
    total = 0.0
    for step in range(count):
        degree, follower, log_cells = 0, count, logs[order[step]]
        for j in range(count):
            if joined[order[step], j]:
                degree += 1
                log_cells += logs[j]
                follower = min(follower, place[j])
        if larger[step] <= degree:
            total += math.exp(log_cells)
        if follower < count:
            larger[follower] = max(larger[follower], degree)
    return total


@compiled
def small_with(graph: Graph, logs: Floats, added: NDArray[np.int64], limit: float) -> NDArray[np.bool_]:
    """For each candidate whether a graph with it has a triangulation of at most `limit` cells by some heuristic.

    Args:
        graph: which attributes are joined, square.
        logs: logarithms of the attributes' sizes.
        added: one row per candidate: its attributes, filled up with -1.
    """
    small = np.zeros(added.shape[0], np.bool_)
    for c in range(added.shape[0]):
        whole = graph.copy()
        for i in added[c]:
            for j in added[c]:
                if i >= 0 and j >= 0 and i != j:
                    whole[i, j] = True
        for rule in range(RULES):
            order, joined = _eliminated(whole.copy(), logs, rule)
            if _cells(order, joined, logs) <= limit * (1 + 1e-9):
                small[c] = True
                break
    return small
