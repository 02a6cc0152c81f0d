"""The slots of a tree that is chosen privately: a fact of the candidates' graph, whatever is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.accounting.plan import Reservation
from mechanisms.public.designs.tree import forest_edges
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.adaptive_grid import subsets
from mechanisms.selection.base import CHOOSE, CHOSEN, GIVEN

#: What the parts of the budget are for.
STAGES = ("one-way", "choice", "measurement")


def tree_slots(
    domain: Domain, candidates: Sequence[Clique], split: Sequence[float], targets: Clique = ()
) -> list[Reservation]:
    """One-way marginals (with the targets), then as many choices as the tree has edges, then its marginals.

    Args:
        split: parts of the budget for the three stages; equal within a stage.
    """
    first = first_marginals(domain, targets)
    count, new = forest_edges(candidates), [(), *subsets(targets)]
    largest = max((domain.cells(c) for c in candidates), default=0)
    slots = [Reservation(GIVEN, c, domain.cells(c), split[0] / len(first)) for c in first]
    slots += [Reservation(CHOOSE, None, 0, split[1] / count) for _ in range(count)]
    for extra in new if count else ():
        cells = largest * domain.cells(extra)
        slots += [Reservation(CHOSEN, None, cells, split[2] / count / len(new)) for _ in range(count)]
    return slots


def first_marginals(domain: Domain, targets: Clique = ()) -> list[Clique]:
    """Every attribute with the targets, and all subsets, smaller ones first."""
    marginals = {domain.canonical(s) for a in domain.names for s in subsets(domain.canonical((a, *targets)))}
    return sorted(marginals, key=lambda c: (len(c), domain.axes(c)))
