"""What events cost: basic, advanced, zCDP and GDP accounting; a registry."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.currencies import MU, RHO, Currency, above, zcdp_epsilon
from mechanisms.accounting.events import Event
from mechanisms.accounting.gaussian_curve import gaussian_epsilon, gaussian_mu, log_ndtr, needs_delta, ordered_up
from mechanisms.accounting.thresholds import failure_cost, failures
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NOISE_KINDS, NoiseKind, NoiseLaw
from mechanisms.public.units import Delta, Mu, Rho, round_down

#: Parts of a budget: one, or an array of them.
Share = TypeVar("Share", float, NDArray[np.float64])


@dataclass(frozen=True)
class PrivacyLoss:
    """An (ε, δ) that the composition of some events satisfies."""

    epsilon: float
    delta: float


class Accountant(ABC):
    """Turns events into one (ε, δ).

    Attributes:
        kind: the name, as settings and releases spell it; conversion: its formula.
        delta: the whole δ; slots: over how many Gaussian events it is split (0: it is not).
        natural_noise: the kind of noise whose cost it adds up exactly.
        is_filter: whether events of sizes that depend on earlier answers may be booked until the budget is full.
        is_exact: whether the ε of events of that noise alone is the least that holds, but for rounding.
        best_power: shares of a budget with the least error are in proportion to a marginal's total noise to this power:
            2/3 where squares of strengths add up, 1/2 where strengths do.
        currency: what it adds up before any δ is chosen, where its ε is the currency's own; None otherwise: what is
            known of its totals is (ε, δ) alone.
    """

    kind: ClassVar[str]
    conversion: ClassVar[str]
    natural_noise: ClassVar[NoiseKind]
    is_filter: ClassVar[bool]
    is_exact: ClassVar[bool] = False
    best_power: ClassVar[float] = 2 / 3
    currency: ClassVar[Currency | None] = None

    if TYPE_CHECKING:  # fields or properties of each

        @property
        def delta(self) -> Delta: ...

        @property
        def slots(self) -> int: ...

        @property
        def delta_each(self) -> float | None:
            """δ_i of each Gaussian event, where the accountant counts it by (ε_i, δ_i)."""
            ...

    @classmethod
    @abstractmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For that δ and so many events of noise that is not pure.

        Raises:
            UserError: δ = 0 where it needs more.
        """

    @abstractmethod
    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        """The (ε, δ) of the composition of all events, rounded up."""

    @abstractmethod
    def cost(self, event: Event) -> dict[str, float]:
        """One event's cost in the accountant's own terms."""

    @abstractmethod
    def strength(self, share: Share) -> Share:
        """How strong (ε_i or μ_i) an event is that costs such a part of the budget, beside one that costs all."""

    @abstractmethod
    def noise_strength(self, law: NoiseLaw, strength: float) -> float:
        """Sensitivity / scale of noise of that strength."""

    @abstractmethod
    def choice_epsilon(self, strength: float) -> float:
        """The ε of a choice that costs as much as noise of that strength."""

    @abstractmethod
    def share(self, event: Event, whole: Event) -> float:
        """The part of the cost of `whole` that an event takes, in the currency that adds up."""


def _known(event: Event) -> Event:
    if not isinstance(event, Event):
        raise TypeError(f"no accountant knows the event {type(event).__name__}")
    return event


class _Squares(Accountant):
    """Shares of what adds up in squares of strengths: ρ ∝ ε² and μ², or ε² itself."""

    def strength(self, share: Share) -> Share:
        """√share, of the strength of all of the budget."""
        return math.sqrt(share) if isinstance(share, float) else np.sqrt(share)


class _Gaussian(_Squares):
    """What zCDP and GDP share: Gaussian noise is counted exactly, and no event takes a δ of its own."""

    delta_each: ClassVar[None] = None
    slots: ClassVar[int] = 0
    natural_noise: ClassVar[NoiseKind] = GAUSSIAN.name
    is_filter: ClassVar[bool] = True

    def noise_strength(self, law: NoiseLaw, strength: float) -> float:
        """The strength itself: μ_i of Gaussian noise, ε_i of pure noise."""
        return strength


