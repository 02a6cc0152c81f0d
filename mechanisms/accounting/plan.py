"""The ledger-to-be: every charge that a run may make, calibrated to the budget before any row is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.budget import POWER, Budget, PairNoise
from mechanisms.accounting.events import NOISE_EVENTS, Event, Exponential, NoiseEvent, as_noise
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.public import units
from mechanisms.public.discovery.discovery_questions import DiscoveryQuestion
from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.noise_kinds import LAPLACE, NOISE_KINDS, NoiseKind
from mechanisms.public.persons.person_questions import PersonQuestion
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import Criterion
from mechanisms.public.units import Norm

#: Ids of events that a reserve pays for begin so.
RESERVE = "purse:"
#: Those of them that pay for distances say so after their number, and how many.
SCORES_PAID = "distances-"
Purpose = Literal["measure", "choose", "distance", "reserve", "persons", "accept", "discover"]
#: The purposes of the slots that a method's rounds are charged under.
ROUNDS: tuple[Purpose, ...] = ("measure", "choose", "distance")


@dataclass(frozen=True)
class Reservation:
    """What a slot is wanted for.

    Attributes:
        stage: what the charge buys, in a word or two; slots of one stage stand together; empty: all are asked at once.
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

    @property
    def purpose(self) -> Purpose:
        """What a charge of it is for."""
        if self.stage == RESERVE:
            return "reserve"
        return "choose" if self.choice else "distance" if self.scores else "measure"


@dataclass(frozen=True)
class PlannedMeasurement:
    """A measurement: what is asked, and its charge.

    Attributes:
        clique: the marginal.
        query: the query matrix over its cells.
        share: the part of the budget, in the accountant's additive currency; all shares sum to 1.
        event: the charge: sensitivity and scale, in records.
    """

    clique: Clique
    query: QueryMatrix
    share: float
    event: NoiseEvent


#: What is charged beside the rounds, and what before them.
Beside = PersonQuestion | Criterion
Asked = TypeVar("Asked", Reservation, PersonQuestion, Criterion, DiscoveryQuestion)


@dataclass(frozen=True)
class PlannedCharge:
    """A charge that may be made.

    Attributes:
        event: the worst case of what may be charged under its id: the largest sensitivity, the smallest scale.
        share: its part of the budget; all shares sum to 1.
        asked: the slot of the rounds, a question about persons, the criterion of acceptance, or what is to be
            discovered.
    """

    event: Event
    share: float
    asked: Reservation | Beside | DiscoveryQuestion

    @property
    def purpose(self) -> Purpose:
        """What it pays for."""
        return self.asked.purpose

    def _asked(self, kind: type[Asked]) -> Asked:
        if not isinstance(self.asked, kind):
            raise TypeError(f"{self.event.id} pays for no {kind.__name__}")
        return self.asked

    @property
    def reservation(self) -> Reservation:
        """The slot of the rounds; TypeError for another charge."""
        return self._asked(Reservation)

    @property
    def criterion(self) -> Criterion:
        """What decides whether the release is accepted; TypeError for another charge."""
        return self._asked(Criterion)

    @property
    def person_question(self) -> PersonQuestion:
        """What is asked about persons; TypeError for another charge."""
        return self._asked(PersonQuestion)

    @property
    def discovery_question(self) -> DiscoveryQuestion:
        """What is to be discovered; TypeError for another charge."""
        return self._asked(DiscoveryQuestion)

    @property
    def measurement(self) -> PlannedMeasurement:
        """All cells of the marginal that is known ahead, or other counts; TypeError for another charge."""
        event = as_noise(self.event)
        if isinstance(asked := self.asked, DiscoveryQuestion) and asked.query is not None:
            return PlannedMeasurement((asked.column,), asked.query, self.share, event)
        if isinstance(self.asked, PersonQuestion):
            return PlannedMeasurement(self.asked.label, self.asked.query, self.share, event)
        if self.reservation.clique is None:
            raise TypeError(f"{self.event.id} pays for nothing that is known ahead")
        return PlannedMeasurement(self.reservation.clique, Identity(self.reservation.cells), self.share, event)

    def admits(self, event: Event) -> bool:
        """Whether the event may be charged under it: what rounds ask may cost less, all else is exactly as planned."""
        return self.event.admits(event) if self.purpose in ROUNDS and self.reservation.stage else self.event == event

    def to_json(self, accountant: Accountant, event: Event | None = None) -> JsonDict:
        """The charge as JSON values.

        Args:
            event: the numbers that were used; None: those of the plan.
        """
        used, cost = event or self.event, {"share": self.share, "cost": accountant.cost(self.event)}
        name, facts = {"id": self.event.id}, used.to_facts()
        if isinstance(self.asked, Criterion | DiscoveryQuestion):
            (cells, answers), key = self.asked.shape, {"accept": "accept", "discover": "discovery"}[self.purpose]
            question = {key: self.asked.to_json(), "clique": None, "cells": cells, "answers": answers}
            return {**name, **question, **facts, **cost}
        if isinstance(self.asked, PersonQuestion) or not self.reservation.stage:
            m = self.measurement
            sizes = {"clique": list(m.clique), "cells": m.query.columns, "answers": m.query.rows}
            return {**name, **sizes, **facts, **cost}
        asked = self.reservation
        clique = None if asked.clique is None else list(asked.clique)
        slot = {"stage": asked.stage, "clique": clique, "cells": asked.cells, "scores": asked.scores}
        booked = {"booked": self.event.to_facts()} if used != self.event else {}  # the worst case, whose cost is booked
        return {**name, **slot, **cost, **booked, **facts}


