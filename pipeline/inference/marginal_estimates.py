"""What the answers of a release tell about one marginal: unbiased counts, the law of their noise, and distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.candidates import Expected
from mechanisms.public.designs.deviations import PairCells, side_error
from mechanisms.public.domain import Clique
from mechanisms.public.noise_kinds import GAUSSIAN, NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from pipeline.inference.noise_bounds import (
    DRAWS,
    SIMULATED_CELLS,
    NoiseTerm,
    draws_of_sum,
    in_blocks,
    independent,
    merged_terms,
    quantile_above,
    stddev_of,
    sum_bound,
    tail,
)
from synthesis.consistency.evidence import least_weights
from synthesis.consistency.residual_parts import Layers, rebuilt_of
from synthesis.independent import independent_marginals

#: Cells of a marginal that are asked of answers that are no whole marginal, one by one; and cells of their queries.
MAX_SOLVED, MAX_ASKED = 200, 5_000
#: So many cells of a marginal that is asked for alone.
MAX_SOLVED_ALONE = 2_000
#: How figures of a marginal came about: from its own answers, from larger ones or coarser ones, or from those inside.
MEASURED, INSIDE, COARSE = "measured", "inside a measured marginal", "measured over coarser values"
FRECHET = "Fréchet"
#: The columns that can be told of a public total alone: none.
NOTHING: Clique = ()


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Noise that the cells share: a linear map of numbers that are drawn one by one.

    Attributes:
        term: the law of each number; `many` of them make one draw of the cells.
        taken: weighted sums of the cells (sums × cells) → the same of the numbers; `made`: draws of these → of cells.
        errors: of the cells, in records.
        squares: Σ over pairs of cells of their covariance², known of Gaussian noise by residuals.
    """

    term: NoiseTerm
    many: int
    taken: Callable[[Floats], Floats]
    solve: Callable[[Floats], Floats]
    errors: Floats
    squares: float | None = None

    @classmethod
    def of_answers(cls, weights: Floats, term: NoiseTerm) -> SharedNoise:
        """Of weighted sums of answers (cells × answers)."""
        errors = np.asarray(math.sqrt(term.variance) * np.linalg.norm(weights, axis=1))
        return cls(term, weights.shape[1], lambda rows: rows @ weights, lambda rows: rows @ weights.T, errors)

    @classmethod
    def of_layers(cls, layers: Layers) -> SharedNoise:
        """Of parts of the marginal, each a residual of some of its columns."""
        cells, unit = math.prod(layers.shape), NoiseTerm(GAUSSIAN.name, 1.0)
        return cls(unit, cells, layers.times, layers.times, np.full(cells, layers.error), layers.squares)

    @property
    def gaussian(self) -> bool:
        return self.term.noise == GAUSSIAN.name

    def moved(self, weights: Floats) -> Floats:
        """Weighted sums of the cells (sums × cells) as sums of independent noise of variance 1."""
        return np.asarray(math.sqrt(self.term.variance) * self.taken(weights))

    def draw(self, rng: np.random.Generator, rows: int) -> Floats:
        """The noise of all cells, so many times."""
        return self.solve(self.term.draw(rng, rows * self.many).reshape(rows, self.many))

    def large_sum(self, alpha: float) -> float:
        """t with P(Σ |noise of a cell| > t) ≤ α, in records: by mean and variance (Cantelli's inequality).

        For Gaussian noise of variance σ² and correlation ρ, Cov(|x|, |y|) ≤ (1 − 2/π) ρ² σ².
        """
        assert self.squares is not None
        variance = (1 - GAUSSIAN.mean_abs**2) * self.squares / max(float(self.errors[0]), 1e-300) ** 2
        return float(self.errors.sum()) * GAUSSIAN.mean_abs + math.sqrt(variance * (1 / alpha - 1))


