"""What was found out before the plan of the rest, and C as noisy counts of units say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.events import as_noise
from mechanisms.accounting.plan import Plan, PlannedCharge
from mechanisms.public.discovery.unit_sizes import ASSUMED
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.schema.table_schema import Schema
from pipeline.statement.words import sentence


@dataclass(frozen=True)
class Discovered:
    """What was found out.

    Attributes:
        schema: without open ends; it follows from noisy answers and public facts alone.
        plan: the charges that it was asked under.
        answered: ids of the charges that were not lost.
        bound: what a statement says of C beside what was asked, where it was asked for (see `found_bound`).
    """

    schema: Schema
    plan: Plan
    answered: frozenset[str]
    bound: Json | None = None


def found_bound(charge: PlannedCharge, answer: NDArray[np.float64] | Sequence[str] | None) -> JsonDict:
    """How many records of a unit count, C, as noisy counts of units say: these, per bucket, and what they chose.

    Where they were charged and lost, it is the assumed one.
    """
    sizes, noise = charge.wanted.sizes, charge.wanted.noise
    assert sizes is not None
    if answer is None:
        return {"noisy": None, "chosen": ASSUMED}
    noisy = [float(n) for n in answer]
    return {"noisy": noisy, "chosen": sizes.chosen(noisy, stddev=as_noise(charge.event).stddev, noise=noise)}


def ledger_facts(holdout: float | None) -> dict[str, str]:
    """What the first line of a run's ledger states beside the plan."""
    return {} if holdout is None else {"holdout": sentence("holdout", holdout)}
