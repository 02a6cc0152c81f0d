"""Before the plan of the rest: what the schema leaves open is asked with noise, and the schema becomes concrete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.events import as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedCharge
from mechanisms.public.discovery.found_columns import discovered_schema
from mechanisms.public.discovery.unit_sizes import ASSUMED, OF_UNITS
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.discovering import discover
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.noise import noise_source
from mechanisms.sensitive.private_table import PrivateTable
from mechanisms.sensitive.value_weights import ValueWeights, value_weights
from pipeline.folders import RunFolder
from pipeline.stage_bars import Stages
from pipeline.statement.words import sentence

#: Under internal/: the answers, one file each.
ANSWERS = "discovery"


@dataclass(frozen=True)
class FoundBound:
    """How many records of a unit count, as noisy counts of units say.

    Attributes:
        max_records: C.
        noisy: the counts, per bucket; None where they were lost.
    """

    max_records: int
    noisy: tuple[float, ...] | None

    def to_json(self) -> dict[str, Any]:
        """What a statement says of it beside what was asked."""
        return {"noisy": None if self.noisy is None else list(self.noisy), "chosen": self.max_records}


@dataclass(frozen=True)
class Discovered:
    """What was found out.

    Attributes:
        schema: without open ends; it follows from noisy answers and public facts alone.
        plan: the charges that it was asked under.
        answered: ids of the charges that were not lost.
        bound: C, where it was asked for.
    """

    schema: Schema
    plan: Plan
    answered: frozenset[str]
    bound: FoundBound | None = None


def discovered(
    schema: Schema,
    plan: Plan,
    private: PrivateTable,
    source: Source,
    engine: Engine,
    folder: RunFolder,
    show: Stages,
    *,
    key: bytes,
    holdout: float | None,
    noise_seed: int | None,
    note: Callable[[bytes], None] | None = None,
) -> Discovered:
    """Ask what the schema leaves open, answers that are kept as they are.

    Guarantee: that of the plan.
    Args:
        private: read by the scouting schema.
        engine: who reads the rows.
        key, holdout: as of `load_private`.
        note: as of `Ledger`.
    """
    charges = plan.of("discover")

    @cache
    def weights() -> dict[str, ValueWeights]:
        columns = [schema[c.wanted.column] for c in charges if c.wanted.of_values]
        work, norm = folder.temporary / ANSWERS, plan.norm
        return value_weights(
            source, columns, private.unit, key=key, norm=norm, holdout=holdout, workdir=work, engine=engine
        )

    facts = ledger_facts(holdout)
    with show.stage("discover") as report:
        ledger = Ledger.open(folder.ledger, plan, facts, note=note)
        answers = discover(
            private,
            weights,
            ledger,
            noise_source(noise_seed),
            answers_dir=folder.internal / ANSWERS,
            histogram=private.histogram,
            progress=report,
        )
        scales = {c.wanted.column: as_noise(c.event).scale for c in charges}
        concrete = discovered_schema(schema, answers, kind=plan.noise, scales=scales) if schema.to_discover else schema
    if lost := [name for name, answer in answers.items() if answer is None]:
        what = f"what was asked about {', '.join(lost)} is spent without an answer"
        show.warn([f"{what} (a crash between charge and draw)"])
    answered = frozenset(c.event.id for c in charges if answers[c.wanted.column] is not None)
    asked = next((c for c in charges if c.wanted.sizes is not None), None)
    return Discovered(concrete, plan, answered, None if asked is None else found_bound(asked, answers[OF_UNITS]))


def found_bound(charge: PlannedCharge, answer: NDArray[np.float64] | Sequence[str] | None) -> FoundBound:
    """C from noisy counts of units; the assumed one where they were charged and lost."""
    sizes, noise = charge.wanted.sizes, charge.wanted.noise
    assert sizes is not None
    if answer is None:
        return FoundBound(ASSUMED, None)
    noisy = tuple(float(n) for n in answer)
    return FoundBound(sizes.chosen(noisy, stddev=as_noise(charge.event).stddev, noise=noise), noisy)


def ledger_facts(holdout: float | None) -> dict[str, str]:
    """What the first line of a run's ledger states beside the plan."""
    return {} if holdout is None else {"holdout": sentence("holdout", holdout)}
