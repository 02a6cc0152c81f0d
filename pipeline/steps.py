"""The steps of an adaptive run: ask a round of questions, or choose; what they may read and where they keep it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.adaptive import AdaptivePlan
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.accounting.rounds import SCORES
from mechanisms.public.adagrid import grid_query
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries import QueryMatrix, sensitivity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.sensitive.exit import Progress
from mechanisms.sensitive.measurement import BATCH_CELLS, measure_some
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.scores import noisy_scores
from mechanisms.sensitive.selection import Candidate, Expected, PrivateCounts, PrivateScores, choose, distance_scores
from mechanisms.sensitive.table import PrivateTable


class Fit(Protocol):
    """Models of what was measured so far; post-processing."""

    def __call__(self, measurements: Measurements) -> Expected:
        """The marginals of a model of the measurements."""
        ...

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        ...


@dataclass(frozen=True)
class Rounds:
    """What measuring needs.

    Attributes:
        folder: where answers and choices are kept, one file each, written whole.
    """

    table: PrivateTable
    plan: Plan | AdaptivePlan
    ledger: Ledger
    source: NoiseSource
    folder: Path
    progress: Progress | None = None

    @property
    def public_total(self) -> int | None:
        """The number of records where it is a public fact."""
        return self.table.public_rows(self.plan.neighbouring)


@dataclass
class Steps:
    """One adaptive run: what is known so far, and the two ways to know more.

    Attributes:
        known: the answers so far, in the order of their slots.
    """

    run: Rounds
    plan: AdaptivePlan
    known: list[NoisyMarginal] = field(default_factory=list)

    @property
    def domain(self) -> Domain:
        return self.run.table.coded.domain

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.domain, tuple(self.known), self.run.public_total)

    def ask(self, questions: Sequence[tuple[int, Clique, QueryMatrix]]) -> None:
        """Measure one round: each question under its slot, with the sensitivity of its own matrix."""
        wanted = [(place, self._planned(place, clique, query)) for place, clique, query in questions]
        run, plan = self.run, self.plan
        self.known += measure_some(
            run.table, wanted, plan, run.ledger, run.source, answers_dir=run.folder, progress=run.progress
        )

    def spend(self, questions: Sequence[tuple[Clique, QueryMatrix, float]]) -> None:
        """Measure one round out of the purse: each question with its part of it."""
        run, plan = self.run, self.plan
        wanted = []
        for number, (clique, query, part) in enumerate(questions):
            event = plan.measurement_event(f"{number:04d}:measure", part).with_sensitivity(self.bound(query))
            wanted.append((len(plan.slots) + number, PlannedMeasurement(clique, query, part, event)))
        self.known += measure_some(
            run.table, wanted, plan, run.ledger, run.source, answers_dir=run.folder, progress=run.progress
        )

    def deviation(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean absolute noise of an answer, in records, from its part of the purse."""
        return np.asarray(self.plan.purse_event.mean_abs / self.plan.accountant.strength(part))

    def distances(self, cliques: Sequence[Clique], expected: Callable[[], Expected]) -> NDArray[np.float64] | None:
        """Noisy distances of the true marginals from the expected ones, in records; None where they were lost."""
        (place,) = self.plan.places(SCORES)
        event = self.plan.measurement_slot(place)
        run, path = self.run, self.run.folder / f"{place:05d}.json"
        candidates = [Candidate(c) for c in cliques]
        found = once(lambda: self.scores(candidates, expected()))
        return noisy_scores(cliques, found, event, run.ledger, run.source, path=path)

    def _planned(self, place: int, clique: Clique, query: QueryMatrix) -> PlannedMeasurement:
        event = self.plan.measurement_slot(place).with_sensitivity(self.bound(query))
        return PlannedMeasurement(clique, query, self.plan.slots[place].share, event)

    def bound(self, query: QueryMatrix) -> float:
        """The sensitivity of the answers to a matrix, in records."""
        plan = self.plan
        return sensitivity(query, norm=plan.norm, neighbouring=plan.neighbouring, max_records=plan.max_records)

    def grid(self, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        return grid_query(self.domain, clique, self.known, threshold=threshold, norm=self.plan.norm)

    def choose(self, place: int, among: Sequence[Clique], scores: Callable[[], PrivateScores]) -> Clique | None:
        """One of the candidates, under the slot's ε."""
        event = self.plan.choice_slot(place)
        path = self.run.folder / f"{place:05d}.json"
        return choose(among, scores, event, self.run.ledger, self.run.source, path=path)

    def scores(self, candidates: Sequence[Candidate], expected: Expected) -> PrivateScores:
        """Distances of the true marginals from the expected ones; NOT private."""
        neighbouring = self.plan.neighbouring
        return distance_scores(self.counts, candidates, expected, neighbouring=neighbouring)

    @cached_property
    def counts(self) -> PrivateCounts:
        """The candidates' exact marginals; NOT private."""
        return PrivateCounts(self.run.table, BATCH_CELLS)


T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """The same value every time, made when it is first asked for."""
    kept: list[T] = []

    def value() -> T:
        if not kept:
            kept.append(make())
        return kept[0]

    return value
