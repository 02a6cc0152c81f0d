"""What a selection may do between rounds: ask, choose, get distances, spend its reserve, and have a model fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.arrays import Floats
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import QueryMatrix
from mechanisms.public.release import NoisyMarginal


class Scores(Protocol):
    """Private scores by what is chosen, made where a draw is due; a selection only hands them on."""


@dataclass(frozen=True)
class Slot:
    """Paid by a slot of the plan.

    Attributes:
        place: among all slots.
        clique: the marginal that it is reserved for; empty where it is chosen later.
    """

    place: int
    clique: Clique = ()


@dataclass(frozen=True)
class Part:
    """Paid out of the reserve.

    Attributes:
        share: of the whole reserve, above 0, at most 1.
        number: of the charge, in the order in which the reserve is spent.
    """

    share: float
    number: int = 0


#: The same value every time, made when it is first asked for.
once = cache
#: What pays for an answer, a choice or distances.
Payment = Slot | Part


@dataclass(frozen=True)
class Reserve:
    """What the reserve buys.

    Attributes:
        event: all of it as one measurement.
        power: its parts are in proportion to cells to this power, where it is shared out.
        accountant: says how strong a part is.
    """

    event: NoiseEvent
    power: float
    accountant: Accountant

    def noise(self, parts: Floats) -> Floats:
        """The mean absolute noise of an answer, in records, from its part of the reserve."""
        return np.asarray(self.event.mean_abs / self.accountant.strength(parts))


class Context(Protocol):
    """A run as a selection sees it: noisy answers and public facts; whatever it asks for is charged.

    Between rounds only kept answers and public facts are read, so that an interrupted run goes on as it would have.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def answers_so_far(self) -> Sequence[NoisyMarginal]:
        """The answers so far, in the order asked; what was charged and lost is not among them."""
        ...

    @property
    def reserve(self) -> Reserve:
        """What the reserve buys; TypeError where the plan has none."""
        ...

    def slots(self, stage: str) -> list[Slot]:
        """The slots of a stage."""
        ...

    def event(self, payment: Payment, scores: int = 0) -> NoiseEvent:
        """The charge whose noise an answer has, or so many distances out of the reserve; in records."""
        ...

    def ask(self, questions: Sequence[tuple[Payment, Clique, QueryMatrix]]) -> None:
        """Measure one round, each question with the sensitivity of its own matrix.

        Out of the reserve a residual has the noise of that sensitivity; other matrices that of columns of norm 1.
        """
        ...

    def grid(self, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        ...

    def score(self, candidates: Callable[[], Mapping[Clique, Candidate]], expected: Callable[[], Expected]) -> Scores:
        """Scores of what may be chosen, by its name; computed once, and only where a draw is due."""
        ...

    def choose(self, payment: Payment, among: Sequence[Clique], scores: Scores) -> Clique | None:
        """One of the candidates; None where the choice was charged and lost."""
        ...

    def distances(
        self,
        payment: Payment,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix] | None = None,
        *,
        below: float = 0.0,
    ) -> Floats | None:
        """Noisy distances of the true marginals from the expected ones, in records; None where they were lost.

        Args:
            expected: makes the model, where a draw is due: `once(context.fit)`.
            queries: matrices of entries 0 and 1, at most one per column, whose answers are compared; None: all cells.
            below: differences up to so many records in a cell count as none.
        """
        ...

    def bound(self, query: QueryMatrix) -> float:
        """The sensitivity of the answers to a matrix, in records."""
        ...

    def advance(self, done: float, note: str) -> None:
        """Show how much of the rounds is done, a part of 1."""
        ...

    def remember(self, number: int, part: float) -> float:
        """The round's part of the reserve, kept on disk before it is spent; the kept one where there is one."""
        ...

    def fit(self) -> Expected:
        """A model of all answers so far; post-processing."""
        ...

    def possible(self, candidates: Sequence[Clique], limit: int) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        ...
