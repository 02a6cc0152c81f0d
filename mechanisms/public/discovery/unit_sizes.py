"""How many records units have, in a few public buckets; and the bound C that noisy counts of them speak for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.units import MOST_CAP, Neighbouring, Norm

#: What is discovered, and what stands for a column's name in plans, ledgers and statements.
RECORDS = "max_records"
OF_UNITS = "(records per unit)"
#: C of everything else that is discovered beside it, and of the plan until it is known.
ASSUMED = 1
#: What a record beyond C counts where sizes of persons are asked: its number is made up for, what it says is not.
MADE_UP = 0.5
#: The chance, at most, that Gaussian noise alone is taken for units above any bucket.
FOUND_IN_NOISE = 0.001


@dataclass(frozen=True)
class SizeQuestion:
    """How many units have 1, 2, 3 to 4, 5 to 8, … records, up to a public cap; a unit with more counts in the last.

    A unit stands in one bucket with weight 1, however many records it has.

    Attributes:
        cap: the largest C that may be chosen.
        lost: how many records of noise a record beyond C is weighed against.
    """

    cap: int
    lost: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, int) or not 2 <= self.cap <= MOST_CAP:
            fix = f"a whole number from 2 to {MOST_CAP:,}, from what is publicly known"
            raise UserError(f"got {self.cap!r}", where="privacy.max_records_cap", fix=fix)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The largest number of records in each bucket, which is also what C may be: 1, 2, 4, … and the cap."""
        return (*(2**k for k in range(self.cap.bit_length()) if 2**k < self.cap), self.cap)

    @property
    def query(self) -> Identity:
        return Identity(len(self.bounds))

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring) -> float:
        """The most that one unit changes, in units: 1 under `add_remove`; 2 (L1) or √2 (L2) under `replace`."""
        return sensitivity(self.query, norm=norm, neighbouring=neighbouring, max_records=1)

    def bucketed(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Units per bucket from units with R = 1 … cap records: (cap,) → (buckets,)."""
        if histogram.shape != (self.cap,):
            raise ValueError(f"counts of 1 to {histogram.size} records, where the cap is {self.cap}")
        return np.add.reduceat(histogram, [0, *self.bounds[:-1]])

    def chosen(self, noisy: Sequence[float], *, stddev: float, noise: float) -> int:
        """C: the end of the last bucket that has, with those above it, more units than a record of C costs in noise.

        With one more record of C each unit above it loses a record less, and every marginal gets about `noise` more
        expected error: the sum of both is least where they are equal (as for a sum: Amin et al. 2019). Units above that
        the noise of their count explains, are none: a union bound over all buckets, since any of them may decide.

        Args:
            noisy: counts per bucket, with noise of this standard deviation each.
            noise: Σ |noise| of a marginal, in records, that is expected at C = 1.
        """
        if len(noisy) != len(self.bounds):
            raise ValueError(f"{len(noisy)} counts for {len(self.bounds)} buckets")
        deviations = NormalDist().inv_cdf(1 - FOUND_IN_NOISE / max(len(self.bounds) - 1, 1))
        for place in range(len(self.bounds) - 1, 0, -1):
            units = [float(n) for n in noisy[place:]]
            if math.fsum(units) > max(noise / self.lost, deviations * stddev * math.sqrt(len(units))):
                return self.bounds[place]
        return self.bounds[0]
