"""How large noise can be: bounds on one cell, on a weighted sum, and on Σ |noise| over the cells of a marginal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NOISE_KINDS, NoiseKind

#: Up to so many cells Σ |noise| is simulated; beyond, its mean and variance bound it.
SIMULATED_CELLS = 4_096
#: Draws of a simulation; its seed is public: everybody gets the same bound from the same release.
DRAWS, SEED = 4_000, 20_221
#: The fewest draws of a sum over many cells, which lies close to its mean.
FEWEST_DRAWS = 1_000
#: So much of α is left after the error of DRAWS draws: their quantile is two of its standard errors above the true one.
LEFT_OVER = 0.8
#: Numbers that are drawn at once.
BLOCK = 2_000_000
#: Draws by which the mean |noise| of sums without a formula is known.
MEAN_DRAWS = 1_000_000
#: Draws the noise of all cells so many times.
Draw: TypeAlias = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class NoiseTerm:
    """Independent noise that every cell has on its own: the sum of `many` draws.

    Attributes:
        noise: the kind of noise.
        scale: of each draw, in records.
        many: how many draws are added up.
    """

    noise: NoiseKind
    scale: float
    many: int = 1

    @property
    def variance(self) -> float:
        return self.many * (NOISE_KINDS[self.noise].stddev * self.scale) ** 2

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """So many independent sums; of Laplace noise as the difference of two gamma variables, which is the same."""
        if self.noise == LAPLACE.name:
            return np.asarray(self.scale * (rng.gamma(self.many, size=size) - rng.gamma(self.many, size=size)))
        if self.noise == GAUSSIAN.name:
            return rng.normal(0.0, math.sqrt(self.variance), size)
        simulate = NOISE_KINDS[self.noise].simulate
        return np.asarray(sum(simulate(rng, self.scale, size) for _ in range(self.many)))


def stddev_of(terms: Sequence[NoiseTerm]) -> float:
    """Standard deviation of the sum of the terms, in records."""
    return math.sqrt(math.fsum(t.variance for t in terms))


def merged_terms(terms: Sequence[NoiseTerm]) -> tuple[NoiseTerm, ...]:
    """The same law in fewer terms: Gaussian ones add up to one."""
    gaussian = [t for t in terms if t.noise == GAUSSIAN.name]
    rest = tuple(t for t in terms if t.noise != GAUSSIAN.name)
    return (NoiseTerm(GAUSSIAN.name, stddev_of(gaussian)), *rest) if gaussian else rest


def tail(terms: Sequence[NoiseTerm], alpha: float) -> float:
    """t with P(|Σ terms| > t) ≤ α, in records: exact for Gaussian noise and for a single Laplace draw.

    Sums of Laplace noise are bounded by their moment generating function (Chernoff), noise of plugins by its variance
    (Chebyshev).
    """
    spread = stddev_of(terms)
    kinds = {t.noise for t in terms}
    if spread == 0.0:
        return 0.0
    if kinds == {GAUSSIAN.name}:
        return NormalDist().inv_cdf(1 - alpha / 2) * spread
    if kinds == {LAPLACE.name} and sum(t.many for t in terms) == 1:
        return terms[0].scale * math.log(1 / alpha)
    chebyshev = spread / math.sqrt(alpha)
    if not kinds <= {GAUSSIAN.name, LAPLACE.name}:
        return chebyshev
    pole = 1 / max(t.scale for t in terms if t.noise == LAPLACE.name)
    rates = pole * np.linspace(0.0, 1.0, 1_002)[1:-1]
    cumulant = np.zeros_like(rates)
    for t in terms:
        own = (t.scale * rates) ** 2
        cumulant += t.many * (own / 2 if t.noise == GAUSSIAN.name else -np.log1p(-own))
    return float(min(np.min((cumulant + math.log(2 / alpha)) / rates), chebyshev))


@lru_cache(maxsize=64)
def widest_reach(noise: NoiseKind, alpha: float) -> float:
    """Standard deviations t with P(|x| > t) ≤ α for any weighted sum x of independent draws of a kind; α at most 0.1.

    Those of one draw: a sum of several has lighter tails. Of plugins one draw is simulated, and taken for no less than
    a Gaussian one.
    """
    if noise == LAPLACE.name:
        return math.log(1 / alpha) / NOISE_KINDS[noise].stddev
    gaussian = NormalDist().inv_cdf(1 - alpha / 2)
    if noise == GAUSSIAN.name:
        return gaussian
    draws = np.abs(NoiseTerm(noise, 1.0).draw(np.random.default_rng(SEED), MEAN_DRAWS))
    return max(float(np.quantile(draws, 1 - alpha)) / NOISE_KINDS[noise].stddev, gaussian)


def sum_bound(cells: int, terms: Sequence[NoiseTerm], alpha: float) -> float:
    """t with P(Σ over the cells of |noise| > t) ≤ α, in records, for cells whose noise is independent.

    By simulation with a public seed (`quantile_above`), exact for one Laplace draw per cell (a gamma variable); of many
    cells by mean and variance (Cantelli's inequality).
    """
    if not terms or not cells:
        return 0.0
    terms = merged_terms(terms)
    unit = stddev_of(terms)
    shapes = tuple((t.noise, t.scale / unit, t.many) for t in terms)
    return unit * _unit_bound(cells, shapes, alpha)


@lru_cache(maxsize=4_096)
def _unit_bound(cells: int, shapes: tuple[tuple[NoiseKind, float, int], ...], alpha: float) -> float:
    """`sum_bound` of noise of standard deviation 1."""
    terms = [NoiseTerm(*shape) for shape in shapes]
    if len(terms) == 1 and terms[0].noise == LAPLACE.name and terms[0].many == 1:
        from scipy.special import gammainccinv

        return terms[0].scale * float(gammainccinv(cells, alpha))
    if cells > SIMULATED_CELLS:
        mean = _mean_abs(terms)
        return cells * mean + math.sqrt(cells * (1 - mean**2) * (1 / alpha - 1))
    sums = [np.abs(noise).sum(axis=1) for noise in in_blocks(independent(terms, cells), cells, draws_of_sum(cells))]
    return quantile_above(np.concatenate(sums), alpha)


def independent(terms: Sequence[NoiseTerm], cells: int) -> Draw:
    """What draws independent noise of so many cells."""
    return lambda rng, rows: np.sum([t.draw(rng, rows * cells) for t in terms], axis=0).reshape(rows, cells)


def draws_of_sum(cells: int) -> int:
    """How many draws tell a quantile of a sum over so many cells: as many as BLOCK numbers are, where these are few."""
    return min(max(BLOCK // max(cells, 1), FEWEST_DRAWS), DRAWS)


def in_blocks(draw: Draw, many: int, draws: int = DRAWS) -> Iterator[Floats]:
    """So many draws by a public seed, some rows at a time; `many` numbers make one of them."""
    rng, step = np.random.default_rng(SEED), max(BLOCK // max(many, 1), 1)
    return (draw(rng, min(step, draws - start)) for start in range(0, draws, step))


def _mean_abs(terms: Sequence[NoiseTerm]) -> float:
    """Mean |noise| of noise of standard deviation 1, from above where it is simulated."""
    if len(terms) == 1 and terms[0].many == 1:
        return NOISE_KINDS[terms[0].noise].mean_abs * terms[0].scale
    rng = np.random.default_rng(SEED)
    draws = np.abs(np.sum([t.draw(rng, MEAN_DRAWS) for t in terms], axis=0))
    return min(float(draws.mean()) + 4 / math.sqrt(MEAN_DRAWS), 1.0)


def quantile_above(draws: Floats, alpha: float) -> float:
    """A number that is exceeded with probability at most α: an order statistic above the quantile of the draws.

    The number of draws above the true quantile is binomial; a part of α makes up for that, a larger one of fewer.
    """
    left = 1 - (1 - LEFT_OVER) * math.sqrt(DRAWS / len(draws))
    place = math.ceil((1 - left * alpha) * len(draws))
    return float(np.partition(draws, min(place, len(draws) - 1))[min(place, len(draws) - 1)])
