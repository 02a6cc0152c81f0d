"""What happened, as frozen facts that know themselves; what it costs together is the accountants' business.

A new kind of noise is a class here, its law in `noise_kinds`, and a sampler left of the wall.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mechanisms.public.files import Json, JsonDict
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NoiseKind, NoiseLaw
from mechanisms.public.units import Mu, Norm, round_up


class _Fact:
    """What all events share; the ledger writes an event by the name of its class and its fields."""

    #: The probability, in the worst case, that the draw tells what the noise does not cover; see `thresholds`.
    failure: ClassVar[float] = 0.0

    def to_json(self) -> JsonDict:
        """The ledger's form: the class's name and the fields; `event_of` takes it back."""
        fields: JsonDict = asdict(self)  # type: ignore[call-overload]  # all are dataclasses
        return {"kind": type(self).__name__, **{k: v for k, v in fields.items() if k != "failure" or v}}


class NoiseEvent(_Fact):
    """Noise that is added to answers: what noise of any kind knows of itself, from its law.

    A kind of noise is a frozen dataclass of this class with three fields, in this order: id, sensitivity (in the norm
    of its law) and scale, both in records. Under the accountants it is its `mu` where it is Gaussian (None where it is
    not), its pure `epsilon_alone`, and its `loss_range`: the length of an interval that holds the privacy loss for any
    two neighbours; infinite where there is none. Ours have a fourth, `failure`: what a threshold on the noisy answers
    adds to δ (`thresholds`); 0 where none stands there.
    """

    law: ClassVar[NoiseLaw]
    is_choice: ClassVar[bool] = False

    if TYPE_CHECKING:  # fields or properties of each kind

        def __init__(self, id: str, sensitivity: float, scale: float) -> None: ...

        @property
        def id(self) -> str: ...

        @property
        def sensitivity(self) -> float: ...

        @property
        def scale(self) -> float: ...

        @property
        def mu(self) -> Mu | None: ...

        @property
        def epsilon_alone(self) -> float: ...

        @property
        def loss_range(self) -> float: ...

    @property
    def kind(self) -> NoiseKind:
        return self.law.name

    @property
    def norm(self) -> Norm:
        """Of the sensitivity."""
        return self.law.norm

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of one answer, in records."""
        return self.law.stddev * self.scale

    @property
    def mean_abs(self) -> float:
        """Mean absolute noise of one answer, in records."""
        return self.law.mean_abs * self.scale

    def admits(self, other: Event) -> bool:
        """Whether the other has this id and kind, no more sensitivity and no less noise: so it costs no more."""
        if type(other) is not type(self) or other.id != self.id:
            return False
        alike = other.failure <= self.failure
        return alike and as_noise(other).sensitivity <= self.sensitivity and other.scale >= self.scale

    def with_sensitivity(self, value: float) -> Self:
        """The same noise on answers of another sensitivity, which is the second field of every kind."""
        return replace(self, **{fields(self)[1].name: value})  # type: ignore[type-var, arg-type]  # all are dataclasses

    def pays_for(self, sensitivity: float) -> bool:
        """Whether the noise covers answers of that sensitivity (in the event's norm, in records)."""
        return sensitivity <= self.sensitivity

    def to_facts(self) -> JsonDict:
        """The numbers that were used, as plans and statements print them."""
        return {
            "mechanism": self.kind,
            "norm": self.norm,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "stddev": self.stddev,
            **({"failure": self.failure} if self.failure else {}),
        }


@dataclass(frozen=True)
class Gaussian(NoiseEvent):
    """Gaussian noise of standard deviation `sigma` on answers of the given L2 sensitivity (both in records)."""

    id: str
    l2_sensitivity: float
    sigma: float
    failure: float = 0.0  # type: ignore[misc]  # a field here, a constant of kinds that have none
    law: ClassVar[NoiseLaw] = GAUSSIAN
    epsilon_alone: ClassVar[float] = math.inf  # no pure ε, and no interval that holds the privacy loss
    loss_range: ClassVar[float] = math.inf

    @property
    def sensitivity(self) -> float:
        """In the event's norm, in records."""
        return self.l2_sensitivity

    @property
    def scale(self) -> float:
        """σ, in records."""
        return self.sigma

    @property
    def mu(self) -> Mu:
        """μ of Gaussian differential privacy, rounded up."""
        return Mu(round_up(self.l2_sensitivity / self.sigma))


