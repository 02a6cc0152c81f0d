"""Basic composition: ε and δ add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from mechanisms.accounting.accountants.accountant import Approximate, PrivacyLoss, Share, within_slots
from mechanisms.accounting.currencies import above, needs_delta
from mechanisms.accounting.events import Event
from mechanisms.accounting.thresholds import failures
from mechanisms.public.units import Delta


@dataclass(frozen=True)
class Basic(Approximate):
    """Basic composition: ε and δ add up; each of `slots` Gaussian events has δ/slots and its analytic ε."""

    kind: ClassVar[str] = "basic"
    conversion: ClassVar[str] = "ε = Σ ε_i, δ = Σ δ_i; Gaussian events by the analytic formula at δ_i = δ / slots"
    is_filter: ClassVar[bool] = True
    best_power: ClassVar[float] = 1 / 2

    @classmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For so many Gaussian events; δ may be 0 where there are none."""
        if slots:
            needs_delta(delta, cls.kind)
        return cls(delta, slots)

    @property
    def delta_each(self) -> float:
        return self.delta / max(self.slots, 1)

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        gaussians = within_slots(events, self.slots)
        costs = [self.cost(e) for e in events]
        delta = min(gaussians * self.delta_each, self.delta) + failures(events)
        return PrivacyLoss(above(math.fsum(c["epsilon"] for c in costs)), delta)

    def strength(self, share: Share) -> Share:
        """ε adds up."""
        return share

    def share(self, event: Event, whole: Event) -> float:
        """Of ε."""
        return float(self.cost(event)["epsilon"] / self.cost(whole)["epsilon"])
