"""Marginals of any attributes of a graphical model: from one node, or by variable elimination over several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from synthesis.pgm.elimination import HEURISTICS, bits_of, cells_of, eliminate, members, neighbours
from synthesis.pgm.inference import JunctionTreeInference, onto
from synthesis.pgm.junction_tree import JunctionTree

#: The largest table that variable elimination may build, in cells.
MAX_CELLS = 50_000_000

Factor = tuple[Clique, Values]


def model_marginal(engine: JunctionTreeInference, marginals: Values, clique: Clique) -> Values:
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


def _factors(engine: JunctionTreeInference, marginals: Values, clique: Clique) -> list[Factor]:
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
    orders = [eliminate(graph, sizes, cost, keep=keep) for cost in HEURISTICS.values()]
    order = min(orders, key=lambda o: max((cells_of(c, sizes) for _, c in o), default=0))
    largest = max([cells_of(c, sizes) for _, c in order] + [domain.cells(clique)])
    return [(names[i], tuple(names[j] for j in members(joint) if j != i)) for i, joint in order], largest


def _eliminated(domain: Domain, factors: list[Factor], clique: Clique) -> Values:
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


def _product(factors: Sequence[Factor], held: Clique) -> Values:
    """The product of some factors, summed to some attributes."""
    number = {n: i for i, n in enumerate(dict.fromkeys(n for c, _ in factors for n in c))}
    arguments: list[object] = []
    for clique, table in factors:
        arguments += [table, [number[n] for n in clique]]
    result = np.einsum(*arguments, [number[n] for n in held], optimize=True)  # type: ignore[call-overload]
    return np.asarray(result, dtype=np.float64)
