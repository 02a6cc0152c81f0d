"""Advanced composition: squares of ε add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from mechanisms.accounting.accountants.accountant import Approximate, PrivacyLoss, Squares, within_slots
from mechanisms.accounting.currencies import above, needs_delta, ordered_up
from mechanisms.accounting.events import Event
from mechanisms.accounting.thresholds import failures
from mechanisms.public.units import Delta


@dataclass(frozen=True)
class Advanced(Approximate, Squares):
    """Advanced composition: ε = √(2 ln(1/δ') Σε_i²) + Σ ε_i(e^{ε_i} − 1), δ = Σδ_i + δ' (Li et al. 2021b, section 2.4).

    Half of δ is δ', the other half is shared by `slots` Gaussian events.
    """

    kind: ClassVar[str] = "advanced"
    conversion: ClassVar[str] = (
        "ε = √(2 ln(1/δ') Σ ε_i²) + Σ ε_i (e^ε_i − 1), δ = Σ δ_i + δ', δ' = δ/2 (δ if nothing is Gaussian)"
    )
    is_filter: ClassVar[bool] = False

    @classmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For so many Gaussian events; δ > 0."""
        needs_delta(delta, cls.kind)
        return cls(delta, slots)

    @property
    def delta_each(self) -> float:
        return self.delta / 2 / max(self.slots, 1)

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        """The composition's (ε, δ); infinite where e^ε_i would overflow."""
        if not events:
            return PrivacyLoss(0.0, 0.0)
        within_slots(events, self.slots)
        prime = self.delta / 2 if self.slots else self.delta
        costs = [ordered_up(self.cost(e)["epsilon"]) for e in events]
        if max(costs) > 300:
            return PrivacyLoss(math.inf, self.delta + failures(events))
        mean = math.sqrt(2 * math.log(1 / prime) * math.fsum(e * e for e in costs))
        epsilon = above(mean + math.fsum(e * math.expm1(e) for e in costs))
        return PrivacyLoss(epsilon, self.delta + failures(events))

    def share(self, event: Event, whole: Event) -> float:
        """Of ε²."""
        return float(self.cost(event)["epsilon"] / self.cost(whole)["epsilon"]) ** 2