@dataclass(frozen=True)
class Laplace(NoiseEvent):
    """Laplace noise of scale b on answers of the given L1 sensitivity (both in records)."""

    id: str
    l1_sensitivity: float
    scale: float
    failure: float = 0.0  # type: ignore[misc]  # a field here, a constant of kinds that have none
    law: ClassVar[NoiseLaw] = LAPLACE
    mu: ClassVar[None] = None  # not Gaussian: its cost under GDP follows from its loss range

    @property
    def sensitivity(self) -> float:
        """In the event's norm, in records."""
        return self.l1_sensitivity

    @property
    def epsilon_alone(self) -> float:
        """The pure ε, rounded up."""
        return round_up(self.l1_sensitivity / self.scale)

    @property
    def loss_range(self) -> float:
        """The length of the interval [−ε, ε], which holds the privacy loss for any two neighbours."""
        return 2 * self.epsilon_alone


@dataclass(frozen=True)
class Exponential(_Fact):
    """One choice by the exponential mechanism at `epsilon`; it adds noise to no answer.

    The privacy loss for any two neighbours stays in an interval of length ε (bounded range; Durfee & Rogers 2019).
    """

    id: str
    epsilon: float
    is_choice: ClassVar[bool] = True
    kind: ClassVar[str] = "exponential"
    norm: ClassVar[None] = None
    scale: ClassVar[float] = 0.0
    stddev: ClassVar[float] = 0.0
    mu: ClassVar[None] = None

    @property
    def epsilon_alone(self) -> float:
        return self.epsilon

    @property
    def loss_range(self) -> float:
        return self.epsilon

    def admits(self, other: Event) -> bool:
        """Whether the other has this id and no larger ε."""
        return isinstance(other, Exponential) and other.id == self.id and other.epsilon <= self.epsilon

    def pays_for(self, sensitivity: float) -> bool:
        """Whether the choice covers scores of that sensitivity: any that is above 0, since the draw divides by it."""
        return sensitivity > 0

    def to_facts(self) -> JsonDict:
        return {"mechanism": self.kind, "epsilon": self.epsilon}


Event = NoiseEvent | Exponential

#: The event of each kind of noise; a contract test runs over all of them.
NOISE_EVENTS: dict[NoiseKind, type[NoiseEvent]] = {c.law.name: c for c in (Laplace, Gaussian)}


def event_of(record: Json) -> Event:
    """The event that `to_json` wrote; KeyError or TypeError for anything else."""
    named: dict[str, type[Event]] = {c.__name__: c for c in (*NOISE_EVENTS.values(), Exponential)}
    return named[record["kind"]](**{k: v for k, v in record.items() if k != "kind"})


def booked_event(receipt: Json) -> Event:
    """The event whose cost was booked: the slot's worst case where the receipt names one, else the numbers used.

    Args:
        receipt: an entry of `events` of privacy.json: id, mechanism, and sensitivity with scale, or epsilon.
    Raises:
        ValueError: no such mechanism, or numbers out of range.
        KeyError: a number is missing.
    """
    numbers = {**receipt, **(receipt.get("booked") or {})}
    name, kind = str(receipt["id"]), receipt["mechanism"]
    if kind == Exponential.kind:
        return Exponential(name, _number(numbers["epsilon"]))
    if kind not in NOISE_EVENTS:
        raise ValueError(f"no mechanism {kind!r}")
    event = NOISE_EVENTS[kind](name, _number(numbers["sensitivity"]), _number(numbers["scale"]))
    return with_failure(event, _number(numbers["failure"])) if numbers.get("failure") else event


def _number(value: Any) -> float:
    """A finite number above 0."""
    number = float(value)
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ValueError(f"got {value!r} where a number above 0 stands")
    return number


def with_failure(event: NoiseEvent, failure: float) -> NoiseEvent:
    """The same noise, with a threshold on its answers that lets too much through with at most that probability.

    Raises:
        TypeError: noise of a kind that knows no thresholds.
    """
    if not isinstance(event, Gaussian | Laplace):
        raise TypeError(f"{event.id}: no thresholds are known for {event.kind} noise")
    return replace(event, failure=failure)


def as_noise(event: Event) -> NoiseEvent:
    """The event, if it adds noise to answers.

    Raises:
        TypeError: it is a choice.
    """
    if isinstance(event, Exponential):
        raise TypeError(f"{event.id}: expected noise, got a choice ({type(event).__name__})")
    return event


def as_choice(event: Event) -> Exponential:
    """The event, if it is a choice.

    Raises:
        TypeError: it adds noise to answers.
    """
    if not isinstance(event, Exponential):
        raise TypeError(f"{event.id}: expected a choice, got noise ({type(event).__name__})")
    return event
