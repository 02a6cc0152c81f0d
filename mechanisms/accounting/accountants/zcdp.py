"""zCDP accounting: ρ adds up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting.accountants.accountant import GaussianAccountant, PrivacyLoss, as_event
from mechanisms.accounting.currencies import RHO, Currency, above, zcdp_epsilon
from mechanisms.accounting.events import Event
from mechanisms.accounting.thresholds import failure_cost, failures
from mechanisms.public.units import Rho


@dataclass(frozen=True)
class Zcdp(GaussianAccountant):
    """zCDP: ρ adds up; ε = ρ + 2√(ρ ln 1/δ) (Li et al. 2021b, section 2.4; Bun & Steinke 2016)."""

    kind: ClassVar[str] = "zcdp"
    conversion: ClassVar[str] = "ε = ρ + 2√(ρ ln(1/δ))"
    currency: ClassVar[Currency] = RHO

    def rho(self, event: Event) -> Rho:
        """ρ of one event: μ²/2 (Gaussian), or r²/8 where the privacy loss has range r (r = 2ε for Laplace noise)."""
        as_event(event)
        return Rho(above(event.loss_range**2 / 8 if event.mu is None else event.mu**2 / 2))

    def cost(self, event: Event) -> dict[str, float]:
        """ρ: Δ²/2σ² (Gaussian), ε²/2 (Laplace), ε²/8 (exponential mechanism)."""
        return {"rho": self.rho(event), **failure_cost(event)}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        rho = above(math.fsum(self.rho(e) for e in events))
        return PrivacyLoss(zcdp_epsilon(rho, self.delta), self.delta + failures(events) if events else 0.0)

    def choice_epsilon(self, strength: float) -> float:
        """ρ = ε²/8 = μ²/2."""
        return 2 * strength

    def share(self, event: Event, whole: Event) -> float:
        """Of ρ."""
        return float(self.rho(event) / self.rho(whole))
