"""Marginals that public facts give: `pairs`, `oneway`, or a list; over merged values where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.queries.merged_cells import merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.rules.mapped import with_pairs
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import DEVIATIONS, GIVEN, RECORDS, Facts, Method, Schedule, check_floor
from mechanisms.selection.context import Context
from mechanisms.selection.given import GivenMarginals, given_slots
from mechanisms.selection.questions import ask_given


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
    rare: float = 4.5
    floor: float = 0.0

    def run(self, context: Context) -> None:
        """The one-way marginals, then the others with the values merged whose noisy counts are small."""
        given = [(s, s.clique) for s in context.slots(GIVEN)]
        context.ask([(s, c, Identity(context.domain.cells(c))) for s, c in given if len(c) == 1])
        groups = rare_groups(context.domain, context.known, self.rare, self.floor)
        context.ask([(s, c, merged_query(context.domain, c, groups)) for s, c in given if len(c) > 1])

    def grown_cells(self, slots: Sequence[Reservation]) -> int:
        """All that is given."""
        return sum(s.cells for s in slots)


@dataclass(frozen=True)
class Fixed(GivenMarginals):
    """Settings.

    Attributes:
        merge: values with a noisy count below so many standard deviations stand as one in larger marginals; None: none.
        floor: and those with a noisy count below so many records.
        fit: whether marginals are dropped until a graphical model holds them; None: where nobody named them.
    """

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
