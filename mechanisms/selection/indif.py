"""PrivSyn's choice of pairs by their distance from independence (Zhang et al. 2021; Li et al. 2021b, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.candidates import Expected
from mechanisms.public.designs.dense import combined, dense, tradeoff
from mechanisms.public.designs.groups import grouped, within
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts, Method, Schedule, Selection, edges, large_pairs
from mechanisms.selection.context import Context, once
from mechanisms.selection.questions import ask_given, share_out
from mechanisms.selection.scored_pairs import ScoredPairs, combining


@dataclass(frozen=True)
class Indif(ScoredPairs):
    """One-way marginals; noisy distances of all pairs; DenseMarg on these; the marginals chosen, by cells^(2/3).

    Attributes:
        candidates, combine_cells: as in `ScoredPairs`.
        groups: the largest number of attributes in a group of dependent ones (pairs across groups are left out); 0:
            no groups.
    """

    kind: ClassVar[str] = "indif"
    groups: int = 0

    def run(self, context: Context) -> None:
        """Where no pair is worth its noise, the one-way marginals are measured once more with what is left.

        Where the scores were charged and lost, every pair counts as equally far from independence.
        """
        ones = ask_given(context)
        expected = once(context.fit)
        chosen = self._chosen(context, expected()) if self.candidates else []
        share_out(context, chosen or ones)

    def _chosen(self, context: Context, expected: Expected) -> list[Clique]:
        candidates, gaps = self.candidates, context.distances(self.candidates, lambda: expected)
        if gaps is None:
            gaps = np.full(len(candidates), float(np.sum(expected(candidates[0]))))
        if self.groups:
            parts = grouped(context.domain.names, candidates, gaps.tolist(), self.groups)
            inside = within(candidates, parts)
            candidates, gaps = tuple(candidates[i] for i in inside), gaps[inside]
        if not candidates:
            return []
        table = tradeoff(_real(gaps), [expected(c) for c in candidates], context.reserve_noise, context.power)
        return combined(context.domain, [candidates[i] for i in dense(table)], self.combine_cells)


def _real(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances are not negative, whatever the noise says."""
    return np.maximum(gaps, 0.0)


@dataclass(frozen=True)
class IndifSettings(Selection):
    """Settings.

    Attributes:
        max_cells: larger pairs are no candidates.
        combine_cells: overlapping pairs become marginals of at most so many cells, where noise allows; 0: never.
        split: parts of the budget for one-way marginals, distances and the chosen marginals.
        groups: a number: columns fall into groups of at most so many, and pairs across groups are left out.
    """

    kind: ClassVar[str] = "indif"
    methods: ClassVar[tuple[type[Method], ...]] = (Indif,)
    max_cells: int = 20_000
    combine_cells: int = 1_000
    split: list[float] = field(default_factory=lambda: [1.0, 0.5, 8.5])
    groups: int | None = None

    def passed_over(self, facts: Facts) -> tuple[Clique, ...]:
        return large_pairs(facts, self.max_cells)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """Distances of all small pairs of joint columns."""
        candidates = edges(facts.domain, facts.joint, self.max_cells)
        method = Indif(candidates, combining(self.combine_cells), self.group_size(facts.domain))
        return Schedule(method, *method.slots(facts.domain, self.split))

    def group_size(self, domain: Domain) -> int:
        """The most columns in a group; 0: no groups."""
        return 0 if self.groups is None else size_of_group(self.groups)


def size_of_group(size: int) -> int:
    """selection.groups, checked."""
    if size < 1:
        raise UserError(f"got {size}", where="selection.groups", fix="the most columns in one group, or null")
    return size
