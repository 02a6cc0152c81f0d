"""Independent parts of a marginal, and the sparse graph along which the mass of one moves.

Axes whose distances are a metric give arcs between neighbours, and the node sets of P and Q are one. A matrix that
breaks the triangle inequality may be used once only: it gives arcs from one copy of the grid to the next. With such an
axis alone these copies are the two node sets of Appendix A.

Source: Li et al. 2021a, sections 2.3.1 (semantic distance), 2.3.2 (Equation 2), 4.3 (neighbours) and Appendix A.
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

from evaluation.counts import Cells
from mechanisms.public.arrays import Floats, Ints
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
    parents: tuple[Ints, ...] = ()
    distances: Floats | None = None

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
    def tree(size: int, parents: Sequence[Ints | Sequence[int]], weight: Weight) -> Axis:
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
    def matrix(size: int, distances: Floats, weight: Weight = Fraction(1)) -> Axis:
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
    def parent(self) -> Ints:
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
    def table(self) -> Floats:
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


#: Arcs: a graph of this size needs about 4 GB while it is solved.
MOST_ARCS = 30_000_000


@dataclass(frozen=True, eq=False)
class Graph:
    """The graph of one part, before any counts.

    Attributes:
        nodes: how many.
        tail, head: the arcs, each open in one direction.
        axis: of each arc, the number of the axis along which it moves.
        cost: of each arc, the number of its cost in `costs`; all costs of an axis are consecutive.
        costs: the different costs.
        first, last: of each cell in C order, the node where its mass starts and the one where it is weighed.
        hops: an upper bound on the arcs of any useful movement.
    """

    nodes: int
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    axis: NDArray[np.int8]
    cost: NDArray[np.int32]
    costs: tuple[Weight, ...]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    hops: int


@dataclass(frozen=True, eq=False)
class _Line:
    """The arcs along one axis."""

    nodes: int
    tail: Ints
    head: Ints
    cost: Ints
    costs: tuple[Weight, ...]
    hops: int


def _line(axis: Axis) -> _Line:
    if axis.kind == "path":
        at = np.arange(axis.length - 1)
        tail, head = np.concatenate([at, at + 1]), np.concatenate([at + 1, at])
        return _Line(axis.length, tail, head, np.zeros(tail.size, np.int64), (axis.step,), axis.length - 1)
    if axis.kind == "tree":
        below = np.arange(axis.parent.size - 1)
        above = axis.parent[:-1]
        tail, head = np.concatenate([below, above]), np.concatenate([above, below])
        return _Line(axis.parent.size, tail, head, np.zeros(tail.size, np.int64), (axis.step,), 2 * axis.depth)
    table = axis.table
    off = np.isfinite(table) & ~np.eye(axis.length, dtype=bool)
    tail, head = np.nonzero(off)
    values, cost = np.unique(table[off], return_inverse=True)
    return _Line(axis.length, tail, head, cost.astype(np.int64), tuple(map(float, values)), 1)


def graph_size(axes: Sequence[Axis]) -> tuple[int, int]:
    """Nodes and arcs of the graph of these moving axes, without those to the bank; cheap."""
    nodes, arcs, layers = 1, 0.0, 1
    for a in axes:
        here = a.parent.size if a.kind == "tree" else a.length
        each = a.length * a.length if a.kind == "matrix" else 2 * (here - 1)
        arcs = arcs * here + nodes * each
        nodes *= here
        layers += not a.is_metric
    return nodes * layers, int(arcs)


def graph_of(axes: Sequence[Axis]) -> Graph:
    """The graph of one part with these moving axes, whose size `check_graph` allows."""
    lines = [_line(a) for a in axes]
    shape = tuple(line.nodes for line in lines)
    grid = np.arange(math.prod(shape)).reshape(shape)
    leaves = grid[tuple(slice(0, a.length) for a in axes)]
    layer = 0
    costs: list[Weight] = []
    pieces = []
    for number, (axis, line) in enumerate(zip(axes, lines, strict=True)):
        if axis.is_metric:
            pieces.append(_arcs(grid, number, line, len(costs), 0))
            costs += line.costs
    for number, (axis, line) in enumerate(zip(axes, lines, strict=True)):
        if not axis.is_metric:
            pieces.append(_arcs(leaves, number, line, len(costs), grid.size, layer * grid.size))
            costs += line.costs
            stay = leaves.ravel() + layer * grid.size  # what does not move here goes to the next copy at no cost
            pieces.append((stay, stay + grid.size, np.full(stay.size, len(costs)), np.full(stay.size, number)))
            costs.append(0.0)
            layer += 1
    columns = [np.concatenate(c) for c in zip(*pieces, strict=True)]
    tail, head, cost = (c.astype(np.int32) for c in columns[:3])
    first = leaves.ravel().astype(np.int32)
    last = (leaves.ravel() + layer * grid.size).astype(np.int32)
    hops = sum(line.hops for line in lines)
    every = (tail, head, columns[3].astype(np.int8), cost)
    return Graph(grid.size * (layer + 1), *every, tuple(costs), first, last, hops)


def _arcs(grid: Ints, number: int, line: _Line, first_cost: int, ahead: int, shift: int = 0) -> tuple[Ints, ...]:
    """The arcs of one axis at every place of the others; `ahead` is added to the head, `shift` to both ends."""
    rows = np.moveaxis(grid, number, 0).reshape(grid.shape[number], -1)
    tail, head = rows[line.tail].ravel() + shift, rows[line.head].ravel() + shift + ahead
    cost = np.repeat(line.cost + first_cost, rows.shape[1])
    return tail, head, cost, np.full(tail.size, number)


@dataclass(frozen=True, eq=False)
class FlowParts:
    """The parts of one marginal that hold a cell beyond tolerance; the others cost nothing.

    Attributes:
        alone: Σ max(|p − q| − Δ, 0) over the cells that exchange no mass with any other, in records.
        starts: where each part begins in `order`; one more entry than parts.
        order: the occupied cells of the parts, part after part.
        place: of each occupied cell of the marginal, its number in C order among the codes of the part's moving axes.
        pattern: of each part, the axes along which its mass moves, as bits.
    """

    alone: float
    starts: Ints
    order: Ints
    place: Ints
    pattern: Ints

    def groups(self) -> list[tuple[tuple[int, ...], Ints]]:
        """The moving axes of each pattern, with the numbers of its parts."""
        groups = []
        for bits in np.unique(self.pattern):
            axes = tuple(i for i in range(int(bits).bit_length()) if int(bits) >> i & 1)
            groups.append((axes, np.flatnonzero(self.pattern == bits)))
        return groups


def split(cells: Cells, axes: Sequence[Axis], delta: float) -> FlowParts:
    """Cells that share the codes on which no mass moves form one part.

    Cost: some passes over the occupied cells, and a sort of those in parts beyond tolerance.
    """
    count, beyond = cells.ids.size, np.abs(cells.p - cells.q) - delta
    label, place, pattern = np.zeros((3, count), np.int64)
    here, step, rest = np.ones(count, np.int64), 1, cells.ids
    for number, axis in reversed(list(enumerate(axes))):
        rest, code = np.divmod(rest, axis.size)
        length = axis.length if axis.moves else 0
        inside = code < length
        place += np.where(inside, code * here, 0)
        here[inside] *= length
        label += np.where(inside, 0, code - max(length - 1, 0)) * step
        step *= axis.size - max(length - 1, 0)
        pattern |= inside << number
    moving = pattern > 0
    alone = float(np.maximum(beyond[~moving], 0.0).sum())
    order = np.flatnonzero(moving & np.isin(label, label[moving & (beyond > 0)]))
    order = order[np.argsort(label[order], kind="stable")]
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    return FlowParts(alone, np.append(starts, order.size), order, place, pattern[order[starts]])
