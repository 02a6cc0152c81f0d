"""The slots of each adaptive method, round by round, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.accounting.adaptive import Reservation
from mechanisms.public.adagrid import rounds_of, subsets
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.methods import Adagrid, Aim, Indif, Mst, Mwem, PrivBasis
from mechanisms.public.tree import forest_edges
from mechanisms.public.workload import Workload

#: Stages: the first measurements, the choices, and the measurements of what was chosen.
GIVEN, CHOOSE, CHOSEN, SCORES, PAIRS = "given", "choose", "chosen", "scores", "pairs"


def given_rounds(domain: Domain, workload: Workload) -> list[Reservation]:
    """One slot per marginal, by order (McKenna 2021: rounds k = 1, 2, 3, 4); its weight is its number of copies."""
    return [
        Reservation(GIVEN, workload.cliques[i], domain.cells(workload.cliques[i]), workload.weights[i])
        for places in rounds_of(workload.cliques)
        for i in places
    ]


def tree_rounds(domain: Domain, method: Adagrid | Mst, split: Sequence[float]) -> list[Reservation]:
    """One-way marginals (with the targets), then as many choices as the tree has edges, then its marginals.

    Args:
        split: parts of the budget for the three stages; equal within a stage.
    """
    targets = method.targets if isinstance(method, Adagrid) else ()
    first = first_marginals(domain, targets)
    edges, further = forest_edges(method.candidates), subsets(targets)
    new = [(), *further]
    parts = _parts(split, ("one-way", "choice", "measurement"))
    largest = max((domain.cells(c) for c in method.candidates), default=0)
    slots = [Reservation(GIVEN, c, domain.cells(c), parts[0] / len(first)) for c in first]
    slots += [Reservation(CHOOSE, None, 0, parts[1] / edges) for _ in range(edges)]
    for extra in new if edges else ():
        cells = largest * domain.cells(extra)
        slots += [Reservation(CHOSEN, None, cells, parts[2] / edges / len(new)) for _ in range(edges)]
    return slots


def first_marginals(domain: Domain, targets: Clique = ()) -> list[Clique]:
    """Every attribute with the targets, and all subsets, smaller ones first."""
    found = {domain.canonical(s) for a in domain.names for s in subsets(domain.canonical((a, *targets)))}
    return sorted(found, key=lambda c: (len(c), domain.axes(c)))


def mwem_rounds(domain: Domain, method: Mwem, split: Sequence[float]) -> list[Reservation]:
    """One-way marginals, then in each round a choice and a measurement of what was chosen."""
    parts = _parts(split, ("one-way", "choice", "measurement"))
    slots = [Reservation(GIVEN, (n,), domain[n].size, parts[0] / len(domain)) for n in domain.names]
    largest = max((domain.cells(c) for c in method.candidates), default=0)
    for _ in range(method.rounds):
        slots.append(Reservation(CHOOSE, None, 0, parts[1] / method.rounds))
        slots.append(Reservation(CHOSEN, None, largest, parts[2] / method.rounds))
    return slots


def aim_rounds(domain: Domain, method: Aim) -> tuple[list[Reservation], float]:
    """One-way marginals, each as precise as a round of the first size, and the part of the budget for all rounds."""
    one = method.measured / method.rounds
    slots = [Reservation(GIVEN, (n,), domain[n].size, one) for n in domain.names]
    return slots, 1 - one * len(domain)


def indif_rounds(domain: Domain, method: Indif, split: Sequence[float]) -> tuple[list[Reservation], float]:
    """One-way marginals, all distances from independence at once, and the part of the budget for what is chosen then.

    Args:
        split: parts of the budget for the three stages; the first is shared out by cells^(2/3).
    """
    parts = _parts(split, ("one-way", "scores", "measurement"))
    slots = _one_way(domain, parts[0])
    if method.candidates:
        slots.append(Reservation(SCORES, None, 0, parts[1], len(method.candidates)))
    return slots, parts[2]


def view_rounds(domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
    """One-way marginals, shared out by cells^(2/3), and the part of the budget for the views."""
    parts = _parts(split, ("one-way", "views"))
    return _one_way(domain, parts[0]), parts[1]


def basis_rounds(method: PrivBasis, split: Sequence[float]) -> tuple[list[Reservation], float]:
    """Choices of items, choices of pairs of them (none where all are taken), and the part for the basis."""
    parts = _parts(split, ("items", "pairs", "basis"))
    items, among = method.wanted, math.comb(method.wanted, 2)
    slots = []
    if items < len(method.items):
        slots += [Reservation(CHOOSE, None, 0, parts[0] / items) for _ in range(items)]
    if method.pairs < among:
        slots += [Reservation(PAIRS, None, 0, parts[1] / method.pairs) for _ in range(method.pairs)]
    return slots, parts[2]


def _one_way(domain: Domain, part: float) -> list[Reservation]:
    loads = [float(domain[n].size) ** (2 / 3) for n in domain.names]
    total = math.fsum(loads)
    return [
        Reservation(GIVEN, (n,), domain[n].size, part * load / total)
        for n, load in zip(domain.names, loads, strict=True)
    ]


def _parts(split: Sequence[float], names: Sequence[str]) -> tuple[float, ...]:
    if len(split) != len(names) or not all(0 < p < float("inf") for p in split):
        fix = f"{len(names)} numbers above 0, for {', '.join(names)}: selection.split=[1,1,1]"
        raise UserError(f"got {list(split)}", where="selection.split", fix=fix)
    return tuple(float(p) for p in split)
