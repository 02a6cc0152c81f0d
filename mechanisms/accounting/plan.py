"""The ledger-to-be: every charge, calibrated to the budget before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.accounting.accountants import Accountant, PrivacyLoss, gaussian_mu, make_accountant
from mechanisms.accounting.events import Event, Gaussian, Laplace
from mechanisms.public import units
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries import Identity, Norm, QueryMatrix, sensitivity
from mechanisms.public.release import NoiseKind
from mechanisms.public.units import Neighbouring, round_down, round_up


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
    event: Gaussian | Laplace

    @property
    def noise(self) -> NoiseKind:
        return "gaussian" if isinstance(self.event, Gaussian) else "laplace"

    @property
    def sensitivity(self) -> float:
        return self.event.l2_sensitivity if isinstance(self.event, Gaussian) else self.event.l1_sensitivity

    @property
    def scale(self) -> float:
        return self.event.sigma if isinstance(self.event, Gaussian) else self.event.scale

    @property
    def stddev(self) -> float:
        return self.scale if isinstance(self.event, Gaussian) else math.sqrt(2) * self.scale


@dataclass(frozen=True)
class Plan:
    """All charges of a run, and their total."""

    measurements: tuple[PlannedMeasurement, ...]
    accountant: Accountant
    epsilon: units.Epsilon
    delta: units.Delta
    neighbouring: Neighbouring
    max_records: int

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(m.event for m in self.measurements)

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.events)

    @property
    def expected_error(self) -> float:
        """Σ over all cells of the noise's standard deviation, in records: what `auto` compares (paper 002, 2.5)."""
        return math.fsum(m.query.rows * m.stddev for m in self.measurements)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "measurements": [planned_json(m, self.accountant) for m in self.measurements],
            "budget": {"epsilon": self.epsilon, "delta": self.delta},
            "total": {"epsilon": self.loss.epsilon, "delta": self.loss.delta},
            "accountant": self.accountant.kind,
            "conversion": self.accountant.conversion,
            "neighbouring": str(self.neighbouring),
            "max_records": self.max_records,
        }


def planned_json(m: PlannedMeasurement, accountant: Accountant) -> dict[str, Any]:
    """One charge as JSON values."""
    return {
        "id": m.event.id,
        "clique": list(m.clique),
        "cells": m.query.columns,
        "answers": m.query.rows,
        "mechanism": m.noise,
        "norm": "l2" if m.noise == "gaussian" else "l1",
        "sensitivity": m.sensitivity,
        "scale": m.scale,
        "stddev": m.stddev,
        "share": m.share,
        "cost": accountant.cost(m.event),
    }


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
    power: float = 2 / 3,
) -> Plan:
    """Split a budget over marginals and calibrate their noise, from public facts alone.

    Shares are in proportion to weight · cells^power (PrivSyn's optimum under zCDP has power 2/3) in the accountant's
    additive currency: ε (basic), ε² (advanced), ρ (zcdp), μ² (gdp). One multiplier is then searched such that the
    accountant's total stays within (ε, δ); the search ends on the noisier side.

    Args:
        requests: the marginals with their weights.
        mechanism: laplace, gaussian, or auto (the one with the smaller expected error).
        accountant: basic, advanced, zcdp or gdp.
        max_records: C, the largest total weight of one unit.
    Raises:
        UserError: a parameter out of range, or δ = 0 where the plan needs more.
    """
    eps, dlt = units.epsilon(epsilon), units.delta(delta)
    if max_records < 1:
        raise UserError(f"got {max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")
    if not requests:
        raise UserError("no marginals", where="selection", fix="select at least one marginal")
    total = math.fsum(r.weight * domain.cells(r.clique) ** power for r in requests)
    shares = [r.weight * domain.cells(r.clique) ** power / total for r in requests]
    if not math.isfinite(total) or min(shares) < 1e-12:
        fix = "weights of one order of magnitude"
        raise UserError("weights so far apart that a marginal gets nothing", where="selection.weights", fix=fix)

    def plan_of(kind: NoiseKind) -> Plan:
        keeper = make_accountant(accountant, delta=dlt, slots=len(requests) if kind == "gaussian" else 0)
        names = [f"{i:04d}:{','.join(r.clique)}" for i, r in enumerate(requests)]
        queries = [Identity(domain.cells(r.clique)) for r in requests]
        norm: Norm = "l2" if kind == "gaussian" else "l1"
        bounds = [sensitivity(q, norm=norm, neighbouring=neighbouring, max_records=max_records) for q in queries]

        def measured(level: float) -> Plan:
            events = [
                _event(kind, keeper, name, bound, strength)
                for name, bound, strength in zip(names, bounds, _strengths(keeper, shares, level), strict=True)
            ]
            planned = zip(requests, queries, shares, events, strict=True)
            measurements = tuple(PlannedMeasurement(r.clique, q, s, e) for r, q, s, e in planned)
            return Plan(measurements, keeper, eps, dlt, neighbouring, max_records)

        def fits(level: float) -> bool:
            strengths = _strengths(keeper, shares, level)
            return keeper.loss([_unit_event(kind, keeper, s) for s in strengths]).epsilon <= eps

        level = _largest(fits)
        plan = measured(level)
        while plan.loss.epsilon > eps or plan.loss.delta > dlt:  # rounding up may cost one part in 10⁹
            level *= 1 - 1e-9
            plan = measured(level)
        return plan

    if mechanism != "auto":
        return plan_of("gaussian" if mechanism == "gaussian" else "laplace")
    if not dlt > 0:
        return plan_of("laplace")
    return min((plan_of("laplace"), plan_of("gaussian")), key=lambda p: p.expected_error)


def _strengths(keeper: Accountant, shares: Sequence[float], level: float) -> list[float]:
    """Each mechanism's ε_i or μ_i: level · share where ε adds up (basic), level · √share where squares do."""
    if keeper.kind == "basic":
        return [round_down(level * s) for s in shares]
    return [round_down(level * math.sqrt(s)) for s in shares]


def _unit_event(kind: NoiseKind, keeper: Accountant, strength: float) -> Event:
    """A stand-in of the same cost: where Gaussian events count by (ε_i, δ_i), the pure event of the same ε_i."""
    if kind == "laplace" or keeper.delta_each is not None:
        return Laplace("", strength, 1.0)
    return Gaussian("", strength, 1.0)


def _event(kind: NoiseKind, keeper: Accountant, name: str, bound: float, strength: float) -> Gaussian | Laplace:
    """The event of that strength: b = Δ₁/ε_i; σ = Δ₂/μ_i, where (ε_i, δ_i) gives μ_i by the analytic formula."""
    if kind == "laplace":
        return Laplace(name, bound, round_up(bound / strength))
    each = keeper.delta_each
    return Gaussian(name, bound, round_up(bound / (strength if each is None else gaussian_mu(strength, each))))


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest level that fits, to one part in 10⁹, from below."""
    low, high = 1e-9, 1e-9
    while fits(high) and high < 1e12:
        low, high = high, high * 4
    if high >= 1e12:
        raise UserError("the budget is beyond any promise", where="privacy.epsilon", fix="an ε of at most 100 or so")
    if low == high:
        raise UserError("the budget is too small for this plan", where="privacy.epsilon", fix="a larger ε")
    while high / low > 1 + 1e-10:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
