"""Distances that leave with noise: of pairs from independence, all under one charge; of a synthetic table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NoiseEvent, as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import PlannedCharge
from mechanisms.public.coded_table import (
    BATCH_CELLS,
    AnyTable,
    CodedTable,
    check_same_domain,
    count_cliques,
    in_batches,
)
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Clique
from mechanisms.public.units import WEIGHT_BITS, joint_sensitivity
from mechanisms.sensitive.exact_answers import LARGEST, ExactAnswers, NoisyNumbers, exact_marginals
from mechanisms.sensitive.exit import Exact, leave
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_choice import SCORE_BITS, PrivateScores


def noisy_scores(
    cliques: Sequence[Clique],
    scores: Callable[[], PrivateScores],
    event: NoiseEvent,
    ledger: Ledger,
    source: NoiseSource,
    *,
    path: Path,
) -> NDArray[np.float64] | None:
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
