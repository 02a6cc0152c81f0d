"""MWEM on a graphical model (Li et al. 2021b, section 6.2): in each round the marginal that the model misses most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import CHOOSE, CHOSEN, GIVEN, TREE_STAGES, Facts, Method, Schedule
from mechanisms.selection.context import Context
from mechanisms.selection.fixed import GivenMarginals
from mechanisms.selection.questions import ask_given, penalized, small_enough


@dataclass(frozen=True)
class Mwem(Method):
    """The worst marginal is measured next, all answers are fitted.

    Attributes:
        candidates: the marginals that may be measured.
        rounds: how many are.
        max_model_cells: candidates that would make the model larger are left out.
    """

    kind: ClassVar[str] = "mwem"
    graphical: ClassVar[bool] = True
    candidates: tuple[Clique, ...]
    rounds: int
    max_model_cells: int

    @property
    def max_cells_between(self) -> int | None:
        return self.max_model_cells

    def slots(self, domain: Domain, split: Sequence[float]) -> list[Reservation]:
        """One-way marginals, then in each round a choice and a measurement of what was chosen."""
        slots = [Reservation(GIVEN, (n,), domain[n].size, split[0] / len(domain)) for n in domain.names]
        largest = max((domain.cells(c) for c in self.candidates), default=0)
        for _ in range(self.rounds):
            slots.append(Reservation(CHOOSE, None, 0, split[1] / self.rounds))
            slots.append(Reservation(CHOSEN, None, largest, split[2] / self.rounds))
        return slots

    def run(self, context: Context) -> None:
        """In each round the marginal that the model misses most, less what its own noise would add, is measured.

        The model is fitted to all answers so far every time, and the last one is what counts.
        """
        ask_given(context)
        left, cells = list(self.candidates), context.domain.cells
        for choice, slot in zip(context.slots(CHOOSE), context.slots(CHOSEN), strict=True):
            noise, expected = context.event(slot).mean_abs, context.fit()
            allowed = small_enough(context, left, self.max_model_cells)
            scores = penalized(context, dict.fromkeys(allowed, 1.0), noise, expected)
            clique = context.choose(choice, allowed, scores)
            if clique is not None:
                left.remove(clique)
                context.ask([(slot, clique, Identity(cells(clique)))])


@dataclass(frozen=True)
class MwemSettings(GivenMarginals):
    """Settings, as conf/selection/mwem.yaml says; the given marginals are the candidates."""

    kind: ClassVar[str] = "mwem"
    methods: ClassVar[tuple[type[Method], ...]] = (Mwem,)
    k: list[int] = setting([2], least=1, filled=True)
    max_cells: int = setting(100_000, least=1)
    rounds: int | None = setting(None, least=1)
    split: list[float] = setting([1.0, 1.0, 3.0], above=0, parts=TREE_STAGES)
    max_model_cells: int = setting(4_000_000, least=1)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """As many rounds as wanted, at most one for each candidate."""
        candidates = tuple(dict.fromkeys(c for c in workload.cliques if len(c) > 1))
        rounds = len(facts.domain) if self.rounds is None else self.rounds
        method = Mwem(candidates, min(rounds, len(candidates)), self.max_model_cells)
        return Schedule(method, method.slots(facts.domain, self.split))
