"""Orders in which to eliminate attributes, and the cliques that an order makes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.domain import Clique
from mechanisms.public.jit import Compiled, F, compiled, compiled_with

#: Sets of attributes as bits of an integer: attribute i is 1 << i.
Bits = int
#: Which attributes are joined: square, symmetric, nobody with itself.
Graph = Flags

#: An attribute's cost: the logarithm of its joint table's cells, the edges that it adds, their weight, its neighbours.
HEURISTICS = MIN_SIZE, MIN_FILL, MIN_WEIGHTED_FILL, MIN_DEGREE = range(4)
#: Randomised searches beside the plain heuristics, each step one of the `BEST` at random, with this seed.
RANDOM_TRIES, BEST = 24, 3
SEED = 0

#: Up to so many columns × cliques, as of a plan, the loops run as Python: it takes longer to load what compiles them.
LITTLE = 1_000
inner = compiled_with(no_cpython_wrapper=True)  # of loops that run as Python where Python calls them


def members(bits: Bits) -> Iterator[int]:
    """The attributes of a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def joined(graph: Graph, clique: Bits) -> Graph:
    """The graph itself, in which the attributes of a clique are joined from now on."""
    places = [*members(clique)]
    graph[np.ix_(places, places)] = True
    np.fill_diagonal(graph, False)
    return graph


def neighbours(count: int, cliques: Sequence[Bits]) -> Graph:
    """The graph of so many attributes in which those of every clique are joined."""
    graph = np.zeros((count, count), np.bool_)
    for clique in cliques:
        joined(graph, clique)
    return graph


def logarithms(sizes: Sequence[int]) -> Floats:
    """Of the attributes' sizes."""
    return np.array([math.log(s) for s in sizes], np.float64)


@inner
def _cost(graph: Graph, there: Flags, i: int, logs: Floats, rule: int) -> float:
    """What it costs under a rule to eliminate an attribute of those that are there."""
    beside = np.flatnonzero(graph[i] & there)
    if rule == MIN_DEGREE:
        return float(beside.size)
    total = 0.0
    for j in beside:
        if rule == MIN_SIZE:
            total += logs[j]
            continue
        for k in beside:
            if k != j and not graph[j, k]:
                total += 1.0 if rule == MIN_FILL else logs[j] * logs[k]
    return logs[i] + total if rule == MIN_SIZE else total


@inner
def _eliminated(graph: Graph, logs: Floats, rule: int, keep: Flags, ranks: Ints) -> tuple[Ints, Graph]:
    """A greedy order, and beside each attribute those that were joined to it when it went; the graph is changed.

    Args:
        keep: attributes that stay.
        ranks: per step which goes: 0 the one of least cost (ties by size, then place), 1 the next, …
    """
    count = graph.shape[0]
    there, beside = np.ones(count, np.bool_), np.zeros((count, count), np.bool_)
    costs, sizes, order = np.empty(count), np.empty(count), np.empty(ranks.size, np.int64)
    for i in range(count):
        costs[i], sizes[i] = _cost(graph, there, i, logs, rule), _cost(graph, there, i, logs, MIN_SIZE)
    for step in range(ranks.size):
        waiting, gone = there & ~keep, -1
        for _ in range(ranks[step] + 1):
            if gone >= 0:
                waiting[gone], gone = False, -1
            for i in range(count):
                less = gone < 0 or costs[i] < costs[gone] or (costs[i] == costs[gone] and sizes[i] < sizes[gone])
                if waiting[i] and less:
                    gone = i
        order[step], there[gone] = gone, False
        beside[gone] = graph[gone] & there
        touched = beside[gone].copy()
        for j in np.flatnonzero(beside[gone]):
            graph[j] |= beside[gone]
            graph[j, j] = False
            if rule in (MIN_FILL, MIN_WEIGHTED_FILL):
                touched |= graph[j]
        for j in np.flatnonzero(touched & there):
            costs[j], sizes[j] = _cost(graph, there, int(j), logs, rule), _cost(graph, there, int(j), logs, MIN_SIZE)
    return order, beside


@inner
def _cells(order: Ints, beside: Graph, logs: Floats) -> float:
    """Cells of the maximal cliques of an order: one lies in an earlier one where that had just one attribute more."""
    count = order.size
    place, larger = np.empty(count, np.int64), np.zeros(count, np.int64)
    for step in range(count):
        place[order[step]] = step
    total = 0.0
    for step in range(count):
        degree, follower, log_cells = 0, count, logs[order[step]]
        for j in np.flatnonzero(beside[order[step]]):
            degree += 1
            log_cells += logs[j]
            follower = min(follower, place[j])
        if larger[step] <= degree:
            total += math.exp(min(log_cells, 700.0))  # beyond 709 Python raises, and machine code has infinity
        if follower < count:
            larger[follower] = max(larger[follower], degree)
    return total


