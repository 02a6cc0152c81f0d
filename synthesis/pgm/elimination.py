"""Orders in which to eliminate attributes, and the cliques that an order makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from mechanisms.public.domain import Clique

#: Sets of attributes as bits of an integer: attribute i is 1 << i.
Bits = int
Cost = Callable[[int, Bits, Sequence[Bits], Sequence[float]], float]

#: Randomised searches beside the plain heuristics, with this seed.
RANDOM_TRIES = 24
SEED = 0


def members(bits: Bits) -> Iterator[int]:
    """The attributes of a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def neighbours(count: int, cliques: Sequence[Bits]) -> list[Bits]:
    """The graph in which the attributes of every clique are joined: for each attribute those beside it."""
    graph = [0] * count
    for clique in cliques:
        for i in members(clique):
            graph[i] |= clique & ~(1 << i)
    return graph


def _fill(i: int, beside: Bits, graph: Sequence[Bits], logs: Sequence[float]) -> float:
    return float(sum((beside & ~graph[j] & ~(1 << j)).bit_count() for j in members(beside)))


def _weighted_fill(i: int, beside: Bits, graph: Sequence[Bits], logs: Sequence[float]) -> float:
    return sum(logs[j] * logs[k] for j in members(beside) for k in members(beside & ~graph[j] & ~(1 << j)))


def _degree(i: int, beside: Bits, graph: Sequence[Bits], logs: Sequence[float]) -> float:
    return float(beside.bit_count())


def _size(i: int, beside: Bits, graph: Sequence[Bits], logs: Sequence[float]) -> float:
    return logs[i] + sum(logs[j] for j in members(beside))


HEURISTICS: dict[str, Cost] = {
    "min-size": _size,
    "min-fill": _fill,
    "min-weighted-fill": _weighted_fill,
    "min-degree": _degree,
}


def eliminate(
    graph: Sequence[Bits],
    sizes: Sequence[int],
    cost: Cost,
    *,
    keep: Bits = 0,
    rng: np.random.Generator | None = None,
) -> list[tuple[int, Bits]]:
    """A greedy order: each time the attribute of least cost goes, and those beside it are joined.

    Args:
        keep: attributes that are not eliminated.
        rng: None: always the least cost (ties by size, then place); else one of the three best at random.
    Returns:
        pairs of an eliminated attribute and its clique: itself and those beside it at that time.
    """
    now, logs = list(graph), [math.log(s) for s in sizes]
    left = [i for i in range(len(now)) if not keep >> i & 1]
    costs = {i: (cost(i, now[i], now, logs), _size(i, now[i], now, logs), i) for i in left}
    cliques = []
    while costs:
        ranked = [min(costs.values())] if rng is None else sorted(costs.values())[:3]
        gone = ranked[0 if rng is None else int(rng.integers(len(ranked)))][2]
        beside = now[gone]
        cliques.append((gone, beside | 1 << gone))
        touched = beside
        for j in members(beside):
            now[j] = (now[j] | beside) & ~(1 << gone | 1 << j)
            touched |= now[j]
        del costs[gone]
        for j in members(touched):
            if j in costs:
                costs[j] = (cost(j, now[j], now, logs), _size(j, now[j], now, logs), j)
    return cliques


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
    graph = neighbours(len(sizes), cliques)
    rng = np.random.default_rng(SEED)
    searches: list[tuple[Cost, np.random.Generator | None]] = [(cost, None) for cost in HEURISTICS.values()]
    searches += [((_size, _fill)[i % 2], rng) for i in range(tries)]
    best: list[Bits] = []
    least = math.inf
    chordal = sum(cells_of(c, sizes) for c in maximal([*cliques, *(1 << i for i in range(len(sizes)))]))
    for cost, source in searches:
        cover = maximal([c for _, c in eliminate(graph, sizes, cost, rng=source)])
        total = sum(cells_of(c, sizes) for c in cover)
        if total < least:
            best, least = cover, total
        if least <= chordal:
            break  # no triangulation is smaller than the cliques themselves
    return tuple(best)


def bits_of(names: Clique, index: dict[str, int]) -> Bits:
    """A clique of names as bits."""
    return sum(1 << index[n] for n in set(names))
