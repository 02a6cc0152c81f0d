"""Private choices and noisy distances: scores stay left of the wall, and each is charged before it is drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import Exponential, NoiseEvent, as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import PlannedCharge
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.coded_table import (
    BATCH_CELLS,
    AnyTable,
    CodedTable,
    check_same_domain,
    count_cliques,
    in_batches,
)
from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.queries.query_matrices import Identity, as_matrix, check_cells, sensitivity
from mechanisms.public.release import Criterion
from mechanisms.public.units import WEIGHT_BITS, Neighbouring, joint_sensitivity
from mechanisms.sensitive.exact_answers import LARGEST, ExactAnswers, NoisyNumbers, exact_marginals
from mechanisms.sensitive.exit import Exact, JsonAnswer, leave
from mechanisms.sensitive.exponential import choose_index, rate_of
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_table import PrivateTable

#: Weights of candidates are whole multiples of 2**-SCORE_BITS.
SCORE_BITS = 16


@dataclass(eq=False)
class PrivateCounts:
    """Exact marginals that are asked for again and again, NOT private; the repr shows none.

    Attributes:
        table: the clipped private table.
        batch_cells: so many cells are counted in one pass, and kept.
    """

    table: PrivateTable
    batch_cells: int
    _counts: dict[Clique, Ints] = field(default_factory=dict, repr=False)
    _cells: int = field(default=0, repr=False)

    def of(self, cliques: Sequence[Clique]) -> Iterator[Ints]:
        """Each clique's counts in lattice units, in the order asked."""
        if len(set(cliques)) < len(cliques):
            raise ValueError("a marginal is asked for twice")
        new = [c for c in cliques if c not in self._counts]
        counted = exact_marginals(self.table.coded, new, batch_cells=self.batch_cells)
        for clique in cliques:
            if clique in self._counts:
                yield self._counts[clique]
                continue
            counts = next(counted)
            if self._cells + counts.size <= self.batch_cells:
                self._counts[clique] = counts
                self._cells += counts.size
            yield counts

    def __repr__(self) -> str:
        return f"PrivateCounts({len(self._counts)} marginals)"


@dataclass(frozen=True, eq=False)
class PrivateScores:
    """Scores of candidates, NOT private: whole numbers, larger is better; the repr shows none.

    Attributes:
        values: per clique, in units of 2**-(WEIGHT_BITS + SCORE_BITS) records.
        sensitivity: the most by which any of them moves between neighbours, in that unit.
    """

    values: dict[Clique, int]
    sensitivity: int

    def __repr__(self) -> str:
        return f"PrivateScores({len(self.values)} candidates, sensitivity={self.sensitivity})"


def distance_scores(
    counted: PrivateCounts, candidates: Sequence[Candidate], expected: Expected, *, neighbouring: Neighbouring
) -> PrivateScores:
    """How far the true marginals are from the expected ones, in L1, weighted; of each cell what is beyond a level.

    Guarantee: for fixed expectations (functions of what was released before) no score moves by more than `sensitivity`
        when one unit changes: w · C under add_remove, 2 w · C under replace (w the largest weight), computed from the
        queries; max(|x| − level, 0) moves by no more than x does. A distance to a model may rise or fall with the same
        unit, so the scores are not monotone.
    Args:
        expected: a model's marginals; rounded to the lattice of the counts.
    """
    values: dict[Clique, int] = {}
    bound = Fraction(0)
    counts = counted.of([c.clique for c in candidates])
    units = counted.table.max_records
    for candidate, exact in zip(candidates, counts, strict=True):
        query = as_matrix(candidate.query or Identity(exact.size))
        check_cells(query, exact.size)
        if query.bits:
            raise ValueError(f"{candidate.clique}: scores need queries with entries 0 and 1")
        weight = round(candidate.weight * 2**SCORE_BITS)
        if weight < 1 or not 0 <= candidate.below < 2**40:
            raise ValueError(f"{candidate.clique}: weight {candidate.weight}, below {candidate.below}")
        model = np.rint(np.asarray(expected(candidate.clique), np.float64) * 2.0**WEIGHT_BITS)
        if model.shape != exact.shape or not np.isfinite(model).all() or float(np.abs(model).sum()) >= 2.0**61:
            raise ValueError(f"{candidate.clique}: the model's marginal has another shape, or is not finite")
        gap = query.answer_exact(exact - model.astype(np.int64))
        distance = int(np.maximum(np.abs(gap) - round(candidate.below * 2**WEIGHT_BITS), 0).sum())
        values[candidate.clique] = weight * (distance - round(candidate.penalty * 2**WEIGHT_BITS))
        moved = sensitivity(query, norm="l1", neighbouring=neighbouring, max_records=units)
        bound = max(bound, weight * Fraction(moved))
    return PrivateScores(values, max(math.ceil(bound * 2**WEIGHT_BITS), 1))


