"""Settings of the selections that start from given marginals: a list, a downward closure, or all k-way marginals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload, all_k_way, closure, explicit, reweighted, without_joints
from mechanisms.selection.base import GIVEN, Facts, Selection


@dataclass(frozen=True)
class GivenMarginals(Selection):
    """Marginals from public facts.

    Attributes:
        marginals: exactly these.
        closure: these and all their subsets.
        k: all k-way marginals for these k, where neither of the two above is given.
        weights: relative weights of some of them.
        max_cells: larger marginals are left out (an error for `marginals`).
    """

    marginals: list[list[str]] | None = None
    closure: list[list[str]] | None = None
    k: list[int] = setting([1, 2], least=1, filled=True)
    weights: list[dict[str, Any]] | None = None
    max_cells: int = setting(5_000, least=1)

    @property
    def named(self) -> bool:
        return self.marginals is not None or self.closure is not None

    def workload(self, facts: Facts) -> Workload:
        """The marginals with their weights, smaller ones first."""
        domain = facts.domain
        if self.marginals is not None and self.closure is not None:
            raise UserError("both are set", where="selection.marginals, selection.closure", fix="set one of the two")
        if self.marginals is not None:
            if not self.marginals:
                raise UserError("the list is empty", where="selection.marginals", fix="name at least one marginal")
            workload = explicit(domain, self.marginals, max_cells=self.max_cells)
        elif self.closure is not None:
            workload = closure(domain, self.closure, max_cells=self.max_cells)
        else:
            default = [1, 2] if len(domain) > 1 else [1]  # a table of one column has no pairs
            workload = all_k_way(domain, default if self.k == [1, 2] else self.k, max_cells=self.max_cells)
        workload = without_joints(workload, facts.alone, self.named)
        return reweighted(domain, workload, [_weight_entry(entry) for entry in self.weights or []])


def given_slots(domain: Domain, workload: Workload) -> list[Reservation]:
    """One slot per marginal, by order (McKenna 2021: rounds k = 1, 2, 3, 4); its weight is its number of copies."""
    given = sorted(zip(workload.cliques, workload.weights, strict=True), key=lambda one: len(one[0]))
    return [Reservation(GIVEN, clique, domain.cells(clique), weight) for clique, weight in given]


def _weight_entry(entry: dict[str, object]) -> tuple[list[str], float]:
    names, weight = entry.get("marginal"), entry.get("weight")
    if set(entry) != {"marginal", "weight"} or not isinstance(names, list) or not isinstance(weight, int | float):
        raise UserError(f"got {entry}", where="selection.weights", fix="[{marginal: [age, sex], weight: 2}]")
    return [str(n) for n in names], float(weight)
