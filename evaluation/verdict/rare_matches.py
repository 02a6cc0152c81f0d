"""Rows of the synthetic table that equal a real row, each weighed by how rarely that happens by nature.

Under the null hypothesis the synthetic table does not depend on which of the real units it was made from. Then, given
the synthetic table and all real rows, every choice of as many training units is equally likely, and so the weight that
falls on training units has a known distribution, whatever the weights and however unequal the sizes are (a permutation
test; with weights 0 and 1 it is Fisher's exact test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable

#: Random splits of a Monte Carlo test; the least p is 1 / (1 + DRAWS).
DRAWS = 20_000
#: A unit's weight is cut to this multiple of the mean, so that no few units decide the test.
CUT = 8.0
#: A release that reveals no more about a unit than this ε allows does not fail the test.
TOLERATED = 1.0
NORMAL_95 = 1.959963984540054

Number = TypeVar("Number", np.int64, np.float64)
#: The number of each row's unit, of the training and of the holdout rows.
Units = tuple[Ints, Ints]


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval.

    Attributes:
        count: how many; a sum of parts where ties are split. of: how many there are.
        low, high: the interval, within [0, 1].
    """

    count: float
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    def to_json(self) -> dict[str, float]:
        """JSON values."""
        return {"count": self.count, "of": self.of, "share": self.value, "low": self.low, "high": self.high}


def clopper_pearson(count: int, of: int) -> Share:
    """The exact interval of a share (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # slow to import

    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, 0.025))
    high = 1.0 if count == of else float(betaincinv(count + 1, of - count, 0.975))
    return Share(count, of, low, high)


def wilson(share: float, of: float, z: float = NORMAL_95) -> tuple[float, float]:
    """The centre of Wilson's interval of a share of `of` trials, which need not be whole, and half its width (1927)."""
    z2 = z * z / of
    return (share + z2 / 2) / (1 + z2), math.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)


def split_p(training: Ints, holdout: Ints, rng: np.random.Generator, *, epsilon: float = 0.0) -> float:
    """How likely a random split gives training units so much weight or more, by `DRAWS` random splits.

    Exact in level whatever the sizes (Phipson and Smyth 2010). With ε above 0: at most how likely a release that is
    ε-differentially private gives them so much, where units were set aside by independent coins (`likeliest`).

    Args:
        training, holdout: a whole weight of at least 0 for each unit.
    """
    sizes = np.bincount(training) if training.size else np.zeros(1, np.int64)
    every = np.zeros(max(sizes.size, int(holdout.max(initial=0)) + 1), np.int64)
    every[: sizes.size] += sizes
    every += np.bincount(holdout, minlength=every.size)
    values = np.flatnonzero(every)
    if values.size < 2:
        return 1.0
    counts = every[values]
    if epsilon:
        drawn = rng.binomial(counts, likeliest(training.size, holdout.size, epsilon), (DRAWS, counts.size))
    else:
        drawn = rng.multivariate_hypergeometric(counts, training.size, size=DRAWS, method="marginals")
    return float((1 + (drawn @ values >= training.sum()).sum()) / (1 + DRAWS))


def likeliest(training: int, holdout: int, epsilon: float) -> float:
    """The largest probability, given an ε-DP release and all other units' sides, that a unit is a training unit.

    Its odds are at most e^ε times those of its coin. Label by label, the training units are then dominated by
    independent coins with this probability (Steinke, Nasr & Jagielski 2023).
    """
    odds = math.exp(epsilon) * training / max(holdout, 1)
    return odds / (1 + odds)


@dataclass(frozen=True)
class Excess:
    """The share of some weight that lies on training units, against a random split.

    Attributes:
        share, low, high: with its 95 % interval.
        expected: by a random split: the training units' share of all units.
        p: of so large a share in a random split, by the normal law; 1 where all weights are alike.
        allowed: the share that a release with `TOLERATED` ε may have. p_beyond: of so large a share in such a one.
    """

    share: float
    low: float
    high: float
    expected: float
    p: float
    allowed: float
    p_beyond: float


def excess(training: Floats, holdout: Floats) -> Excess | None:
    """The share of the weight on training units; None where there is no weight.

    The variance is that of sampling without replacement from the units. Weights above `CUT` times their mean count as
    that much in the test: the cut does not see who trained, and leaves the level as it is.
    """
    from scipy.special import ndtr  # slow to import

    weights = np.concatenate([training, holdout])
    total, n = float(weights.sum()), weights.size
    if total <= 0 or not training.size or not holdout.size:
        return None
    share, expected = float(training.sum()) / total, training.size / n
    centre, width = wilson(share, total * total / float((weights * weights).sum()))
    low, high = max(centre - width, 0.0), min(centre + width, 1.0)
    cut = np.minimum(weights, CUT * total / n)
    allowed = likeliest(training.size, holdout.size, TOLERATED)
    over = float(cut[: training.size].sum()) - allowed * float(cut.sum())
    beyond = float(ndtr(-over / math.sqrt(allowed * (1 - allowed) * float((cut * cut).sum()))))
    variance = training.size * holdout.size / (n * max(n - 1, 1)) * float(((cut - cut.mean()) ** 2).sum())
    if variance <= 1e-12 * total:
        return Excess(share, low, high, expected, 1.0, allowed, beyond)
    gap = float(cut[: training.size].sum()) - training.size * float(cut.mean())
    return Excess(share, low, high, expected, float(ndtr(-gap / math.sqrt(variance))), allowed, beyond)


