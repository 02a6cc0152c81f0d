"""How mass moves along one attribute of a marginal: not at all, along a path, over a tree, or by a matrix.

Source: Li et al. 2021a, sections 2.3.1 (semantic distance), 2.3.2 (Equation 2) and 4.3 (neighbours).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError

Weight = Fraction | float
Kind = Literal["fixed", "path", "tree", "matrix"]

#: A matrix that breaks the triangle inequality by no more than this is taken as a metric; error bounds count it.
TRIANGLE_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Axis:
    """The distances along one attribute; make one with `fixed`, `path`, `tree` or `matrix`.

    Codes from `length` on (*missing*, *other*) are on no path or tree: no mass moves between them and anything else.

    Attributes:
        size: number of codes.
        kind: fixed (weight ∞: no mass moves), path, tree or matrix.
        length: the first `length` codes exchange mass.
        weight: the attribute's weight in Equation 2; in [0, 1] in the paper, any finite number ≥ 0 here.
        parents: of a tree, level by level from the leaves up: the parent of each node of the level; the last level
            has one parent, the root. `parents[0]` has one entry per leaf.
        distances: of a matrix, length × length before weighting; from row to column, infinite where no mass may move.
    """

    size: int
    kind: Kind = "fixed"
    length: int = 0
    weight: Weight = Fraction(0)
    parents: tuple[NDArray[np.int64], ...] = ()
    distances: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.length <= self.size:
            raise UserError(f"length {self.length} does not fit {self.size} codes", where="distances of an attribute")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            fix = "a finite weight of at least 0, or a fixed axis for weight ∞"
            raise UserError(f"got weight {self.weight}", where="distances of an attribute", fix=fix)

    @staticmethod
    def fixed(size: int) -> Axis:
        """No mass moves: the weight ∞."""
        return Axis(size)

    @staticmethod
    def path(size: int, length: int, weight: Weight) -> Axis:
        """An ordinal attribute: codes i and j < length are weight · |i − j| / (length − 1) apart."""
        return Axis(size, "path" if length > 1 else "fixed", length, weight)

    @staticmethod
    def tree(size: int, parents: Sequence[NDArray[np.int64] | Sequence[int]], weight: Weight) -> Axis:
        """A hierarchy of depth t: leaves whose lowest common ancestor is at level s are weight · (t − s) / t apart.

        Raises:
            UserError: levels that do not fit together, or that do not end in one root.
        """
        levels = tuple(np.asarray(level, np.int64) for level in parents)
        for number, level in enumerate(levels):
            above = levels[number + 1].size if number + 1 < len(levels) else 1
            if level.ndim != 1 or level.size == 0 or level.min() < 0 or level.max() >= above:
                fix = f"numbers from 0 to {above - 1}"
                raise UserError(f"level {number} from the leaves names a parent outside the next level", fix=fix)
        if not levels:
            raise UserError("a tree needs at least the level of its leaves", where="distances of an attribute")
        length = levels[0].size
        return Axis(size, "tree" if length > 1 else "fixed", length, weight, levels)

    @staticmethod
    def matrix(size: int, distances: NDArray[np.float64], weight: Weight = Fraction(1)) -> Axis:
        """Explicit distances ≥ 0 with a diagonal of 0, times the weight; np.inf forbids a movement.

        Raises:
            UserError: a matrix that is not square, has NaN or negative values, or a diagonal other than 0.
        """
        given = np.asarray(distances, np.float64)
        where = "distance matrix"
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise UserError(f"shape {given.shape} is not square", where=where)
        if np.isnan(given).any() or (given < 0).any():
            raise UserError("NaN or a negative distance", where=where, fix="numbers of at least 0, or infinity")
        if np.diagonal(given).any():
            raise UserError("the diagonal is not 0", where=where, fix="the distance of a value to itself is 0")
        free = np.isfinite(given).sum() > given.shape[0]
        return Axis(size, "matrix" if free else "fixed", given.shape[0], weight, (), given)

    @property
    def moves(self) -> bool:
        """Whether any mass moves along this axis."""
        return self.kind != "fixed"

    @property
    def depth(self) -> int:
        """Of a tree: the level t of its leaves."""
        return len(self.parents)

    @property
    def step(self) -> Fraction:
        """Of a path: the cost of one step. Of a tree: the cost of one edge."""
        return rational(self.weight) / (2 * self.depth if self.kind == "tree" else max(self.length - 1, 1))

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Of a tree: the parent of each node; leaves first, then level by level, the root (parent −1) last."""
        counts = [level.size for level in self.parents]
        starts = np.cumsum(counts)
        return np.concatenate([*(level + s for level, s in zip(self.parents, starts, strict=True)), [-1]])

    @cached_property
    def is_metric(self) -> bool:
        """Whether the triangle inequality holds, so that movements may be chained (always but for some matrices)."""
        if self.kind != "matrix" or self.distances is None:
            return True
        d = self.distances
        return not any((d > d[:, k, None] + d[None, k, :] + TRIANGLE_SLACK).any() for k in range(len(d)))

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Of a matrix: its weighted distances, length × length."""
        assert self.distances is not None
        with np.errstate(invalid="ignore"):
            weighted = self.distances * float(self.weight)
        return np.where(np.isinf(self.distances), np.inf, weighted)

    @cached_property
    def widest(self) -> float:
        """The largest finite distance."""
        if self.kind == "matrix":
            return float(self.table[np.isfinite(self.table)].max())
        return float(self.weight) if self.moves else 0.0


def rational(value: Weight) -> Fraction:
    """The simplest fraction with the same float, where its denominator is at most a million; else the exact value."""
    if isinstance(value, Fraction):
        return value
    near = Fraction(value).limit_denominator(10**6)
    return near if float(near) == value else Fraction(value)
