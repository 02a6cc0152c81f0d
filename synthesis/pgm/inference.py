"""Exact inference on a junction tree: one pass to the roots in logarithms, one back; marginals of any attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.axis_sums import summed_over
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from synthesis.pgm.elimination import HEURISTICS, bits_of, cells_of, eliminate, members, neighbours
from synthesis.pgm.junction_tree import JunctionTree
from synthesis.pgm.kernels import normalize_rows, scale_rows, shift_rows

#: Cells worked on at a time: a quarter of a megabyte.
NEAR_CELLS = 1 << 15


def onto(clique: Clique, part: Clique) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How a table over `clique` is summed to `part`: the axes that go, then the order of those left."""
    gone = tuple(i for i, n in enumerate(clique) if n not in part)
    left = [n for n in clique if n in part]
    return gone, tuple(left.index(n) for n in part)


def spread(table: Floats, part: Clique, clique: Clique) -> Floats:
    """A view of a table over `part` that broadcasts against tables over `clique`."""
    inside = sorted(range(len(part)), key=lambda i: clique.index(part[i]))
    shape = iter([table.shape[i] for i in inside])
    return table.transpose(inside).reshape([next(shape) if n in part else 1 for n in clique])


def _normalized(table: Floats) -> Floats:
    """Rows of logarithms become probabilities, in place; back come the logarithms of their sums.

    Some rows at a time, so that they stay near the processor from the first pass over them to the last.
    """
    top = np.empty(len(table))
    step = max(1, NEAR_CELLS // table.shape[1])
    for start in range(0, len(table), step):
        some, over = table[start : start + step], top[start : start + step]
        shift_rows(some, over)
        np.exp(some, out=some)
        normalize_rows(some, over)
    return top


@dataclass(frozen=True, eq=False)
class JunctionTreeInference:
    """Inference for tables in one flat array: node after node, each in C order of the axes of its clique.

    Attributes:
        tree: the junction tree.
        allowed: 0 where a cell is possible, -inf where it is not (flat); None: every cell is possible.
    """

    tree: JunctionTree
    allowed: Floats | None = None

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        return tuple(int(i) for i in np.cumsum((0, *self.tree.sizes)))

    def views(self, flat: Floats) -> list[Floats]:
        """The nodes' tables, as views."""
        return [self.view(flat, node) for node in range(len(self.tree.cliques))]

    def view(self, flat: Floats, node: int) -> Floats:
        """A node's table, as a view."""
        return flat[self.offsets[node] : self.offsets[node + 1]].reshape(self.tree.shapes[node])

    def rows(self, node: int, table: Floats) -> Floats:
        """A node's table as a matrix: a row per setting of the separator."""
        return table.reshape(math.prod(table.shape[: len(self.tree.separators[node])]), -1)

    def conditionals(self, potentials: Floats, flat: Floats | None = None) -> tuple[Floats, float]:
        """The pass towards the roots: probabilities of each node's cells given its separator, and log Z.

        Every row of a table is shifted by its largest entry before the exponential, so no size of potentials
        overflows, and impossible cells (-inf) are exactly 0.

        Args:
            flat: what the probabilities are written to; None: a new array.
        Raises:
            UserError: no combination is possible.
        """
        tree = self.tree
        flat = np.empty_like(potentials) if flat is None else flat
        np.copyto(flat, potentials)
        if self.allowed is not None:
            flat += self.allowed
        tables, log_z = self.views(flat), 0.0
        for node in reversed(range(len(tables))):
            top = _normalized(self.rows(node, tables[node]))
            parent = tree.parents[node]
            if parent < 0:
                log_z += float(top[0])
                continue
            separator = tree.separators[node]
            tables[parent] += spread(top.reshape(tree.domain.shape(separator)), separator, tree.cliques[parent])
        if log_z == -math.inf:
            fix = "declare fewer combinations impossible"
            raise UserError("no combination of values is possible", where="schema", fix=fix)
        return flat, log_z

    def infer(self, potentials: Floats, flat: Floats | None = None) -> Floats:
        """Marginal probabilities of all nodes (flat). Cost: one exponential and about ten passes per cell."""
        flat, _ = self.conditionals(potentials, flat)
        tree, tables = self.tree, self.views(flat)
        sums: dict[tuple[int, Clique], Floats] = {}
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                side = self._side(tables, parent, tree.separators[node], sums)
                scale_rows(self.rows(node, tables[node]), side.ravel())
        return flat

    def _side(
        self, tables: Sequence[Floats], parent: int, separator: Clique, sums: dict[tuple[int, Clique], Floats]
    ) -> Floats:
        """A parent's table summed to a separator, once for all children that share it."""
        if (parent, separator) not in sums:
            gone, order = onto(self.tree.cliques[parent], separator)
            sums[parent, separator] = np.ascontiguousarray(summed_over(tables[parent], gone).transpose(order))
        return sums[parent, separator]

    def least(self, costs: Floats) -> float:
        """The smallest sum of costs over all possible combinations of all attributes."""
        tree, flat = self.tree, costs.copy()
        tables, total = self.views(flat), 0.0
        allowed = self.views(np.zeros_like(flat) if self.allowed is None else self.allowed)
        for node in reversed(range(len(tables))):
            table = self.rows(node, tables[node])
            low = table.min(axis=1, where=self.rows(node, allowed[node]) == 0.0, initial=np.inf)
            parent = tree.parents[node]
            if parent < 0:
                total += float(low[0])
            else:
                shape = tree.domain.shape(tree.separators[node])
                tables[parent] += spread(low.reshape(shape), tree.separators[node], tree.cliques[parent])
        return total


#: The largest table that variable elimination may build, in cells.
MAX_CELLS = 50_000_000

Factor = tuple[Clique, Floats]


def model_marginal(engine: JunctionTreeInference, marginals: Floats, clique: Clique) -> Floats:
    """Probabilities of the cells of any clique, flattened in C order of the clique as given.

    Args:
        marginals: probabilities of the nodes' cells (flat).
    Raises:
        UserError: a table on the way has more than MAX_CELLS cells.
    """
    tree = engine.tree
    home = tree.home(clique)
    if home is not None:
        gone, order = onto(tree.cliques[home], clique)
        return np.asarray(engine.view(marginals, home).sum(axis=gone).transpose(order)).ravel()
    return _eliminated(tree.domain, _factors(engine, marginals, clique), clique).ravel()


def largest_table(tree: JunctionTree, clique: Clique) -> int:
    """Cells of the largest table that `model_marginal` builds for a clique; nothing is computed."""
    if tree.home(clique) is not None:
        return tree.domain.cells(clique)
    return _order(tree.domain, [held for _, held, _ in _needed(tree, clique)], clique)[1]


def _needed(tree: JunctionTree, clique: Clique) -> list[tuple[int, Clique, Clique]]:
    """The nodes of the smallest subtrees that hold the clique's attributes: number, attributes kept, separator.

    A root gives its marginal, every other node its probabilities given the separator. Nodes that only sum to 1 are
    left out from the leaves up, then from the root down; each node is first summed to what is asked or shared.
    """
    names = set(clique)
    used: set[int] = set()
    for node in {tree.tops[n] for n in clique}:
        while node >= 0 and node not in used:
            used.add(node)
            node = tree.parents[node]
    for node in sorted(used):
        children = [c for c in tree.children[node] if c in used]
        top = tree.parents[node] not in used
        if top and len(children) == 1 and set(tree.cliques[node]) & names <= set(tree.cliques[children[0]]):
            used.discard(node)
    needed = []
    for node in sorted(used):
        shared = {n for c in tree.children[node] if c in used for n in tree.separators[c]}
        separator = tree.separators[node] if tree.parents[node] in used else ()
        held = tuple(n for n in tree.cliques[node] if n in names | shared | set(separator))
        needed.append((node, held, separator))
    return needed


def _factors(engine: JunctionTreeInference, marginals: Floats, clique: Clique) -> list[Factor]:
    """Factors whose product, summed to the clique, is its marginal."""
    factors, tree = [], engine.tree
    for node, held, separator in _needed(tree, clique):
        gone, _ = onto(tree.cliques[node], held)
        table = np.asarray(engine.view(marginals, node).sum(axis=gone))
        if separator:
            sums = table.sum(axis=tuple(range(len(separator), table.ndim)), keepdims=True)
            table = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
        factors.append((held, table))
    return factors


def _order(domain: Domain, cliques: Sequence[Clique], clique: Clique) -> tuple[list[tuple[str, Clique]], int]:
    """Attributes to sum out of a product, each with the others of its joint table, and that of the largest.

    The order of the heuristic whose largest table is smallest.
    """
    together = {n for c in cliques for n in c}
    if together <= set(clique):  # independent parts: nothing is summed out
        return [], domain.cells(clique)
    names = domain.canonical(together)
    index = {n: i for i, n in enumerate(names)}
    graph = neighbours(len(names), [bits_of(c, index) for c in cliques])
    sizes, keep = domain.shape(names), bits_of(clique, index)
    orders = [eliminate(graph, sizes, rule, keep=keep) for rule in HEURISTICS]
    order = min(orders, key=lambda o: max((cells_of(c, sizes) for _, c in o), default=0))
    largest = max([cells_of(c, sizes) for _, c in order] + [domain.cells(clique)])
    return [(names[i], tuple(names[j] for j in members(joint) if j != i)) for i, joint in order], largest


def _eliminated(domain: Domain, factors: list[Factor], clique: Clique) -> Floats:
    """The product of factors, summed over all attributes but the clique's."""
    order, largest = _order(domain, [c for c, _ in factors], clique)
    if largest > MAX_CELLS:
        raise UserError(
            f"the marginal of {' × '.join(clique)} needs a table of {largest:,} cells, more than {MAX_CELLS:,}",
            where="marginal",
            fix="ask for fewer or coarser columns",
        )
    for name, rest in order:
        having = [f for f in factors if name in f[0]]
        factors = [f for f in factors if name not in f[0]] + [(rest, _product(having, rest))]
    return _product(factors, clique)


def _product(factors: Sequence[Factor], held: Clique) -> Floats:
    """The product of some factors, summed to some attributes."""
    number = {n: i for i, n in enumerate(dict.fromkeys(n for c, _ in factors for n in c))}
    arguments: list[object] = []
    for clique, table in factors:
        arguments += [table, [number[n] for n in clique]]
    result = np.einsum(*arguments, [number[n] for n in held], optimize=True)  # type: ignore[call-overload]
    return np.asarray(result, dtype=np.float64)
