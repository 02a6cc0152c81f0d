"""What marginals that are chosen later may take: upper bounds from the plan alone, for `plan` and the memory check."""

from __future__ import annotations

import math

from mechanisms.accounting.adaptive import AdaptivePlan
from mechanisms.accounting.plan import Plan
from mechanisms.public.domain import Domain
from mechanisms.public.methods import Adagrid, Aim, Indif, Merge, Mst, Mwem, PrivBasis, PriView

#: The name of a marginal that is not known yet.
LATER = "a marginal chosen later"


def later_cells(plan: Plan | AdaptivePlan, domain: Domain) -> list[tuple[str, int]]:
    """Name and most cells of every marginal that is chosen later: those of slots, and those that a purse may buy."""
    if isinstance(plan, Plan):
        return []
    slots = [s.reservation for s in plan.slots]
    found = [(LATER, s.cells) for s in slots if s.cells and not s.clique]
    match plan.method:
        case Aim() as aim:
            largest = max((domain.cells(c) for c in aim.candidates), default=0)
            return found + [(LATER, min(largest, aim.max_model_cells))] * aim.rounds
        case Indif() as indif:
            return found + [(" × ".join(c), max(domain.cells(c), indif.combine_cells)) for c in indif.candidates]
        case PriView() as views:
            design = max(views.designs, key=lambda d: sum(map(domain.cells, d)))
            return found + [(" × ".join(c), domain.cells(c)) for c in design]
        case PrivBasis() as basis:
            alone = [(n, domain[n].size) for n in domain.names]
            return found + alone + [(LATER, basis.max_cells)] * basis.wanted
        case _:
            return found


def limits_model(plan: Plan | AdaptivePlan) -> bool:
    """Whether a graphical model of at most selection.max_model_cells is fitted between the rounds."""
    return isinstance(plan, AdaptivePlan) and isinstance(plan.method, Aim | Mwem)


def grown_cells(plan: Plan | AdaptivePlan, domain: Domain, limit: int) -> int:
    """The most cells of a graphical model of all that may be measured; 0 where nothing is chosen later.

    A tree's model is the tree; `aim` and `mwem` keep to selection.max_model_cells; elsewhere only the limit is known.

    Args:
        limit: synthesis.max_cells.
    """
    if isinstance(plan, Plan) or not later_cells(plan, domain):
        return 0
    known = sum(s.reservation.cells for s in plan.slots)  # a tree's slots are as large as its largest edge
    match plan.method:
        case Aim() | Mwem():
            found = plan.method.max_model_cells
        case Adagrid() | Mst() | Merge():
            found = known
        case _:
            found = limit
    return min(found, limit, math.prod(domain.shape(domain.names)))
