"""Junction trees: from any set of cliques to a forest on which inference is exact; sizes before the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mechanisms.public.arrays import Flags
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, first_few
from synthesis.pgm.elimination import (
    HEURISTICS,
    best_cover,
    bits_of,
    by_work,
    cells_of,
    joined,
    logarithms,
    maximal,
    members,
    neighbours,
    small_with,
)


@dataclass(frozen=True)
class JunctionTree:
    """A forest of cliques in which every attribute's cliques hang together.

    Attributes:
        domain: sizes of all attributes; every one is in some clique.
        cliques: for each node its attributes: first those shared with its parent, then the others, each part in
            domain order. A node's table has these axes.
        parents: for each node the number of its parent, which is smaller than its own; -1 for a root.
        separators: for each node the attributes shared with its parent; empty for a root.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.domain.shape(c) for c in self.cliques)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.domain.cells(c) for c in self.cliques)

    @property
    def cells(self) -> int:
        """Cells of all nodes together."""
        return sum(self.sizes)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(j for j, p in enumerate(self.parents) if p == i) for i in range(len(self.cliques)))

    @cached_property
    def tops(self) -> dict[str, int]:
        """For each attribute the node nearest to the root that holds it: it shares it with no parent."""
        held = zip(self.cliques, self.separators, strict=True)
        return {n: node for node, (clique, above) in enumerate(held) for n in clique[len(above) :]}

    @cached_property
    def _holders(self) -> dict[str, frozenset[int]]:
        """For each attribute the nodes that hold it."""
        return {n: frozenset(i for i, c in enumerate(self.cliques) if n in c) for n in self.domain.names}

    def home(self, clique: Clique) -> int | None:
        """The smallest node that contains a clique; None where none does."""
        homes = frozenset.intersection(*(self._holders[n] for n in clique)) if clique else range(len(self.cliques))
        return min(homes, key=lambda i: (self.sizes[i], i), default=None)


def junction_tree(
    domain: Domain, cliques: Sequence[Clique], *, fixed: Sequence[Clique] = (), max_cells: int | None = None
) -> JunctionTree:
    """The smallest junction tree found for these cliques; attributes in no clique become nodes of their own.

    Args:
        fixed: further cliques that it must hold (of impossible combinations), and that nobody can leave out.
        max_cells: the largest number of cells of all nodes together.
    Raises:
        UserError: an unknown attribute; more cells than `max_cells`, naming marginals to drop.
    """
    index = {n: domain.index(n) for c in (*cliques, *fixed) for n in c}
    cover = best_cover(tuple(bits_of(c, index) for c in (*cliques, *fixed)), domain.shape(domain.names))
    if max_cells is not None:
        _check_size(domain, cliques, fixed, cover, max_cells)
    return _rooted(domain, cover)


def model_cells(domain: Domain, cliques: Sequence[Clique]) -> int:
    """Predicted cells of the junction tree of these cliques: exact integer, nothing is allocated."""
    index = {n: domain.index(n) for c in cliques for n in c}
    sizes = domain.shape(domain.names)
    return sum(cells_of(c, sizes) for c in best_cover(tuple(bits_of(c, index) for c in cliques), sizes, 0))


def still_small(domain: Domain, cliques: Sequence[Clique], candidates: Sequence[Clique], max_cells: int) -> Flags:
    """For each candidate whether a model of the cliques and it has at most `max_cells` cells, predicted."""
    index = {n: domain.index(n) for n in domain.names}
    graph, sizes = neighbours(len(domain), [bits_of(c, index) for c in cliques]), domain.shape(domain.names)
    added = np.full((len(candidates), max(map(len, candidates), default=0)), -1, dtype=np.int64)
    for row, clique in zip(added, candidates, strict=True):
        row[: len(clique)] = [index[n] for n in clique]
    return np.asarray(small_with(graph, logarithms(sizes), added, float(max_cells), len(HEURISTICS)))


def fit_cliques(
    domain: Domain,
    cliques: Sequence[Clique],
    useful: Sequence[float],
    max_cells: int,
    *,
    fixed: Sequence[Clique] = (),
) -> tuple[tuple[Clique, ...], tuple[Clique, ...]]:
    """Which cliques a model of at most `max_cells` cells can hold: kept and dropped, both in the given order.

    The most useful first; a clique with which the model would be too large is dropped. `useful` must not depend on
    private data, unless it was measured with noise. What is `fixed` (impossible combinations) is in every model.

    Raises:
        UserError: not even independent columns fit, or not what is fixed.
    """
    return _fit(domain, tuple(cliques), tuple(useful), max_cells, tuple(fixed))