@dataclass(frozen=True, eq=False)
class MarginalEstimate:
    """Unbiased counts of a marginal's cells.

    Attributes:
        clique: the columns.
        values: in records, flattened in C order; may be negative.
        terms: noise that every cell has on its own, of the same law.
        shared: noise that the cells share; None where there is none.
        sources: the measured marginals that they come from.
    """

    clique: Clique
    values: Floats
    terms: tuple[NoiseTerm, ...]
    sources: tuple[Clique, ...]
    shared: SharedNoise | None = None

    @property
    def errors(self) -> Floats:
        """The standard error of each cell, in records."""
        if self.shared is None:
            return np.full(self.values.size, stddev_of(self.terms))
        return self.shared.errors

    @property
    def gaussian(self) -> bool:
        """Whether weighted sums of the cells have Gaussian noise."""
        if self.shared is not None:
            return self.shared.gaussian
        return all(t.noise == GAUSSIAN.name for t in self.terms)

    def spread(self, weights: Floats) -> float:
        """The standard error of a weighted sum of the cells, in records."""
        if self.shared is None:
            return stddev_of(self.terms) * float(np.linalg.norm(weights))
        return float(np.linalg.norm(self.shared.moved(weights.reshape(1, -1))))

    def covariance(self, weights: Floats) -> Floats:
        """The covariance of several weighted sums of the cells (sums × cells), in records²."""
        if self.shared is None:
            return stddev_of(self.terms) ** 2 * (weights @ weights.T)
        moved = self.shared.moved(weights)
        return np.asarray(moved @ moved.T)

    def reach(self, alpha: float) -> Floats:
        """Per cell t with P(some cell's |noise| > its t) ≤ α, in records (Bonferroni)."""
        each = alpha / max(self.values.size, 1)
        if self.shared is None:
            return np.full(self.values.size, tail(self.terms, each))
        if self.gaussian:
            return self.errors * tail((NoiseTerm(GAUSSIAN.name, 1.0),), each)
        return self.errors / math.sqrt(each)

    def sum_bound(self, alpha: float) -> float:
        """t with P(Σ |noise of a cell| > t) ≤ α, in records."""
        if self.shared is None:
            return sum_bound(self.values.size, self.terms, alpha)
        if self.shared.squares is not None and self.values.size > SIMULATED_CELLS:
            return self.shared.large_sum(alpha)
        sums = [np.abs(noise).sum(axis=1) for noise in self.draws(draws_of_sum(self.shared.many))]
        return quantile_above(np.concatenate(sums), alpha)

    def draws(self, count: int = DRAWS) -> Iterator[Floats]:
        """So many draws of the cells' noise by a public seed, some rows of all cells at a time."""
        if self.shared is not None:
            return in_blocks(self.shared.draw, self.shared.many, count)
        return in_blocks(independent(self.terms, self.values.size), self.values.size, count)


def marginal_estimate(measurements: Measurements, clique: Clique, *, alone: bool = False) -> MarginalEstimate | None:
    """A marginal from all whole answers that contain it, weighted by precision; None where no answer tells it.

    Where the residual of it or of a part of it was asked, it is made of its parts by least squares (`Parts`). Where no
    whole answer contains it, the one answer to other queries is taken whose weighted sums have least noise. That of no
    column is the number of records, without noise where it is public.

    Guarantee: post-processing; costs no privacy.
    Args:
        alone: it is the only one asked for: more of its cells are solved for, and of larger queries.
    """
    if not clique and measurements.public_total is not None:
        return MarginalEstimate(NOTHING, np.array([float(measurements.public_total)]), (), ())
    if (rebuilt := rebuilt_of(measurements, clique)) is not None:
        return MarginalEstimate(
            clique, rebuilt.values.ravel(), (), rebuilt.sources, SharedNoise.of_layers(rebuilt.noise)
        )
    having = measurements.answers_about(clique)
    whole = [a for a in having if isinstance(a.query, Identity)]
    if whole:
        return summed(clique, whole, [measurements.domain.shape(a.clique) for a in whole])
    if measurements.domain.cells(clique) > (MAX_SOLVED_ALONE if alone else MAX_SOLVED):
        return None
    having = [a for a in having if alone or a.query.columns <= MAX_ASKED]
    solved = [t for a in having if (t := _solved(measurements, a, clique)) is not None]
    return min(solved, key=lambda t: float(t.errors.sum())) if solved else None


