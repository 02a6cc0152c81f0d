"""The charges for the noisy scores by which a release is accepted: slots of the plan like any other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.accounting.accountants import Accountant
from mechanisms.accounting.calibrate import Charge
from mechanisms.accounting.events import Event, Exponential, Gaussian, Laplace
from mechanisms.public.criterion import Criterion
from mechanisms.public.release import NoiseKind
from mechanisms.public.units import Neighbouring


@dataclass(frozen=True)
class PlannedScore:
    """The charge for the noisy score of one criterion.

    Attributes:
        wanted: what is compared.
        event: its sensitivity is that of `wanted`, in records.
    """

    wanted: Criterion
    event: Gaussian | Laplace

    @property
    def stddev(self) -> float:
        """Standard deviation of the score's noise, in records."""
        return self.event.sigma if isinstance(self.event, Gaussian) else math.sqrt(2) * self.event.scale


def score_charges(
    wanted: Sequence[Criterion], kind: NoiseKind, neighbouring: Neighbouring, max_records: int
) -> list[Charge]:
    """What the scores ask of the budget."""
    return [
        Charge(w.event, kind, w.sensitivity(neighbouring=neighbouring, max_records=max_records), w.share)
        for w in wanted
    ]


def planned_scores(wanted: Sequence[Criterion], events: Sequence[Event]) -> tuple[PlannedScore, ...]:
    """The criteria with their calibrated charges."""
    if any(isinstance(e, Exponential) for e in events):
        raise TypeError("a score is no choice")
    pairs = zip(wanted, events, strict=True)
    return tuple(PlannedScore(w, e) for w, e in pairs if not isinstance(e, Exponential))


def score_json(planned: PlannedScore, accountant: Accountant) -> dict[str, Any]:
    """One score's charge as JSON values."""
    event = planned.event
    gaussian = isinstance(event, Gaussian)
    return {
        "id": event.id,
        "accept": planned.wanted.to_json(),
        "clique": None,
        "cells": 0,
        "answers": 1,
        "mechanism": "gaussian" if gaussian else "laplace",
        "norm": "l2" if gaussian else "l1",
        "sensitivity": event.l2_sensitivity if isinstance(event, Gaussian) else event.l1_sensitivity,
        "scale": event.sigma if isinstance(event, Gaussian) else event.scale,
        "stddev": planned.stddev,
        "share": planned.wanted.share,
        "cost": accountant.cost(event),
    }


def score_receipts(
    scores: Sequence[PlannedScore], accountant: Accountant, charged: Mapping[str, Event]
) -> list[dict[str, Any]]:
    """The scores that were charged, as JSON values."""
    return [score_json(s, accountant) for s in scores if s.event.id in charged]
