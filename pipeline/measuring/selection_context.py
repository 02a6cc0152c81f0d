"""A run as a selection sees it: the pipeline's side of `mechanisms.selection.context`, with a ledger and a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from mechanisms.accounting.events import NoiseEvent, as_choice, as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.public.arrays import Floats
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.coded_table import BATCH_CELLS
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import stored_values
from mechanisms.public.progress import Progress
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.cell_sums import ResidualQuery
from mechanisms.public.queries.query_matrices import PROVED, Identity, QueryMatrix
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.selection.context import Part, Payment, Reserve, Scores, Slot, once
from mechanisms.selection.selections import method_of
from mechanisms.sensitive.measurement import measure_some
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_choice import PrivateCounts, PrivateScores, choose, distance_scores, noisy_scores
from mechanisms.sensitive.private_table import PrivateTable
from synthesis.contract import Synthesizer
from synthesis.independent import independent_marginals
from synthesis.pgm.graphical_model import GraphicalModel, fit_model
from synthesis.pgm.junction_tree import still_small


@dataclass
class AdaptiveRun:
    """One adaptive run: what is known so far, and the ways to know more; see `Context`.

    Attributes:
        folder: where answers and choices are kept, one file each, written whole.
        synthesizer: its settings are those of the graphical models between rounds.
        zeros: combinations that cannot occur.
        answers: those so far, in the order asked.
        compared: the noisy distances from independent columns, once they were asked for.
    """

    table: PrivateTable
    ledger: Ledger
    source: NoiseSource
    folder: Path
    synthesizer: Synthesizer
    zeros: tuple[Zeros, ...] = ()
    progress: Progress | None = None
    answers: list[NoisyMarginal] = field(default_factory=list, repr=False)
    compared: NoisyDistances | None = None
    _last: GraphicalModel | None = field(default=None, repr=False)

    @property
    def plan(self) -> Plan:
        return self.ledger.plan

    @property
    def domain(self) -> Domain:
        return self.table.coded.domain

    @property
    def answers_so_far(self) -> tuple[NoisyMarginal, ...]:
        """The answers so far, to look at: what is not asked for and charged does not come among them."""
        return tuple(self.answers)

    @property
    def measurements(self) -> Measurements:
        public_total = self.table.public_rows(self.plan.budget.neighbouring)
        return Measurements(self.domain, self.answers_so_far, public_total, distances=self.compared)

    @property
    def reserve(self) -> Reserve:
        """What the reserve buys; TypeError where the plan has none."""
        return Reserve(self.plan.reserve_event, self.plan.power, self.plan.accountant)

    def slots(self, stage: str) -> list[Slot]:
        """The slots of a stage."""
        asked = enumerate(slot.reservation for slot in self.plan.slots)
        return [Slot(i, reservation.clique or ()) for i, reservation in asked if reservation.stage == stage]

    def event(self, payment: Payment, scores: int = 0) -> NoiseEvent:
        """The charge whose noise an answer has, or so many distances out of the reserve; in records."""
        if isinstance(payment, Slot):
            return as_noise(self.plan.slots[payment.place].event)
        if scores:
            return self.plan.scores_event(payment.number, payment.share, scores)
        return self._measured_by(payment)

    def _measured_by(self, part: Part, sensitivity: float | None = None) -> NoiseEvent:
        return self.plan.measurement_event(f"{part.number:04d}:measure", part.share, sensitivity)

    def ask(self, questions: Sequence[tuple[Payment, Clique, QueryMatrix]]) -> None:
        """Measure one round, each question with the sensitivity of its own matrix.

        Out of the reserve a residual has the noise of that sensitivity; other matrices that of columns of norm 1.
        """
        planned = [(self._place(p), self._planned(p, clique, query)) for p, clique, query in questions]
        self._check_payments(questions, [q.event.id for _, q in planned])
        self.answers += measure_some(
            self.table, planned, self.ledger, self.source, answers_dir=self.folder, progress=self.progress
        )

    def _check_payments(self, questions: Sequence[tuple[Payment, Clique, QueryMatrix]], paid: Sequence[str]) -> None:
        """Refuse, before any charge, what a charge does not pay for: the release would not be that of its receipts.

        Raises:
            UserError: a charge for two answers; a marginal that is not its slot's, or not in the domain's order.
        """
        fix, spent = "a selection that asks each slot once, for its own marginal", {a.event for a in self.answers}
        for event, (payment, clique, _) in zip(paid, questions, strict=True):
            slot = self.plan.slots[payment.place].reservation if isinstance(payment, Slot) else None
            own = (slot and slot.clique) or self.domain.canonical(clique)
            if not clique or tuple(clique) != own:
                problem = f"the charge {event} pays for {' × '.join(own) or 'a marginal'}, not {' × '.join(clique)}"
                raise UserError(problem, where="plugins", fix=fix)
            if event in spent:
                raise UserError(f"the charge {event} is asked to pay twice", where="plugins", fix=fix)
            spent.add(event)

    def _place(self, payment: Payment) -> int:
        """The number of what is kept of a charge: those of the reserve come after all slots."""
        return payment.place if isinstance(payment, Slot) else len(self.plan.slots) + payment.number

    def distances(
        self,
        payment: Payment,
        cliques: Sequence[Clique],
        expected: Callable[[], Expected],
        queries: Mapping[Clique, QueryMatrix] | None = None,
        *,
        below: float = 0.0,
    ) -> Floats | None:
        """Noisy distances of the true marginals from the expected ones, in records; None where they were lost."""
        asked, event = queries or {}, self.event(payment, len(cliques))
        scores = self.score(lambda: {c: Candidate(c, asked.get(c), below=below) for c in cliques}, expected)
        path = self._choice_file(self._place(payment))
        values = noisy_scores(cliques, scores, event, self.ledger, self.source, path=path)
        first = isinstance(payment, Slot) and not self._graphical
        if first and values is not None and cliques:
            released = _released_distances(self, cliques, asked, values, expected(), event)
            self.compared = None if released is None else replace(released, below=below)
        return values

    def _planned(self, payment: Payment, clique: Clique, query: QueryMatrix) -> PlannedMeasurement:
        moved = self.bound(query)
        if isinstance(payment, Part):
            own = moved if isinstance(query, ResidualQuery) else None
            event = self._measured_by(payment, own).with_sensitivity(moved)
            return PlannedMeasurement(clique, query, payment.share, event)
        slot = as_noise(self.plan.slots[payment.place].event)
        if moved > slot.sensitivity and type(query) not in PROVED:
            name = type(query).__name__
            problem = f"{name} moves by {moved:g} when one unit changes, and its slot pays for {slot.sensitivity:g}"
            raise UserError(
                problem, where="plugins", fix="a matrix whose columns have norm 1, and are no farther apart"
            )
        share = self.plan.slots[payment.place].share
        return PlannedMeasurement(clique, query, share, slot.with_sensitivity(moved))

    def bound(self, query: QueryMatrix) -> float:
        """The sensitivity of the answers to a matrix, in records."""
        plan = self.plan
        return plan.budget.sensitivity(query, plan.norm)

    def grid(self, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        return grid_query(self.domain, clique, self.answers_so_far, threshold=threshold, norm=self.plan.norm)

    def score(
        self, candidates: Callable[[], Mapping[Clique, Candidate]], expected: Callable[[], Expected]
    ) -> Callable[[], PrivateScores]:
        """Scores of what may be chosen, by its name: distances of the true marginals from the expected ones.

        NOT private; computed once, and only where a draw is due.
        """
        return once(lambda: self._scores(candidates(), expected()))

    def _scores(self, candidates: Mapping[Clique, Candidate], expected: Expected) -> PrivateScores:
        neighbouring = self.plan.budget.neighbouring
        scores = distance_scores(self.counts, list(candidates.values()), expected, neighbouring=neighbouring)
        return PrivateScores({name: scores.values[c.clique] for name, c in candidates.items()}, scores.sensitivity)

    def choose(self, payment: Payment, among: Sequence[Clique], scores: Scores) -> Clique | None:
        """One of the candidates; None where the choice was charged and lost."""
        if isinstance(payment, Slot):
            event, path = as_choice(self.plan.slots[payment.place].event), self._choice_file(payment.place)
        else:
            event = self.plan.choice_event(f"{payment.number:04d}:choose", payment.share)
            path = self.folder / f"choice-{payment.number:04d}.json"
        build_scores = cast(Callable[[], PrivateScores], scores)  # as `score` made them
        return choose(among, build_scores, event, self.ledger, self.source, path=path)

    def _choice_file(self, place: int) -> Path:
        return self.folder / f"{place:05d}.json"

    def advance(self, done: float, note: str) -> None:
        """Show how much of the rounds is done, a part of 1."""
        if self.progress is not None:
            self.progress(round(1000 * done), 1000, note)

    def remember(self, number: int, part: float) -> float:
        """The round's part of the reserve, kept on disk before it is spent, so that a resumed run spends the same."""
        return float(stored_values(self.folder / f"round-{number:04d}.json", lambda: {"part": part})["part"])

    @property
    def _graphical(self) -> bool:
        """Whether models are graphical; independent columns else, for methods that look at one-way marginals alone."""
        return method_of(self.plan.method).graphical

    def fit(self) -> Expected:
        """The marginals of a model of all answers so far: a graphical one, started from the last, or independent."""
        if not self._graphical:
            return independent_marginals(self.measurements)
        settings = self.synthesizer.model_settings
        self._last = fit_model(self.measurements, settings, impossible=self.zeros, start=self._last)
        return self._last.marginal

    def possible(self, candidates: Sequence[Clique], limit: int) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        domain, last = self.domain, self._last
        if not self._graphical:
            return list(candidates) if sum(domain.shape(domain.names)) <= limit else []
        held = [*(a.clique for a in self.answers_so_far), *(c for c, _ in self.zeros)]
        small = still_small(domain, held, candidates, limit)
        fitting = [c for c, keeps in zip(candidates, small, strict=True) if keeps]
        return [c for c in fitting if last is None or last.answerable(c)]

    @cached_property
    def counts(self) -> PrivateCounts:
        """The candidates' exact marginals; NOT private."""
        return PrivateCounts(self.table, BATCH_CELLS)


def _released_distances(
    steps: AdaptiveRun,
    cliques: Sequence[Clique],
    queries: Mapping[Clique, QueryMatrix],
    values: Floats,
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
    return NoisyDistances(placed, whole, values[order], len(steps.answers_so_far), event.kind, event.scale, event.id)