class CountEstimate(NamedTuple):
    """A weighted number of records: unbiased, may be negative; its standard error; the marginals that it comes from."""

    value: float
    error: float
    sources: tuple[Clique, ...]


def count_estimate(measurements: Measurements, weights: Mapping[str, Floats]) -> CountEstimate | None:
    """How many records there are, each counted by the product of its codes' weights; None where no answer tells it.

    From all answers that tell it, weighted by precision; as of `marginal_estimate` where its columns are made of parts.
    Answers of one event have the same noise: one alone is weighted.

    Args:
        weights: column → a weight per code.
    """
    clique = measurements.domain.canonical(tuple(weights))
    product = reduce(np.multiply.outer, [weights[name] for name in clique])
    having = measurements.answers_about(clique)
    whole = rebuilt_of(measurements, clique) is not None or any(isinstance(a.query, Identity) for a in having)
    estimates: list[CountEstimate] = []
    if whole and (marginal := marginal_estimate(measurements, clique)) is not None:
        value, error = float(marginal.values @ product.ravel()), marginal.spread(product.ravel())
        estimates = [CountEstimate(value, error, marginal.sources)]
    if not whole or (marginal is not None and marginal.shared is None):
        used = {a.event for a in having if isinstance(a.query, Identity)}
        for answer in (a for a in having if not isinstance(a.query, Identity) and a.event not in used):
            axes = [i for i, n in enumerate(answer.clique) if n not in clique]
            goal = np.broadcast_to(np.expand_dims(product, axes), measurements.domain.shape(answer.clique))
            if (solved := least_weights(answer.query, goal.ravel())) is not None:
                error = answer.stddev * float(np.linalg.norm(solved))
                estimates.append(CountEstimate(float(solved @ answer.values), error, (answer.clique,)))
    noisy = [estimate for estimate in estimates if estimate.error > 0]
    if not noisy:  # of no weight at all the count is 0
        return estimates[0] if estimates else None
    precision = np.array([one.error**-2 for one in noisy])
    value = precision @ [one.value for one in noisy] / precision.sum()
    sources = tuple(dict.fromkeys(clique for one in noisy for clique in one.sources))
    return CountEstimate(float(value), float(precision.sum() ** -0.5), sources)


def summed(clique: Clique, answers: Sequence[NoisyMarginal], shapes: Sequence[tuple[int, ...]]) -> MarginalEstimate:
    """The mean of the sums of answers over the columns that are not in the clique, weighted by precision.

    Args:
        shapes: of the answers' values, an axis a column.
    """
    sums, precisions, many = [], [], []
    for a, shape in zip(answers, shapes, strict=True):
        others = tuple(i for i, n in enumerate(a.clique) if n not in clique)
        many.append(math.prod(shape[i] for i in others))
        sums.append(a.values.reshape(shape).sum(axis=others).ravel())
        precisions.append(1 / (many[-1] * a.stddev**2))
    parts = np.array(precisions) / math.fsum(precisions)
    terms = [NoiseTerm(a.noise, a.scale * float(p), m) for a, p, m in zip(answers, parts, many, strict=True)]
    values = (parts[:, None] * np.array(sums)).sum(axis=0)
    return MarginalEstimate(clique, values, merged_terms(terms), tuple(dict.fromkeys(a.clique for a in answers)))


