"""Marginals from residuals: parts that lie in no smaller marginal, each of which answers tell on its own.

With ⊗ (I − J/kᵢ) over the columns of a set S (its residual) and J/kᵢ over the others, a marginal is the sum of one part
for each S (Xiao et al. 2023). Answers to whole marginals tell every part of theirs, those to a `ResidualQuery` one; the
noise of parts is uncorrelated, so that the best estimate of each part alone is least squares over all answers.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique, subsets
from mechanisms.public.noise_kinds import GAUSSIAN
from mechanisms.public.queries.cell_sums import ResidualQuery, projected
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal


@dataclass(frozen=True, eq=False)
class Layers:
    """Gaussian noise of the cells of a marginal, by residuals.

    The noise is a sum over sets of its columns: a strength in records, times the projection onto the residual of
    the set (even along the other columns), times standard normal noise.

    Attributes:
        shape: of the marginal.
        strengths: by the axes of each set; parts of sets that are absent have no noise.
    """

    shape: tuple[int, ...]
    strengths: Mapping[tuple[int, ...], float]

    @property
    def error(self) -> float:
        """The standard deviation of a cell: the same for every one."""
        return math.sqrt(self._sum(2) / math.prod(self.shape))

    @property
    def squares(self) -> float:
        """The sum of the squares of all entries of the covariance matrix."""
        return self._sum(4)

    def _sum(self, power: int) -> float:
        """Of the singular values of the matrix that makes the noise, to this power."""
        return math.fsum(t**power * math.prod(self.shape[i] - 1 for i in s) for s, t in self.strengths.items())

    def times(self, rows: Floats) -> Floats:
        """Rows of numbers per cell (rows × cells), times the symmetric matrix that makes the noise."""
        tables = rows.reshape(-1, *self.shape)
        weights: dict[tuple[int, ...], float] = {}  # of the means over all other axes (inclusion and exclusion)
        for axes, strength in self.strengths.items():
            for size in range(len(axes) + 1):
                for subset in itertools.combinations(axes, size):
                    weights[subset] = weights.get(subset, 0.0) + (-1) ** (len(axes) - size) * strength
        product = weights.pop(tuple(range(len(self.shape))), 0.0) * tables
        for subset, weight in weights.items():
            others = tuple(1 + i for i in range(len(self.shape)) if i not in subset)
            product += weight * tables.mean(axis=others, keepdims=True)
        return np.asarray(product.reshape(rows.shape), np.float64)


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """A marginal from its parts: unbiased, in records, shaped; the law of its noise; and where it comes from."""

    values: Floats
    noise: Layers
    sources: tuple[Clique, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """The residual of a set of columns, shaped, the variance of a cell before projection, and its sources."""

    values: Floats
    variance: float
    sources: tuple[Clique, ...]


class ResidualParts:
    """The parts that the answers of a release tell, each estimated once."""

    def __init__(self, measurements: Measurements) -> None:
        self.domain, self.public_total = measurements.domain, measurements.public_total
        self._containing = measurements.answers_about
        self._known: dict[tuple[Clique, bool], _Part | None] = {}
        self._having: dict[Clique, list[NoisyMarginal]] = {}
        for answer in measurements.answers:
            if isinstance(answer.query, ResidualQuery) and answer.noise == GAUSSIAN.name:
                self._having.setdefault(answer.clique, []).append(answer)

    def precision(self, clique: Clique, *, alone: bool) -> float:
        """1 / variance of a cell of the residual of these columns, before projection; 0 where no answer tells it."""
        part = self._part(clique, alone=alone)
        return 0.0 if part is None else 1 / part.variance

    @property
    def asked(self) -> Collection[Clique]:
        """The marginals whose residuals were asked."""
        return self._having.keys()

    def needed(self, clique: Clique) -> bool:
        """Whether answers to residuals tell a part of the marginal."""
        return any(set(c) <= set(clique) for c in self._having)

    def rebuilt(self, clique: Clique, *, alone: bool = False) -> Rebuilt | None:
        """The marginal from all parts; None where a part is not told.

        Args:
            alone: its own residual is taken from answers to it alone, not from whole marginals that contain it.
        """
        shape = self.domain.shape(clique)
        values, strengths, sources = np.zeros(shape), {}, list[Clique]()
        for size in range(len(clique), -1, -1):
            for axes in itertools.combinations(range(len(clique)), size):
                part = self._part(tuple(clique[i] for i in axes), alone=alone and size == len(clique))
                if part is None:
                    return None
                others = [i for i in range(len(clique)) if i not in axes]
                spread = math.prod(shape[i] for i in others)
                values = values + np.expand_dims(part.values, others) / spread
                strengths[axes] = math.sqrt(part.variance / spread)
                sources += part.sources
        return Rebuilt(values, Layers(shape, strengths), tuple(dict.fromkeys(sources)))

    def _part(self, clique: Clique, *, alone: bool) -> _Part | None:
        if (clique, alone) not in self._known:
            self._known[clique, alone] = self._estimated(clique, alone)
        return self._known[clique, alone]

    def _estimated(self, clique: Clique, alone: bool) -> _Part | None:
        """The mean of what all answers say of it, weighted by precision."""
        if not clique and self.public_total is not None:
            return _Part(np.array(float(self.public_total)), 0.0, ())
        estimates: list[tuple[Floats, float, Clique]] = []
        for a in self._having.get(clique, []):
            assert isinstance(a.query, ResidualQuery)
            estimates.append((a.query.residual(a.values), (a.stddev / a.query.unit) ** 2, a.clique))
        for a in () if alone else self._containing(clique):
            if not isinstance(a.query, Identity) or a.noise != GAUSSIAN.name:
                continue
            others = tuple(i for i, n in enumerate(a.clique) if n not in clique)
            sums = a.values.reshape(self.domain.shape(a.clique)).sum(axis=others)
            estimates.append((projected(np.asarray(sums)), a.values.size / sums.size * a.stddev**2, a.clique))
        if not estimates:
            return None
        precision = math.fsum(1 / variance for _, variance, _ in estimates)
        mean = sum(values / variance for values, variance, _ in estimates) / precision
        return _Part(np.asarray(mean), 1 / precision, tuple(dict.fromkeys(c for _, _, c in estimates)))


def rebuilt_of(measurements: Measurements, clique: Clique) -> Rebuilt | None:
    """A marginal from its parts, where answers to residuals tell one of them; None where none does, or one is absent.

    Guarantee: post-processing; costs no privacy.
    """
    parts = parts_of(measurements)
    return parts.rebuilt(clique) if parts.needed(clique) else None


@lru_cache(maxsize=2)
def parts_of(measurements: Measurements) -> ResidualParts:
    """The parts that the answers tell; the same object while one release is asked again and again."""
    return ResidualParts(measurements)


def completed(measurements: Measurements) -> Measurements:
    """The answers with those to residuals made whole: by what all whole marginals say of their smaller marginals.

    For what takes whole marginals alone. The scale is that of a cell's noise; the noise of sums is less, as that of the
    smaller marginals is. A residual whose smaller marginals nobody asked for is left out.

    Guarantee: post-processing; costs no privacy.
    """
    parts = parts_of(measurements)
    if not parts.asked:
        return measurements
    whole = {c: parts.rebuilt(c, alone=True) for c in parts.asked}
    answers, done = [], set[Clique]()
    for answer in measurements.answers:
        if not isinstance(answer.query, ResidualQuery):
            answers.append(answer)
        elif (rebuilt := whole.get(answer.clique)) is not None and answer.clique not in done:
            done.add(answer.clique)
            query, values = Identity(rebuilt.values.size), rebuilt.values.ravel()
            answers.append(replace(answer, query=query, values=values, scale=rebuilt.noise.error))
    return replace(measurements, answers=tuple(answers))


def noise_left(measurements: Measurements) -> dict[Clique, float]:
    """The mean variance of a cell of each marginal after the linear step of `consistent`, of whole ones and residuals.

    That step weighs, of each part of a marginal (the residual of a set of its columns), what the answers say of it by
    precision: answers to whole marginals as they stand, completed residuals by what all answers say. The total is the
    weighted mean of whole marginals alone (`estimate_total`).
    """
    domain, given = measurements.domain, {id(a) for a in measurements.answers}
    telling: dict[Clique, list[NoisyMarginal]] = defaultdict(list)
    answers = [a for a in completed(measurements).answers if isinstance(a.query, Identity)]
    for answer in answers:
        for part in ((), *subsets(answer.clique)):
            telling[part].append(answer)
    parts = parts_of(measurements)
    sums: dict[Clique, float] = {}  # of the variances of a part's marginal
    for part, several in telling.items():
        precision = [domain.cells(part) / (a.query.rows * a.stddev**2) for a in several]
        each = list(zip(several, precision, strict=True))
        whole = sum(p for a, p in each if id(a) in given)
        if not part:
            sums[part] = 0.0 if measurements.public_total is not None or not whole else 1 / whole
            continue
        own = sum(p for a, p in each if id(a) not in given and a.clique == part)  # completed, by answers to it alone
        others = sum(p for a, p in each if id(a) not in given and a.clique != part)  # by all that tell it
        noise = whole
        if own or others:
            by_all, alone = (parts.precision(part, alone=a) for a in (False, True))
            noise += (by_all - alone) * ((1 + others / by_all) ** 2 - 1)
            noise += alone * (others / by_all + (own / alone if own else 0.0)) ** 2
        free = math.prod(domain[n].size - 1 for n in part)
        sums[part] = free * domain.cells(part) * noise / (whole + own + others) ** 2
    return {a.clique: sum(sums[part] for part in ((), *subsets(a.clique))) / a.query.rows**2 for a in answers}
