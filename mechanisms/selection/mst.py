"""MST (McKenna, Miklau & Sheldon 2021): one-way marginals, then the pairs of a maximum spanning tree of dependences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.candidates import Candidate
from mechanisms.public.designs.pair_view import forest_edges
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.cell_sums import merged_query, rare_groups
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import (
    CHOSEN,
    DEVIATIONS,
    LATER,
    RECORDS,
    TREE_STAGES,
    Facts,
    Method,
    Schedule,
    Selection,
    edges,
    tree_slots,
)
from mechanisms.selection.context import Context, once
from mechanisms.selection.questions import ask_given, grow_tree, share_out


@dataclass(frozen=True)
class Mst(Method):
    """A maximum spanning tree of dependences.

    Attributes:
        candidates: pairs of attributes that may become edges.
        rare: values with a noisy count below so many standard deviations are measured as one.
        floor: and those with a noisy count below so many records; both 0: none.
        view_cells: edges that touch are measured together in views of at most so many cells; 0: each alone.
    """

    kind: ClassVar[str] = "mst"
    candidates: tuple[Clique, ...]
    rare: float = 3.0
    floor: float = 0.0
    view_cells: int = 0

    def slots(self, domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """One-way marginals, choices, pairs; or the part of the budget for views, whose number the choices decide."""
        slots = tree_slots(domain, self.candidates, split)
        if not self.view_cells or not self.candidates:
            return slots, 0.0
        return [s for s in slots if s.stage != CHOSEN], split[2]

    def run(self, context: Context) -> None:
        """One-way marginals, a tree by the exponential mechanism, its pairs."""
        ask_given(context)
        groups = rare_groups(context.domain, context.answers_so_far, self.rare, self.floor)
        queries = {pair: merged_query(context.domain, pair, groups) for pair in self.candidates}
        scores = context.score(lambda: {c: Candidate(c, q) for c, q in queries.items()}, once(context.fit))
        tree = grow_tree(context, self.candidates, scores)
        if self.view_cells and self.candidates:
            views = grown_views(context.domain, tree, self.view_cells) or [(n,) for n in context.domain.names]
            share_out(context, views, lambda view: merged_query(context.domain, view, groups))
            return
        context.ask([(s, edge, queries[edge]) for s, edge in zip(context.slots(CHOSEN), tree, strict=False)])

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """A view for each edge, at the size that it may grow to."""
        bounds = super().later_cells(domain, slots)
        if not self.view_cells or not self.candidates:
            return bounds
        largest = max(self.view_cells, *(domain.cells(c) for c in self.candidates))
        return bounds + [(LATER, largest)] * forest_edges(self.candidates)

    def grown_cells(self, slots: Sequence[Reservation]) -> int | None:
        """The tree itself: its slots are as large as its largest edge; unknown of views."""
        return None if self.view_cells else sum(s.cells for s in slots)


@dataclass(frozen=True)
class MstSettings(Selection):
    """Settings; conf/selection/mst.yaml says what each is."""

    kind: ClassVar[str] = "mst"
    of_pairs: ClassVar[bool] = True
    methods: ClassVar[tuple[type[Method], ...]] = (Mst,)
    max_cells: int = setting(1_000_000, least=1)
    rare: float = setting(3.0, least=0, noun=DEVIATIONS)
    floor: float = setting(0.0, least=0, noun=RECORDS)
    split: list[float] = setting([1.0, 0.5, 2.0], above=0, parts=TREE_STAGES)
    view_cells: int = setting(0, least=0, note="256 for 8 binary columns, 0: each edge alone")

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """A tree of the joint columns."""
        candidates = edges(facts.domain, facts.joint, self.max_cells)
        method = Mst(candidates, self.rare, self.floor, self.view_cells)
        return Schedule(method, *method.slots(facts.domain, self.split))


def grown_views(domain: Domain, tree: Sequence[Clique], max_cells: int) -> list[Clique]:
    """Views that hold every edge of a tree: two that share a column become one where that has at most `max_cells`.

    The pair with the smallest union is joined first.
    """
    views = list(tree)
    while True:
        unions = {
            (domain.cells(union), domain.axes(union), i, j): union
            for (i, a), (j, b) in itertools.combinations(enumerate(views), 2)
            if set(a) & set(b) and domain.cells(union := domain.canonical({*a, *b})) <= max_cells
        }
        if not unions:
            return sorted(views, key=lambda c: (len(c), domain.axes(c)))
        (_, _, i, j), union = min(unions.items())
        views = [v for k, v in enumerate(views) if k not in (i, j)] + [union]