def per_unit(weights: NDArray[Number], unit: Ints | None) -> NDArray[Number]:
    """The weights of rows added up by unit; as they are where a row is a unit."""
    if unit is None:
        return weights
    numbers = np.unique(unit, return_inverse=True)[1]
    summed = np.bincount(numbers, weights)
    return summed.astype(weights.dtype)


Sums = NDArray[np.uint64]

#: The share of copied rows that the weights are tuned for, and that the test must detect.
COPIES = 0.01
#: Level of the test of matches.
LEVEL = 0.0012
#: If at least this share of a holdout's rows equals a training row, rows repeat by nature.
REPEATS = 0.01
#: The test has power if it detects the planted copies in `NOTICED` of `TRIALS` trials.
TRIALS, NOTICED = 40, 38
#: Shares of copies that are tried if one per cent would go undetected.
FURTHER = (0.02, 0.05, 0.1, 0.2, 0.5)
#: Rows: the sample of training rows in these trials; the most matched rows that are weighed.
CANDIDATES, WEIGHED = 2_000, 20_000
#: The largest likelihood ratio of a copy to a natural match, so that no single match outweighs many.
LIKELIER = 6.0
#: Bits of the hash that separates rows before the exact comparison.
BITS = 22
#: Weights are whole multiples of 1 / STEPS.
STEPS = 6


@dataclass(frozen=True, eq=False)
class Pool:
    """All real rows, training rows first.

    Attributes:
        tables: training, holdout.
        sums: a 64-bit number per row, equal for equal rows; unequal rows collide with a chance of about rows² / 2⁶⁴.
        value, repeats: the number of the row's value among all values, and how many rows of the pool have it.
        first: a row of each value.
    """

    tables: tuple[CodedTable, CodedTable]
    sums: Sums
    value: Ints
    repeats: Ints
    first: Ints

    @classmethod
    def of(cls, training: CodedTable, holdout: CodedTable) -> Pool:
        """The pool of two tables over one domain."""
        sums = np.concatenate([row_sums(training), row_sums(holdout)])
        _, first, value, repeats = np.unique(sums, return_index=True, return_inverse=True, return_counts=True)
        return cls((training, holdout), sums, value, repeats[value], first)

    @property
    def training(self) -> int:
        """How many rows are training rows."""
        return self.tables[0].rows

    @property
    def sides(self) -> tuple[slice, slice]:
        """The training rows, and the holdout's."""
        return slice(None, self.training), slice(self.training, None)

    def column(self, i: int) -> Codes:
        """A column of both tables."""
        return np.concatenate([np.asarray(t.columns[i]) for t in self.tables])


def row_sums(table: CodedTable) -> Sums:
    """A number per row, equal for equal rows."""
    sums = np.zeros(table.rows, np.uint64)
    for i, column in enumerate(table.columns):
        sums += column_marks(table, i)[column]
    return sums


def column_marks(table: CodedTable, i: int) -> Sums:
    """A random number for each code of a column, the same in all tables over one domain."""
    return np.random.default_rng((0, i)).integers(0, 2**64, table.domain.attributes[i].size, np.uint64)


def natural_rates(pool: Pool, rows: Ints, rng: np.random.Generator) -> Floats:
    """About how many other rows of the pool one would expect to equal each of these rows, by nature.

    Its twins, and its neighbours (rows that differ in one column) times the ratio of twins to neighbours that random
    rows of the pool have. Who trained plays no part.
    """
    sample = rng.choice(pool.sums.size, min(pool.sums.size, CANDIDATES), replace=False)
    near = neighbours(pool, np.concatenate([rows, sample]))
    twins = pool.repeats - 1
    ratio = (twins[sample].sum() + 0.5) / (near[rows.size :].sum() + 1.0)
    return np.asarray(twins[rows] + min(ratio, 1.0) * near[: rows.size])


def neighbours(pool: Pool, rows: Ints) -> Ints:
    """For each of these rows, how many rows of the pool differ from it in exactly one column."""
    counts = np.zeros(rows.size, np.int64)
    width = len(pool.tables[0].columns)
    for i in range(width if width > 1 else 0):
        marks = column_marks(pool.tables[0], i)
        rest = pool.sums - marks[pool.column(i)]
        asked, place = np.unique(rest[rows], return_inverse=True)
        # Nearly all rows are told apart from those asked for by their first bits: few are looked up.
        there = np.zeros(1 << BITS, bool)
        there[asked >> np.uint64(64 - BITS)] = True
        rest = rest[there[rest >> np.uint64(64 - BITS)]]
        at = np.minimum(np.searchsorted(asked, rest), asked.size - 1)
        counts += np.bincount(at[asked[at] == rest], minlength=asked.size)[place] - pool.repeats[rows]
    return counts


