"""Plans of several rounds: every charge is reserved before any row is read, for queries that later answers decide."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import check_filter, make_accountant
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import Event, Exponential, NoiseEvent, as_choice, as_noise, noise_event
from mechanisms.accounting.pairs import POWER, PairNoise
from mechanisms.accounting.plan import (
    Plan,
    PlannedHistogram,
    check_scales,
    discovery_json,
    histogram_charge,
    histogram_json,
    planned_histogram,
    planned_json,
    promise_json,
    share_left,
)
from mechanisms.accounting.planned_discovery import DiscoveryPlan, before, discovery_receipts
from mechanisms.accounting.planned_scores import PlannedScore, planned_scores, score_charges, score_json, score_receipts
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.accounting.thresholds import delta_left
from mechanisms.public import units
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.units import Neighbouring, Norm

#: Ids of events that a reserve pays for begin so.
RESERVE = "purse:"
#: Those of them that pay for distances say so after their number, and how many.
SCORES_PAID = "distances-"
#: The noise of a whole reserve has to stay so far below the largest that answers hold, to leave room for its parts.
SMALLEST_PART = 2.0**-6


@dataclass(frozen=True)
class Reservation:
    """What a slot is wanted for.

    Attributes:
        stage: what the charge buys, in a word or two; slots of one stage stand together.
        clique: the marginal, where it is known ahead.
        cells: of the marginal; at most so many where it is chosen later; 0 for a choice and for scores.
        weight: relative part of the budget, in the accountant's additive currency.
        scores: how many distances of marginals are released together; 0 for a marginal and for a choice.
    """

    stage: str
    clique: Clique | None
    cells: int
    weight: float
    scores: int = 0

    @property
    def choice(self) -> bool:
        return self.cells == 0 and self.scores == 0


@dataclass(frozen=True)
class Slot:
    """A reserved charge.

    Attributes:
        event: the worst case of what may be charged under its id: the largest sensitivity, the smallest scale.
        reservation: what it is for.
        share: its part of the budget; all shares sum to 1.
    """

    event: Event
    reservation: Reservation
    share: float


@dataclass(frozen=True)
class AdaptivePlan:
    """All charges that the rounds may make, and their total.

    Guarantee: what is asked under a slot may depend on all answers before; the slots' costs may not. So the composition
        of the slots' worst cases holds as adaptive composition: basic (Dwork et al. 2006), advanced (Dwork, Rothblum &
        Vadhan 2010), zCDP (Bun & Steinke 2016, lemma 2.3) and GDP (Dong, Roth & Su 2019, theorem 3.2; McKenna 2021).

    A reserve is spent in parts whose number and sizes may depend on answers too. Its events are booked as they are, and
    the ledger refuses the one that would exceed (ε, δ): a privacy filter, which costs nothing extra under zCDP (Feldman
    & Zrnic 2021), GDP (Smith & Thakurta 2022), and where pure ε adds up (Rogers et al. 2016).

    Attributes:
        slots: in the order in which they are charged.
        method: what decides about queries and choices, as plain values; part of the ledger's name for the plan.
        reserve: all of it as one event of the noise that the accountant is a filter for; None: there is none.
        scores, selection, compared, discovery: as of `Plan`.
        power: parts of the reserve are in proportion to cells to this power, where the method shares it out.
    """

    slots: tuple[Slot, ...]
    method: Mapping[str, Any]
    accountant: Accountant
    epsilon: units.Epsilon
    delta: units.Delta
    neighbouring: Neighbouring
    max_records: int
    reserve: Slot | None = None
    histogram: PlannedHistogram | None = None
    scores: tuple[PlannedScore, ...] = ()
    selection: PrivateSelection = ONE_TRY
    compared: tuple[PairNoise, ...] = ()
    power: float = POWER
    discovery: DiscoveryPlan | None = None

    @cached_property
    def _by_id(self) -> dict[str, Slot]:
        return {s.event.id: s for s in self.slots}

    @cached_property
    def _aside(self) -> dict[str, Event]:
        """What is charged beside the rounds, exactly as planned."""
        further = [self.histogram.event] if self.histogram else []
        return {e.id: e for e in (*before(self.discovery), *further, *(s.event for s in self.scores))}

    @property
    def events(self) -> tuple[Event, ...]:
        return (*(s.event for s in self.slots), *self._aside.values())

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.composed)

    @property
    def composed(self) -> tuple[Event, ...]:
        """The events that the total is made of: all of the reserve is one."""
        return (*self.events, *([self.reserve.event] if self.reserve else []))

    def reserved(self, event: Event) -> Event | None:
        """The slot's worst case, whose cost is booked; None where no slot admits the event."""
        if event.id in self._aside:
            return event if event == self._aside[event.id] else None
        slot = self._by_id.get(event.id)
        if slot is None and self.reserve is not None and event.id.startswith(RESERVE):
            return event
        return slot.event if slot is not None and slot.event.admits(event) else None

    def measurement_event(self, name: str, part: float, sensitivity: float | None = None) -> NoiseEvent:
        """A measurement that costs a part of the reserve.

        Args:
            name: after the prefix that the ledger knows the reserve by.
            part: above 0, at most 1.
            sensitivity: in records; None: that of columns of norm 1.
        """
        whole, strength = self._of_reserve(part)
        moved = whole.sensitivity if sensitivity is None else sensitivity
        return noise_event(whole.kind, f"{RESERVE}{name}", moved, units.round_up(moved / strength))

    def scores_event(self, number: int, part: float, scores: int) -> NoiseEvent:
        """So many distances under one charge that costs a part of the reserve; its id tells how many.

        Args:
            number: in the order in which the reserve is spent.
            part: above 0, at most 1.
        """
        whole, strength = self._of_reserve(part)
        bound = _scores_bound(scores, whole.kind, self.neighbouring, self.max_records)
        return noise_event(
            whole.kind, f"{RESERVE}{number:04d}:{SCORES_PAID}{scores}", bound, units.round_up(bound / strength)
        )

    def choice_event(self, name: str, part: float) -> Exponential:
        """A choice that costs a part of the reserve; arguments as of `measurement_event`."""
        _, strength = self._of_reserve(part)
        return Exponential(f"{RESERVE}{name}", self.accountant.choice_epsilon(strength))

    def _of_reserve(self, part: float) -> tuple[NoiseEvent, float]:
        """The reserve as one event, and how strong (ε_i or μ_i) an event is that costs that part of it."""
        whole = self.reserve_event
        strength = self.accountant.strength(part) * whole.sensitivity / whole.scale
        return whole, strength * (1 - 1e-8)  # the rounding of many events

    @property
    def reserve_event(self) -> NoiseEvent:
        """All of the reserve as one event.

        Raises:
            TypeError: the plan has no reserve.
        """
        if self.reserve is None:
            raise TypeError("the plan has no reserve")
        return as_noise(self.reserve.event)

    def measurement_slot(self, place: int) -> NoiseEvent:
        """The worst case of the measurement that a slot is reserved for; TypeError for a choice."""
        return as_noise(self.slots[place].event)

    def choice_slot(self, place: int) -> Exponential:
        """The choice that a slot is reserved for; TypeError for a measurement."""
        return as_choice(self.slots[place].event)

    @property
    def norm(self) -> Norm:
        """The norm that the sensitivities of all measurements are taken in."""
        every = (*self.slots, *([self.reserve] if self.reserve else []))
        return next((s.event.norm for s in every if s.event.norm is not None), "l1")

    def buys_answers(self, event: Event) -> bool:
        """Whether the event pays for answers to linear queries over marginals, not for a choice or for scores."""
        if event.id in self._aside:
            return False
        slot = self._by_id.get(event.id)
        scores = scores_paid(event.id) if slot is None else slot.reservation.scores
        return not event.is_choice and not scores

    def places(self, stage: str) -> list[int]:
        """The places of a stage's slots."""
        return [i for i, s in enumerate(self.slots) if s.reservation.stage == stage]

    def receipts(self, charged: Mapping[str, Event]) -> list[dict[str, Any]]:
        """What was charged, as JSON values: the numbers that were used, and the cost that was booked."""
        slots = [slot_json(s, self.accountant, charged[s.event.id]) for s in self.slots if s.event.id in charged]
        spent = [e for e in charged.values() if e.id.startswith(RESERVE)]
        paid = [Slot(e, Reservation(RESERVE, None, 0, 0.0, scores_paid(e.id)), self._share(e)) for e in spent]
        slots += [slot_json(s, self.accountant, s.event) for s in paid]
        if self.histogram is not None and self.histogram.event.id in charged:
            slots.append(planned_json(self.histogram.measurement, self.accountant))
        discovered = discovery_receipts(self.discovery, charged)
        return discovered + slots + score_receipts(self.scores, self.accountant, charged)

    def _share(self, event: Event) -> float:
        """The part of the budget that an event of the reserve took."""
        if self.reserve is None:
            return 0.0
        return self.accountant.share(event, self.reserve.event) * self.reserve.share

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "method": dict(self.method),
            "measurements": [slot_json(s, self.accountant, s.event) for s in self.slots],
            "histogram": histogram_json(self.histogram, self.accountant),
            "accept": [score_json(s, self.accountant) for s in self.scores],
            "reserve": None if self.reserve is None else slot_json(self.reserve, self.accountant, self.reserve.event),
            **discovery_json(self.discovery),
            **promise_json(self),
        }