def stored_choices(folder: Path) -> frozenset[str]:
    """The events whose choice or scores are kept in a folder; of those charged, the others were lost."""
    choices = (json.loads(p.read_text(encoding="utf-8")) for p in folder.glob("*.json"))
    return frozenset(k["event"] for k in choices if "event" in k)


def choose(
    among: Sequence[Clique],
    scores: Callable[[], PrivateScores],
    event: Exponential,
    ledger: Ledger,
    source: NoiseSource,
    *,
    path: Path,
) -> Clique | None:
    """One of the candidates by the exponential mechanism: as of `leave`.

    Guarantee: ε-DP at the event's ε, of bounded range. A choice that is kept already is taken as it is; one that was
        charged and lost stays spent and is None.
    Args:
        among: the candidates left, from public facts and answers before; a single one is taken without any charge.
        scores: counts and scores; called only where a draw is due.
        path: where the choice is kept, whole or not at all.
    Raises:
        BudgetExceeded: the plan has no place for the event.
    """
    if len(among) == 1:
        return among[0]
    if not among:
        return None
    question = _Choice(path, event, tuple(among))
    answer = leave([question], lambda due: [q.exact(scores()) for q in due], ledger, source)[0]
    return None if answer is None else tuple(answer["choice"])


@dataclass(frozen=True)
class _Choice(JsonAnswer):
    """One of the candidates, by their scores."""

    label: ClassVar[str] = "a private choice"
    event: Exponential
    among: tuple[Clique, ...]

    def fits(self, answer: Json) -> bool:
        return answer.get("event") == self.event.id and tuple(answer.get("choice", ())) in self.among

    def exact(self, scores: PrivateScores) -> Exact[list[int]]:
        """The candidates' scores, in their own order."""
        return Exact([scores.values[c] for c in self.among], scores.sensitivity)

    def check(self) -> None:
        rate_of(self.event.epsilon)

    def draw(self, exact: Exact[list[int]], source: NoiseSource) -> JsonDict:
        clique = self.among[choose_index(exact.value, int(exact.sensitivity), self.event, source)]
        return {"event": self.event.id, "choice": list(clique)}