@dataclass(frozen=True, eq=False)
class MatchTest:
    """Whether the synthetic table repeats training rows more than holdout rows.

    Attributes:
        pool: the real rows.
        matched: whether each of them stands in the synthetic table.
        weights: of each value of the pool that was weighed, 0 elsewhere.
        candidates: the training rows that stand for all in trials.
        units: of training rows and of holdout rows, where a row is no unit.
        synthetic_rows: how many synthetic rows there are.
        repeats: the share of the holdout's rows that equal a training row.
        p: by a random split of the real units.
    """

    pool: Pool
    matched: Flags
    weights: Ints
    candidates: Ints
    units: Units | None
    synthetic_rows: int
    repeats: float
    p: float

    def flagged(self, matched: Flags, rng: np.random.Generator) -> bool:
        """Whether these matched rows are copies.

        They are where more training rows are matched than in a random split, and the excess is half a per cent of the
        synthetic rows, or beyond what the tolerated ε allows; where rows repeat by nature, only by the latter.
        """
        weighed = np.where(matched, self.weights[self.pool.value], 0)
        if _p(weighed, self.pool, self.units, rng) > LEVEL:
            return False
        seen, unseen = (int(matched[side].sum()) for side in self.pool.sides)
        excess = seen - unseen * self.pool.training / max(self.pool.sums.size - self.pool.training, 1)
        if self.repeats < REPEATS and excess >= COPIES / 2 * self.synthetic_rows:
            return True
        return _p(weighed, self.pool, self.units, rng, epsilon=TOLERATED) <= LEVEL

    def trial(self, copies: int, rng: np.random.Generator) -> bool:
        """Whether the test notices so many random training rows copied into the synthetic table."""
        chosen = rng.choice(self.candidates, min(copies, self.candidates.size), replace=False)
        values = np.zeros(self.weights.size, bool)
        values[self.pool.value[self.matched]] = True
        values[self.pool.value[chosen]] = True
        return self.flagged(values[self.pool.value], rng)


def match_test(pool: Pool, synthetic: CodedTable, rng: np.random.Generator, units: Units | None = None) -> MatchTest:
    """The test of matches; a natural match weighs little, one that nature hardly makes weighs much.

    A training row is copied with some chance c, and is matched by nature at the rate λ: the weight is the logarithm of
    the likelihood ratio, log(1 + c / λ), for c of one per cent copies.
    """
    matched = np.isin(pool.sums, row_sums(synthetic))
    hit = np.unique(pool.value[matched])
    if hit.size > WEIGHED:
        hit = rng.choice(hit, WEIGHED, replace=False)
    candidates = rng.choice(pool.training, min(pool.training, CANDIDATES), replace=False)
    values = np.unique(np.concatenate([hit, pool.value[candidates]]))
    rates = natural_rates(pool, pool.first[values], rng) * synthetic.rows / max(pool.sums.size, 1)
    chance = COPIES * synthetic.rows / pool.training
    weights = np.zeros(pool.first.size, np.int64)
    ratio = np.minimum(chance / np.maximum(rates, 1e-12), LIKELIER)
    weights[values] = np.maximum(np.rint(STEPS * np.log1p(ratio)), 1)  # a match counts, however natural
    p = _p(np.where(matched, weights[pool.value], 0), pool, units, rng)
    unseen = np.isin(pool.sums[pool.training :], pool.sums[: pool.training])
    repeats = float(unseen.mean()) if unseen.size else 0.0
    return MatchTest(pool, matched, weights, candidates, units, synthetic.rows, repeats, p)


def _p(weighed: Ints, pool: Pool, units: Units | None, rng: np.random.Generator, *, epsilon: float = 0.0) -> float:
    sides = (weighed[: pool.training], weighed[pool.training :])
    each = (None, None) if units is None else units
    training, holdout = (per_unit(side, unit) for side, unit in zip(sides, each, strict=True))
    return split_p(training, holdout, rng, epsilon=epsilon)


def least_noticed(test: MatchTest, rows: int, rng: np.random.Generator) -> float | None:
    """The smallest share of copies among so many synthetic rows that the test notices in 19 of 20 trials; None of all.

    The trials copy random training rows into this very table: no theory of power stands between.
    """
    for share in (COPIES, *FURTHER):
        missed = 0
        for _ in range(TRIALS):
            missed += not test.trial(math.ceil(share * rows), rng)
            if missed > TRIALS - NOTICED:
                break
        else:
            return share
    return None