class _Approximate(Accountant):
    """What basic and advanced composition share: events count by (ε_i, δ_i); Gaussian ones have an equal δ_i each."""

    natural_noise: ClassVar[NoiseKind] = LAPLACE.name

    if TYPE_CHECKING:

        @property
        def delta_each(self) -> float: ...

    def _cost(self, event: Event) -> dict[str, float]:
        if event.mu is not None:
            epsilon = gaussian_epsilon(event.mu, Delta(self.delta_each))
            return {"epsilon": epsilon, "delta": self.delta_each + event.failure}
        return {"epsilon": event.epsilon_alone, "delta": event.failure}

    def noise_strength(self, law: NoiseLaw, strength: float) -> float:
        """ε_i of pure noise; for other noise the μ whose ε at δ_i it is."""
        return strength if law.pure else gaussian_mu(strength, Delta(self.delta_each))

    def choice_epsilon(self, strength: float) -> float:
        """ε_i."""
        return strength


@dataclass(frozen=True)
class Zcdp(_Gaussian):
    """zCDP: ρ adds up; ε = ρ + 2√(ρ ln 1/δ) (Li et al. 2021b, section 2.4; Bun & Steinke 2016)."""

    delta: Delta
    kind: ClassVar[str] = "zcdp"
    conversion: ClassVar[str] = "ε = ρ + 2√(ρ ln(1/δ))"
    currency: ClassVar[Currency] = RHO

    @classmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For any number of slots; δ > 0."""
        needs_delta(delta, cls.kind)
        return cls(delta)

    def rho(self, event: Event) -> Rho:
        """ρ of one event: μ²/2 (Gaussian), or r²/8 where the privacy loss has range r (r = 2ε for Laplace noise)."""
        _known(event)
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


@dataclass(frozen=True)
class Gdp(_Gaussian):
    """Gaussian DP: μ adds in quadrature; the exact dual gives (ε, δ) (McKenna 2021; Dong, Roth & Su 2019)."""

    delta: Delta
    kind: ClassVar[str] = "gdp"
    conversion: ClassVar[str] = "δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)"
    is_exact: ClassVar[bool] = True
    currency: ClassVar[Currency] = MU

    @classmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For any number of slots; δ > 0."""
        needs_delta(delta, cls.kind)
        return cls(delta)

    def mu(self, event: Event) -> Mu:
        """μ of one event: Δ/σ (Gaussian), or 2Φ⁻¹(e^(r/2)/(1+e^(r/2))) where the privacy loss has range r.

        r = ε for the exponential mechanism, whose loss stays, for any two neighbours, in an interval [t − ε, t]
        (bounded range; Durfee & Rogers 2019): its trade-off curve lies above the one with slopes −e^t and −e^(t−ε),
        whose corner lies above that of μ-GDP for every t if it does for t = ε/2, randomized response at ε/2. r = 2ε
        for Laplace noise.
        """
        _known(event)
        if event.mu is not None:
            return event.mu
        half = ordered_up(event.loss_range / 2)
        if half > 700:  # e^half is no float
            return Mu(math.inf)
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


@dataclass(frozen=True)
class Basic(_Approximate):
    """Basic composition: ε and δ add up; each of `slots` Gaussian events has δ/slots and its analytic ε."""

    delta: Delta
    slots: int
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

    def cost(self, event: Event) -> dict[str, float]:
        """(ε_i, δ_i) of one event."""
        _known(event)
        if event.mu is not None:
            needs_delta(self.delta, self.kind)
        return self._cost(event)

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        gaussians = _within_slots(events, self.slots)
        costs = [self.cost(e) for e in events]
        delta = min(gaussians * self.delta_each, self.delta) + failures(events)
        return PrivacyLoss(above(math.fsum(c["epsilon"] for c in costs)), delta)

    def strength(self, share: Share) -> Share:
        """ε adds up."""
        return share

    def share(self, event: Event, whole: Event) -> float:
        """Of ε."""
        return float(self.cost(event)["epsilon"] / self.cost(whole)["epsilon"])


