"""The wall: count, charge, then draw. Nothing else lets a value of the private table out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.adaptive import AdaptivePlan
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.public.errors import UserError
from mechanisms.public.queries import query_arrays, sensitivity
from mechanisms.public.release import Measurements, NoisyMarginal, load_answer, save_answer
from mechanisms.public.units import MAX_UNITS, WEIGHT_BITS, check_scale
from mechanisms.sensitive.counting import Private, exact_marginals
from mechanisms.sensitive.exact import ExactAnswers, noisy
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.table import PrivateTable

#: Cells counted in one pass over the rows.
BATCH_CELLS = 20_000_000

Progress = Callable[[int, int, str], None]


def measure(
    table: Private,
    plan: Plan,
    ledger: Ledger,
    source: NoiseSource,
    *,
    answers_dir: Path,
    public_total: int | None = None,
    batch_cells: int = BATCH_CELLS,
    progress: Progress | None = None,
) -> Measurements:
    """Measure what the plan says and the folder does not hold yet.

    Guarantee: the answers together are (ε, δ)-DP for the plan's unit and neighbouring relation. Every charge is on disk
        before its noise is drawn; a charge without an answer stays spent and its marginal is never measured again.
    Args:
        table: the clipped private table; its C must be the plan's.
        answers_dir: where answers are kept, one file each, written whole; those found there are taken as they are.
        public_total: the number of records where it is a public fact.
        batch_cells: how many cells are counted in one pass.
    """
    found = measure_some(
        table,
        list(enumerate(plan.measurements)),
        plan,
        ledger,
        source,
        answers_dir=answers_dir,
        batch_cells=batch_cells,
        progress=progress,
    )
    return Measurements(table.coded.domain, tuple(found), public_total)


def measure_some(
    table: Private,
    wanted: Sequence[tuple[int, PlannedMeasurement]],
    plan: Plan | AdaptivePlan,
    ledger: Ledger,
    source: NoiseSource,
    *,
    answers_dir: Path,
    batch_cells: int = BATCH_CELLS,
    progress: Progress | None = None,
) -> list[NoisyMarginal]:
    """One round: measure what is wanted and the folder does not hold yet; answers in the order wanted.

    Guarantee: as of `measure`; the queries may depend on the answers of earlier rounds and on public facts.
    Args:
        wanted: measurements with the numbers of their files.
    Raises:
        RuntimeError: a kept answer is to another question than the one wanted.
    """
    if table.max_records != plan.max_records:
        raise RuntimeError(f"the table is clipped to {table.max_records} records, the plan says {plan.max_records}")
    answers_dir.mkdir(mode=0o700, exist_ok=True)
    done = {i: load_answer(_file(answers_dir, i)) for i, _ in wanted if _file(answers_dir, i).exists()}
    for i, planned in wanted:
        if i in done and not (planned.event.id in ledger.events and _answers(done[i], planned)):
            raise UserError(
                f"the answer to {' × '.join(planned.clique)} is not one that the ledger was charged for, or does not "
                "follow from the answers before it",
                where=str(_file(answers_dir, i)),
                fix="a new run, with its own budget",
            )
    open_ = [(i, m) for i, m in wanted if i not in done and m.event.id not in ledger.events]
    counts = exact_marginals(table, [m.clique for _, m in open_], batch_cells=batch_cells)
    for place, ((i, planned), exact) in enumerate(zip(open_, counts, strict=True)):
        done[i] = through_the_wall(exact, planned, plan, ledger, source)
        save_answer(_file(answers_dir, i), done[i])
        if progress is not None:
            progress(place + 1, len(open_), " × ".join(planned.clique))
    return [done[i] for i, _ in wanted if i in done]


def _answers(answer: NoisyMarginal, planned: PlannedMeasurement) -> bool:
    """Whether a kept answer is one to this question."""
    kept, asked = query_arrays(answer.query), query_arrays(planned.query)
    same = kept.keys() == asked.keys() and all(np.array_equal(kept[k], asked[k]) for k in kept)
    kept_facts = (answer.clique, answer.event, answer.noise, answer.scale)
    asked_facts = (planned.clique, planned.event.id, planned.event.kind, planned.event.scale)
    return same and kept_facts == asked_facts and answer.values.shape == (planned.query.rows,)


def through_the_wall(
    exact: NDArray[np.int64],
    planned: PlannedMeasurement,
    plan: Plan | AdaptivePlan,
    ledger: Ledger,
    source: NoiseSource,
) -> NoisyMarginal:
    """One noisy answer: the sensitivity is recomputed from the query, the ledger is charged, then noise is drawn."""
    norm = planned.event.norm
    needed = sensitivity(planned.query, norm=norm, neighbouring=plan.neighbouring, max_records=plan.max_records)
    return _noised(exact, planned, needed, ledger, source)


def measure_histogram(
    table: PrivateTable, plan: Plan | AdaptivePlan, ledger: Ledger, source: NoiseSource, *, answers_dir: Path
) -> NoisyMarginal | None:
    """The histogram of records per unit, if the plan has one and its answer was not lost.

    Guarantee: as of `measure`; one unit stands in one cell, and the sensitivity is recomputed from what is counted.
    Args:
        table: loaded with its histogram; its C must be that of the plan's.
    """
    if plan.histogram is None:
        return None
    wanted, planned = plan.histogram.wanted, plan.histogram.measurement
    if table.histogram is None or table.histogram.size != wanted.max_records:
        raise RuntimeError(f"the table holds no histogram of 1 to {wanted.max_records} records per unit")
    answers_dir.mkdir(mode=0o700, exist_ok=True)
    path = answers_dir / "units.npz"
    if path.exists():
        kept = load_answer(path)
        if not (planned.event.id in ledger.events and _answers(kept, planned)):
            what = "the histogram of records per unit is not one that the ledger was charged for"
            raise UserError(what, where=str(path), fix="a new run, with its own budget")
        return kept
    if planned.event.id in ledger.events:
        return None
    needed = wanted.sensitivity(norm=planned.event.norm, neighbouring=plan.neighbouring)
    answer = _noised(table.histogram << WEIGHT_BITS, planned, needed, ledger, source)
    save_answer(path, answer)
    return answer


def _noised(
    exact: NDArray[np.int64], planned: PlannedMeasurement, needed: float, ledger: Ledger, source: NoiseSource
) -> NoisyMarginal:
    """Answer exactly, refuse, charge, then draw: nothing that can fail stands between the charge and the draw.

    Args:
        needed: the sensitivity of what is answered.
    """
    if needed > planned.event.sensitivity:
        raise RuntimeError(f"{planned.event.id}: sensitivity {needed} is above the planned {planned.event.sensitivity}")
    check_scale(planned.event.scale, MAX_UNITS * 2.0**-WEIGHT_BITS)
    answers = ExactAnswers.of(planned.query, exact)
    ledger.charge(planned.event)
    values = noisy(answers, planned.event, source)
    return NoisyMarginal(
        planned.clique, planned.query, values, planned.event.kind, planned.event.scale, planned.event.id
    )


def _file(folder: Path, index: int) -> Path:
    return folder / f"{index:05d}.npz"
