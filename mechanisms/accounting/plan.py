"""The ledger-to-be: every charge, calibrated to the budget before any row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import make_accountant
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import Event, NoiseEvent, as_noise
from mechanisms.accounting.pairs import POWER, Pair, PairNoise, by_pair, mean_stddev, possible_pairs, shares_power
from mechanisms.accounting.planned_discovery import DiscoveryPlan, before, discovery_receipts
from mechanisms.accounting.planned_scores import PlannedScore, planned_scores, score_charges, score_json, score_receipts
from mechanisms.accounting.private_selection import ONE_TRY, PrivateSelection
from mechanisms.accounting.thresholds import delta_left
from mechanisms.public import units
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, sensitivity
from mechanisms.public.rules.unit_histogram import RecordsPerUnit
from mechanisms.public.units import Neighbouring


@dataclass(frozen=True)
class Request:
    """A marginal that is wanted, and its relative weight in the budget's split."""

    clique: Clique
    weight: float = 1.0


@dataclass(frozen=True)
class PlannedMeasurement:
    """One charge and what it buys.

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


@dataclass(frozen=True)
class PlannedHistogram:
    """The charge for the histogram of records per unit.

    Attributes:
        wanted: what is counted.
        measurement: the charge; its sensitivity is that of `wanted`, in units.
    """

    wanted: RecordsPerUnit
    measurement: PlannedMeasurement

    @property
    def event(self) -> NoiseEvent:
        return self.measurement.event


@dataclass(frozen=True)
class Plan:
    """All charges of a run, and their total.

    Attributes:
        scores: the charges for the noisy scores that decide whether a release is accepted.
        selection: how many tries of this very plan there may be; ε, δ and the total here are those of one.
        compared: the pairs of noise and accountant that settings left to choose from, the one that was taken first.
        discovery: what was charged before all else, out of the same budget; None: nothing was.
    """

    measurements: tuple[PlannedMeasurement, ...]
    accountant: Accountant
    epsilon: units.Epsilon
    delta: units.Delta
    neighbouring: Neighbouring
    max_records: int
    histogram: PlannedHistogram | None = None
    scores: tuple[PlannedScore, ...] = ()
    selection: PrivateSelection = ONE_TRY
    compared: tuple[PairNoise, ...] = ()
    discovery: DiscoveryPlan | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        further = [self.histogram.event] if self.histogram else []
        own = (*(m.event for m in self.measurements), *further, *(s.event for s in self.scores))
        return (*before(self.discovery), *own)

    def reserved(self, event: Event) -> Event | None:
        """The event as the plan has it, whose cost is booked; None if it is not in the plan."""
        return event if self._by_id.get(event.id) == event else None

    def buys_answers(self, event: Event) -> bool:
        """Whether the event pays for answers to linear queries over marginals: the histogram and scores do not."""
        return any(event.id == m.event.id for m in self.measurements)

    @cached_property
    def _by_id(self) -> dict[str, Event]:
        return {e.id: e for e in self.events}

    def receipts(self, charged: Mapping[str, Event]) -> list[dict[str, Any]]:
        """What was charged, as JSON values."""
        every = [*self.measurements, *([self.histogram.measurement] if self.histogram else [])]
        measured = [planned_json(m, self.accountant) for m in every if m.event.id in charged]
        discovered = discovery_receipts(self.discovery, charged)
        return discovered + measured + score_receipts(self.scores, self.accountant, charged)

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.composed)

    @property
    def composed(self) -> tuple[Event, ...]:
        """The events that the total is made of."""
        return self.events

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "measurements": [planned_json(m, self.accountant) for m in self.measurements],
            "histogram": histogram_json(self.histogram, self.accountant),
            "accept": [score_json(s, self.accountant) for s in self.scores],
            **discovery_json(self.discovery),
            **promise_json(self),
        }


class Promise(Protocol):
    """What a plan of any kind keeps to."""

    @property
    def accountant(self) -> Accountant: ...
    @property
    def epsilon(self) -> units.Epsilon: ...
    @property
    def delta(self) -> units.Delta: ...
    @property
    def neighbouring(self) -> Neighbouring: ...
    @property
    def max_records(self) -> int: ...
    @property
    def loss(self) -> PrivacyLoss: ...


def promise_json(plan: Promise) -> dict[str, Any]:
    """The budget and the total of a plan as JSON values, and in which terms they hold."""
    return {
        "budget": {"epsilon": plan.epsilon, "delta": plan.delta},
        "total": {"epsilon": plan.loss.epsilon, "delta": plan.loss.delta},
        "accountant": plan.accountant.kind,
        "conversion": plan.accountant.conversion,
        "neighbouring": str(plan.neighbouring),
        "max_records": plan.max_records,
    }


def discovery_json(discovery: DiscoveryPlan | None) -> dict[str, Any]:
    """What is charged before all else, as JSON values; nothing where nothing is."""
    return {} if discovery is None else {"discovery": discovery.to_json()["discovery"]}


def planned_json(m: PlannedMeasurement, accountant: Accountant) -> dict[str, Any]:
    """One charge as JSON values."""
    return {
        "id": m.event.id,
        "clique": list(m.clique),
        "cells": m.query.columns,
        "answers": m.query.rows,
        **m.event.to_facts(),
        "share": m.share,
        "cost": accountant.cost(m.event),
    }


def histogram_json(histogram: PlannedHistogram | None, accountant: Accountant) -> dict[str, Any] | None:
    """The histogram's charge as JSON values."""
    return None if histogram is None else planned_json(histogram.measurement, accountant)


