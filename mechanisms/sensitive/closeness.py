"""How far a synthetic table lies from the private one, answered with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import PlannedCharge
from mechanisms.public.coded_table import CodedTable, check_same_domain
from mechanisms.public.criterion import Criterion
from mechanisms.public.marginals import BATCH_CELLS, count_cliques, in_batches
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.counting import Private, exact_marginals
from mechanisms.sensitive.exact_answers import LARGEST, ExactAnswers, NoisyNumbers
from mechanisms.sensitive.exit import Exact, leave
from mechanisms.sensitive.noise import NoiseSource


def exact_distance(table: Private, synthetic: CodedTable, criterion: Criterion, *, scale: float = 1.0) -> int:
    """The criterion's distance in lattice units of 2**-WEIGHT_BITS records, rounded down; NOT private.

    Guarantee: for a fixed synthetic table it moves by no more than `criterion.sensitivity`, exactly: a mean of m whole
        numbers that move by at most d together moves by at most d after rounding down too.
    Args:
        synthetic: rows over the same measured domain; fixed, whatever the private table is.
        scale: what a synthetic row counts, in records.
    """
    check_same_domain(table.coded, synthetic)
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
