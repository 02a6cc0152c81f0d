"""What a selection may do between rounds: ask, choose, get distances, spend its reserve, and have a model fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import QueryMatrix
from mechanisms.public.release import Measurements, NoisyMarginal


class Scores(Protocol):
    """Private scores by what is chosen, made where a draw is due; a selection only hands them on."""


class Context(Protocol):
    """A run as a selection sees it: noisy answers and public facts; whatever it asks for is charged.

    Between rounds only kept answers and public facts are read, so that an interrupted run goes on as it would have.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def known(self) -> Sequence[NoisyMarginal]:
        """The answers so far, in the order asked; what was charged and lost is not among them."""
        ...

    @property
    def measurements(self) -> Measurements:
        """The same, for a model."""
        ...

    def places(self, stage: str) -> list[int]:
        """The places of a stage's slots."""
        ...

    def clique(self, place: int) -> Clique:
        """The marginal that a slot is reserved for; empty where it is chosen later."""
        ...

    def noise(self, place: int) -> float:
        """Mean absolute noise of an answer under a slot, in records."""
        ...

    def stddev(self, place: int) -> float:
        """Standard deviation of an answer under a slot, in records."""
        ...

    def ask(self, questions: Sequence[tuple[int, Clique, QueryMatrix]]) -> None:
        """Measure one round: each question under its slot, with the sensitivity of its own matrix."""
        ...

    def grid(self, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        ...

    def score(self, candidates: Callable[[], Mapping[Clique, Candidate]], expected: Callable[[], Expected]) -> Scores:
        """Scores of what may be chosen, by its name; computed once, and only where a draw is due."""
        ...

    def choose(self, place: int, among: Sequence[Clique], scores: Scores) -> Clique | None:
        """One of the candidates, under the slot's ε; None where the choice was charged and lost."""
        ...

    def distances(
        self,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix] | None = None,
        *,
        below: float = 0.0,
    ) -> NDArray[np.float64] | None:
        """Noisy distances of the true marginals from the expected ones, in records; None where they were lost.

        Args:
            queries: matrices of entries 0 and 1, at most one per column, whose answers are compared; None: all cells.
            below: differences up to so many records in a cell count as none.
        """
        ...

    def distances_of_reserve(
        self,
        number: int,
        part: float,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix] | None = None,
        *,
        below: float = 0.0,
    ) -> NDArray[np.float64] | None:
        """The same, out of the reserve."""
        ...

    def distances_stddev(self, part: float, count: int) -> float:
        """The standard deviation of so many distances, in records, from their part of the reserve."""
        ...

    def spend(self, questions: Sequence[tuple[Clique, QueryMatrix, float]], first: int = 0) -> None:
        """Measure one round out of the reserve: each question with its part of it, numbered from `first`."""
        ...

    def choose_of_reserve(self, number: int, among: Sequence[Clique], part: float, scores: Scores) -> Clique | None:
        """One of the candidates, out of the reserve."""
        ...

    def bound(self, query: QueryMatrix) -> float:
        """The sensitivity of the answers to a matrix, in records."""
        ...

    def reserve_noise(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean absolute noise of an answer, in records, from its part of the reserve."""
        ...

    def spent_noise(self, part: float) -> float:
        """The mean absolute noise of the very event that `spend` would use for a part, in records."""
        ...

    @property
    def reserve_stddev(self) -> float:
        """The standard deviation of an answer that takes the whole reserve, in records."""
        ...

    @property
    def power(self) -> float:
        """Parts of the reserve are in proportion to cells to this power, where it is shared out."""
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


T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """The same value every time, made when it is first asked for."""
    values: list[T] = []

    def value() -> T:
        if not values:
            values.append(make())
        return values[0]

    return value
