"""What a plan may cost at most, how that is counted, and for whom it holds: one value that is handed on whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mechanisms.accounting.accountants.accountant import Accountant, PrivacyLoss
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.thresholds import MayFail, delta_left
from mechanisms.public import units
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, sensitivity
from mechanisms.public.units import Neighbouring, Norm


class Movable(Protocol):
    """A question that knows how far its answers move."""

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float: ...


@dataclass(frozen=True)
class Budget:
    """The terms of a promise.

    Attributes:
        epsilon, delta: of all charges together; of several tries, of each.
        accountant: its name; settings may leave it open (auto), a plan has chosen one.
        neighbouring: which two tables are compared.
        max_records: C, the largest total weight of one unit.
    Raises:
        UserError: a parameter out of range.
    """

    epsilon: float
    delta: float
    accountant: str
    neighbouring: Neighbouring
    max_records: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", units.epsilon(self.epsilon))
        object.__setattr__(self, "delta", units.delta(self.delta))
        if self.max_records < 1:
            raise UserError(f"got {self.max_records}", where="privacy.max_records", fix="a whole number C ≥ 1")

    @property
    def whole(self) -> PrivacyLoss:
        """All of it, as a loss."""
        return PrivacyLoss(self.epsilon, self.delta)

    def keeper(self, kinds: Iterable[NoiseKind], charged: Sequence[MayFail]) -> Accountant:
        """The accountant of these charges: it has the δ that their thresholds leave, and splits it if it has to.

        Args:
            kinds: of the noise of each charge that is no choice.
            charged: all charges, with those that came before.
        Raises:
            UserError: no such accountant; δ = 0 where it needs more, or nothing left of δ.
        """
        slots = sum(not NOISE_KINDS[kind].pure for kind in kinds)
        return accountant_class(self.accountant).of(delta_left(self.delta, charged), slots)

    def moved(self, asked: Movable, norm: Norm) -> float:
        """The most by which answers to a question move when one unit changes, in its own unit."""
        return asked.sensitivity(norm=norm, neighbouring=self.neighbouring, max_records=self.max_records)

    def sensitivity(self, query: QueryMatrix, norm: Norm) -> float:
        """The most by which answers to a query over one marginal move when one unit changes, in records."""
        return sensitivity(query, norm=norm, neighbouring=self.neighbouring, max_records=self.max_records)

    def distances_bound(self, count: int, norm: Norm) -> float:
        """How far that many L1 distances to fixed marginals move together when a unit changes, in records; rounded up.

        Each moves by at most the L1 change of its marginal, Δ = C under add_remove and 2C under replace (derived at
        `noisy_scores`); together by m · Δ in L1 and √m · Δ in L2.
        """
        return units.joint_sensitivity(self.sensitivity(Identity(2), "l1"), count, norm)