def noisy_scores(
    cliques: Sequence[Clique],
    scores: Callable[[], PrivateScores],
    event: NoiseEvent,
    ledger: Ledger,
    source: NoiseSource,
    *,
    path: Path,
) -> Floats | None:
    """Scores of weight 1 with noise, in records, in the order of the cliques; None where they were charged and lost.

    InDif here is d(a, b) = ‖M_ab − E_ab‖₁ in counts, with E_ab = N̂ p̂_a p̂_b from noisy one-way marginals and the noisy
    total that were released before. To whoever computes the sensitivity they are constants, and so is the n of the
    product. So by the triangle inequality d moves by no more than M_ab does in L1:

        add_remove: a unit adds a non-negative vector of total weight ≤ C: |d − d′| ≤ C.
        replace: two such vectors are exchanged: |d − d′| ≤ 2C.

    Both are attained, by every pair at once, hence √m times that in L2 over m pairs (m times in L1). With the exact
    one-way marginals and a fixed N in the product, as PrivSyn's InDif is often written, d is not bounded at all: adding
    a row moves Σ a_x b_y / N by (2n + 1)/N, which depends on the private n. With the exact n it is bounded by 4C and 8C
    (M_ab moves by C; in the product each side moves by C, and dividing by n + C instead of n by another C). The noisy
    sides cost nothing more, and their own error is small against the distances that matter; so ours needs a quarter of
    that noise.

    Guarantee: that of the event, whose sensitivity is checked against the scores' own.
    Args:
        scores: counts and distances; called only where a draw is due.
        path: where the noisy scores are kept, whole or not at all.
    Raises:
        UserError: kept scores that the ledger does not know, or of other marginals.
    """
    facts = {"cliques": [list(c) for c in cliques]}
    question = NoisyNumbers(path, event, "distances from independence", facts, len(cliques))

    def exact(due: Sequence[NoisyNumbers]) -> list[Exact[ExactAnswers]]:
        computed = scores()
        if any(v % (1 << SCORE_BITS) for v in computed.values.values()):
            raise ValueError("scores of other weights than 1 are not on the lattice of the noise")
        whole = np.array([computed.values[c] >> SCORE_BITS for c in cliques], np.int64)
        each = computed.sensitivity * 2.0 ** -(WEIGHT_BITS + SCORE_BITS)
        return [q.exact(whole, joint_sensitivity(each, len(cliques), event.norm)) for q in due]

    answer = leave([question], exact, ledger, source)[0]
    return None if answer is None else np.array(answer["values"], np.float64)


def exact_distance(table: AnyTable, synthetic: CodedTable, criterion: Criterion, *, scale: float = 1.0) -> int:
    """The criterion's distance in lattice units of 2**-WEIGHT_BITS records, rounded down; NOT private.

    Guarantee: for a fixed synthetic table it moves by no more than `criterion.sensitivity`, exactly: a mean of m whole
        numbers that move by at most d together moves by at most d after rounding down too.
    Args:
        table: the rows of the private table, clipped.
        synthetic: rows over the same measured domain; fixed, whatever the private table is.
        scale: what a synthetic row counts, in records.
    """
    check_same_domain(table, synthetic)
    batches = in_batches(synthetic.domain, criterion.cliques, BATCH_CELLS)
    theirs = (counts for batch in batches for counts in count_cliques(synthetic, batch))
    exact = exact_marginals(table, criterion.cliques, batch_cells=BATCH_CELLS)
    in_units = (np.rint(counts * (scale * 2.0**WEIGHT_BITS)).astype(np.int64) for counts in theirs)
    distances = [int(np.abs(a - b).sum()) for a, b in zip(exact, in_units, strict=True)]
    return max(distances) if criterion.over == "largest" else sum(distances) // len(distances)


def noisy_distance(
    planned: PlannedCharge,
    distance: Callable[[], int],
    ledger: Ledger,
    source: NoiseSource,
    *,
    budget: Budget,
    path: Path,
) -> float | None:
    """The distance with noise, in records; None where it was charged and lost.

    Guarantee: that of the event, whose sensitivity is checked against the criterion's own.
    Args:
        distance: the exact one, in lattice units; called only where a draw is due.
        budget: whose C the table is clipped to.
        path: where the noisy distance is kept, whole or not at all.
    Raises:
        UserError: a kept distance that the ledger does not know, or of another criterion.
    """
    event, criterion = as_noise(planned.event), planned.criterion
    question = NoisyNumbers(path, event, criterion.title, {"accept": criterion.to_json()}, 1)

    def exact(due: Sequence[NoisyNumbers]) -> list[Exact[ExactAnswers]]:
        """The distance, capped where answers end: a cap moves no further than what it caps."""
        capped = np.array([min(distance(), LARGEST - 1)], np.int64)
        return [q.exact(capped, budget.moved(criterion, event.norm)) for q in due]

    answer = leave([question], exact, ledger, source)[0]
    return None if answer is None else float(answer["values"][0])
