"""What is to be discovered of one column, or of how many records units have, as a question to the rows.

Bounds and bins are asked by a tree of counts over fine public bins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, SparseQuery, sensitivity
from mechanisms.public.units import MOST_CAP, WEIGHT_BITS, Neighbouring, Norm

#: Ids of the charges begin so.
DISCOVERY = "discovery:"
VALUES = "values"
#: What is discovered, and what stands for a column's name in plans, ledgers and statements.
RECORDS = "max_records"
OF_UNITS = "(records per unit)"
#: C of everything else that is discovered beside it, and of the plan until it is known.
ASSUMED = 1
#: What a record beyond C counts where sizes of persons are asked: its number is made up for, what it says is not.
INVENTED = 0.5
#: The chance, at most, that Gaussian noise alone is taken for units above any bucket.
FALSE_VALUE = 0.001


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

    def bucketed(self, histogram: Ints) -> Ints:
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
        deviations = NormalDist().inv_cdf(1 - FALSE_VALUE / max(len(self.bounds) - 1, 1))
        for place in range(len(self.bounds) - 1, 0, -1):
            units = [float(n) for n in noisy[place:]]
            if math.fsum(units) > max(noise / self.lost, deviations * stddev * math.sqrt(len(units))):
                return self.bounds[place]
        return self.bounds[0]


def union_sensitivity(norm: Norm, neighbouring: Neighbouring) -> float:
    """The most by which the weights of all values move when one unit changes.

    A unit's weights are a vector of norm at most 1 and without negative entries: 1 under `add_remove`; under `replace`
    two such vectors are exchanged, at most as far apart as two that share no value: 2 (L1) or √2 (L2).
    """
    return sensitivity(Identity(2), norm=norm, neighbouring=neighbouring, max_records=1)


@dataclass(frozen=True)
class DiscoveryQuestion:
    """One question, and once it is planned, what is released of its answer.

    Attributes:
        column: its name; OF_UNITS where it is how many records of a unit count.
        what: bounds, bins or both, which one answer tells; or values; or max_records.
        tree: of bounds and bins: what is counted; None for others.
        sizes: of max_records: what is counted; None for others.
        most: so many values of one unit count at most.
        threshold: of values: the noisy weight, in units of 2**-WEIGHT_BITS, from which on one is released.
        once: of a constant of the schema's unit: each unit counts once, however many records it has.
        noise: of max_records: Σ |noise| of a marginal at C = 1, in records, that the rest of the budget leaves to
            expect. It says what C costs, and is no matter of privacy.
    """

    purpose: ClassVar[Literal["discover"]] = "discover"
    column: str
    what: tuple[str, ...]
    tree: LeafTree | None = None
    sizes: SizeQuestion | None = None
    most: int = 0
    threshold: int | None = None
    noise: float = 0.0
    once: bool = False

    @property
    def of_values(self) -> bool:
        """Whether texts are asked for, which need a threshold."""
        return self.tree is None and self.sizes is None

    @property
    def event(self) -> str:
        return f"{DISCOVERY}{self.column}"

    @property
    def query(self) -> QueryMatrix | None:
        """What is asked of the counts; None of values."""
        return self.sizes.query if self.sizes else self.tree.query if self.tree else None

    @property
    def shape(self) -> tuple[int, int]:
        """Cells that are counted, but for those that no answer tells; and answers."""
        if self.tree is not None:
            return self.tree.leaves, self.tree.query.rows
        return (0, 0) if self.sizes is None else (self.sizes.query.columns, self.sizes.query.rows)

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
        """The most by which the answers (counts of records or units, weights of values) move when one unit changes."""
        if self.sizes is not None:
            return self.sizes.sensitivity(norm=norm, neighbouring=neighbouring)
        if self.tree is None:
            return union_sensitivity(norm, neighbouring)
        most = 1 if self.once else max_records
        return sensitivity(self.tree.query, norm=norm, neighbouring=neighbouring, max_records=most)

    def to_json(self) -> JsonDict:
        """What `verify` needs to compute the sensitivity and the threshold again, as JSON values."""
        asked: JsonDict = {"column": self.column, "what": list(self.what)} | ({"constant": True} if self.once else {})
        if self.tree is not None:
            asked |= {"leaves": self.tree.leaves, "specials": self.tree.specials}
        if self.sizes is not None:
            asked |= {"cap": self.sizes.cap, "noise_per_record": self.noise}
            asked |= {} if self.sizes.lost == 1 else {"lost_record": self.sizes.lost}
        if self.threshold is not None:
            asked |= {"values_per_unit": self.most, "threshold": self.threshold * 2.0**-WEIGHT_BITS}
        return asked


#: Children of a node, about: with so many, sums over a range are least noisy (Qardaji et al. 2013).
BRANCHING = 16


@dataclass(frozen=True)
class LeafTree:
    """Counts of all nodes but the root: each record stands in one node per level.

    Attributes:
        leaves: fine bins of the column, in their order.
        specials: codes behind them (*other*, *missing*), which no node counts.
    """

    leaves: int
    specials: int = 0

    @property
    def levels(self) -> int:
        return max(1, round(math.log(self.leaves) / math.log(BRANCHING))) if self.leaves > 1 else 1

    @property
    def branching(self) -> int:
        """The least number of children with which the lowest level holds all leaves."""
        children = max(2, math.ceil(self.leaves ** (1 / self.levels)))
        while children**self.levels < self.leaves:
            children += 1
        return int(children)

    def width(self, level: int) -> int:
        """Leaves under a node of a level, 1 … `levels` from the top."""
        return math.prod([self.branching] * (self.levels - level))

    def nodes(self, level: int) -> int:
        """Nodes of a level that have leaves."""
        return -(-self.leaves // self.width(level))

    @property
    def query(self) -> SparseQuery:
        """One row per node, level after level from the top; entries 0 and 1, one per level in a leaf's column."""
        from scipy import sparse

        rows, first = [], 0
        for level in range(1, self.levels + 1):
            rows.append(first + np.arange(self.leaves) // self.width(level))
            first += self.nodes(level)
        places = np.tile(np.arange(self.leaves), self.levels)
        ones = np.ones(places.size, np.int64)
        shape = (first, self.leaves + self.specials)
        return SparseQuery(sparse.csr_array((ones, (np.concatenate(rows), places)), shape=shape), bits=0)

    def by_level(self, answers: Floats) -> list[Floats]:
        """The answers of each level, padded with 0 where there are no leaves."""
        levels, first = [], 0
        for level in range(1, self.levels + 1):
            padded = np.zeros(self.branching**level)
            padded[: self.nodes(level)] = answers[first : first + self.nodes(level)]
            first += self.nodes(level)
            levels.append(padded)
        return levels

    def estimates(self, answers: Floats) -> Floats:
        """The leaves' counts that fit all levels best in squares (Hay et al. 2010): (leaves,).

        Nodes without leaves count as measured to be 0.
        """
        b, noisy = self.branching, self.by_level(answers)
        below = noisy[-1]
        upward = [below]
        for height, own in enumerate(reversed(noisy[:-1]), start=2):
            part = (b**height - b ** (height - 1)) / (b**height - 1)
            below = part * own + (1 - part) * below.reshape(-1, b).sum(axis=1)
            upward.append(below)
        exact = upward[-1]
        for mine in reversed(upward[:-1]):
            gap = exact - mine.reshape(-1, b).sum(axis=1)
            exact = mine + np.repeat(gap / b, b)
        return exact[: self.leaves]