def _solved(measurements: Measurements, answer: NoisyMarginal, clique: Clique) -> MarginalEstimate | None:
    """The answers' weighted sums that add up to each cell; None where some cell has none."""
    shape = measurements.domain.shape(answer.clique)
    inside = [n in clique for n in answer.clique]
    rows = []
    for cell in itertools.product(*(range(s) if k else (None,) for s, k in zip(shape, inside, strict=True))):
        goal = np.zeros(shape)
        goal[tuple(slice(None) if c is None else c for c in cell)] = 1.0
        weights = least_weights(answer.query, goal.ravel())
        if weights is None:
            return None
        rows.append(weights)
    mixed, term = np.array(rows), NoiseTerm(answer.noise, answer.scale)
    return MarginalEstimate(clique, mixed @ answer.values, (), (answer.clique,), SharedNoise.of_answers(mixed, term))


@dataclass(eq=False)
class ReleaseEvidence:
    """The answers and distances of a release.

    Attributes:
        measurements: what crossed the wall.
        finer: column → the name under which its fine cells were measured, where these count in the place of its codes.
    """

    measurements: Measurements
    finer: Mapping[str, str] = field(default_factory=dict)
    _small: dict[Clique, MarginalEstimate | None] = field(default_factory=dict, repr=False)

    def estimate(self, clique: Clique) -> MarginalEstimate | None:
        """A marginal, as of `marginal_estimate`; that of no column is the number of records."""
        if len(clique) > 1:
            return marginal_estimate(self.measurements, clique)
        if clique not in self._small:
            self._small[clique] = marginal_estimate(self.measurements, clique)
        return self._small[clique]

    def alone(self, name: str) -> MarginalEstimate | None:
        """The counts of one column, by its fine cells where these count."""
        return self.estimate((self.finer.get(name, name),))

    @property
    def total(self) -> MarginalEstimate | None:
        """The number of records; None without any answer."""
        return self.estimate(NOTHING)

    def distance(self, clique: Clique) -> tuple[NoisyDistances, int] | None:
        """The released distances, and the place among them of a marginal all of whose cells were compared; or None."""
        distances = self.measurements.distances
        if distances is None or clique not in self._places or not distances.whole[self._places[clique]]:
            return None
        return distances, self._places[clique]

    @cached_property
    def _places(self) -> Mapping[Clique, int]:
        distances = self.measurements.distances
        return {} if distances is None else {c: i for i, c in enumerate(distances.cliques)}

    @cached_property
    def compared(self) -> Measurements:
        """The answers from before the distances were drawn."""
        distances = self.measurements.distances
        before = self.measurements.answers[: 0 if distances is None else distances.answers]
        return replace(self.measurements, answers=before, distances=None)

    @cached_property
    def independent(self) -> Expected:
        """The independent columns that the released distances are from."""
        return independent_marginals(self.compared)

    @cached_property
    def side_errors(self) -> Mapping[str, float]:
        """Per column about how far those independent columns are from the true one-way counts, in records, in L1.

        The product of two columns is no further from the product of the true ones than both sides together (triangle
        inequality), and no distance from it is.
        """
        noise = {a.clique: a.mean_abs for a in self.compared.answers}
        names = self.measurements.domain.names
        return {n: side_error(self.independent((n,)), noise.get((n,), math.inf)) for n in names}

    def distance_error(self, clique: Clique) -> float:
        """The standard error of a released distance, as one from the product of the true one-way counts, in records.

        It holds the noise of the distance and that of the one-way counts. The release must have distances.
        """
        distances = self.measurements.distances
        assert distances is not None
        return math.hypot(distance_noise(distances), sum(self.side_errors[n] for n in clique))

    def pair_cells(self, pair: Clique) -> PairCells:
        """The cells of a pair by those independent columns, and the noise of the one-way counts behind them."""
        noise, expected = {a.clique: a.stddev for a in self.compared.answers}, self.independent
        left, right, cells = pair[:1], pair[1:], expected(pair)
        errors = noise.get(left, 0.0), noise.get(right, 0.0)
        return PairCells.of_pair(cells, (expected(left), expected(right)), errors, Identity(cells.size))


def distance_noise(distances: NoisyDistances) -> float:
    """The standard deviation of a released distance's own noise, in records."""
    return NOISE_KINDS[distances.noise].stddev * distances.scale
