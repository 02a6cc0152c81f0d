"""Trees over attributes: which pairs still join two components, and how many edges a spanning forest has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence

from mechanisms.public.domain import Clique, Domain

#: If there are more pairs than this (more than 316 columns), only pairs of important columns are screened.
MOST_PAIRS = 50_000


def pairs(domain: Domain, names: Sequence[str], max_cells: int, further: Clique = ()) -> tuple[Clique, ...]:
    """All pairs of the attributes whose marginal, `further` attributes included, has at most max_cells cells."""
    every = itertools.combinations(names, 2)
    return tuple(p for p in every if domain.cells(p) * domain.cells(further) <= max_cells)


def pairs_looked_at(names: Sequence[str], important: Collection[str]) -> tuple[Clique, ...]:
    """All pairs; where these are too many those with an important column, or of two; where these are too many, none."""
    if math.comb(len(names), 2) <= MOST_PAIRS:
        return tuple(itertools.combinations(names, 2))
    place = {n: i for i, n in enumerate(names)}
    marked = sorted(place[n] for n in set(important) if n in place)
    one = math.comb(len(names), 2) - math.comb(len(names) - len(marked), 2)
    for count, others in ((one, range(len(names))), (math.comb(len(marked), 2), marked)):
        if count <= MOST_PAIRS:
            joined = {(min(i, j), max(i, j)) for i in marked for j in others if i != j}
            return tuple((names[i], names[j]) for i, j in sorted(joined))
    return ()


def passed_over_line(count: int, looked_at: Collection[Clique]) -> str:
    """That so many pairs are not looked at, and the way out, in words."""
    seen = (
        f"{len(looked_at):,} pairs with important columns alone are looked at"
        if looked_at
        else "columns alone are measured"
    )
    why = "the noise of a look, and its time, grow with the number of pairs"
    return f"{count:,} pairs are too many: {seen}, {why}; selection.important=[a,b] names columns whose pairs matter"


def joining(candidates: Collection[Clique], edges: Collection[Clique]) -> list[Clique]:
    """The candidates whose two attributes the edges do not connect yet, in the order given."""
    home: dict[str, str] = {}
    _joined(edges, home)
    return [c for c in candidates if _root(home, c[0]) != _root(home, c[1])]


def forest_edges(candidates: Collection[Clique]) -> int:
    """How many edges a spanning forest of the candidates' graph has: a fact of the graph, whatever is chosen."""
    return len(_joined(candidates, {}))


def heaviest_forest(candidates: Sequence[Clique], weights: Sequence[float]) -> tuple[int, ...]:
    """The places of a forest of the pairs of largest weights, all above 0, the heaviest first (Kruskal's algorithm)."""
    order = sorted((i for i in range(len(candidates)) if weights[i] > 0), key=lambda i: -weights[i])
    return tuple(order[k] for k in _joined([candidates[i] for i in order], {}))


def _joined(edges: Collection[Clique], home: dict[str, str]) -> list[int]:
    """The places of the edges that join two trees, which are one from then on."""
    taken = []
    for place, edge in enumerate(edges):
        one, two = (_root(home, n) for n in edge)
        if one != two:
            home[one] = two
            taken.append(place)
    return taken


def _root(home: dict[str, str], name: str) -> str:
    """The attribute that a tree is known by; what leads there is shortened."""
    while home.setdefault(name, name) != name:
        home[name] = home[home[name]]
        name = home[name]
    return name