@dataclass(frozen=True)
class Advanced(_Approximate, _Squares):
    """Advanced composition: ε = √(2 ln(1/δ') Σε_i²) + Σ ε_i(e^{ε_i} − 1), δ = Σδ_i + δ' (Li et al. 2021b, section 2.4).

    Half of δ is δ', the other half is shared by `slots` Gaussian events.
    """

    delta: Delta
    slots: int
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

    def cost(self, event: Event) -> dict[str, float]:
        """(ε_i, δ_i) of one event."""
        _known(event)
        return self._cost(event)

    def loss(self, events: Sequence[Event]) -> PrivacyLoss:
        """The composition's (ε, δ); infinite where e^ε_i would overflow."""
        if not events:
            return PrivacyLoss(0.0, 0.0)
        _within_slots(events, self.slots)
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


def _within_slots(events: Sequence[Event], slots: int) -> int:
    gaussians = sum(_known(e).mu is not None for e in events)
    if gaussians > slots:
        raise ValueError(f"{gaussians} Gaussian events, but δ was split over {slots}")
    return gaussians


#: Those whose filters are proved.
OWN_ACCOUNTANTS = (Basic, Advanced, Zcdp, Gdp)
#: The accountants by name: ours, and those of plugins; a contract test runs over all of them.
ACCOUNTANTS: dict[str, type[Accountant]] = {a.kind: a for a in OWN_ACCOUNTANTS}


def accountant_class(kind: str) -> type[Accountant]:
    """The accountants of that name, for what they have in common before any δ is known.

    Raises:
        UserError: unknown name.
    """
    return ACCOUNTANTS[one_of(kind, ACCOUNTANTS, "privacy.accountant")]


def _filters(squares: bool) -> list[type[Accountant]]:
    return [a for a in OWN_ACCOUNTANTS if a.is_filter and not (squares and not issubclass(a, _Squares))]


def serves_as_filter(kind: str, noise: NoiseKind, *, squares: bool = False) -> bool:
    """Whether the accountant of that name is a privacy filter for such noise; see `check_filter`."""
    return any(a.kind == kind and a.natural_noise == noise for a in _filters(squares))


def check_filter(kind: str, noise: NoiseKind, *, squares: bool = False) -> None:
    """Refuse events of sizes that depend on earlier answers where the accountant is no privacy filter for them.

    Filters: zCDP (Feldman & Zrnic 2021) and GDP (Smith & Thakurta 2022) for Gaussian noise, basic composition of pure
    noise (Rogers et al. 2016), each beside choices by the exponential mechanism. What a plugin's accountant says of
    itself is not taken here: what such rounds promise is computed for ours alone (`restatements.worst_case`).

    Args:
        squares: whether only accountants serve whose costs are squares of strengths.
    Raises:
        UserError: the accountant, or this noise under it, is no filter.
    """
    if serves_as_filter(kind, noise, squares=squares):
        return
    serving, ways = _filters(squares), []
    for law in NOISE_KINDS.values():
        if names := [a.kind for a in serving if a.natural_noise == law.name]:
            ways.append(f"privacy.accountant={' or '.join(names)} and mechanism={law.name}")
    what = "rounds whose number depends on the answers have no sound accounting here"
    raise UserError(what, where="privacy.accountant", fix="; or ".join(ways))


def make_accountant(kind: str, *, delta: Delta, slots: int) -> Accountant:
    """The accountant of that name.

    Args:
        delta: the whole δ.
        slots: how many events of noise that is not pure will be charged (basic and advanced split δ over them).
    Raises:
        UserError: unknown name; δ = 0 where the accountant needs more.
    """
    return accountant_class(kind).of(delta, slots)
