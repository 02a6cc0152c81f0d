"""Marginals that public facts give: a list, a downward closure, or all k-way ones; over merged values if asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.rules.computed import with_pairs
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload, all_k_way, closure, explicit, reweighted, without_joints
from mechanisms.selection.base import DEVIATIONS, GIVEN, RECORDS, Facts, Method, Schedule, Selection, check_floor
from mechanisms.selection.context import Context
from mechanisms.selection.questions import ask_given


@dataclass(frozen=True)
class GivenMarginals(Selection):
    """Marginals from public facts; conf/selection/pairs.yaml says what each setting is."""

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


@dataclass(frozen=True)
class Given(Method):
    """Marginals that public facts give, all at once: nothing is decided, and plans call it by no name."""

    kind: ClassVar[str] = ""

    def run(self, context: Context) -> None:
        """Every marginal, whole."""
        ask_given(context, "")


@dataclass(frozen=True)
class Merge(Method):
    """Given marginals over merged values (Li et al. 2021b, section 5.3): the one-way ones first, then the others.

    Attributes:
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records.
    """

    kind: ClassVar[str] = "merge"
    slots_tell: ClassVar[bool] = True
    rare: float = 4.5
    floor: float = 0.0

    def run(self, context: Context) -> None:
        """The one-way marginals, then the others with the values merged whose noisy counts are small."""
        given = [(s, s.clique) for s in context.slots(GIVEN)]
        context.ask([(s, c, Identity(context.domain.cells(c))) for s, c in given if len(c) == 1])
        groups = rare_groups(context.domain, context.answers_so_far, self.rare, self.floor)
        context.ask([(s, c, merged_query(context.domain, c, groups)) for s, c in given if len(c) > 1])


@dataclass(frozen=True)
class Fixed(GivenMarginals):
    """Settings; conf/selection/pairs.yaml says what each is."""

    kind: ClassVar[str] = "fixed"
    methods: ClassVar[tuple[type[Method], ...]] = (Merge,)
    merge: float | None = setting(None, least=0, noun=DEVIATIONS)
    floor: float = setting(0.0, least=0, noun=RECORDS)
    fit: bool | None = None

    @property
    def whole_pairs(self) -> str | None:
        return None if self.merge is None else "selection.merge"

    def fits(self, graphical: bool) -> bool:
        """What a person named is measured or refused; of all k-way marginals, what fits."""
        return graphical and not self.named if self.fit is None else self.fit

    def workload(self, facts: Facts) -> Workload:
        """The marginals, those of mapped columns together with their sources."""
        workload = super().workload(facts)
        mapped = facts.schema.rules.mapped
        return with_pairs(facts.domain, mapped, workload) if mapped else workload

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """Two rounds where values are merged."""
        check_floor(self.floor, self.merge)
        if self.merge is None:
            return None
        return Schedule(Merge(self.merge, self.floor), given_slots(facts.domain, workload))
