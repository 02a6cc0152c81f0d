"""The wall: count, charge, then draw. Nothing else lets a value of the private table out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.public.errors import UserError
from mechanisms.public.queries import Norm, sensitivity
from mechanisms.public.release import Measurements, NoisyMarginal, load_answer, save_answer
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.counting import Private, exact_marginals
from mechanisms.sensitive.noise import NoiseSource, lattice_noise

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
    if table.max_records != plan.max_records:
        raise RuntimeError(f"the table is clipped to {table.max_records} records, the plan says {plan.max_records}")
    answers_dir.mkdir(mode=0o700, exist_ok=True)
    done = {
        m.event.id: load_answer(f) for i, m in enumerate(plan.measurements) if (f := _file(answers_dir, i)).exists()
    }
    _check_receipts(done, plan, ledger, answers_dir)
    open_ = [(i, m) for i, m in enumerate(plan.measurements) if m.event.id not in {*done, *ledger.charged}]
    counts = exact_marginals(table, [m.clique for _, m in open_], batch_cells=batch_cells)
    for place, ((i, planned), exact) in enumerate(zip(open_, counts, strict=True)):
        answer = through_the_wall(exact, planned, plan, ledger, source)
        save_answer(_file(answers_dir, i), answer)
        done[planned.event.id] = answer
        if progress is not None:
            progress(place + 1, len(open_), " × ".join(planned.clique))
    answers = tuple(done[m.event.id] for m in plan.measurements if m.event.id in done)
    return Measurements(table.coded.domain, answers, public_total)


def through_the_wall(
    exact: NDArray[np.int64], planned: PlannedMeasurement, plan: Plan, ledger: Ledger, source: NoiseSource
) -> NoisyMarginal:
    """One noisy answer: the sensitivity is recomputed from the query, the ledger is charged, then noise is drawn."""
    norm: Norm = "l2" if planned.noise == "gaussian" else "l1"
    needed = sensitivity(planned.query, norm=norm, neighbouring=plan.neighbouring, max_records=plan.max_records)
    if needed > planned.sensitivity:
        raise RuntimeError(f"{planned.event.id}: sensitivity {needed} is above the planned {planned.sensitivity}")
    ledger.charge(planned.event)
    bits = WEIGHT_BITS + planned.query.bits
    noise = lattice_noise(planned.event, planned.query.rows, source, bits=bits)
    noisy = planned.query.answer_exact(exact) + noise
    values = np.asarray(noisy * 2.0**-bits, np.float64)
    return NoisyMarginal(planned.clique, planned.query, values, planned.noise, planned.scale, planned.event.id)


def _check_receipts(done: dict[str, NoisyMarginal], plan: Plan, ledger: Ledger, folder: Path) -> None:
    """No answer is taken that the ledger has not charged, or that is not the one that the plan names.

    Raises:
        UserError: the folder was changed since the run began.
    """
    for planned in plan.measurements:
        answer = done.get(planned.event.id)
        if answer is None:
            continue
        fits = (answer.clique, answer.noise, answer.scale, answer.event) == (
            planned.clique,
            planned.noise,
            planned.scale,
            planned.event.id,
        )
        if planned.event.id not in ledger.charged or not fits or answer.values.shape != (planned.query.rows,):
            fix = "a new run, with its own budget"
            raise UserError(
                f"the answer to {' × '.join(planned.clique)} is not one that the ledger was charged for",
                where=str(folder),
                fix=fix,
            )


def _file(folder: Path, index: int) -> Path:
    return folder / f"{index:05d}.npz"