@dataclass(frozen=True)
class Plan:
    """All charges that a run may make, and their total.

    Guarantee: what is asked under a slot may depend on all answers before; the slots' costs may not. So the composition
        of the slots' worst cases holds as adaptive composition: basic (Dwork et al. 2006), advanced (Dwork, Rothblum &
        Vadhan 2010), zCDP (Bun & Steinke 2016, lemma 2.3) and GDP (Dong, Roth & Su 2019, theorem 3.2; McKenna 2021).

    What is discovered takes a fixed part of the budget's currency (μ², ρ, ε), which depends on no answer. The rest of
    the charges follow from its answers, and cost no more than what remains, whatever they are: adaptive composition of
    two steps (the same sources).

    A reserve is spent in parts whose number and sizes may depend on answers too. Its events are booked as they are, and
    the ledger refuses the one that would exceed (ε, δ): a privacy filter, which costs nothing extra under zCDP (Feldman
    & Zrnic 2021), GDP (Smith & Thakurta 2022), and where pure ε adds up (Rogers et al. 2016).

    Attributes:
        charges: what is discovered, the slots in the order in which they are charged, the reserve, the histogram, the
            scores.
        budget: what all of them may cost.
        method: what decides about queries and choices, as plain values, part of the ledger's name for the plan; empty:
            nothing is decided, what is given is asked at once.
        tries: the rule by which several tries of this very plan compose; the budget and the total here are of one.
        compared: the pairs of noise and accountant that settings left to choose from, the one that was taken first.
        power: parts of the reserve are in proportion to cells to this power, where the method shares it out.
    """

    charges: tuple[PlannedCharge, ...]
    budget: Budget
    method: Json
    tries: PrivateSelection = ONE_TRY
    compared: tuple[PairNoise, ...] = ()
    power: float = POWER

    def of(self, *purposes: Purpose) -> tuple[PlannedCharge, ...]:
        """The charges for these purposes."""
        return tuple(c for c in self.charges if c.purpose in purposes)

    @cached_property
    def slots(self) -> tuple[PlannedCharge, ...]:
        """What the rounds are charged under, in order."""
        return self.of(*ROUNDS)

    @property
    def measurements(self) -> tuple[PlannedMeasurement, ...]:
        """The marginals that are known ahead."""
        return tuple(s.measurement for s in self.slots if s.reservation.clique is not None)

    @cached_property
    def reserve(self) -> PlannedCharge | None:
        """All of the reserve as one charge, of the noise that the accountant is a filter for; None: there is none."""
        return next(iter(self.of("reserve")), None)

    @property
    def discovery(self) -> Plan | None:
        """The charges for what is discovered alone, as a plan in the same budget; None: nothing is."""
        discovered = self.of("discover")
        return Plan(discovered, self.budget, {}) if discovered else None

    @property
    def cap(self) -> int | None:
        """The largest number of records of a unit that is counted; None where nobody asks how many units have."""
        sizes = (c.discovery_question.sizes for c in self.of("discover"))
        return next((s.cap for s in sizes if s is not None), None)

    @property
    def open_ended(self) -> bool:
        """Whether the charges follow from answers: then all that the ledger lets through is what they cost at most."""
        return bool(self.of("reserve", "discover"))

    @property
    def histogram(self) -> PlannedCharge | None:
        """The charge for the histogram of records per unit that a `unit_id` asks for."""
        return next((c for c in self.of("persons") if c.person_question.ids), None)

    @property
    def scores(self) -> tuple[PlannedCharge, ...]:
        """The charges for the noisy scores that decide whether a release is accepted."""
        return self.of("accept")

    @cached_property
    def _by_id(self) -> dict[str, PlannedCharge]:
        return {c.event.id: c for c in self.charges if c.purpose != "reserve"}

    @property
    def events(self) -> tuple[Event, ...]:
        """The worst case of every charge, but for the reserve."""
        return tuple(c.event for c in self._by_id.values())

    @property
    def composed(self) -> tuple[Event, ...]:
        """The events that the total is made of: all of the reserve is one."""
        return (*self.events, *([self.reserve.event] if self.reserve else []))

    @cached_property
    def accountant(self) -> Accountant:
        """Who adds up the charges."""
        kinds = [c.event.kind for c in self.charges if not c.event.is_choice]
        return self.budget.keeper(kinds, self.events)

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.composed)

    def reserved(self, event: Event) -> Event | None:
        """The planned worst case, whose cost is booked; None where no charge admits the event."""
        if (charge := self._by_id.get(event.id)) is not None:
            return charge.event if charge.admits(event) else None
        return event if self.reserve is not None and event.id.startswith(RESERVE) else None

    def buys_answers(self, event: Event) -> bool:
        """Whether the event pays for answers to linear queries over marginals, not for a choice or for scores."""
        if (charge := self._by_id.get(event.id)) is not None:
            return charge.purpose == "measure"
        return event.id.startswith(RESERVE) and not event.is_choice and not scores_paid(event.id)

    def measurement_event(self, name: str, part: float, sensitivity: float | None = None) -> NoiseEvent:
        """A measurement that costs a part of the reserve.

        Args:
            name: after the prefix that the ledger knows the reserve by.
            part: above 0, at most 1.
            sensitivity: in records; None: that of columns of norm 1.
        """
        whole, strength = self._of_reserve(part)
        moved = whole.sensitivity if sensitivity is None else sensitivity
        return NOISE_EVENTS[whole.kind](f"{RESERVE}{name}", moved, units.round_up(moved / strength))

    def scores_event(self, number: int, part: float, scores: int) -> NoiseEvent:
        """So many distances under one charge that costs a part of the reserve; its id tells how many.

        Args:
            number: in the order in which the reserve is spent.
            part: above 0, at most 1.
        """
        bound = self.budget.distances_bound(scores, self.reserve_event.norm)
        return self.measurement_event(f"{number:04d}:{SCORES_PAID}{scores}", part, bound)

    def choice_event(self, name: str, part: float) -> Exponential:
        """A choice that costs a part of the reserve; arguments as of `measurement_event`."""
        _, strength = self._of_reserve(part)
        return Exponential(f"{RESERVE}{name}", self.accountant.choice_epsilon(strength))

    def _of_reserve(self, part: float) -> tuple[NoiseEvent, float]:
        """The reserve as one event, and how strong (ε_i or μ_i) an event is that costs that part of it."""
        whole = self.reserve_event
        return whole, self.accountant.strength(part) * whole.sensitivity / whole.scale * (1 - 1e-8)  # rounding of many

    @property
    def reserve_event(self) -> NoiseEvent:
        """All of the reserve as one event.

        Raises:
            TypeError: the plan has no reserve.
        """
        if self.reserve is None:
            raise TypeError("the plan has no reserve")
        return as_noise(self.reserve.event)

    @property
    def noise(self) -> NoiseKind:
        """The kind of noise of all measurements; of a plan that does no more than discover, of these charges."""
        noisy = [c.event for c in (*self.of(*ROUNDS, "reserve"), *self.of("discover")) if not c.event.is_choice]
        return noisy[0].kind if noisy else LAPLACE.name

    @property
    def norm(self) -> Norm:
        """The norm that their sensitivities are taken in."""
        return NOISE_KINDS[self.noise].norm

    def receipts(self, charged: Mapping[str, Event]) -> list[JsonDict]:
        """What was charged, as JSON values: the numbers that were used, and the cost that was booked."""
        paid = [c for c in self.charges if c.event.id in charged and c.purpose != "reserve"]
        early = ("discover", *ROUNDS)
        asked = [c.to_json(self.accountant, charged[c.event.id]) for c in paid if c.purpose in early]
        spent = [self._out_of_reserve(e).to_json(self.accountant) for e in charged.values() if e.id.startswith(RESERVE)]
        beside = [c.to_json(self.accountant) for c in paid if c.purpose not in early]
        return asked + spent + beside

    def _out_of_reserve(self, event: Event) -> PlannedCharge:
        """An event of the reserve as a charge, with the part of the budget that it took."""
        whole = self.reserve
        share = 0.0 if whole is None else self.accountant.share(event, whole.event) * whole.share
        return PlannedCharge(event, share, Reservation(RESERVE, None, 0, 0.0, scores_paid(event.id)))

    def to_json(self) -> JsonDict:
        """The plan as JSON values: its charges, the budget and the total, and in which terms they hold."""
        own, persons = self.accountant, [c for c in self.of("persons") if c is not self.histogram]
        return {
            **({"method": dict(self.method)} if self.method else {}),
            "measurements": [c.to_json(own) for c in self.slots],
            "histogram": self.histogram and self.histogram.to_json(own),
            **({"persons": [c.to_json(own) for c in persons]} if persons else {}),
            "accept": [c.to_json(own) for c in self.scores],
            **({"reserve": self.reserve and self.reserve.to_json(own)} if self.method else {}),
            **({"discovery": [c.to_json(own) for c in discovered]} if (discovered := self.of("discover")) else {}),
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "total": {"epsilon": self.loss.epsilon, "delta": self.loss.delta},
            "accountant": own.kind,
            "conversion": own.conversion,
            "neighbouring": str(self.budget.neighbouring),
            "max_records": self.budget.max_records,
        }


def scores_paid(name: str) -> int:
    """How many distances an event of a reserve pays for, by its id; 0: it pays for something else."""
    match = re.fullmatch(rf"{RESERVE}\d{{4,}}:{SCORES_PAID}(\d+)", name)
    return int(match[1]) if match else 0
