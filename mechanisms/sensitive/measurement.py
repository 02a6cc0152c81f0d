"""Noisy marginals, the histogram of records per unit, and what is asked about persons: all leave by the one exit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NoiseEvent
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import PlannedMeasurement
from mechanisms.public.coded_table import BATCH_CELLS
from mechanisms.public.persons.tally import by_question
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import QueryMatrix, as_matrix
from mechanisms.public.queries.stored_queries import check_stored
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.release_files import load_answer, save_answer
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.exact_answers import ExactAnswers, check_drawable, exact_marginals, noisy
from mechanisms.sensitive.exit import Exact, leave
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_table import PrivateTable


@dataclass(frozen=True, eq=False)
class MarginalQuestion:
    """A planned measurement, with the sensitivity of its own query.

    Attributes:
        planned: the query and its charge.
        matrix: of the query, asked for once: the rows are counted by the very columns that `needed` is computed from.
        needed: the most by which the answers move when one unit changes, from the query itself, in the event's norm.
        path: the file of the answer.
    """

    planned: PlannedMeasurement
    matrix: QueryMatrix
    needed: float
    path: Path

    @property
    def event(self) -> NoiseEvent:
        return self.planned.event

    @property
    def label(self) -> str:
        return " × ".join(self.planned.clique)

    def load(self) -> NoisyMarginal:
        return load_answer(self.path)

    def save(self, answer: NoisyMarginal) -> None:
        save_answer(self.path, answer)

    def fits(self, answer: NoisyMarginal) -> bool:
        planned = self.planned
        theirs, mine = answer.query.arrays(), planned.query.arrays()
        same = theirs.keys() == mine.keys() and all(np.array_equal(theirs[k], mine[k]) for k in theirs)
        facts = (answer.clique, answer.event, answer.noise, answer.scale)
        asked = (planned.clique, planned.event.id, planned.event.kind, planned.event.scale)
        return same and facts == asked and answer.values.shape == (planned.query.rows,)

    def exact(self, counts: NDArray[np.int64]) -> Exact[ExactAnswers]:
        """The exact answers to counts in units of 2**-WEIGHT_BITS records."""
        return Exact(ExactAnswers.of(self.matrix, counts), self.needed)

    def check(self) -> None:
        check_drawable(self.event)
        check_stored(self.planned.query)

    def draw(self, exact: Exact[ExactAnswers], source: NoiseSource) -> NoisyMarginal:
        planned, event = self.planned, self.event
        values = noisy(exact.value, event, source)
        return NoisyMarginal(planned.clique, planned.query, values, event.kind, event.scale, event.id)


def marginal_question(planned: PlannedMeasurement, budget: Budget, path: Path) -> MarginalQuestion:
    """The question about a table that is clipped to the budget's C; the sensitivity is recomputed from the query."""
    norm, matrix = planned.event.norm, as_matrix(planned.query)
    return MarginalQuestion(planned, matrix, budget.sensitivity(matrix, norm), path)


def check_clipped(table: PrivateTable, budget: Budget) -> None:
    """RuntimeError where the rows are clipped to another C than the charges were made for."""
    if table.max_records != budget.max_records:
        raise RuntimeError(f"the table is clipped to {table.max_records} records, the plan says {budget.max_records}")


def measure_some(
    table: PrivateTable,
    planned: Sequence[tuple[int, PlannedMeasurement]],
    ledger: Ledger,
    source: NoiseSource,
    *,
    answers_dir: Path,
    progress: Progress | None = None,
) -> list[NoisyMarginal]:
    """One round: measure what is wanted and the folder does not hold yet; answers in the order wanted.

    Guarantee: the answers together are (ε, δ)-DP for the plan's unit and neighbouring relation. Every charge is on disk
        before its noise is drawn; a charge without an answer stays spent and its marginal is never measured again. The
        queries may depend on the answers of earlier rounds and on public facts.
    Args:
        table: the clipped private table; its C must be the plan's.
        planned: measurements with the numbers of their files.
        answers_dir: where answers are kept, one file each, written whole; those found there are taken as they are.
    Raises:
        UserError: a kept answer is to another question than the one wanted.
    """
    budget = ledger.plan.budget
    check_clipped(table, budget)
    questions = [marginal_question(m, budget, answers_dir / f"{i:05d}.npz") for i, m in planned]

    def exact(due: Sequence[MarginalQuestion]) -> Iterator[Exact[ExactAnswers]]:
        counts = exact_marginals(table.coded, [q.planned.clique for q in due], batch_cells=BATCH_CELLS)
        return (q.exact(c) for q, c in zip(due, counts, strict=True))

    answers = leave(questions, exact, ledger, source, progress=progress)
    return [a for a in answers if a is not None]


def measure_persons(
    table: PrivateTable, ledger: Ledger, source: NoiseSource, *, answers_dir: Path
) -> tuple[NoisyMarginal, ...]:
    """What the ledger's plan asks about persons, or of a unit_id's histogram, without the answers that were lost.

    Guarantee: as of `measure_some`; a person has weight 1 at most in each answer; the sensitivity is recomputed from
        what is asked.
    Args:
        table: loaded with the counts of its persons, or with the histogram; its C must be that of the plan's.
    """
    budget, charges = ledger.plan.budget, ledger.plan.of("persons")
    if not charges:
        return ()
    asked = [c.person_question for c in charges]
    ids = table.histogram is not None and ledger.plan.histogram is not None
    counts = table.histogram << WEIGHT_BITS if ids and table.histogram is not None else table.persons
    if counts is None or counts.size != sum(q.query.columns for q in asked):
        raise RuntimeError("the table holds no counts of what is asked about persons")
    exact = dict(zip((c.event.id for c in charges), by_question(counts, asked), strict=True))
    questions = []
    for number, (charge, question) in enumerate(zip(charges, asked, strict=True)):
        planned, name = charge.measurement, "units" if question.ids else f"persons-{number:05d}"
        needed = budget.moved(question, planned.event.norm)
        questions.append(MarginalQuestion(planned, planned.query, needed, answers_dir / f"{name}.npz"))
    answers = leave(questions, lambda due: [q.exact(exact[q.event.id]) for q in due], ledger, source)
    return tuple(a for a in answers if a is not None)
