"""Pairs of columns as noisy distances from independence show them: their errors where they are measured, and not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.candidates import Expected
from mechanisms.public.designs.allocation import PairOffer
from mechanisms.public.designs.deviations import PairCells
from mechanisms.public.designs.tree import heaviest_forest
from mechanisms.public.domain import Clique
from mechanisms.public.queries.query_matrices import QueryMatrix

Values = NDArray[np.float64]

#: False discovery rate of the clearly dependent pairs (Benjamini & Hochberg 1995). These are measured even if the mean
#: expected error would be slightly lower without: no strong relation between columns vanishes.
FALSE_SHARE = 0.2
#: Distances are ignored if their noise is above this share of the records.
MOST_SCORE_NOISE = 0.5
#: The prior of true distances: `ATOMS` evenly spaced points and as many at quantiles, fitted by `EM_ROUNDS` of EM.
ATOMS = 64
EM_ROUNDS = 100
#: No pair is offered to the allocation.
NO_PAIRS = PairOffer(
    lambda _, levels: levels, lambda _, level: level, np.zeros(0), np.zeros((0, 2), np.intp), *np.zeros((3, 0))
)


@dataclass(frozen=True, eq=False)
class PairView:
    """The candidates as they would be if their columns were independent, from noisy answers.

    Attributes:
        queries: what would be asked of each.
        expected: the cells of a marginal if columns were independent.
        spread: the standard deviations of the answers to the one-way marginals so far.
        sides: per candidate the places of the known marginals of its columns.
        level: a quarter of the noise that a measurement is likely to have: distances of cells count beyond it.
        important: columns whose errors count so many times; others count once.
        factor: the noise of a pair's answers, over that of all its cells for the same part; absent: 1.
    """

    queries: Mapping[Clique, QueryMatrix]
    expected: Expected
    spread: Mapping[Clique, float]
    sides: NDArray[np.intp]
    level: float
    important: Mapping[str, float] = field(default_factory=dict)
    factor: Mapping[Clique, float] = field(default_factory=dict)

    def weight(self, clique: Clique) -> float:
        """How often the error of a marginal counts: the product over its columns."""
        return math.prod(self.important.get(n, 1.0) for n in clique)

    @cached_property
    def pairs(self) -> tuple[Clique, ...]:
        return tuple(self.queries)

    def cells(self, pair: Clique, expected: Values) -> PairCells:
        """Of the pair's query, from what a model expects of the marginal."""
        left, right = pair
        sides = self.expected((left,)), self.expected((right,))
        errors = self.spread.get((left,), 0.0), self.spread.get((right,), 0.0)
        return PairCells.of_pair(expected, sides, errors, self.queries[pair])

    def wanted(
        self,
        places: Sequence[int],
        cells: Sequence[PairCells],
        more: Values,
        stddev: Values,
        further: Collection[int] = (),
    ) -> PairOffer:
        """What noisy distances tell about pairs: their errors where they are not measured, and where they are.

        Args:
            places, cells: of the pairs.
            more: how much of their distances is beyond noise and beyond what chance makes, with noise.
            stddev: of `more`.
            further: which of them are compared with what follows from others: such a distance says that they do not.
        """
        if not cells:
            return NO_PAIRS
        excess = np.where(stddev < MOST_SCORE_NOISE * cells[0].records, shrunk(more, stddev), 0.0)
        strength = [c.strength(c.base(self.level) + t, self.level) for c, t in zip(cells, excess.tolist(), strict=True)]
        shown = discovered(more / stddev)
        weights = np.array([self.weight(self.pairs[i]) for i in places])
        forest = heaviest_forest([self.pairs[i] for i in places], np.where(shown, weights * excess, 0.0).tolist())
        gaps = np.array([c.distance(s) for c, s in zip(cells, strength, strict=True)])
        rows = np.array([self.queries[self.pairs[i]].rows for i in places], np.float64)
        return PairOffer(
            lambda i, at: cells[i].left(strength[i], at),
            lambda i, at: cells[i].shown(strength[i], at),
            rows,
            self.sides[list(places)],
            gaps,
            weights,
            np.array([self.factor.get(self.pairs[i], 1.0) for i in places]),
            tuple(forest),
            tuple(i for i in further if shown[i] and i not in forest),
        )


def sides_of(given: Sequence[Clique], candidates: Sequence[Clique]) -> NDArray[np.intp]:
    """Per candidate the places of the given marginals of its columns."""
    order = sorted(range(len(given)), key=lambda i: -len(given[i]))
    place = {name: i for i in order for name in given[i]}
    return np.array([[place[n] for n in c] for c in candidates], np.intp).reshape(-1, 2)


def discovered(scores: Values) -> NDArray[np.bool_]:
    """Which values are not noise alone, but for an expected `FALSE_SHARE` of these (Benjamini & Hochberg 1995).

    Args:
        scores: values over the standard deviations of their noise.
    """
    chance = np.array([1 - NormalDist().cdf(z) for z in scores.tolist()])
    ordered = np.sort(chance)
    passed = ordered <= FALSE_SHARE * np.arange(1, chance.size + 1) / chance.size
    return np.asarray(chance <= (ordered[passed].max() if passed.any() else -1.0))


def shrunk(values: Values, stddev: Values) -> Values:
    """What noisy values are expected to be, given all of them: none below 0, and the largest not the noisiest.

    The law of the true values is the one under which these values are likeliest, over `ATOMS` places each on a line
    and at quantiles (Kiefer & Wolfowitz 1956; by expectation maximisation); then each true value's mean, given its
    noisy one (empirical Bayes; Jiang & Zhang 2009). Where the values spread no more than their noise all become alike.

    Args:
        stddev: of each value's Gaussian noise.
    """
    places = np.maximum(values, 0.0)
    line = np.linspace(0.0, float(places.max()), ATOMS)
    atoms = np.unique(np.concatenate([line, np.quantile(places, np.linspace(0, 1, ATOMS))]))
    off = ((values[:, None] - atoms) / stddev[:, None]) ** 2 / 2
    likely = np.exp(off.min(axis=1, keepdims=True) - off)
    weights = np.full(atoms.size, 1 / atoms.size)
    for _ in range(EM_ROUNDS):
        given = likely * weights
        given /= given.sum(axis=1, keepdims=True)
        weights = given.mean(axis=0)
    return np.asarray(given @ atoms)
