"""PriView (Qardaji, Yang & Li 2014; Li et al. 2021b, section 3.2): few large views that hold every set of t columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts, Method, Schedule, Selection, one_way_slots
from mechanisms.selection.context import Context
from mechanisms.selection.papers.covering import PRECISE, covering, random_views, strength
from mechanisms.selection.papers.public_table import refuse_mapped
from mechanisms.selection.papers.unit_noise import unit_stddev, with_all_columns
from mechanisms.selection.questions import ask_given, share_out


@dataclass(frozen=True)
class PriView(Method):
    """Covering designs, one of them by the noisy number of rows.

    Attributes:
        designs: the views of each design, t = 2 first; the last one that is precise enough is measured.
    """

    kind: ClassVar[str] = "priview"
    designs: tuple[tuple[Clique, ...], ...]

    def slots(self, domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """One-way marginals, shared out by cells^(2/3), and the part of the budget for the views."""
        return one_way_slots(domain, split[0]), split[1]

    def run(self, context: Context) -> None:
        """One-way marginals, whose total says which design is precise enough; then its views."""
        ask_given(context)
        rows = float(context.fit()((context.domain.names[0],)).sum())
        share_out(context, precise_design(context.domain, self.designs, context.reserve.event.stddev, rows))

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """The views of the largest design."""
        design = max(self.designs, key=lambda d: sum(map(domain.cells, d)))
        return super().later_cells(domain, slots) + [(" × ".join(c), domain.cells(c)) for c in design]

    @property
    def reported(self) -> Sequence[Clique]:
        return self.designs[0]


def precise_design(
    domain: Domain, designs: Sequence[tuple[Clique, ...]], unit: float, rows: float
) -> tuple[Clique, ...]:
    """The design of the largest t whose noise is small against the rows (PriView's rule).

    Args:
        unit: standard deviation of one marginal that takes the whole budget, in records.
    """
    precise = [v for v in designs[1:] if strength(domain, v, unit, rows) <= PRECISE]
    return precise[-1] if precise else designs[0]


@dataclass(frozen=True)
class PriViewSettings(Selection):
    """Settings.

    Attributes:
        design: greedy: every set of t columns is in a view (see `covering`); random: as many views of random columns.
        t: 2 or 3; None: 3 where the noise allows it against the rows, else 2.
        views: design=random: how many; None: as many as the greedy design has.
        view_cells: a view grows up to so many cells.
        max_cells: a set of t columns that alone has more than view_cells is a view of its own up to this size.
        rows: how many rows there are, about, where that is public; None: by noisy one-way marginals.
        split: parts of the budget for one-way marginals and views, where rows and t are None.
    """

    kind: ClassVar[str] = "priview"
    whole_pairs: ClassVar[str] = "selection"
    methods: ClassVar[tuple[type[Method], ...]] = (PriView,)
    design: str = setting("greedy", choices=("greedy", "random"))
    t: int | None = setting(None, least=1, most=3)
    views: int | None = setting(None, least=1)
    view_cells: int = setting(256, least=2, note="256 for 8 binary columns")
    max_cells: int = setting(20_000, least=1)
    rows: int | None = setting(None, least=1)
    split: list[float] = setting([1.0, 9.0], above=0, parts=("one-way", "views"))

    @property
    def public_rows(self) -> int | None:
        return self.rows

    @property
    def decided(self) -> bool:
        """Whether public facts alone decide the views."""
        return self.design == "random" or self.t is not None or self.rows is not None

    def workload(self, facts: Facts) -> Workload:
        """The views, where public facts decide."""
        if not self.decided:
            return super().workload(facts)
        refuse_mapped(facts)
        joint = Domain(tuple(facts.domain[n] for n in facts.joint))
        return with_all_columns(facts.domain, self._views(facts, joint) if len(joint) else ())

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """Noisy one-way marginals first, where the number of rows is not public."""
        if self.decided:
            return None
        together = Domain(tuple(facts.domain[n] for n in facts.joint))
        designs = self._designs(together) if facts.joint else (tuple((n,) for n in facts.domain.names),)
        method = PriView(designs)
        return Schedule(method, *method.slots(facts.domain, self.split))

    def _designs(self, domain: Domain) -> tuple[tuple[Clique, ...], ...]:
        """The covering designs among which the number of rows decides, t = 2 first."""
        limits = {"view_cells": self.view_cells, "max_cells": self.max_cells}
        if self.t is not None:
            return (covering(domain, self.t, **limits),)
        if len(domain) < 2:
            return (covering(domain, 1, **limits),)
        two = covering(domain, 2, **limits)
        return (two, covering(domain, 3, **limits, tries=1)) if len(domain) > 2 else (two,)

    def _views(self, facts: Facts, domain: Domain) -> tuple[Clique, ...]:
        if self.design == "random":
            count = len(self._designs(domain)[0]) if self.views is None else self.views
            return random_views(domain, count, view_cells=self.view_cells)
        unit = unit_stddev(facts, domain)
        return precise_design(domain, self._designs(domain), unit, float(self.rows or 0))
