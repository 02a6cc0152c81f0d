"""Pairs that follow from others: columns that depend along a forest of measured pairs, and nowhere else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.candidates import Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.queries.residual_query import ResidualQuery, projected
from mechanisms.public.release import NoisyMarginal

Values = NDArray[np.float64]

#: Passes of iterative proportional fitting that bring a pair to its one-way marginals.
PASSES = 10


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Columns that are independent given their neighbours in a forest.

    Attributes:
        sides: the cells of each column, all with the same sum above 0.
        edges: the cells of each pair of the forest, as (left, right), with these sides.
    """

    sides: Mapping[str, Values]
    edges: Mapping[Clique, Values]

    @cached_property
    def _near(self) -> dict[str, dict[str, Values]]:
        near: dict[str, dict[str, Values]] = {}
        for (a, b), cells in self.edges.items():
            near.setdefault(a, {})[b] = cells
            near.setdefault(b, {})[a] = cells.T
        return near

    def path(self, pair: Clique) -> tuple[str, ...]:
        """The columns from one of the pair to the other; empty where the forest does not join them."""
        start, end = pair
        before: dict[str, str] = {start: ""}
        waiting = [start]
        while waiting and end not in before:
            here = waiting.pop()
            further = [n for n in self._near.get(here, {}) if n not in before]
            before |= dict.fromkeys(further, here)
            waiting += further
        steps = [end] if end in before else []
        while steps and steps[-1] != start:
            steps.append(before[steps[-1]])
        return tuple(reversed(steps))

    def marginal(self, pair: Clique) -> Values:
        """The pair's cells, flattened: Σ_b p(a, b) p(c | b) along the path; independent where there is none."""
        path = self.path(pair)
        if not path:
            left, right = (self.sides[n] for n in pair)
            return np.asarray(np.outer(left, right).ravel() / max(float(left.sum()), 1e-300))
        cells = self._near[path[0]][path[1]]
        for middle, end in itertools.pairwise(path[1:]):
            side = np.maximum(self.sides[middle], 1e-300)
            cells = cells @ (self._near[middle][end] / side[:, None])
        return np.asarray(cells.ravel())


def followed(expected: Values, query: QueryMatrix, answers: Values, stddev: float) -> Values:
    """A pair's cells that follow noisy answers where these differ from what is expected by more than their noise.

    Differences within √2 standard deviations do not count, large ones count whole (non-negative garrote, Breiman 1995);
    then the sides are those of `expected` again.

    Args:
        expected: left × right cells under independence, in records.
    """
    flat = expected.ravel()
    groups = query.answer(flat)
    off = np.asarray(answers, np.float64) - groups
    damping = np.maximum(1 - 2 * stddev**2 / np.maximum(off**2, 1e-300), 0.0)
    factor = np.maximum(groups + damping * off, 0.0) / np.maximum(groups, 1e-9)
    cells = (flat * query.transpose(factor)).reshape(expected.shape) + 1e-9 * expected
    sides = expected.sum(axis=1), expected.sum(axis=0)
    for _ in range(PASSES):
        cells = cells * (sides[0] / np.maximum(cells.sum(axis=1), 1e-300))[:, None]
        cells = cells * (sides[1] / np.maximum(cells.sum(axis=0), 1e-300))
    return np.asarray(cells)


def tree_of(domain: Domain, answers: Iterable[NoisyMarginal], expected: Expected) -> TreeModel:
    """What follows from the answers to the pairs of a forest.

    Args:
        expected: independent columns: their cells, in records.
    """
    edges = {}
    for answer in answers:
        cells = expected(answer.clique).reshape(domain.shape(answer.clique))
        if isinstance(answer.query, ResidualQuery):  # of the sides it says nothing: they are as expected
            values = (cells + answer.query.residual(answer.values) - projected(cells)).ravel()
            noise = answer.query.noise(answer.stddev)
            edges[answer.clique] = followed(cells, Identity(cells.size), values, noise)
        else:
            edges[answer.clique] = followed(cells, answer.query, answer.values, answer.stddev)
    return TreeModel({n: expected((n,)) for n in domain.names}, edges)
