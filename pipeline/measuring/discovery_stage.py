"""Before the plan of the rest: what the schema leaves open is asked with noise, and the schema becomes concrete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.planned_discovery import DiscoveryPlan, PlannedDiscovery
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
        answered: ids of the charges that were not lost.
        bound: C, where it was asked for.
    """

    schema: Schema
    answered: frozenset[str]
    bound: FoundBound | None = None


def discovered(
    schema: Schema,
    plan: DiscoveryPlan,
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

    @cache
    def weights() -> dict[str, ValueWeights]:
        columns = [schema[s.wanted.column] for s in plan.slots if s.wanted.of_values]
        work, norm = folder.temporary / ANSWERS, plan.noise_norm
        return value_weights(
            source, columns, private.unit, key=key, norm=norm, holdout=holdout, workdir=work, engine=engine
        )

    facts = ledger_facts(holdout)
    with show.stage("discover") as report:
        ledger = Ledger.open(folder.ledger, plan, facts, note=note)
        answers = discover(
            private,
            weights,
            plan,
            ledger,
            noise_source(noise_seed),
            answers_dir=folder.internal / ANSWERS,
            histogram=private.histogram,
            progress=report,
        )
        scales = {s.wanted.column: s.event.scale for s in plan.slots}
        concrete = discovered_schema(schema, answers, kind=plan.noise, scales=scales) if schema.to_discover else schema
    if lost := [name for name, answer in answers.items() if answer is None]:
        what = f"what was asked about {', '.join(lost)} is spent without an answer"
        show.warn([f"{what} (a crash between charge and draw)"])
    answered = frozenset(s.event.id for s in plan.slots if answers[s.wanted.column] is not None)
    asked = next((s for s in plan.slots if s.wanted.sizes is not None), None)
    return Discovered(concrete, answered, None if asked is None else found_bound(asked, answers[OF_UNITS]))


def found_bound(slot: PlannedDiscovery, answer: NDArray[np.float64] | Sequence[str] | None) -> FoundBound:
    """C from noisy counts of units; the assumed one where they were charged and lost."""
    assert slot.wanted.sizes is not None
    if answer is None:
        return FoundBound(ASSUMED, None)
    noisy = tuple(float(n) for n in answer)
    return FoundBound(slot.wanted.sizes.chosen(noisy, stddev=slot.event.stddev, noise=slot.noise), noisy)


def ledger_facts(holdout: float | None) -> dict[str, str]:
    """What the first line of a run's ledger states beside the plan."""
    return {} if holdout is None else {"holdout": sentence("holdout", holdout)}
