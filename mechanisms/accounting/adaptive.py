"""Plans of several rounds: every charge is reserved before any row is read, for queries that later answers decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from mechanisms.accounting.accountants import Accountant, PrivacyLoss, make_accountant
from mechanisms.accounting.calibrate import Charge, calibrate, choice_epsilon
from mechanisms.accounting.events import Event, Exponential, Gaussian, Laplace
from mechanisms.accounting.plan import (
    PlannedHistogram,
    histogram_charge,
    histogram_json,
    planned_histogram,
    planned_json,
)
from mechanisms.public import units
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.methods import Aim, Method, method_json
from mechanisms.public.queries import Identity, sensitivity
from mechanisms.public.release import NoiseKind
from mechanisms.public.unit_sizes import RecordsPerUnit
from mechanisms.public.units import Neighbouring

#: Ids of events that a purse pays for begin so.
PURSE = "purse:"


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

    event: Gaussian | Laplace | Exponential
    reservation: Reservation
    share: float

    def admits(self, event: Event) -> bool:
        """Whether the event has this slot's id and kind and costs no more than its event."""
        mine = self.event
        if isinstance(mine, Gaussian) and isinstance(event, Gaussian):
            fits = event.l2_sensitivity <= mine.l2_sensitivity and event.sigma >= mine.sigma
        elif isinstance(mine, Laplace) and isinstance(event, Laplace):
            fits = event.l1_sensitivity <= mine.l1_sensitivity and event.scale >= mine.scale
        elif isinstance(mine, Exponential) and isinstance(event, Exponential):
            fits = event.epsilon <= mine.epsilon
        else:
            return False
        return fits and event.id == mine.id

    @property
    def noise(self) -> NoiseKind:
        return "gaussian" if isinstance(self.event, Gaussian) else "laplace"

    @property
    def stddev(self) -> float:
        """Standard deviation of one answer, in records; 0 for a choice."""
        if isinstance(self.event, Exponential):
            return 0.0
        return self.event.sigma if isinstance(self.event, Gaussian) else math.sqrt(2) * self.event.scale


