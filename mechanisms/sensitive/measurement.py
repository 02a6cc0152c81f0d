"""Noisy marginals, histograms, answers about persons, and bounds, bins and values: all leave by the one exit.

Each unit counts once per value. Weights of values are NOT private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NoiseEvent, as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import PlannedCharge, PlannedMeasurement
from mechanisms.accounting.thresholds import weight_of
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import BATCH_CELLS
from mechanisms.public.discovery.discovery_questions import OF_UNITS, VALUES
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.persons.tally import by_question
from mechanisms.public.progress import Progress
from mechanisms.public.queries.cell_sums import check_stored
from mechanisms.public.queries.query_matrices import QueryMatrix, as_matrix, ask_alike
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.release_files import load_answer, save_answer
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.inspect_file import check_unchanged
from mechanisms.public.units import WEIGHT_BITS, Norm
from mechanisms.sensitive.contribution import Aside, UnitRows
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.exact_answers import ExactAnswers, check_drawable, exact_marginals, noisy
from mechanisms.sensitive.exit import Exact, JsonAnswer, leave
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_table import EMBEDDED, PrivateTable


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
        facts = (answer.clique, answer.event, answer.noise, answer.scale)
        asked = (planned.clique, planned.event.id, planned.event.kind, planned.event.scale)
        alike = ask_alike(answer.query, planned.query)
        return alike and facts == asked and answer.values.shape == (planned.query.rows,)

    def exact(self, counts: Ints) -> Exact[ExactAnswers]:
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


@dataclass(frozen=True)
class ValuesQuestion(JsonAnswer):
    """Which values of a column stand above the threshold.

    Attributes:
        planned: the charge and the threshold.
        needed: the most by which the weights move when one unit changes, in the event's norm.
    """

    planned: PlannedCharge
    needed: float

    @property
    def event(self) -> NoiseEvent:
        return as_noise(self.planned.event)

    @property
    def label(self) -> str:
        return f"values of {self.planned.discovery_question.column}"

    def fits(self, answer: Json) -> bool:
        values = answer.get(VALUES)
        texts = isinstance(values, list) and all(isinstance(v, str) for v in values)
        return texts and answer.get("event") == self.event.id

    def check(self) -> None:
        check_drawable(self.event)

    def draw(self, exact: Exact[ValueWeights], source: NoiseSource) -> JsonDict:
        """The values whose noisy weight reaches the threshold: nothing else of them leaves."""
        threshold = self.planned.discovery_question.threshold
        assert threshold is not None
        values = released_values(exact.value, self.event, threshold, source)
        return {"event": self.event.id, VALUES: values}


def released_values(weights: ValueWeights, event: NoiseEvent, threshold: int, source: NoiseSource) -> list[str]:
    """The texts whose noisy weight is at least the threshold, in the order of the alphabet. Charge the event before.

    Guarantee: that of Gaussian or Laplace noise on the weights of all texts there may be, but for what the threshold
        lets through: a text that nobody holds has weight 0 and is never released, so that no noise is drawn for it.
    Args:
        threshold: in units of 2**-WEIGHT_BITS.
    """
    exact = ExactAnswers(weights.units, np.zeros(weights.units.size, np.int64), 0)
    answers = noisy(exact, event, source)
    least = threshold * 2.0**-WEIGHT_BITS
    return sorted(t for t, answer in zip(weights.texts, answers, strict=True) if answer >= least)


def discover(
    table: PrivateTable,
    weights: Callable[[], Mapping[str, ValueWeights]],
    ledger: Ledger,
    source: NoiseSource,
    *,
    answers_dir: Path,
    histogram: Ints | None = None,
    progress: Progress | None = None,
) -> dict[str, Floats | tuple[str, ...] | None]:
    """Column → the noisy counts of its leaf tree, or its values; None where they were charged and lost.

    Guarantee: the answers together cost what the ledger's plan says, for its unit and neighbouring relation. Every
        charge is on disk before its noise is drawn; a charge without an answer stays spent and is never drawn again.
    Args:
        table: read by the scouting schema, clipped to the plan's C.
        weights: of the columns whose values are asked for, in the norm of the plan's noise; called only where a draw
            is due.
        answers_dir: where answers are kept, one file each, written whole; those found there are taken as they are.
        histogram: how many units have so many records, up to the cap, where the plan asks for them.
    """
    budget, charges = ledger.plan.budget, ledger.plan.of("discover")
    check_clipped(table, budget)
    questions = [_question(charge, budget, answers_dir, i) for i, charge in enumerate(charges)]
    constants = _of_constants(table, charges)

    def exact(due: Sequence[MarginalQuestion | ValuesQuestion]) -> Iterator[Exact[Any]]:
        """The true answers, one after the other, before their noise."""
        if any(isinstance(question, ValuesQuestion) for question in due):
            weights()  # what fails here costs nothing
        for question in due:
            if isinstance(question, ValuesQuestion):
                yield Exact(weights()[question.planned.discovery_question.column], question.needed)
            elif question.planned.clique == (OF_UNITS,):
                yield question.exact(_bucketed(histogram, charges) << WEIGHT_BITS)
            elif (name := question.planned.clique[0]) in constants:
                yield question.exact(constants[name])
            else:
                clique = question.planned.clique
                yield question.exact(next(exact_marginals(table.coded, [clique], batch_cells=BATCH_CELLS)))

    answers = leave(questions, exact, ledger, source, progress=progress)
    named = [charge.discovery_question.column for charge in charges]
    return {name: _answer(answer) for name, answer in zip(named, answers, strict=True)}


def _of_constants(table: PrivateTable, charges: Sequence[PlannedCharge]) -> dict[str, Ints]:
    """Constants of the unit → how many units have each leaf, as the table counted its persons."""
    asked = (c.discovery_question for c in charges)
    trees = {a.column: a.tree for a in asked if a.once and a.tree is not None}
    sizes = [tree.leaves + tree.specials for tree in trees.values()]
    if not trees:
        return {}
    if table.persons is None or table.persons.size != sum(sizes):
        raise RuntimeError("the table holds no counts of its persons' constants")
    return dict(zip(trees, np.split(table.persons, np.cumsum(sizes)[:-1]), strict=True))


def _bucketed(histogram: Ints | None, charges: Sequence[PlannedCharge]) -> Ints:
    """How many units have so many records, in the buckets that the plan asks for."""
    asked = next(c.discovery_question.sizes for c in charges if c.discovery_question.sizes is not None)
    if histogram is None:
        raise RuntimeError("the table holds no counts of records per unit")
    return asked.bucketed(histogram)


def _answer(answer: Any) -> Floats | tuple[str, ...] | None:
    if answer is None:
        return None
    return answer.values if isinstance(answer, NoisyMarginal) else tuple(answer[VALUES])


def _question(charge: PlannedCharge, budget: Budget, folder: Path, place: int) -> MarginalQuestion | ValuesQuestion:
    """The question of a charge; its sensitivity is computed again from what is asked."""
    needed = budget.moved(charge.discovery_question, as_noise(charge.event).norm)
    if charge.discovery_question.of_values:
        return ValuesQuestion(folder / f"{place:05d}.json", charge, needed)
    planned = charge.measurement
    return MarginalQuestion(planned, as_matrix(planned.query), needed, folder / f"{place:05d}.npz")


#: Longer texts are not listed, nor are texts with characters that cannot be printed.
MAX_TEXT = 200


@dataclass(frozen=True, eq=False)
class ValueWeights:
    """The texts of one column, and the sum of their weights over all units; the repr shows none.

    Attributes:
        texts: distinct.
        units: per text, in units of 2**-WEIGHT_BITS: a unit that holds t of them counts w_t for each of these.
    """

    texts: tuple[str, ...]
    units: Ints

    def __repr__(self) -> str:
        return f"ValueWeights({len(self.texts)} values)"


def value_weights(
    table: UnitRows,
    columns: Sequence[Column],
    *,
    key: bytes,
    norm: Norm,
    holdout: float | None,
    engine: Engine = EMBEDDED,
) -> dict[str, ValueWeights]:
    """The weights of the values of some columns, by column.

    Guarantee: what one unit adds to the weights of a column is a vector without negative entries of norm at most 1,
        which depends on no other unit: t of its distinct values count, at most C, chosen at random where it has more
        (by a keyed hash of the unit and the value); each weighs w_t, however many records hold it. Missing values,
        those that mean *other* and those that no list can hold do not count; nor does a unit that is set aside.
    Args:
        key, holdout: as of `load_private`: the same units are set aside.
        engine: who reads the rows.
    Raises:
        UserError: a malformed file; one that changed since it was opened.
    """
    aside = None if holdout is None else Aside(key, holdout)
    weights = {}
    counts = engine.values(table, columns, key=key, aside=aside)
    check_unchanged(table.source.states)
    for name, counted in counts.items():
        sums: dict[str, int] = {}
        for text, values, count in counted:
            if may_be_listed(text):
                sums[text] = sums.get(text, 0) + count * weight_of(values, norm)
        texts = tuple(sorted(sums))
        weights[name] = ValueWeights(texts, np.array([sums[t] for t in texts], np.int64))
    return weights


def may_be_listed(text: str) -> bool:
    """Whether a schema's file can hold the text: a rule about the text alone, whoever holds it."""
    return len(text) <= MAX_TEXT and text.isprintable() and text.strip() == text != ""
