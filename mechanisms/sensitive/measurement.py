"""Exact counts left of the wall, and the noisy marginals, histograms and answers that leave by the one exit."""

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
from mechanisms.public.coded_table import BATCH_CELLS, AnyTable, count_cliques, in_batches
from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.persons.tally import by_question
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import QueryMatrix, as_matrix, check_cells, too_many_records
from mechanisms.public.queries.stored_queries import check_stored
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.release_files import load_answer, save_answer
from mechanisms.public.units import MAX_UNITS, WEIGHT_BITS, check_scale
from mechanisms.sensitive.deviates import SATURATED
from mechanisms.sensitive.exit import Exact, JsonAnswer, leave
from mechanisms.sensitive.noise import NoiseSource, split_noise
from mechanisms.sensitive.private_table import PrivateTable

#: Released answers lie within ± this many units of 2**-WEIGHT_BITS records: 1.1 · 10¹² records.
LIMIT = 1 << 60
#: Exact answers lie within ± this many units: noise that counts as SATURATED takes all of them beyond LIMIT.
LARGEST = SATURATED - LIMIT


def exact_marginals(table: AnyTable, cliques: Sequence[Clique], *, batch_cells: int) -> Iterator[NDArray[np.int64]]:
    """Each clique's counts in units of 2**-WEIGHT_BITS records, flattened in C order, in the order asked. NOT private.

    Args:
        table: the rows of a private table, clipped.
        batch_cells: at most so many cells are counted in one pass over the rows (a single larger marginal goes alone).
    """
    shift = 0 if table.weighted else WEIGHT_BITS
    for batch in in_batches(table.domain, cliques, batch_cells):
        for counts in count_cliques(table, batch):
            yield counts << shift


@dataclass(frozen=True, eq=False)
class ExactAnswers:
    """Answers before the noise, NOT private: (whole + rest · 2**-bits) · 2**-WEIGHT_BITS records; the repr shows none.

    Attributes:
        rest: 0 ≤ rest < 2**bits.
        bits: by how many the answers' lattice is finer than that of the counts.
    Raises:
        UserError: answers beyond LARGEST.
    """

    whole: NDArray[np.int64]
    rest: NDArray[np.int64]
    bits: int

    def __post_init__(self) -> None:
        if self.whole.size and not -LARGEST <= int(self.whole.min()) <= int(self.whole.max()) < LARGEST:
            raise too_many_records(f"an answer is beyond {LARGEST / 2**WEIGHT_BITS:.3g} records")

    @classmethod
    def of(cls, query: QueryMatrix, marginal: NDArray[np.int64]) -> ExactAnswers:
        """A query's answers to counts in units of 2**-WEIGHT_BITS records.

        Q(2ᵇ u + v) = 2ᵇ Q u + Q v: each part fits 63 bits where the product of the whole need not.

        Raises:
            UserError: the query is about a marginal of another size.
        """
        query = as_matrix(query)
        check_cells(query, marginal.size)
        bits = query.bits
        if not bits:
            return cls(query.answer_exact(marginal), np.zeros(query.rows, np.int64), 0)
        mask = (1 << bits) - 1
        low = query.answer_exact(marginal & mask)
        return cls(query.answer_exact(marginal >> bits) + (low >> bits), low & mask, bits)

    def __repr__(self) -> str:
        return f"ExactAnswers({self.whole.size} answers)"


def check_drawable(event: NoiseEvent) -> None:
    """Refuse noise that no answer holds, before its charge.

    Raises:
        UserError: a scale beyond MAX_UNITS.
    """
    check_scale(event.scale, MAX_UNITS * 2.0**-WEIGHT_BITS)


def noisy(exact: ExactAnswers, event: NoiseEvent, source: NoiseSource) -> NDArray[np.float64]:
    """The answers with noise, in records. Charge the event before the call.

    Guarantee: a function of the rounded output of the continuous mechanism. Its sum with the answers is exact, and is
        clipped at ±LIMIT: a draw beyond SATURATED leads to the same clipped sum as the draw itself, since no exact
        answer is beyond SATURATED − LIMIT. The float nearest to what is left is post-processing.
    """
    bits = exact.bits
    whole, rest = split_noise(event, exact.whole.size, source, bits=WEIGHT_BITS + bits, split=bits)
    low = exact.rest + rest
    total = exact.whole + whole + (low >> bits)
    low &= (1 << bits) - 1
    low[(total >= LIMIT) | (total < -LIMIT)] = 0
    return np.asarray((np.clip(total, -LIMIT, LIMIT) + low * 2.0**-bits) * 2.0**-WEIGHT_BITS, np.float64)


@dataclass(frozen=True)
class NoisyNumbers(JsonAnswer):
    """Numbers in records that leave under one charge, kept beside the facts that say of what they are.

    Attributes:
        facts: JSON values; numbers that are kept beside others are refused.
        size: how many there are.
    """

    event: NoiseEvent
    label: str
    facts: JsonDict
    size: int

    def fits(self, answer: Json) -> bool:
        values, facts = answer.get("values"), {"event": self.event.id, **self.facts}
        numbers = isinstance(values, list) and [type(v) for v in values] == [float] * self.size
        return numbers and {k: answer.get(k) for k in facts} == facts

    def exact(self, whole: NDArray[np.int64], sensitivity: float) -> Exact[ExactAnswers]:
        """Numbers in units of 2**-WEIGHT_BITS records, and how far they move together, in the event's norm."""
        return Exact(ExactAnswers(whole, np.zeros_like(whole), 0), sensitivity)

    def check(self) -> None:
        check_drawable(self.event)

    def draw(self, exact: Exact[ExactAnswers], source: NoiseSource) -> JsonDict:
        return {"event": self.event.id, **self.facts, "values": noisy(exact.value, self.event, source).tolist()}


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