@dataclass(frozen=True)
class AdaptivePlan:
    """All charges that the rounds may make, and their total.

    Guarantee: what is asked under a slot may depend on all answers before; the slots' costs may not. So the composition
        of the slots' worst cases holds as adaptive composition: basic (Dwork et al. 2006), advanced (Dwork, Rothblum &
        Vadhan 2010), zCDP (Bun & Steinke 2016, lemma 2.3) and GDP (Dong, Roth & Su 2019, theorem 3.2; McKenna 2021).

    A purse is spent in parts whose number and sizes may depend on answers too. Its events are booked as they are, and
    the ledger refuses the one that would exceed (ε, δ): a privacy filter, which costs nothing extra under zCDP (Feldman
    & Zrnic 2021), GDP (Smith & Thakurta 2022), and where pure ε adds up (Rogers et al. 2016).

    Attributes:
        slots: in the order in which they are charged.
        method: what decides about queries and choices, and its settings; part of the ledger's name for the plan.
        purse: all of it as one event, Gaussian under zcdp and gdp, Laplace under basic; None: there is none.
    """

    slots: tuple[Slot, ...]
    method: Method
    accountant: Accountant
    epsilon: units.Epsilon
    delta: units.Delta
    neighbouring: Neighbouring
    max_records: int
    purse: Slot | None = None
    histogram: PlannedHistogram | None = None

    @cached_property
    def _by_id(self) -> dict[str, Slot]:
        return {s.event.id: s for s in self.slots}

    @property
    def events(self) -> tuple[Event, ...]:
        further = [self.histogram.event] if self.histogram else []
        return (*(s.event for s in self.slots), *further)

    @property
    def worst(self) -> tuple[Event, ...]:
        """All that may be charged: what the guarantee composes, whatever part of it a run uses."""
        return (*self.events, *([self.purse.event] if self.purse else []))

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.worst)

    def reserved(self, event: Event) -> Event | None:
        """The slot's worst case, whose cost is booked; None where no slot admits the event."""
        if self.histogram is not None and event.id == self.histogram.event.id:
            return event if event == self.histogram.event else None
        slot = self._by_id.get(event.id)
        if slot is None and self.purse is not None and event.id.startswith(PURSE):
            return event
        return slot.event if slot is not None and slot.admits(event) else None

    def part(self, name: str, part: float, *, choice: bool) -> Gaussian | Laplace | Exponential:
        """An event that costs a part of the purse.

        Args:
            name: after the prefix that the ledger knows the purse by.
            part: above 0, at most 1.
            choice: a choice, or a measurement of columns of norm 1.
        """
        if self.purse is None or isinstance(self.purse.event, Exponential):
            raise TypeError("the plan has no purse")
        whole = self.purse.event
        if isinstance(whole, Laplace):
            eps = part * whole.l1_sensitivity / whole.scale * (1 - 1e-8)
            if choice:
                return Exponential(f"{PURSE}{name}", eps)
            return Laplace(f"{PURSE}{name}", whole.l1_sensitivity, units.round_up(whole.l1_sensitivity / eps))
        mu = math.sqrt(part) * whole.l2_sensitivity / whole.sigma * (1 - 1e-8)  # the rounding of many events
        if choice:
            return Exponential(f"{PURSE}{name}", choice_epsilon(self.accountant, mu))
        return Gaussian(f"{PURSE}{name}", whole.l2_sensitivity, units.round_up(whole.l2_sensitivity / mu))

    def buys_answers(self, event: Event) -> bool:
        """Whether the event pays for answers to linear queries over marginals, not for a choice or for scores."""
        if self.histogram is not None and event.id == self.histogram.event.id:
            return False
        slot = self._by_id.get(event.id)
        return not isinstance(event, Exponential) and (slot is None or not slot.reservation.scores)

    def places(self, stage: str) -> list[int]:
        """The places of a stage's slots."""
        return [i for i, s in enumerate(self.slots) if s.reservation.stage == stage]

    def receipts(self, charged: Mapping[str, Event]) -> list[dict[str, Any]]:
        """What was charged, as JSON values: the numbers that were used, and the cost that was booked."""
        slots = [slot_json(s, self.accountant, charged[s.event.id]) for s in self.slots if s.event.id in charged]
        paid = [Slot(e, Reservation(PURSE, None, 0, 0.0), self._share(e)) for e in charged.values()]
        slots += [slot_json(s, self.accountant, s.event) for s in paid if s.event.id.startswith(PURSE)]
        if self.histogram is not None and self.histogram.event.id in charged:
            slots.append(planned_json(self.histogram.measurement, self.accountant))
        return slots

    def _share(self, event: Event) -> float:
        """The part of the budget that an event of the purse took."""
        if self.purse is None:
            return 0.0
        own, whole = (next(iter(self.accountant.cost(e).values())) for e in (event, self.purse.event))
        return float(own / whole) ** (2 if self.accountant.kind == "gdp" else 1) * self.purse.share

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "method": method_json(self.method),
            "measurements": [slot_json(s, self.accountant, s.event) for s in self.slots],
            "histogram": histogram_json(self.histogram, self.accountant),
            "purse": None if self.purse is None else slot_json(self.purse, self.accountant, self.purse.event),
            "budget": {"epsilon": self.epsilon, "delta": self.delta},
            "total": {"epsilon": self.loss.epsilon, "delta": self.loss.delta},
            "accountant": self.accountant.kind,
            "conversion": self.accountant.conversion,
            "neighbouring": str(self.neighbouring),
            "max_records": self.max_records,
        }


def slot_json(slot: Slot, accountant: Accountant, event: Event) -> dict[str, Any]:
    """A slot as JSON values, with the numbers of the event."""
    wanted = slot.reservation
    facts: dict[str, Any] = {
        "id": slot.event.id,
        "stage": wanted.stage,
        "clique": None if wanted.clique is None else list(wanted.clique),
        "cells": wanted.cells,
        "scores": wanted.scores,
        "share": slot.share,
        "cost": accountant.cost(slot.event),
    }
    if event != slot.event:  # the worst case that was reserved, whose cost is booked
        facts["booked"] = _booked(slot.event)
    if isinstance(event, Exponential):
        return {**facts, "mechanism": "exponential", "epsilon": event.epsilon}
    numbers = asdict(event)
    gaussian = isinstance(event, Gaussian)
    scale = numbers["sigma" if gaussian else "scale"]
    return {
        **facts,
        "mechanism": slot.noise,
        "norm": "l2" if gaussian else "l1",
        "sensitivity": numbers["l2_sensitivity" if gaussian else "l1_sensitivity"],
        "scale": scale,
        "stddev": scale if gaussian else math.sqrt(2) * scale,
    }


