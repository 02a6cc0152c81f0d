"""What events cost: basic, advanced, zCDP and GDP accounting; the one file that imports autodp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

from mechanisms.accounting.events import Event, Exponential, Gaussian, Laplace
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.units import Delta, round_up

#: Relative slack that covers the rounding of sums, roots and distribution functions in this file.
SLACK = 1e-10
#: Beyond this μ (ε above half a million) the formulas leave the range of floats: the loss is called infinite.
MAX_MU = 1e3


@dataclass(frozen=True)
class PrivacyLoss:
    """An (ε, δ) that the composition of some events satisfies."""

    epsilon: float
    delta: float


class Accountant(Protocol):
    """Turns events into one (ε, δ)."""

    @property
    def kind(self) -> str: ...

    @property
    def conversion(self) -> str: ...

    @property
    def delta_each(self) -> float | None:
        """δ_i of each Gaussian event, where the accountant counts it by (ε_i, δ_i)."""
        ...

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        """The (ε, δ) of the composition of all events, rounded up."""
        ...

    def cost(self, event: Event) -> dict[str, float]:
        """One event's cost in the accountant's own terms."""
        ...


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """ln δ of a μ-GDP mechanism at ε: δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (McKenna 2021; Dong et al. 2.13)."""
    a = float(log_ndtr(mu / 2 - epsilon / mu))
    b = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return a + math.log1p(-math.exp(min(b - a, -1e-300))) if b < a else -math.inf


@lru_cache(maxsize=100_000)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε at which a μ-GDP mechanism is (ε, δ)-DP, by autodp, checked by our own formula; rounded up."""
    if mu == 0:
        return 0.0
    if mu > MAX_MU:
        return math.inf
    from autodp.dp_bank import get_eps_ana_gaussian

    target = math.log(delta)
    if gaussian_log_delta(mu, 0.0) <= target:
        return 0.0
    epsilon = float(get_eps_ana_gaussian(1 / mu, delta)) * (1 + SLACK)
    slack = 1e-9
    while gaussian_log_delta(mu, epsilon) > target:  # growing steps: a tiny ε may come as 0
        epsilon, slack = max(epsilon, 1e-12) * (1 + slack), 2 * slack
    return round_up(epsilon)


def pure_epsilon(event: Laplace | Exponential) -> float:
    """ε of a pure event, rounded up."""
    if isinstance(event, Exponential):
        return event.epsilon
    return round_up(event.l1_sensitivity / event.scale)


def _mu(event: Gaussian) -> float:
    return round_up(event.l2_sensitivity / event.sigma)


def _known(event: Event) -> None:
    if not isinstance(event, Gaussian | Laplace | Exponential):
        raise TypeError(f"no accountant knows the event {type(event).__name__}")


