"""A run as a selection sees it: the pipeline's side of `mechanisms.selection.context`, with a ledger and a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.events import Exponential, NoiseEvent
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.marginals import BATCH_CELLS
from mechanisms.public.progress import Progress
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.query_matrices import PROVED, Identity, QueryMatrix, sensitivity
from mechanisms.public.queries.residual_query import ResidualQuery
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.selection.base import SCORES
from mechanisms.selection.context import Scores, once
from mechanisms.sensitive.measurement import measure_some
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.noisy_distances import noisy_scores
from mechanisms.sensitive.private_choice import PrivateCounts, PrivateScores, choose, distance_scores
from mechanisms.sensitive.private_table import PrivateTable
from pipeline.measuring.fitted_models import Fit, IndependentFit
from synthesis.independent import independent_marginals


@dataclass(frozen=True)
class MeasurementContext:
    """What measuring needs.

    Attributes:
        folder: where answers and choices are kept, one file each, written whole.
    """

    table: PrivateTable
    plan: Plan
    ledger: Ledger
    source: NoiseSource
    folder: Path
    progress: Progress | None = None

    @property
    def public_total(self) -> int | None:
        """The number of records where it is a public fact."""
        return self.table.public_rows(self.plan.neighbouring)


@dataclass
class AdaptiveRun:
    """One adaptive run: what is known so far, and the ways to know more; see `Context`.

    Attributes:
        model: makes models of what was measured so far.
        answers: those so far, in the order asked.
        compared: the noisy distances from independent columns, once they were asked for.
    """

    run: MeasurementContext
    plan: Plan
    model: Fit
    answers: list[NoisyMarginal] = field(default_factory=list, repr=False)
    compared: NoisyDistances | None = None

    @property
    def domain(self) -> Domain:
        return self.run.table.coded.domain

    @property
    def known(self) -> tuple[NoisyMarginal, ...]:
        """The answers so far, to look at: what is not asked for and charged does not come among them."""
        return tuple(self.answers)

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.domain, self.known, self.run.public_total, distances=self.compared)

    def places(self, stage: str) -> list[int]:
        """The places of a stage's slots."""
        return self.plan.places(stage)

    def clique(self, place: int) -> Clique:
        """The marginal that a slot is reserved for; empty where it is chosen later."""
        return self.plan.slots[place].reservation.clique or ()

    def noise(self, place: int) -> float:
        """Mean absolute noise of an answer under a slot, in records."""
        return self.plan.measurement_slot(place).mean_abs

    def stddev(self, place: int) -> float:
        """Standard deviation of an answer under a slot, in records."""
        return self.plan.measurement_slot(place).stddev

    def ask(self, questions: Sequence[tuple[int, Clique, QueryMatrix]]) -> None:
        """Measure one round: each question under its slot, with the sensitivity of its own matrix."""
        self._measure([(place, self._planned(place, clique, query)) for place, clique, query in questions])

    def spend(self, questions: Sequence[tuple[Clique, QueryMatrix, float]], first: int = 0) -> None:
        """Measure one round out of the reserve: each question with its part of it, numbered from `first`.

        A residual has the noise of its own sensitivity; other matrices that of columns of norm 1.
        """
        planned = []
        for number, (clique, query, part) in enumerate(questions, first):
            bound = self.bound(query)
            own = bound if isinstance(query, ResidualQuery) else None
            event = self.plan.measurement_event(f"{number:04d}:measure", part, own).with_sensitivity(bound)
            planned.append((len(self.plan.slots) + number, PlannedMeasurement(clique, query, part, event)))
        self._measure(planned)

    def _measure(self, planned: list[tuple[int, PlannedMeasurement]]) -> None:
        run = self.run
        self.answers += measure_some(
            run.table, planned, self.plan, run.ledger, run.source, answers_dir=run.folder, progress=run.progress
        )

    def reserve_noise(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean absolute noise of an answer, in records, from its part of the reserve."""
        return np.asarray(self.plan.reserve_event.mean_abs / self.plan.accountant.strength(part))

    def spent_noise(self, part: float) -> float:
        """The mean absolute noise of the very event that `spend` would use for a part, in records."""
        return self.plan.measurement_event("", part).mean_abs

    @property
    def reserve_stddev(self) -> float:
        """The standard deviation of an answer that takes the whole reserve, in records."""
        return self.plan.reserve_event.stddev

    @property
    def power(self) -> float:
        """Parts of the reserve are in proportion to cells to this power, where it is shared out."""
        return self.plan.power

    def distances(
        self,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix] | None = None,
        *,
        below: float = 0.0,
    ) -> NDArray[np.float64] | None:
        """Noisy distances of the true marginals from the expected ones, in records; None where they were lost."""
        place = self.plan.places(SCORES)[0]
        event = self.plan.measurement_slot(place)
        values = self._distances(place, event, cliques, expected, queries or {}, below)
        if values is not None and cliques and isinstance(self.model, IndependentFit):
            released = _released_distances(self, cliques, queries or {}, values, expected(), event)
            self.compared = None if released is None else replace(released, below=below)
        return values

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
        event = self.plan.scores_event(number, part, len(cliques))
        return self._distances(len(self.plan.slots) + number, event, cliques, expected, queries or {}, below)

    def distances_stddev(self, part: float, count: int) -> float:
        """The standard deviation of so many distances, in records, from their part of the reserve."""
        return self.plan.scores_event(0, part, count).stddev

    def _distances(
        self,
        place: int,
        event: NoiseEvent,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix],
        below: float,
    ) -> NDArray[np.float64] | None:
        scores = self.score(lambda: {c: Candidate(c, queries.get(c), below=below) for c in cliques}, expected)
        run = self.run
        return noisy_scores(cliques, scores, event, run.ledger, run.source, path=self._choice_file(place))

    def _planned(self, place: int, clique: Clique, query: QueryMatrix) -> PlannedMeasurement:
        slot, moved = self.plan.measurement_slot(place), self.bound(query)
        if moved > slot.sensitivity and type(query) not in PROVED:
            name = type(query).__name__
            what = f"{name} moves by {moved:g} when one unit changes, and its slot pays for {slot.sensitivity:g}"
            raise UserError(what, where="plugins", fix="a matrix whose columns have norm 1, and are no farther apart")
        return PlannedMeasurement(clique, query, self.plan.slots[place].share, slot.with_sensitivity(moved))

    def bound(self, query: QueryMatrix) -> float:
        """The sensitivity of the answers to a matrix, in records."""
        plan = self.plan
        return sensitivity(query, norm=plan.norm, neighbouring=plan.neighbouring, max_records=plan.max_records)

    def grid(self, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        return grid_query(self.domain, clique, self.known, threshold=threshold, norm=self.plan.norm)

    def score(
        self, candidates: Callable[[], Mapping[Clique, Candidate]], expected: Callable[[], Expected]
    ) -> Callable[[], PrivateScores]:
        """Scores of what may be chosen, by its name: distances of the true marginals from the expected ones.

        NOT private; computed once, and only where a draw is due.
        """
        return once(lambda: self._scores(candidates(), expected()))

    def _scores(self, candidates: Mapping[Clique, Candidate], expected: Expected) -> PrivateScores:
        neighbouring = self.plan.neighbouring
        scores = distance_scores(self.counts, list(candidates.values()), expected, neighbouring=neighbouring)
        return PrivateScores({name: scores.values[c.clique] for name, c in candidates.items()}, scores.sensitivity)

    def choose(self, place: int, among: Sequence[Clique], scores: Scores) -> Clique | None:
        """One of the candidates, under the slot's ε."""
        return self._choice(self.plan.choice_slot(place), among, scores, self._choice_file(place))

    def choose_of_reserve(self, number: int, among: Sequence[Clique], part: float, scores: Scores) -> Clique | None:
        """One of the candidates, out of the reserve."""
        event = self.plan.choice_event(f"{number:04d}:choose", part)
        return self._choice(event, among, scores, self.run.folder / f"choice-{number:04d}.json")

    def _choice(self, event: Exponential, among: Sequence[Clique], scores: Scores, path: Path) -> Clique | None:
        build_scores = cast(Callable[[], PrivateScores], scores)  # as `score` made them
        return choose(among, build_scores, event, self.run.ledger, self.run.source, path=path)

    def _choice_file(self, place: int) -> Path:
        return self.run.folder / f"{place:05d}.json"

    def advance(self, done: float, note: str) -> None:
        """Show how much of the rounds is done, a part of 1."""
        if self.run.progress is not None:
            self.run.progress(round(1000 * done), 1000, note)

    def remember(self, number: int, part: float) -> float:
        """The round's part of the reserve, kept on disk before it is spent, so that a resumed run spends the same."""
        path = self.run.folder / f"round-{number:04d}.json"
        if path.exists():
            return float(json.loads(path.read_text(encoding="utf-8"))["part"])
        write_whole(path, json.dumps({"part": part}) + "\n", mode=0o600)
        return part

    def fit(self) -> Expected:
        """A model of all answers so far."""
        return self.model(self.measurements)

    def possible(self, candidates: Sequence[Clique], limit: int) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        return self.model.possible(self.domain, [a.clique for a in self.known], candidates, limit)

    @cached_property
    def counts(self) -> PrivateCounts:
        """The candidates' exact marginals; NOT private."""
        return PrivateCounts(self.run.table, BATCH_CELLS)


def _released_distances(
    steps: AdaptiveRun,
    cliques: Sequence[Clique],
    queries: Mapping[Clique, QueryMatrix],
    values: NDArray[np.float64],
    expected: Expected,
    event: NoiseEvent,
) -> NoisyDistances | None:
    """The distances as they are released; None where they are none from independent columns of the answers so far.

    Whoever has the release makes the same independent columns again from these answers.
    """
    independent = independent_marginals(steps.measurements)
    if any(not np.array_equal(expected(c), independent(c)) for c in cliques):
        return None
    order = sorted(range(len(cliques)), key=lambda i: steps.domain.axes(cliques[i]))
    placed = tuple(cliques[i] for i in order)
    whole = np.array([isinstance(queries.get(c, Identity(0)), Identity) for c in placed], np.bool_)
    return NoisyDistances(placed, whole, values[order], len(steps.known), event.kind, event.scale, event.id)
