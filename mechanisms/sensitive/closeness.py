"""How far a synthetic table lies from the private one, answered with noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.planned_scores import PlannedScore
from mechanisms.public.criterion import Criterion
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.marginals import count_cliques
from mechanisms.public.table import CodedTable
from mechanisms.public.units import WEIGHT_BITS, Neighbouring, check_scale
from mechanisms.sensitive.counting import Private, exact_marginals
from mechanisms.sensitive.exact import LARGEST, ExactAnswers, noisy
from mechanisms.sensitive.noise import NoiseSource

#: Cells of marginals that are counted in one pass over each table.
BATCH_CELLS = 20_000_000


def exact_distance(table: Private, synthetic: CodedTable, wanted: Criterion, *, scale: float = 1.0) -> int:
    """The criterion's distance in lattice units of 2**-WEIGHT_BITS records, rounded down; NOT private.

    Guarantee: for a fixed synthetic table it moves by no more than `wanted.sensitivity`, exactly: a mean of m whole
        numbers that move by at most d together moves by at most d after rounding down too.
    Args:
        synthetic: rows over the same measured domain; fixed, whatever the private table is.
        scale: what a synthetic row counts, in records.
    """
    if synthetic.domain != table.coded.domain:
        raise ValueError("the tables have different domains")
    distances: list[int] = []
    start = 0
    while start < len(wanted.cliques):
        end, cells = start, 0
        while end < len(wanted.cliques):
            cells += synthetic.domain.cells(wanted.cliques[end])
            if end > start and cells > BATCH_CELLS:
                break
            end += 1
        batch = wanted.cliques[start:end]
        exact = exact_marginals(table, batch, batch_cells=BATCH_CELLS)
        for counts, made in zip(exact, count_cliques(synthetic, batch), strict=True):
            distances.append(int(np.abs(counts - _in_units(made, scale)).sum()))
        start = end
    return max(distances) if wanted.over == "largest" else sum(distances) // len(distances)


def _in_units(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Synthetic counts in lattice units."""
    if scale == 1.0:
        return counts << WEIGHT_BITS
    return np.asarray(np.rint(counts * (scale * 2.0**WEIGHT_BITS)), np.int64)


def noisy_distance(
    planned: PlannedScore,
    distance: Callable[[], int],
    ledger: Ledger,
    source: NoiseSource,
    *,
    neighbouring: Neighbouring,
    max_records: int,
    path: Path,
) -> float | None:
    """The distance with noise, in records; None where it was charged and lost.

    Guarantee: that of the event, whose sensitivity is checked against the criterion's own.
    Args:
        distance: the exact one, in lattice units; called only where a draw is due.
        path: where the noisy distance is kept, whole or not at all.
    Raises:
        UserError: a kept distance that the ledger does not know, or of another criterion.
    """
    event, facts = planned.event, planned.wanted.to_json()
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["event"] != event.id or kept["accept"] != facts or event.id not in ledger.events:
            what = "this noisy distance was not charged, or is that of another criterion"
            raise UserError(what, where=str(path), fix="a new run, with its own budget")
        return float(kept["value"])
    if event.id in ledger.events:
        return None
    needed = planned.wanted.sensitivity(neighbouring=neighbouring, max_records=max_records)
    if needed > event.sensitivity:
        raise RuntimeError(f"{event.id}: sensitivity {needed} is above the planned {event.sensitivity}")
    check_scale(event.scale)
    exact = np.array([min(distance(), LARGEST - 1)], np.int64)  # a cap moves no further than what it caps
    answer = ExactAnswers(exact, np.zeros_like(exact), 0)
    ledger.charge(event)
    value = float(noisy(answer, event, source)[0])
    write_whole(path, json.dumps({"event": event.id, "accept": facts, "value": value}) + "\n", mode=0o600)
    return value
