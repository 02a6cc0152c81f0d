"""What crossed the wall: noisy answers, and the receipts that say what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries import QueryMatrix

NoiseKind = Literal["gaussian", "laplace"]


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy answers to linear queries over one marginal.

    Attributes:
        clique: the attributes, in domain order.
        query: the query matrix over the flattened (C order) marginal; the identity for a whole marginal.
        values: the noisy answers, one per row of ``query``, in records.
        noise: the kind of noise.
        scale: σ (gaussian) or b (laplace) of each answer, in records.
        event: the ledger's name of the charge that paid for it.
    """

    clique: Clique
    query: QueryMatrix
    values: NDArray[np.float64]
    noise: NoiseKind
    scale: float
    event: str

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of one answer, in records."""
        return self.scale if self.noise == "gaussian" else math.sqrt(2.0) * self.scale


@dataclass(frozen=True, eq=False)
class Measurements:
    """Everything that synthesis may know.

    Attributes:
        domain: the public domain.
        answers: the noisy answers, in the order measured.
        public_total: the number of records where it is a public fact (``replace`` with one record per unit), else None.
    """

    domain: Domain
    answers: tuple[NoisyMarginal, ...]
    public_total: int | None = None