def _up(value: float) -> float:
    return round_up(value * (1 + SLACK)) if value > 0 else 0.0


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The ε of ρ-zCDP at δ by the plain conversion, rounded up (Bun & Steinke 2016, proposition 1.3)."""
    return _up(rho + 2 * math.sqrt(rho * math.log(1 / delta)))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The ρ whose ε at δ is this one, `zcdp_epsilon` inverted but for rounding: √ρ = √(ln 1/δ + ε) − √(ln 1/δ)."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


@dataclass(frozen=True)
class Zcdp:
    """zCDP: ρ adds up; ε = ρ + 2√(ρ ln 1/δ) (Li et al. 2021b, section 2.4; Bun & Steinke 2016)."""

    delta: Delta
    kind: str = "zcdp"
    delta_each: None = None
    conversion: str = "ε = ρ + 2√(ρ ln(1/δ))"

    def cost(self, event: Event) -> dict[str, float]:
        """ρ: Δ²/2σ² (Gaussian), ε²/2 (Laplace), ε²/8 (exponential mechanism)."""
        _known(event)
        if isinstance(event, Gaussian):
            return {"rho": _up(_mu(event) ** 2 / 2)}
        return {"rho": _up(pure_epsilon(event) ** 2 / (8 if isinstance(event, Exponential) else 2))}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        rho = _up(math.fsum(self.cost(e)["rho"] for e in events))
        return PrivacyLoss(zcdp_epsilon(rho, self.delta), self.delta if events else 0.0)


@dataclass(frozen=True)
class Gdp:
    """Gaussian DP: μ adds in quadrature; the exact dual gives (ε, δ) (McKenna 2021; Dong, Roth & Su 2019)."""

    delta: Delta
    kind: str = "gdp"
    delta_each: None = None
    conversion: str = "δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)"

    def cost(self, event: Event) -> dict[str, float]:
        """μ: Δ/σ (Gaussian), 2Φ⁻¹(e^ε/(1+e^ε)) (Laplace), 2Φ⁻¹(e^(ε/2)/(1+e^(ε/2))) (exponential mechanism).

        The privacy loss of the exponential mechanism at ε stays, for any two neighbours, in an interval of length ε:
        [t − ε, t] (bounded range; Durfee & Rogers 2019). Its trade-off curve lies above the one with slopes −e^t and
        −e^(t−ε), whose corner lies above that of μ-GDP for every t if it does for t = ε/2, randomized response at ε/2.
        """
        _known(event)
        if isinstance(event, Gaussian):
            return {"mu": _mu(event)}
        loss = pure_epsilon(event) / (2 if isinstance(event, Exponential) else 1)
        if loss > 700:  # e^loss is no float
            return {"mu": math.inf}
        # Φ⁻¹(e^x/(1+e^x)) = −Φ⁻¹(1/(1+e^x)): the small tail keeps its digits.
        return {"mu": _up(-2 * float(ndtri(1 / (1 + math.exp(loss)))))}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        mu = _up(math.sqrt(math.fsum(self.cost(e)["mu"] ** 2 for e in events)))
        return PrivacyLoss(gaussian_epsilon(mu, self.delta), self.delta if events else 0.0)


@dataclass(frozen=True)
class Basic:
    """Basic composition: ε and δ add up; each of `slots` Gaussian events has δ/slots and its analytic ε."""

    delta: Delta
    slots: int
    kind: str = "basic"
    conversion: str = "ε = Σ ε_i, δ = Σ δ_i; Gaussian events by the analytic formula at δ_i = δ / slots"

    @property
    def delta_each(self) -> float:
        return self.delta / max(self.slots, 1)

    def cost(self, event: Event) -> dict[str, float]:
        """(ε_i, δ_i) of one event."""
        _known(event)
        if isinstance(event, Gaussian):
            _needs_delta(self.delta, self.kind)
            return {"epsilon": gaussian_epsilon(_mu(event), self.delta_each), "delta": self.delta_each}
        return {"epsilon": pure_epsilon(event), "delta": 0.0}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        gaussians = _within_slots(events, self.slots)
        costs = [self.cost(e) for e in events]
        return PrivacyLoss(_up(math.fsum(c["epsilon"] for c in costs)), min(gaussians * self.delta_each, self.delta))


@dataclass(frozen=True)
class Advanced:
    """Advanced composition: ε = √(2 ln(1/δ') Σε_i²) + Σ ε_i(e^{ε_i} − 1), δ = Σδ_i + δ' (Li et al. 2021b, section 2.4).

    Half of δ is δ', the other half is shared by `slots` Gaussian events.
    """

    delta: Delta
    slots: int
    kind: str = "advanced"
    conversion: str = (
        "ε = √(2 ln(1/δ') Σ ε_i²) + Σ ε_i (e^ε_i − 1), δ = Σ δ_i + δ', δ' = δ/2 (δ if nothing is Gaussian)"
    )

    @property
    def delta_each(self) -> float:
        return self.delta / 2 / max(self.slots, 1)

    def cost(self, event: Event) -> dict[str, float]:
        """(ε_i, δ_i) of one event."""
        _known(event)
        if isinstance(event, Gaussian):
            return {"epsilon": gaussian_epsilon(_mu(event), self.delta_each), "delta": self.delta_each}
        return {"epsilon": pure_epsilon(event), "delta": 0.0}

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        """The composition's (ε, δ); infinite where e^ε_i would overflow."""
        if not events:
            return PrivacyLoss(0.0, 0.0)
        _within_slots(events, self.slots)
        prime = self.delta / 2 if self.slots else self.delta
        costs = [self.cost(e)["epsilon"] for e in events]
        if max(costs) > 300:
            return PrivacyLoss(math.inf, self.delta)
        mean = math.sqrt(2 * math.log(1 / prime) * math.fsum(e * e for e in costs))
        return PrivacyLoss(_up(mean + math.fsum(e * math.expm1(e) for e in costs)), self.delta)


def _within_slots(events: Sequence[Event], slots: int) -> int:
    gaussians = sum(isinstance(e, Gaussian) for e in events)
    if gaussians > slots:
        raise ValueError(f"{gaussians} Gaussian events, but δ was split over {slots}")
    return gaussians


def _needs_delta(delta: float, kind: str) -> None:
    if delta == 0:
        raise UserError(
            f"δ = 0, but Gaussian noise and privacy.accountant={kind} need δ > 0",
            where="privacy.delta",
            fix="privacy.delta=1e-9, or a pure plan: privacy.accountant=basic mechanism=laplace",
        )


KINDS = ("basic", "advanced", "zcdp", "gdp")


def make_accountant(kind: str, *, delta: Delta, slots: int) -> Accountant:
    """The accountant of that name.

    Args:
        delta: the whole δ.
        slots: how many Gaussian events will be charged (basic and advanced split δ over them).
    Raises:
        UserError: unknown name; δ = 0 where the accountant needs more.
    """
    if kind not in KINDS:
        fix = f"{did_you_mean(kind, KINDS)} one of: {', '.join(KINDS)}".strip()
        raise UserError(f"got {kind!r}", where="privacy.accountant", fix=fix)
    if kind != "basic" or slots:
        _needs_delta(delta, kind)
    if kind == "basic":
        return Basic(delta, slots)
    if kind == "advanced":
        return Advanced(delta, slots)
    return Zcdp(delta) if kind == "zcdp" else Gdp(delta)


@lru_cache(maxsize=100_000)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ whose Gaussian mechanism is (ε, δ)-DP; rounded down."""
    _needs_delta(delta, "gdp")
    low, high = 1e-12, 1.0
    while gaussian_log_delta(high, epsilon) <= math.log(delta):
        low, high = high, high * 2
    mu = float(brentq(lambda m: gaussian_log_delta(m, epsilon) - math.log(delta), low, high, xtol=1e-15, rtol=1e-13))
    while gaussian_log_delta(mu, epsilon) > math.log(delta):
        mu *= 1 - 1e-12
    return mu
