"""Permutation tests: could a random split of the real units into training and holdout explain the matches?

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

#: Random splits of a Monte Carlo test; the least p is 1 / (1 + DRAWS).
DRAWS = 20_000
#: A unit's weight is cut to this multiple of the mean, so that no few units decide the test.
CUT = 8.0
#: A release that reveals no more about a unit than this ε allows does not fail the test.
TOLERATED = 1.0
NORMAL_95 = 1.959963984540054

Number = TypeVar("Number", np.int64, np.float64)


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


def split_p(
    training: NDArray[np.int64], holdout: NDArray[np.int64], rng: np.random.Generator, *, epsilon: float = 0.0
) -> float:
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


def excess(training: NDArray[np.float64], holdout: NDArray[np.float64]) -> Excess | None:
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


def per_unit(weights: NDArray[Number], unit: NDArray[np.int64] | None) -> NDArray[Number]:
    """The weights of rows added up by unit; as they are where a row is a unit."""
    if unit is None:
        return weights
    numbers = np.unique(unit, return_inverse=True)[1]
    summed = np.bincount(numbers, weights)
    return summed.astype(weights.dtype)
