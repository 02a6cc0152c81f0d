"""What adds up before any δ is chosen: μ in quadrature (GDP), ρ as it is (zCDP); and back to (ε, δ)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from mechanisms.accounting.events import Gaussian
from mechanisms.accounting.gaussian_curve import SLACK, gaussian_epsilon, gaussian_log_delta, gaussian_mu
from mechanisms.public.units import Delta, Mu, round_up

#: Relative slack of a bound that must not lie below a number that another formula lets through.
MARGIN = 1e-9


def above(value: float) -> float:
    """A number rounded up by more than the rounding of the sums and roots that made it; NaN has no bound."""
    if math.isnan(value):
        return math.inf
    return round_up(value * (1 + SLACK)) if value > 0 else 0.0


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The ε of ρ-zCDP at δ by the plain conversion, rounded up (Bun & Steinke 2016, proposition 1.3)."""
    return above(rho + 2 * math.sqrt(rho * math.log(1 / delta)))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The ρ whose ε at δ is this one, `zcdp_epsilon` inverted but for rounding: √ρ = √(ln 1/δ + ε) − √(ln 1/δ)."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


class Currency(ABC):
    """A measure of privacy loss that composes by a sum.

    Attributes:
        name: the key of an event's cost and of a spend; sign: its letter.
    """

    name: ClassVar[str]
    sign: ClassVar[str]

    @abstractmethod
    def total(self, values: Iterable[float]) -> float:
        """All together; not rounded."""

    @abstractmethod
    def left(self, whole: float, used: float) -> float:
        """What may be added to `used` so that the total is the whole; 0 or less where nothing may."""

    @abstractmethod
    def of_group(self, value: float, units: int) -> float:
        """What holds for so many units at once."""

    @abstractmethod
    def epsilon(self, value: float, delta: Delta) -> float:
        """ε at δ, rounded up."""

    @abstractmethod
    def largest(self, epsilon: float, delta: Delta) -> float:
        """The largest value that is (ε, δ)-DP."""

    @abstractmethod
    def event(self, name: str, value: float) -> Gaussian:
        """An event that costs so much."""

    @abstractmethod
    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """μ and ρ of anything that a filter in this currency keeps within (ε, δ), rounded up."""


class GaussianMu(Currency):
    """μ of Gaussian differential privacy (Dong, Roth & Su 2019)."""

    name: ClassVar[str] = "mu"
    sign: ClassVar[str] = "μ"

    def total(self, values: Iterable[float]) -> float:
        return math.sqrt(math.fsum(v**2 for v in values))

    def left(self, whole: float, used: float) -> float:
        return math.sqrt(max(whole**2 - used**2, 0.0))

    def of_group(self, value: float, units: int) -> float:
        """k μ (Dong, Roth & Su 2019, theorem 2.14)."""
        return value * units

    def epsilon(self, value: float, delta: Delta) -> float:
        """Dong, Roth & Su 2019, corollary 2.13."""
        return gaussian_epsilon(Mu(value), delta)

    def largest(self, epsilon: float, delta: Delta) -> float:
        return gaussian_mu(epsilon, delta)

    def event(self, name: str, value: float) -> Gaussian:
        return Gaussian(name, value, 1.0)

    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """μ*, above every μ that is (ε, δ)-DP, and μ*²/2.

        A filter of μ² makes the whole run μ*-GDP (Smith & Thakurta 2022), hence (μ*²/2)-zCDP, since no Rényi divergence
        is larger than that of the Gaussians it is dominated by (Dong, Roth & Su 2019, appendix B).
        """
        mu, step = gaussian_mu(epsilon, delta) * (1 + MARGIN), MARGIN
        while gaussian_log_delta(Mu(mu), epsilon) <= math.log(delta):
            mu, step = mu * (1 + step), 2 * step
        return mu, round_up(mu * mu / 2 * (1 + MARGIN))


class ConcentratedRho(Currency):
    """ρ of zero-concentrated differential privacy (Bun & Steinke 2016)."""

    name: ClassVar[str] = "rho"
    sign: ClassVar[str] = "ρ"

    def total(self, values: Iterable[float]) -> float:
        return math.fsum(values)

    def left(self, whole: float, used: float) -> float:
        return whole - used

    def of_group(self, value: float, units: int) -> float:
        """k² ρ (Bun & Steinke 2016, proposition 1.9)."""
        return value * units**2

    def epsilon(self, value: float, delta: Delta) -> float:
        """Bun & Steinke 2016, proposition 1.3."""
        return zcdp_epsilon(value, delta)

    def largest(self, epsilon: float, delta: Delta) -> float:
        return zcdp_rho(epsilon, delta)

    def event(self, name: str, value: float) -> Gaussian:
        return Gaussian(name, math.sqrt(2 * value), 1.0)

    def whole_run(self, epsilon: float, delta: Delta) -> tuple[float, float]:
        """√(π ρ*), and ρ*, the largest that is (ε, δ)-DP by the plain conversion (Feldman & Zrnic 2021).

        Every event's μ² is at most π ρ: 2ρ for Gaussian noise, and for pure events μ = 2Φ⁻¹(1/(1+e^(−x))) ≤ √(π/2) x
        with ρ = x²/2, because the logistic distribution function lies below Φ(√(π/8) x) for x > 0. So the same run is
        √(π ρ*)-GDP by the filter of μ².
        """
        rho = zcdp_rho(epsilon, delta) * (1 + MARGIN)
        return round_up(math.sqrt(math.pi * rho) * (1 + MARGIN)), rho


MU = GaussianMu()
RHO = ConcentratedRho()
