"""Adaptive granularity (McKenna 2021): rounds by order; fine cells where the noisy answers so far are large."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.candidates import Candidate
from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import MOST_WAYS, ways_down
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import CHOSEN, DEVIATIONS, GIVEN, TREE_STAGES, Facts, Method, Schedule, edges, tree_slots
from mechanisms.selection.context import Context, Slot, once
from mechanisms.selection.fixed import GivenMarginals, given_slots
from mechanisms.selection.questions import grow_tree

#: Columns of which all parts may be measured.
FREE_COLUMNS = 8


@dataclass(frozen=True)
class Adagrid(Method):
    """Rounds by order, each marginal's queries from its parents' noisy answers.

    Attributes:
        threshold: a cell is fine where every parent's noisy count is at least so many standard deviations.
        candidates: pairs among which a tree is chosen privately; empty where all marginals are given.
        targets: attributes that every marginal includes, where a tree is chosen.
    """

    kind: ClassVar[str] = "adagrid"
    slots_tell: ClassVar[bool] = True  # a tree's are as large as its largest edge
    threshold: float
    candidates: tuple[Clique, ...] = ()
    targets: Clique = ()

    @property
    def graphical(self) -> bool:
        return bool(self.targets)

    def slots(self, domain: Domain, split: Sequence[float]) -> list[Reservation]:
        """Where a tree is chosen: one-way marginals with the targets, choices, and marginals with the targets."""
        return tree_slots(domain, self.candidates, split, self.targets)

    def run(self, context: Context) -> None:
        """The given marginals; then, where there are candidates, a private tree and its marginals with the targets."""
        given = [(s, s.clique) for s in context.slots(GIVEN)]
        self._ask(context, given)
        if not self.candidates:
            return
        domain, expected = context.domain, once(context.fit)
        whole = {pair: domain.canonical((*pair, *self.targets)) for pair in self.candidates}
        scores = context.score(lambda: {pair: Candidate(c) for pair, c in whole.items()}, expected)
        tree = grow_tree(context, self.candidates, scores)
        extras: list[Clique] = [(), *subsets(self.targets)]
        new = [domain.canonical((*edge, *extra)) for extra in extras for edge in tree]
        self._ask(context, list(zip(context.slots(CHOSEN), new, strict=False)))

    def _ask(self, context: Context, questions: Sequence[tuple[Slot, Clique]]) -> None:
        for order in sorted({len(c) for _, c in questions}):
            this = [(s, c) for s, c in questions if len(c) == order]
            context.ask([(s, c, context.grid(c, self.threshold)) for s, c in this])


@dataclass(frozen=True)
class AdagridSettings(GivenMarginals):
    """Settings; conf/selection/adagrid.yaml says what each is."""

    kind: ClassVar[str] = "adagrid"
    whole_pairs: ClassVar[str] = "selection"
    methods: ClassVar[tuple[type[Method], ...]] = (Adagrid,)
    k: list[int] = setting([1], least=1, filled=True)
    max_cells: int = setting(2_000_000, least=1)
    threshold: float = setting(5.0, least=0, noun=DEVIATIONS)
    targets: list[str] = field(default_factory=list)
    split: list[float] = setting([1.0, 1.0, 8.0], above=0, parts=TREE_STAGES)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """The given marginals by order, or a tree."""
        domain, limit = facts.domain, self.threshold
        if self.named:
            if self.targets:
                fix = "name the targets' marginals among the others, or let a tree be chosen: selection.closure=null"
                raise UserError("targets and given marginals together", where="selection.targets", fix=fix)
            slots = given_slots(domain, workload)
            _check_ways(workload.cliques, f"selection.{'closure' if self.marginals is None else 'marginals'}")
            return Schedule(Adagrid(limit), slots)
        targets = self._targets(domain)
        _check_ways(subsets((*targets, "an edge's one end", "its other end")), "selection.targets")
        if targets and facts.alone:
            fix = "selection.targets=[], or take one_way_only and joint_bins away"
            problem = f"targets join every column, and the schema keeps {min(facts.alone)!r} out of joint marginals"
            raise UserError(problem, where="selection.targets", fix=fix)
        free = [n for n in facts.joint if n not in targets]
        method = Adagrid(limit, edges(domain, free, self.max_cells, targets), targets)
        return Schedule(method, method.slots(domain, self.split))

    def _targets(self, domain: Domain) -> Clique:
        try:
            targets = domain.canonical(self.targets)
        except UserError as error:
            raise UserError(error.what, where="selection.targets", fix=error.fix) from None
        for name in domain.names:
            cells = domain.cells(domain.canonical((name, *targets)))
            if targets and cells > self.max_cells:
                raise UserError(
                    f"{name} with the targets has {cells:,} cells, more than selection.max_cells={self.max_cells:,}",
                    where="selection.targets",
                    fix="fewer or coarser targets, or raise selection.max_cells",
                )
        return targets


def _check_ways(cliques: Collection[Clique], where: str) -> None:
    """Refuse, before any charge, grids of which no product ends in seconds."""
    for wide in (c for c in cliques if len(c) > FREE_COLUMNS):
        if ways_down([c for c in cliques if set(c) <= set(wide)]) > MOST_WAYS:
            problem = f"a marginal of {len(wide)} columns of which too many parts are measured too"
            fix = f"marginals of at most {FREE_COLUMNS} columns, or fewer of their parts"
            raise UserError(problem, where=where, fix=fix)
