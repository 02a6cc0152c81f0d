"""MST (McKenna, Miklau & Sheldon 2021): one-way marginals, then the pairs of a maximum spanning tree of dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mechanisms.accounting.adaptive import Reservation
from mechanisms.public.candidates import Candidate
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.merged_cells import merged_query
from mechanisms.public.workload import Workload
from mechanisms.selection.base import CHOSEN, Facts, Method, Schedule, Selection, edges, threshold
from mechanisms.selection.context import Context, once
from mechanisms.selection.questions import ask_given, common_values, grow_tree
from mechanisms.selection.tree_slots import tree_slots


@dataclass(frozen=True)
class Mst(Method):
    """A maximum spanning tree of dependences.

    Attributes:
        candidates: pairs of attributes that may become edges.
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records; both 0: none.
    """

    kind: ClassVar[str] = "mst"
    candidates: tuple[Clique, ...]
    rare: float = 3.0
    floor: float = 0.0

    def slots(self, domain: Domain, split: Sequence[float]) -> list[Reservation]:
        """One-way marginals, choices, pairs."""
        return tree_slots(domain, self.candidates, split)

    def run(self, context: Context) -> None:
        """One-way marginals, a tree by the exponential mechanism, its pairs."""
        ask_given(context)
        groups = common_values(context, self.rare, self.floor)
        queries = {pair: merged_query(context.domain, pair, groups) for pair in self.candidates}
        scores = context.score(lambda: {c: Candidate(c, q) for c, q in queries.items()}, once(context.fit))
        tree = grow_tree(context, self.candidates, scores)
        context.ask([(i, edge, queries[edge]) for i, edge in zip(context.places(CHOSEN), tree, strict=False)])

    def grown_cells(self, slots: Sequence[Reservation]) -> int:
        """The tree itself: its slots are as large as its largest edge."""
        return sum(s.cells for s in slots)


@dataclass(frozen=True)
class MstSettings(Selection):
    """Settings.

    Attributes:
        max_cells: larger pairs are no candidates.
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records; both 0: none.
        split: parts of the budget for one-way marginals, choices and pairs.
    """

    kind: ClassVar[str] = "mst"
    methods: ClassVar[tuple[type[Method], ...]] = (Mst,)
    max_cells: int = 1_000_000
    rare: float = 3.0
    floor: float = 0.0
    split: list[float] = field(default_factory=lambda: [1.0, 0.5, 2.0])

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """A tree of the joint columns."""
        floor = threshold(self.floor, "selection.floor", "records")
        candidates = edges(facts.domain, facts.joint, self.max_cells)
        method = Mst(candidates, threshold(self.rare, "selection.rare"), floor)
        return Schedule(method, method.slots(facts.domain, self.split))
