"""Small random marginals, with Equation 1 by brute force: the whole distance matrix and one linear programme."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from evaluation.cells import Cells
from evaluation.mgd.aemc_lp import lp_cost
from evaluation.mgd.geometry import Axis, distance_matrix

DELTAS = (0.0, 0.1, 0.5, 2.0, 10.0)
ALPHAS = (1.0, 0.25, 2.0, 0.1)
PAIRS = ([0, 0, 1, 1, 1], [0, 0])  # five cities in two states
DEEP = ([0, 0, 1, 2, 2, 2], [0, 1, 1], [0, 0])  # six towns, three counties, two states
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def shortest(distances: np.ndarray) -> np.ndarray:
    """The metric below a matrix."""
    result = distances.copy()
    for k in range(len(result)):
        result = np.minimum(result, result[:, k, None] + result[None, k, :])
    return result


def random_matrix(rng: np.random.Generator, size: int, *, metric: bool, forbidden: float = 0.2) -> np.ndarray:
    """Distances in [0, 1], not symmetric, some infinite."""
    matrix = np.where(rng.random((size, size)) < forbidden, np.inf, rng.random((size, size)))
    np.fill_diagonal(matrix, 0.0)
    return shortest(matrix) if metric else matrix


def star(size: int, weight: Fraction | float, extra: int = 0) -> Axis:
    """The default hierarchy: one root over the leaves."""
    return Axis.tree(size + extra, [[0] * size], weight)


def masses(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Sparse or dense counts: whole numbers, weights in multiples of 2^-20, or any reals."""
    counts = rng.poisson(rng.choice([0.3, 3.0, 12.0]), shape).astype(float)
    if kind == "whole":
        return counts
    weighted = counts * rng.random(shape)
    return np.floor(weighted * 2**20) / 2**20 if kind == "weights" else weighted


def world(rng: np.random.Generator, axes: Sequence[Axis], kind: str = "whole") -> Cells:
    """A marginal of two tables of unequal totals; the truth is not empty."""
    shape = tuple(a.size for a in axes)
    p, q = masses(rng, shape, kind), masses(rng, shape, kind)
    q.flat[rng.integers(q.size)] += 1
    return Cells.dense(p, q)


def equation_1(cells: Cells, axes: Sequence[Axis], delta: float, alpha: float) -> float:
    """The oracle."""
    p, q = np.zeros((2, int(np.prod(cells.shape))))
    p[cells.ids], q[cells.ids] = cells.p, cells.q
    return lp_cost(p, q, distance_matrix(axes), delta, alpha) / float(q.sum())
