"""The charges for the noisy scores by which a release is accepted: slots of the plan like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.accounting.accountants.accountant import Accountant
from mechanisms.accounting.calibrate import Charge
from mechanisms.accounting.events import Event, NoiseEvent, as_noise
from mechanisms.public.criterion import Criterion
from mechanisms.public.noise_kinds import NoiseKind
from mechanisms.public.units import Neighbouring


@dataclass(frozen=True)
class PlannedScore:
    """The charge for the noisy score of one criterion.

    Attributes:
        wanted: what is compared.
        event: its sensitivity is that of `wanted`, in records.
    """

    wanted: Criterion
    event: NoiseEvent


def score_charges(
    criteria: Sequence[Criterion], kind: NoiseKind, neighbouring: Neighbouring, max_records: int
) -> list[Charge]:
    """What the scores ask of the budget."""
    return [
        Charge(w.event, kind, w.sensitivity(neighbouring=neighbouring, max_records=max_records), w.share)
        for w in criteria
    ]


def planned_scores(criteria: Sequence[Criterion], events: Sequence[Event]) -> tuple[PlannedScore, ...]:
    """The criteria with their calibrated charges."""
    return tuple(PlannedScore(w, as_noise(e)) for w, e in zip(criteria, events, strict=True))


def score_json(planned: PlannedScore, accountant: Accountant) -> dict[str, Any]:
    """One score's charge as JSON values."""
    return {
        "id": planned.event.id,
        "accept": planned.wanted.to_json(),
        "clique": None,
        "cells": 0,
        "answers": 1,
        **planned.event.to_facts(),
        "share": planned.wanted.share,
        "cost": accountant.cost(planned.event),
    }


def score_receipts(
    scores: Sequence[PlannedScore], accountant: Accountant, charged: Mapping[str, Event]
) -> list[dict[str, Any]]:
    """The scores that were charged, as JSON values."""
    return [score_json(s, accountant) for s in scores if s.event.id in charged]