def histogram_charge(question: RecordsPerUnit, kind: NoiseKind, neighbouring: Neighbouring) -> Charge:
    """What the histogram asks of the budget; its sensitivity follows from what it counts."""
    bound = question.sensitivity(norm=NOISE_KINDS[kind].norm, neighbouring=neighbouring)
    return Charge(question.event, kind, bound, question.share)


def share_left(
    histogram: RecordsPerUnit | None, accept: Sequence[Criterion], discovery: DiscoveryPlan | None = None
) -> float:
    """The part of the budget that the marginals share.

    Raises:
        UserError: nothing is left.
    """
    left = 1 - math.fsum([histogram.share] if histogram else []) - math.fsum(c.share for c in accept)
    left -= 0.0 if discovery is None else discovery.share
    if not left > 1e-6:
        fix = "smaller parts of the budget: accept_share=0.05"
        raise UserError("nothing is left for the marginals", where="accept_share", fix=fix)
    return left


def planned_histogram(question: RecordsPerUnit, event: Event) -> PlannedHistogram:
    """The histogram with its calibrated charge."""
    return PlannedHistogram(
        question, PlannedMeasurement(question.label, question.query, question.share, as_noise(event))
    )


def make_plan(
    domain: Domain,
    requests: Sequence[Request],
    *,
    mechanism: str,
    accountant: str,
    epsilon: float,
    delta: float,
    neighbouring: Neighbouring,
    max_records: int,
    histogram: RecordsPerUnit | None = None,
    accept: Sequence[Criterion] = (),
    discovery: DiscoveryPlan | None = None,
) -> Plan:
    """Split a budget over marginals and calibrate their noise, from public facts alone.

    Shares are in proportion to weight · cells^(2/3), PrivSyn's optimum under zCDP, in the accountant's additive
    currency: ε (basic), ε² (advanced), ρ (zcdp), μ² (gdp); an accountant that was left open has its own power of the
    same loads (`shares_power`). One multiplier is then searched such that the accountant's total stays within (ε, δ);
    the search ends on the noisier side.

    Args:
        requests: the marginals with their weights.
        mechanism: a kind of noise, or auto: of all pairs that are left open, the one with the least noise.
        accountant: basic, advanced, zcdp, gdp, or auto.
        max_records: C, the largest total weight of one unit.
        histogram: of records per unit, if it is wanted; the marginals share what it leaves.
        accept: what decides whether the release is accepted; the marginals share what its scores leave.
        discovery: what is charged before; the marginals share what it leaves.
    Raises:
        UserError: a parameter out of range, δ = 0 where the plan needs more, or noise beyond units.MAX_SCALE.
    """
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if max_records < 1:
        raise UserError(f"got {max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")
    if not requests:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    left, spent = share_left(histogram, accept, discovery), before(discovery)

    def plan_of(pair: Pair) -> Plan:
        """The plan under a pair of noise and accountant."""
        kind, shares = pair.noise, _shares(domain, requests, shares_power(pair, accountant), left)
        further = [histogram_charge(histogram, kind, neighbouring)] if histogram else []
        further += score_charges(accept, kind, neighbouring, max_records)
        law = NOISE_KINDS[kind]
        slots = 0 if law.pure else len(requests) + len(further)
        accounting = make_accountant(pair.accountant, delta=delta_left(dlt, spent), slots=slots)
        names = [f"{i:04d}:{','.join(r.clique)}" for i, r in enumerate(requests)]
        queries = [Identity(domain.cells(r.clique)) for r in requests]
        bounds = [sensitivity(q, norm=law.norm, neighbouring=neighbouring, max_records=max_records) for q in queries]

        charges = [Charge(n, kind, b, s) for n, b, s in zip(names, bounds, shares, strict=True)]
        events = calibrate([*charges, *further], accounting, eps, dlt, before=spent)
        last = planned_histogram(histogram, events[len(requests)]) if histogram else None
        scores = planned_scores(accept, events[len(events) - len(accept) :])
        planned = zip(requests, queries, shares, events[: len(requests)], strict=True)
        measurements = tuple(PlannedMeasurement(r.clique, q, s, as_noise(e)) for r, q, s, e in planned)
        done = Plan(measurements, accounting, eps, dlt, neighbouring, max_records, last, scores)
        return replace(done, discovery=discovery)

    pairs = possible_pairs(mechanism, accountant, delta=dlt, noise_alone=True)
    most = max(r.weight for r in requests)  # loads are compared with each other: none need overflow
    loads = [domain.cells(r.clique) * (r.weight / most) ** (1 / POWER) for r in requests]
    best = _with_least_noise(by_pair(pairs, plan_of), loads)
    check_scales(best.events)
    return best


