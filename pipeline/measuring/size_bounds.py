"""What marginals that are chosen later may take: upper bounds from the plan alone, for `plan` and the memory check."""

from __future__ import annotations

import math

from mechanisms.accounting.plan import Plan
from mechanisms.public.domain import Domain
from mechanisms.selection.selections import method_of


def later_cells(plan: Plan, domain: Domain) -> list[tuple[str, int]]:
    """Name and most cells of every marginal that is chosen later: those of slots, and those that a reserve may buy."""
    return method_of(plan.method).later_cells(domain, [s.reservation for s in plan.slots])


def limits_model(plan: Plan) -> bool:
    """Whether a graphical model of limited size is fitted between the rounds."""
    return method_of(plan.method).max_cells_between is not None


def grown_cells(plan: Plan, domain: Domain, limit: int) -> int:
    """The most cells of a graphical model of all that may be measured; 0 where nothing is chosen later.

    Args:
        limit: synthesis.max_cells.
    """
    if not later_cells(plan, domain):
        return 0
    cells = method_of(plan.method).grown_cells([s.reservation for s in plan.slots])
    return min(limit if cells is None else cells, limit, math.prod(domain.shape(domain.names)))
