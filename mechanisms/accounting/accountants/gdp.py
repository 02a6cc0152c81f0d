"""Gaussian DP accounting: μ adds up in squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from mechanisms.accounting.accountants.accountant import GaussianAccountant, PrivacyLoss, as_event
from mechanisms.accounting.currencies import MU, Currency, above, far_quantile, gaussian_epsilon, log_ndtr, ordered_up
from mechanisms.accounting.events import Event
from mechanisms.accounting.thresholds import failure_cost, failures
from mechanisms.public.units import Mu, round_down


@dataclass(frozen=True)
class Gdp(GaussianAccountant):
    """Gaussian DP: μ adds in quadrature; the exact dual gives (ε, δ) (McKenna 2021; Dong, Roth & Su 2019)."""

    kind: ClassVar[str] = "gdp"
    conversion: ClassVar[str] = "δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)"
    is_exact: ClassVar[bool] = True
    currency: ClassVar[Currency] = MU

    def mu(self, event: Event) -> Mu:
        """μ of one event: Δ/σ (Gaussian), or 2Φ⁻¹(e^(r/2)/(1+e^(r/2))) where the privacy loss has range r.

        r = ε for the exponential mechanism, whose loss stays, for any two neighbours, in an interval [t − ε, t]
        (bounded range; Durfee & Rogers 2019): its trade-off curve lies above the one with slopes −e^t and −e^(t−ε),
        whose corner lies above that of μ-GDP for every t if it does for t = ε/2, randomized response at ε/2. r = 2ε
        for Laplace noise.
        """
        as_event(event)
        if event.mu is not None:
            return event.mu
        half = ordered_up(event.loss_range / 2)
        if half > 700:  # e^half is no float
            return Mu(above(-2 * far_quantile(-half * (1 + 2.0**-48))))
        # Φ⁻¹(e^x/(1+e^x)) = −Φ⁻¹(1/(1+e^x)): the small tail keeps its digits. Near 1/2 its rounding counts: from below.
        return Mu(above(-2 * NormalDist().inv_cdf((1 - 4 * 2.0**-52) / (1 + math.exp(half)))))

    def cost(self, event: Event) -> dict[str, float]:
        """μ: Δ/σ (Gaussian), 2Φ⁻¹(e^ε/(1+e^ε)) (Laplace), 2Φ⁻¹(e^(ε/2)/(1+e^(ε/2))) (exponential mechanism)."""
        return {"mu": self.mu(event), **failure_cost(event)}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        mu = Mu(above(math.sqrt(math.fsum(self.mu(e) ** 2 for e in events))))
        return PrivacyLoss(gaussian_epsilon(mu, self.delta), self.delta + failures(events) if events else 0.0)

    def choice_epsilon(self, strength: float) -> float:
        """μ = 2Φ⁻¹(e^(ε/2)/(1+e^(ε/2))), solved for ε and rounded down."""
        return round_down(2 * (log_ndtr(strength / 2) - log_ndtr(-strength / 2)))

    def share(self, event: Event, whole: Event) -> float:
        """Of μ²."""
        return float(self.mu(event) / self.mu(whole)) ** 2