@compiled
def _ordered(graph: Graph, logs: Floats, rule: int, keep: Flags, ranks: Ints) -> tuple[Ints, Graph]:
    """As `_eliminated`, for Python."""
    return _eliminated(graph, logs, rule, keep, ranks)


@compiled
def small_with(graph: Graph, logs: Floats, added: Ints, limit: float, tried: int) -> Flags:
    """For each candidate whether a graph with it has a triangulation of at most `limit` cells by some heuristic.

    Args:
        graph: of all attributes.
        logs: logarithms of their sizes.
        added: candidates × attributes: their places, filled up with -1.
        tried: how many of the `HEURISTICS`.
    """
    small, count = np.zeros(added.shape[0], np.bool_), graph.shape[0]
    keep, ranks = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    for c in range(added.shape[0]):
        whole = graph.copy()
        for i in added[c]:
            for j in added[c]:
                if i >= 0 and j >= 0 and i != j:
                    whole[i, j] = True
        for rule in range(tried):
            order, beside = _eliminated(whole.copy(), logs, rule, keep, ranks)
            if _cells(order, beside, logs) <= limit * (1 + 1e-9):
                small[c] = True
                break
    return small


def by_work(loop: F, work: int) -> F:
    """The loop, or the same as Python where there is little to do.

    Args:
        work: columns × cliques.
    """
    return cast("F", loop.py_func) if work <= LITTLE and isinstance(loop, Compiled) else loop


def eliminate(
    graph: Graph,
    sizes: Sequence[int],
    rule: int,
    *,
    keep: Bits = 0,
    rng: np.random.Generator | None = None,
    work: int = LITTLE + 1,
) -> list[tuple[int, Bits]]:
    """A greedy order: each time the attribute of least cost goes, and those beside it are joined.

    Args:
        rule: one of the `HEURISTICS`.
        keep: attributes that are not eliminated.
        rng: None: always the least cost (ties by size, then place); else one of the `BEST` at random.
        work: as of `by_work`.
    Returns:
        pairs of an eliminated attribute and its clique: itself and those beside it at that time.
    """
    staying = np.zeros(len(sizes), np.bool_)
    staying[[*members(keep)]] = True
    steps = int((~staying).sum())
    ranks = [0 if rng is None else int(rng.integers(min(BEST, left))) for left in range(steps, 0, -1)]
    order, beside = by_work(_ordered, work)(graph.copy(), logarithms(sizes), rule, staying, np.array(ranks, np.int64))
    rows = np.packbits(beside, axis=1, bitorder="little")
    return [(i, int.from_bytes(rows[i].tobytes(), "little") | 1 << i) for i in order.tolist()]


def maximal(cliques: Sequence[Bits]) -> list[Bits]:
    """The cliques that lie in no other, each once, in their order."""
    largest: list[Bits] = []
    of_member: dict[int, list[Bits]] = {}  # attribute → those of the largest with it: one that holds a clique is there
    for clique in sorted(set(cliques), key=lambda c: (-c.bit_count(), c)):
        first = clique.bit_length()
        if not any(clique & other == clique for other in of_member.get(first, largest if not clique else ())):
            largest.append(clique)
            for i in members(clique):
                of_member.setdefault(i + 1, []).append(clique)
    return sorted(largest)


def cells_of(clique: Bits, sizes: Sequence[int]) -> int:
    """Cells of a clique, as an exact integer."""
    return math.prod(sizes[i] for i in members(clique))


@lru_cache(maxsize=32)
def best_cover(cliques: tuple[Bits, ...], sizes: tuple[int, ...], tries: int = RANDOM_TRIES) -> tuple[Bits, ...]:
    """The maximal cliques of a triangulation, of the smallest total size that any heuristic finds.

    Every heuristic once, then `tries` randomised min-size searches with a fixed seed. Attributes in no clique become
    cliques of one.
    """
    graph, work = neighbours(len(sizes), cliques), len(sizes) * max(len(cliques), tries)
    rng = np.random.default_rng(SEED)
    searches: list[tuple[int, np.random.Generator | None]] = [(rule, None) for rule in HEURISTICS]
    searches += [((MIN_SIZE, MIN_FILL)[i % 2], rng) for i in range(tries)]
    best: list[Bits] = []
    least = math.inf
    chordal = sum(cells_of(c, sizes) for c in maximal([*cliques, *(1 << i for i in range(len(sizes)))]))
    for rule, source in searches:
        cover = maximal([c for _, c in eliminate(graph, sizes, rule, rng=source, work=work)])
        total = sum(cells_of(c, sizes) for c in cover)
        if total < least:
            best, least = cover, total
        if least <= chordal:
            break  # no triangulation is smaller than the cliques themselves
    return tuple(best)


def bits_of(names: Clique, index: dict[str, int]) -> Bits:
    """A clique of names as bits."""
    return sum(1 << index[n] for n in set(names))