@lru_cache(maxsize=32)  # a run asks several times, a sweep for each of its jobs: seconds each
def _fit(
    domain: Domain, cliques: tuple[Clique, ...], useful: tuple[float, ...], max_cells: int, fixed: tuple[Clique, ...]
) -> tuple[tuple[Clique, ...], tuple[Clique, ...]]:
    index = {n: domain.index(n) for n in domain.names}
    sizes = domain.shape(domain.names)
    if sum(sizes) > max_cells:
        raise UserError(
            f"the columns alone have {sum(sizes):,} values, more than {max_cells:,}",
            where="synthesis.max_cells",
            fix="raise it, or use coarser bins in the schema",
        )
    chosen = set[int]()
    outer = maximal([bits_of(domain.canonical(c), index) for c in fixed])
    graph, logs = neighbours(len(sizes), outer), logarithms(sizes)
    small = by_work(small_with, len(sizes) * len(cliques))

    def fits(places: list[int], tried: int) -> bool:
        return bool(small(graph, logs, np.array([places], np.int64), float(max_cells), tried)[0])

    tried = 2 if fits([], 2) else len(HEURISTICS)  # rules in a ring: two miss much
    if outer and (least := model_cells(domain, fixed)) > max_cells:
        raise UserError(
            f"a model of the schema's impossible combinations alone has {least:,} cells, more than {max_cells:,}",
            where="synthesis.max_cells",
            fix="raise it, or declare fewer of them (impossible, ordered) or coarser bins in the schema",
        )
    for i in sorted(range(len(cliques)), key=lambda i: (-useful[i], i)):
        bits = bits_of(cliques[i], index)
        if bits.bit_count() == 1 or any(bits & o == bits for o in outer):  # every model has all columns alone
            chosen.add(i)
            continue
        if cells_of(bits, sizes) <= max_cells and fits([*members(bits)], tried):
            chosen.add(i)
            outer = maximal([*outer, bits])
            joined(graph, bits)
    inside = tuple(c for i, c in enumerate(cliques) if i in chosen)
    return inside, tuple(c for i, c in enumerate(cliques) if i not in chosen)


def _check_size(
    domain: Domain, cliques: Sequence[Clique], fixed: Sequence[Clique], cover: Sequence[int], max_cells: int
) -> None:
    sizes = domain.shape(domain.names)
    total = sum(cells_of(c, sizes) for c in cover)
    if total <= max_cells:
        return
    distinct = list(dict.fromkeys(cliques))
    alone = {c: float(domain.cells(c)) for c in distinct}  # the largest marginals go first
    dropped: tuple[Clique, ...] = ()
    if sum(sizes) <= max_cells:
        dropped = fit_cliques(domain, distinct, [-alone[c] for c in distinct], max_cells, fixed=fixed)[1]
    names = [" × ".join(c) for c in sorted(dropped, key=lambda c: -alone[c])]
    drop = f"leave out {first_few(names, 5)} (selection.fit=true does so by itself), or " if names else ""
    largest = max(cover, key=lambda c: cells_of(c, sizes))
    joint = " × ".join(domain.names[i] for i in members(largest))
    raise UserError(
        f"the graphical model of these marginals would have {total:,} cells, more than {max_cells:,}; its largest "
        f"table is {joint} with {cells_of(largest, sizes):,}",
        where="synthesis.max_cells",
        fix=f"{drop}raise synthesis.max_cells",
    )


def _rooted(domain: Domain, cover: Sequence[int]) -> JunctionTree:
    """A forest of largest overlaps (Prim's algorithm), each tree rooted in its largest clique."""
    sizes = domain.shape(domain.names)
    left = sorted(cover, key=lambda c: (-cells_of(c, sizes), c))
    placed: list[int] = []
    parents: list[int] = []
    link: dict[int, tuple[int, int]] = {}  # of a clique left: its largest overlap, and with which node
    while left:
        best = max(left, key=lambda c: link.get(c, (0, -1))[0])
        parent = link.get(best, (0, -1))[1]
        left.remove(best)
        placed.append(best)
        parents.append(parent)
        for other in left:
            overlap = (other & best).bit_count()
            if overlap > link.get(other, (0, -1))[0]:
                link[other] = (overlap, len(placed) - 1)
    separators = [c & placed[p] if p >= 0 else 0 for c, p in zip(placed, parents, strict=True)]

    def names(bits: int) -> Clique:
        return tuple(domain.names[i] for i in members(bits))

    cliques = tuple(names(s) + names(c & ~s) for c, s in zip(placed, separators, strict=True))
    return JunctionTree(domain, cliques, tuple(parents), tuple(names(s) for s in separators))