#: A plan of either kind.
AnyPlan = Plan | AdaptivePlan


def scores_paid(name: str) -> int:
    """How many distances an event of a reserve pays for, by its id; 0: it pays for something else."""
    told = re.fullmatch(rf"{RESERVE}\d{{4,}}:{SCORES_PAID}(\d+)", name)
    return int(told[1]) if told else 0


def slot_json(slot: Slot, accountant: Accountant, event: Event) -> dict[str, Any]:
    """A slot as JSON values, with the numbers of the event."""
    reservation = slot.reservation
    facts: dict[str, Any] = {
        "id": slot.event.id,
        "stage": reservation.stage,
        "clique": None if reservation.clique is None else list(reservation.clique),
        "cells": reservation.cells,
        "scores": reservation.scores,
        "share": slot.share,
        "cost": accountant.cost(slot.event),
    }
    if event != slot.event:  # the worst case that was reserved, whose cost is booked
        facts["booked"] = slot.event.to_facts()
    return {**facts, **event.to_facts()}


def reserve(
    reservations: Sequence[Reservation],
    *,
    method: Mapping[str, Any],
    noise: NoiseKind,
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    filter_share: float = 0.0,
    histogram: RecordsPerUnit | None = None,
    accept: Sequence[Criterion] = (),
    discovery: DiscoveryPlan | None = None,
) -> AdaptivePlan:
    """Calibrate the slots of all rounds to a budget, from public facts alone.

    Args:
        reservations: the slots, in the order in which they will be charged.
        method: what decides between the rounds, as plain values.
        noise: of the measurements.
        max_records: C, the largest total weight of one unit.
        filter_share: the relative part of the budget that is spent in rounds of no fixed number.
        histogram: of records per unit, if it is wanted; the rounds share what it leaves.
        accept: what decides whether the release is accepted; the rounds share what its scores leave.
        discovery: what is charged before; the rounds share what it leaves.
    Raises:
        UserError: a parameter out of range, nothing to measure, a reserve under an accountant without a filter for it,
            δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE (for a reserve: SMALLEST_PART of it).
    """
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if max_records < 1:
        raise UserError(f"got {max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")
    if all(w.choice for w in reservations) and not filter_share:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    if not all(w.weight > 0 and math.isfinite(w.weight) for w in reservations):
        raise UserError("a round has no budget", where="selection.split", fix="parts above 0")
    if filter_share:
        check_filter(accountant, noise)
    further = [histogram_charge(histogram, noise, neighbouring)] if histogram else []
    further += score_charges(accept, noise, neighbouring, max_records)
    sharing = 0 if NOISE_KINDS[noise].pure else sum(not w.choice for w in reservations) + len(further)
    spent = before(discovery)
    accounting = make_accountant(accountant, delta=delta_left(dlt, spent), slots=sharing)
    every = [*reservations, *([Reservation(RESERVE, None, 2, filter_share)] if filter_share else [])]
    left = share_left(histogram, accept, discovery)
    total = math.fsum(w.weight for w in every) / left
    charges = [_charge(i, w, w.weight / total, noise, neighbouring, max_records) for i, w in enumerate(every)]
    events = calibrate([*charges, *further], accounting, eps, dlt, before=spent)
    counted = planned_histogram(histogram, events[len(every)]) if histogram else None
    scores = planned_scores(accept, events[len(events) - len(accept) :])
    check_scales(events)
    check_scales(events[len(reservations) : len(every)], units.MAX_SCALE * SMALLEST_PART)
    slots = [Slot(e, w, c.share) for e, w, c in zip(events[: len(every)], every, charges, strict=True)]
    last = slots.pop() if filter_share else None
    done = AdaptivePlan(tuple(slots), method, accounting, eps, dlt, neighbouring, max_records, last, counted, scores)
    return replace(done, discovery=discovery)