def _with_least_noise(plans: Sequence[tuple[Pair, Plan]], loads: Sequence[float]) -> Plan:
    """The plan with the least Σ load · standard deviation over the marginals (Li et al. 2021b, section 2.5)."""
    noise = [PairNoise(pair, mean_stddev(loads, [m.event.stddev for m in plan.measurements])) for pair, plan in plans]
    order = sorted(range(len(plans)), key=lambda i: noise[i].stddev)
    return replace(plans[order[0]][1], compared=tuple(noise[i] for i in order))


def _shares(domain: Domain, requests: Sequence[Request], power: float, left: float) -> list[float]:
    """Each marginal's part of the budget, the part that is left for all of them shared out.

    A weight is that of squares: the error of its marginal counts weight^(3/2) times.

    Raises:
        UserError: a part next to nothing.
    """
    loads = [(r.weight ** (power / POWER), domain.cells(r.clique) ** power) for r in requests]
    total = math.fsum(weight * cells for weight, cells in loads)
    shares = [left * weight * cells / total for weight, cells in loads]
    if not math.isfinite(total) or min(shares) < 1e-12:
        fix = "weights of one order of magnitude"
        raise UserError("weights so far apart that a marginal gets nothing", where="selection.weights", fix=fix)
    return shares


def check_scales(events: Sequence[Event], maximum: float = units.MAX_SCALE) -> None:
    """Refuse a plan, before anything is charged, whose noise has no place in the range of answers.

    Raises:
        UserError: a scale above the maximum, in records.
    """
    for event in events:
        if not event.is_choice:
            units.check_scale(event.scale, maximum)
