"""The charges for what a schema leaves open: a plan of their own before that of the rest, in the same budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.calibrate import Charge, calibrate
from mechanisms.accounting.events import Event, NoiseEvent, as_noise
from mechanisms.accounting.thresholds import safe_failure, safe_threshold, union_sensitivity
from mechanisms.public import units
from mechanisms.public.discovery.wanted import Wanted
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import AUTO, LAPLACE, NOISE_KINDS, NoiseKind
from mechanisms.public.noise_tails import KNOWN
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.units import WEIGHT_BITS, Norm

#: The accountants whose currency a fixed part of can be set aside, whatever the rest is spent on.
SERVING = (Gdp, Zcdp, Basic)
#: So many columns, evenly among all by size, stand for the sizes of pairs.
MOST_COMPARED = 500


@dataclass(frozen=True)
class PlannedDiscovery:
    """One charge and what it tells.

    Attributes:
        share: the part of the budget, in the accountant's additive currency.
        event: its sensitivity is that of the tree, in records; of values, that of their weights.
        threshold: of values: the noisy weight, in units of 2**-WEIGHT_BITS, from which on one is released; else None.
        most: so many values of one unit count at most.
        noise: of max_records: Σ |noise| of a marginal at C = 1, in records, that the rest of the budget leaves to
            expect: see `_noise_per_record`; else 0. It says what C costs, and is no matter of privacy.
    """

    wanted: Wanted
    share: float
    event: NoiseEvent
    threshold: int | None
    most: int
    noise: float = 0.0

    def to_json(self, accountant: Accountant) -> dict[str, Any]:
        """The charge as JSON values; what `verify` needs to compute its sensitivity and its threshold again."""
        tree, sizes = self.wanted.tree, self.wanted.sizes
        asked: dict[str, Any] = {"leaves": tree.leaves, "specials": tree.specials} if tree else {}
        if sizes is not None:
            asked |= {"cap": sizes.cap, "noise_per_record": self.noise}
        if self.threshold is not None:
            asked |= {"values_per_unit": self.most, "threshold": self.threshold * 2.0**-WEIGHT_BITS}
        return {
            "id": self.event.id,
            "discovery": {"column": self.wanted.column, "what": list(self.wanted.what), **asked},
            "clique": None,
            "cells": tree.leaves if tree else sizes.query.columns if sizes else 0,
            "answers": tree.query.rows if tree else sizes.query.rows if sizes else 0,
            **self.event.to_facts(),
            "share": self.share,
            "cost": accountant.cost(self.event),
        }


@dataclass(frozen=True)
class DiscoveryPlan:
    """All charges for what is discovered; the plan of the rest is made from their answers, of what is left.

    Guarantee: as a whole these cost a fixed part of the budget's currency (μ², ρ, ε), which does not depend on any
        answer, and the rest, whatever its plan is, no more than what remains: ordinary adaptive composition of two
        steps (Dong, Roth & Su 2019, theorem 3.2; Bun & Steinke 2016, lemma 2.3; Dwork et al. 2006).
    """

    slots: tuple[PlannedDiscovery, ...]
    noise: NoiseKind
    budget: Budget

    @cached_property
    def accountant(self) -> Accountant:
        """Who adds up the charges."""
        return self.budget.keeper([e.kind for e in self.events], self.events)

    @property
    def events(self) -> tuple[NoiseEvent, ...]:
        return tuple(s.event for s in self.slots)

    def reserved(self, event: Event) -> Event | None:
        """The event, if it is in the plan."""
        return event if any(event == e for e in self.events) else None

    @property
    def noise_norm(self) -> Norm:
        """The norm that the sensitivities are taken in."""
        return NOISE_KINDS[self.noise].norm

    @property
    def loss(self) -> PrivacyLoss:
        return self.accountant.loss(self.events)

    @property
    def cap(self) -> int | None:
        """The largest number of records of a unit that is counted; None where nobody asks how many units have."""
        return next((s.wanted.sizes.cap for s in self.slots if s.wanted.sizes is not None), None)

    @property
    def share(self) -> float:
        """The part of the budget that all of them take."""
        return sum(s.share for s in self.slots)

    def to_json(self) -> dict[str, Any]:
        return {
            "discovery": [s.to_json(self.accountant) for s in self.slots],
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "accountant": self.accountant.kind,
            "neighbouring": str(self.budget.neighbouring),
            "max_records": self.budget.max_records,
        }


def resolved(budget: Budget, mechanism: str) -> tuple[Budget, NoiseKind]:
    """The budget with its accountant, and the noise of what is discovered: settings may leave both open.

    Raises:
        UserError: an accountant that cannot set a fixed part of its budget aside; noise without known tails; Gaussian
            noise under basic composition, which splits δ over a number of charges that is not known yet.
    """
    accountant = budget.accountant
    if accountant == AUTO:
        accountant = Gdp.kind if budget.delta else Basic.kind
    serving = [a.kind for a in SERVING]
    if accountant not in serving:
        fix = f"privacy.accountant={' or '.join(serving)}"
        what = "what is discovered has no accounting here: the number of charges after it depends on its answers"
        raise UserError(f"{what} ({accountant})", where="privacy.accountant", fix=fix)
    kind = accountant_class(accountant).natural_noise if mechanism == AUTO else mechanism
    if kind not in KNOWN or (accountant == Basic.kind and kind != LAPLACE.name):
        fix = "mechanism=laplace" if accountant == Basic.kind else f"mechanism={' or '.join(KNOWN)}"
        raise UserError(f"{kind} noise under {accountant} discovers nothing", where="mechanism", fix=fix)
    return replace(budget, accountant=accountant), kind


def plan_discovery(
    wanted: Sequence[Wanted],
    budget: Budget,
    *,
    share: float,
    mechanism: str,
    cells: Sequence[int] = (),
    pairs: bool = False,
) -> DiscoveryPlan:
    """A part of the budget for what is discovered, the same for each question, calibrated from public facts alone.

    Args:
        share: the part, in the accountant's additive currency; and of δ, where values are discovered.
        budget: its accountant is a setting that may be auto, as `mechanism` is; see `resolved`. Of one unit count
            records of weight C, and C values.
        cells: of every column that is measured, where max_records is asked for; pairs: whether pairs may be, too.
    Raises:
        UserError: a parameter out of range; δ = 0 where values are discovered.
    """
    if not 0.001 <= share <= 0.9:
        raise UserError(f"got {share}", where="privacy.discovery_share", fix="a part of the budget, 0.001 to 0.9")
    budget, noise = resolved(budget, mechanism)
    norm = NOISE_KINDS[noise].norm
    values = [w for w in wanted if w.of_values]
    if values and not budget.delta:
        fix = "a privacy.delta above 0, or the values from public knowledge"
        what = f"values: discover needs a part of δ: with δ = 0 no value of column {values[0].column!r} is ever safe"
        raise UserError(what, where="privacy.delta", fix=fix)
    failure = units.round_down(budget.delta * share / len(values)) if values else 0.0

    def bound(asked: Wanted) -> float:
        if asked.sizes is not None:
            return asked.sizes.sensitivity(norm=norm, neighbouring=budget.neighbouring)
        if asked.tree is None:
            return union_sensitivity(norm, budget.neighbouring)
        return budget.sensitivity(asked.tree.query, norm)

    each = share / len(wanted)
    charges = [Charge(w.event, noise, bound(w), each, failure if w.of_values else 0.0) for w in wanted]
    *events, rest = (as_noise(e) for e in calibrate([*charges, Charge("rest", noise, 1.0, 1 - share)], budget))
    costs = replace(budget, max_records=1).sensitivity(Identity(2), norm)
    costs *= _noise_per_record(rest, budget.keeper([noise], charges), cells, pairs)
    slots = [_slot(w, each, e, budget, costs) for w, e in zip(wanted, events, strict=True)]
    for slot in slots:
        units.check_scale(slot.event.scale)
    return DiscoveryPlan(tuple(slots), noise, budget)


def _slot(wanted: Wanted, share: float, event: NoiseEvent, budget: Budget, noise: float) -> PlannedDiscovery:
    if wanted.sizes is not None:
        return PlannedDiscovery(wanted, share, event, None, budget.max_records, noise)
    if wanted.tree is not None:
        return PlannedDiscovery(wanted, share, event, None, budget.max_records)
    failure = safe_failure(event.failure, budget.delta)
    threshold = safe_threshold(event.kind, event.scale, failure, budget.max_records)
    return PlannedDiscovery(wanted, share, event, threshold, budget.max_records)


def _noise_per_record(rest: NoiseEvent, accountant: Accountant, cells: Sequence[int], pairs: bool) -> float:
    """Σ |noise| of a marginal at sensitivity 1: of a one-way one on the mean, where all columns share the rest alike;
    or of a pair of median size that takes it alone, where pairs may be measured and that is more."""
    if not cells:
        return 0.0
    mean = rest.scale * (1.0 if rest.kind == LAPLACE.name else math.sqrt(2 / math.pi))
    each = accountant.strength(1.0) / accountant.strength(1 / len(cells))
    alone = mean * each * math.fsum(cells) / len(cells)
    if not pairs or len(cells) < 2:
        return alone
    some = np.sort(np.array(cells, np.float64))[:: -(-len(cells) // MOST_COMPARED)]
    return max(alone, mean * float(np.median(np.outer(some, some)[np.triu_indices(some.size, 1)])))


def before(discovery: DiscoveryPlan | None) -> tuple[Event, ...]:
    """What was charged before a plan of the rest."""
    return () if discovery is None else discovery.events


def discovery_receipts(discovery: DiscoveryPlan | None, charged: Mapping[str, Event]) -> list[dict[str, Any]]:
    """What of it was charged, as JSON values."""
    if discovery is None:
        return []
    return [s.to_json(discovery.accountant) for s in discovery.slots if s.event.id in charged]
