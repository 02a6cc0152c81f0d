"""What was found out before the plan of the rest, and C as noisy counts of units say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.events import as_noise
from mechanisms.accounting.plan import Plan, PlannedCharge
from mechanisms.public.discovery.unit_sizes import ASSUMED
from mechanisms.public.json_values import JsonDict
from mechanisms.public.schema.table_schema import Schema
from pipeline.statement.words import sentence


@dataclass(frozen=True)
class FoundBound:
    """How many records of a unit count, as noisy counts of units say.

    Attributes:
        max_records: C.
        noisy: the counts, per bucket; None where they were lost.
    """

    max_records: int
    noisy: tuple[float, ...] | None

    def to_json(self) -> JsonDict:
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