def _charge(
    place: int, reservation: Reservation, share: float, noise: NoiseKind, neighbouring: Neighbouring, max_records: int
) -> Charge:
    """What a slot asks of the budget, in the worst case of what may be asked under it."""
    name = f"{place:04d}:{reservation.stage}:{'' if reservation.clique is None else ','.join(reservation.clique)}"
    if reservation.choice:
        return Charge(name, None, 1.0, share)
    if reservation.scores:
        return Charge(name, noise, _scores_bound(reservation.scores, noise, neighbouring, max_records), share)
    cells = reservation.cells if reservation.clique is not None else max(reservation.cells, 2)
    worst = Identity(cells)  # columns of norm 1, two apart
    bound = sensitivity(worst, norm=NOISE_KINDS[noise].norm, neighbouring=neighbouring, max_records=max_records)
    return Charge(name, noise, bound, share)


def _scores_bound(scores: int, noise: NoiseKind, neighbouring: Neighbouring, max_records: int) -> float:
    """How far that many L1 distances to fixed marginals move together, in records, when one unit changes; rounded up.

    Each moves by at most the L1 change of its marginal, Δ = C under add_remove and 2C under replace (derived at
    `noisy_scores`); together by m · Δ in L1 and √m · Δ in L2.
    """
    each = sensitivity(Identity(2), norm="l1", neighbouring=neighbouring, max_records=max_records)
    return units.joint_sensitivity(each, scores, NOISE_KINDS[noise].norm)
