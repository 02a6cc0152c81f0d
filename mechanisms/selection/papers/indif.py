"""PrivSyn's choice of pairs by their distance from independence (Zhang et al. 2021; Li et al. 2021b, section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.candidates import Expected
from mechanisms.public.designs.dense import combined, dense
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import (
    COMBINED,
    DEVIATIONS,
    RECORDS,
    SCORED_STAGES,
    SCORES,
    Facts,
    Method,
    Schedule,
    ScoredPairs,
    Selection,
    check_floor,
    edges,
)
from mechanisms.selection.context import Context, once
from mechanisms.selection.papers.public_table import PublicSettings, grouped, within
from mechanisms.selection.questions import ask_given, share_out


@dataclass(frozen=True)
class Indif(ScoredPairs):
    """One-way marginals; noisy distances of all pairs; DenseMarg on these; the marginals chosen, by cells^(2/3).

    Attributes:
        candidates, combine_cells: as in `ScoredPairs`.
        groups: the largest number of attributes in a group of dependent ones (pairs across groups are left out); 0:
            no groups.
        rare, floor: values with a noisy count below max(rare · σ, floor) are one value in all that comes after the
            one-way marginals (Li et al. 2021b, section 5.3); 0 and 0: none.
    """

    kind: ClassVar[str] = "indif"
    groups: int = 0
    rare: float = 0.0
    floor: float = 0.0

    def run(self, context: Context) -> None:
        """Where no pair is worth its noise, the one-way marginals are measured once more with what is left.

        Where the scores were charged and lost, every pair counts as equally far from independence.
        """
        ones = ask_given(context)
        expected = once(context.fit)
        merged = rare_groups(context.domain, context.answers_so_far, self.rare, self.floor)
        chosen = self._chosen(context, expected(), merged) if self.candidates else []
        if any(int(own.max()) + 1 < own.size for own in merged.values()) and chosen:
            share_out(context, chosen, lambda c: merged_query(context.domain, c, merged), whole=False)
        else:
            share_out(context, chosen or ones)

    def _chosen(self, context: Context, expected: Expected, merged: Mapping[str, Ints]) -> list[Clique]:
        queries = {c: merged_query(context.domain, c, merged) for c in self.candidates}
        same = all(isinstance(q, Identity) for q in queries.values())
        candidates = self.candidates
        gaps = context.distances(context.slots(SCORES)[0], candidates, lambda: expected, None if same else queries)
        if gaps is None:
            gaps = np.full(len(candidates), float(np.sum(expected(candidates[0]))))
        if self.groups:
            parts = grouped(context.domain.names, candidates, gaps.tolist(), self.groups)
            inside = within(candidates, parts)
            candidates, gaps = tuple(candidates[i] for i in inside), gaps[inside]
        if not candidates:
            return []
        values = [queries[c].answer(expected(c)) for c in candidates]
        taken = dense(np.maximum(gaps, 0.0), values, context.reserve.noise, context.reserve.power)
        shrunken = Domain(tuple(Attribute(a.name, int(merged[a.name].max()) + 1) for a in context.domain.attributes))
        return combined(shrunken, [candidates[i] for i in taken], self.combine_cells, counted=context.domain)


@dataclass(frozen=True)
class IndifSettings(Selection):
    """Settings; conf/selection/indif.yaml says what each is."""

    kind: ClassVar[str] = "indif"
    of_pairs: ClassVar[bool] = True
    methods: ClassVar[tuple[type[Method], ...]] = (Indif,)
    max_cells: int = setting(20_000, least=1)
    combine_cells: int = setting(1_000, least=0, note=COMBINED)
    split: list[float] = setting([1.0, 0.5, 8.5], above=0, parts=SCORED_STAGES)
    groups: int | None = setting(None, least=1, note="the most columns in one group")
    merge: float | None = setting(None, least=0, noun=DEVIATIONS)
    floor: float = setting(0.0, least=0, noun=RECORDS)

    @property
    def whole_pairs(self) -> str | None:
        return None if self.merge is None else "selection.merge"

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """Distances of all small pairs of joint columns."""
        candidates = edges(facts.domain, facts.joint, self.max_cells)
        check_floor(self.floor, self.merge)
        limits = (0.0, 0.0) if self.merge is None else (self.merge, self.floor)
        method = Indif(candidates, self.combine_cells, self.group_size(facts.domain), *limits)
        return Schedule(method, *method.slots(facts.domain, self.split))

    def group_size(self, domain: Domain) -> int:
        """The most columns in a group; 0: no groups."""
        return self.groups or 0


@dataclass(frozen=True)
class GroupsSettings(IndifSettings, PublicSettings):
    """Settings: those of `indif`; with a public table, from which groups and choices are taken free of cost, of it.

    Attributes:
        groups: the most columns in a group; None: a quarter of all columns.
    """

    kind: ClassVar[str] = "groups"

    def group_size(self, domain: Domain) -> int:
        """Without a setting there are about four groups."""
        return max(2, math.ceil(len(domain) / 4)) if self.groups is None else self.groups

    def workload(self, facts: Facts) -> Workload:
        """What the public table chooses, where there is one."""
        if self.public is None:
            return Selection.workload(self, facts)
        if self.merge is not None:
            fix = "null with selection.public: a public table chooses before there are noisy counts"
            raise UserError("nothing to merge by", where="selection.merge", fix=fix)
        return self.chosen(facts, self.group_size(facts.domain))

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """That of `indif`, without a public table."""
        return super().schedule(facts, workload) if self.public is None else None