def _booked(event: Event) -> dict[str, float]:
    if isinstance(event, Exponential):
        return {"epsilon": event.epsilon}
    if isinstance(event, Gaussian):
        return {"sensitivity": event.l2_sensitivity, "scale": event.sigma}
    return {"sensitivity": event.l1_sensitivity, "scale": event.scale}


def reserve(
    wanted: Sequence[Reservation],
    *,
    method: Method,
    noise: Literal["gaussian", "laplace"],
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    purse: float = 0.0,
    histogram: RecordsPerUnit | None = None,
) -> AdaptivePlan:
    """Calibrate the slots of all rounds to a budget, from public facts alone.

    Args:
        wanted: the slots, in the order in which they will be charged.
        method: what decides between the rounds.
        noise: of the measurements.
        max_records: C, the largest total weight of one unit.
        purse: the relative part of the budget that is spent in rounds of no fixed number; Gaussian noise alone.
        histogram: of records per unit, if it is wanted; the rounds share what it leaves.
    Raises:
        UserError: a parameter out of range, nothing to measure, a purse under an accountant that has no filter for it,
            or δ = 0 where the plan needs more.
    """
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if max_records < 1:
        raise UserError(f"got {max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")
    if all(w.choice for w in wanted) and not purse:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    if not all(w.weight > 0 and math.isfinite(w.weight) for w in wanted):
        raise UserError("a round has no budget", where="selection.split", fix="parts above 0")
    pure = (accountant, noise) == ("basic", "laplace") and not isinstance(method, Aim)
    if purse and not pure and (accountant not in ("zcdp", "gdp") or noise != "gaussian"):
        fix = "privacy.accountant=gdp or zcdp, and mechanism=gaussian or auto"
        fix += "" if isinstance(method, Aim) else "; or privacy.accountant=basic and mechanism=laplace"
        what = "rounds whose number depends on the answers have no sound accounting here"
        raise UserError(what, where="privacy.accountant", fix=fix)
    further = [histogram_charge(histogram, noise, neighbouring)] if histogram else []
    gaussians = 0 if noise == "laplace" else sum(not w.choice for w in wanted) + len(further)
    keeper = make_accountant(accountant, delta=dlt, slots=gaussians)
    every = [*wanted, *([Reservation(PURSE, None, 2, purse)] if purse else [])]
    left = 1 - histogram.share if histogram else 1.0
    total = math.fsum(w.weight for w in every) / left
    charges = [_charge(i, w, w.weight / total, noise, neighbouring, max_records) for i, w in enumerate(every)]
    events = calibrate([*charges, *further], keeper, eps, dlt)
    counted = planned_histogram(histogram, events[-1]) if histogram else None
    slots = [Slot(e, w, c.share) for e, w, c in zip(events[: len(every)], every, charges, strict=True)]
    last = slots.pop() if purse else None
    return AdaptivePlan(tuple(slots), method, keeper, eps, dlt, neighbouring, max_records, last, counted)


def _charge(
    place: int, wanted: Reservation, share: float, noise: NoiseKind, neighbouring: Neighbouring, max_records: int
) -> Charge:
    """What a slot asks of the budget, in the worst case of what may be asked under it."""
    name = f"{place:04d}:{wanted.stage}:{'' if wanted.clique is None else ','.join(wanted.clique)}"
    if wanted.choice:
        return Charge(name, "exponential", 1.0, share)
    if wanted.scores:
        return Charge(name, noise, _scores_bound(wanted.scores, noise, neighbouring, max_records), share)
    cells = wanted.cells if wanted.clique is not None else max(wanted.cells, 2)
    norm: Literal["l1", "l2"] = "l2" if noise == "gaussian" else "l1"
    worst = Identity(cells)  # columns of norm 1, two apart
    bound = sensitivity(worst, norm=norm, neighbouring=neighbouring, max_records=max_records)
    return Charge(name, noise, bound, share)


def _scores_bound(scores: int, noise: NoiseKind, neighbouring: Neighbouring, max_records: int) -> float:
    """How far that many L1 distances to fixed marginals move together, in records, when one unit changes; rounded up.

    Each moves by at most the L1 change of its marginal, Δ = C under add_remove and 2C under replace (derived at
    `noisy_scores`); together by m · Δ in L1 and √m · Δ in L2.
    """
    each = sensitivity(Identity(2), norm="l1", neighbouring=neighbouring, max_records=max_records)
    return each * scores if noise == "laplace" else units.round_up(each * units.round_up(math.sqrt(scores)))
