"""What an accountant owes, and what accountants have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import numpy as np

from mechanisms.accounting.currencies import Currency, gaussian_epsilon, gaussian_mu, needs_delta
from mechanisms.accounting.events import Event
from mechanisms.public.arrays import Floats
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NoiseKind, NoiseLaw
from mechanisms.public.units import Delta

#: Parts of a budget: one, or an array of them.
Share = TypeVar("Share", float, Floats)


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


def as_event(event: Event) -> Event:
    """The event; TypeError for what is none."""
    if not isinstance(event, Event):
        raise TypeError(f"no accountant knows the event {type(event).__name__}")
    return event


class Squares(Accountant):
    """Shares of what adds up in squares of strengths: ρ ∝ ε² and μ², or ε² itself."""

    def strength(self, share: Share) -> Share:
        """√share, of the strength of all of the budget."""
        return math.sqrt(share) if isinstance(share, float) else np.sqrt(share)


@dataclass(frozen=True)
class GaussianAccountant(Squares):
    """What zCDP and GDP share: Gaussian noise is counted exactly, and no event takes a δ of its own."""

    delta: Delta
    delta_each: ClassVar[None] = None
    slots: ClassVar[int] = 0
    natural_noise: ClassVar[NoiseKind] = GAUSSIAN.name
    is_filter: ClassVar[bool] = True

    @classmethod
    def of(cls, delta: Delta, slots: int) -> Self:
        """For any number of slots; δ > 0."""
        needs_delta(delta, cls.kind)
        return cls(delta)

    def noise_strength(self, law: NoiseLaw, strength: float) -> float:
        """The strength itself: μ_i of Gaussian noise, ε_i of pure noise."""
        return strength


@dataclass(frozen=True)
class Approximate(Accountant):
    """What basic and advanced composition share: events count by (ε_i, δ_i); Gaussian ones have an equal δ_i each."""

    delta: Delta
    slots: int
    natural_noise: ClassVar[NoiseKind] = LAPLACE.name

    if TYPE_CHECKING:

        @property
        def delta_each(self) -> float: ...

    def cost(self, event: Event) -> dict[str, float]:
        """(ε_i, δ_i) of one event."""
        mu = as_event(event).mu
        if mu is None:
            return {"epsilon": event.epsilon_alone, "delta": event.failure}
        needs_delta(self.delta, self.kind)
        epsilon = gaussian_epsilon(mu, Delta(self.delta_each))
        return {"epsilon": epsilon, "delta": self.delta_each + event.failure}

    def noise_strength(self, law: NoiseLaw, strength: float) -> float:
        """ε_i of pure noise; for other noise the μ whose ε at δ_i it is."""
        return strength if law.pure else gaussian_mu(strength, Delta(self.delta_each))

    def choice_epsilon(self, strength: float) -> float:
        """ε_i."""
        return strength


def within_slots(events: Sequence[Event], slots: int) -> int:
    """The number of Gaussian events; ValueError where δ was split over fewer."""
    gaussians = sum(as_event(e).mu is not None for e in events)
    if gaussians > slots:
        raise ValueError(f"{gaussians} Gaussian events, but δ was split over {slots}")
    return gaussians
