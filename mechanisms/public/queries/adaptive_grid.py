"""Adaptive granularity (McKenna 2021): fine cells where the noisy answers so far are large, aggregates elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.axis_sums import Numbers, add_over, summed_over
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import MATRIX_BITS, Identity, exact_root, proved, too_many_records
from mechanisms.public.release import NoisyMarginal, averaged
from mechanisms.public.units import Norm

Axes = tuple[int, ...]
#: Ways from a set to its parts, their parts, and so on: a product with the matrix takes each. Of 8 attributes with all
#: of their parts there are 69,281.
MOST_WAYS = 100_000


@dataclass(frozen=True, eq=False)
class _Node:
    """One measured set of attributes: its fine cells, and its parents' queries for all other cells.

    Attributes:
        shape: its attributes' sizes.
        fine: flat numbers of the cells that are measured one by one, ascending.
        parents: per parent the axes that it sums over, its node, and which of its rows touch a coarse cell.
        parts: per row the number of which the row's entries are 1/√ (L2) or 1/ (L1).
    """

    shape: tuple[int, ...]
    fine: Ints
    parents: tuple[tuple[Axes, _Node, Ints], ...]
    parts: Ints

    def answer(self, table: Numbers, rows: Ints) -> Numbers:
        """Some rows (ascending) of the 0/1 structure times a marginal: fine cells first, then each parent's rows."""
        own, parts = self._asked(rows)
        answers, rest = [table.reshape(-1)[own]], table.copy()
        rest.reshape(-1)[self.fine] = 0
        answers += [node.answer(summed_over(rest, axes), asked) for axes, node, asked in parts]
        return np.concatenate(answers)

    def transpose(self, answers: Numbers, rows: Ints) -> Numbers:
        """The transpose of these rows times one number for each: a marginal."""
        own, parts = self._asked(rows)
        table = np.zeros(self.shape, answers.dtype)
        for axes, node, asked in reversed(parts):
            add_over(table, node.transpose(answers[-asked.size :], asked), axes)
            answers = answers[: -asked.size]
        table.reshape(-1)[self.fine] = 0
        table.reshape(-1)[own] = answers
        return table

    def _asked(self, rows: Ints) -> tuple[Ints, list[tuple[Axes, _Node, Ints]]]:
        """The fine cells among these rows, and of each parent that has any the rows of its own."""
        first, parts = self.fine.size, []
        for axes, node, asked in self.parents:
            mine = rows[(rows >= first) & (rows < first + asked.size)] - first
            parts += [(axes, node, asked[mine])] if mine.size else []
            first += asked.size
        return self.fine[rows[rows < self.fine.size]], parts


@proved
@dataclass(frozen=True, eq=False)
class GridQuery:
    """Fine cells of a marginal one by one, and its parents' queries over the cells that are not fine.

    The matrix is never built: a product sums the marginal once per parent and goes on with the parent's own query.
    Every entry is 1 for a fine cell and 1/√n (L2) or 1/n (L1) for an aggregate, n the product of the numbers of parents
    on the way, so that every column has norm 1; entries are rounded down to multiples of 2**-bits.

    Attributes:
        shape: the sizes of the clique's attributes.
        fine: per measured set of attributes (its axes in the clique, the whole clique included) the flat numbers of its
            fine cells, ascending. A set's parents are the largest sets inside it; a set without any has all cells fine.
        norm: which norm of the columns is 1.
        bits: how fine the entries are.
    """

    shape: tuple[int, ...]
    fine: Mapping[Axes, Ints]
    norm: Norm
    bits: int = MATRIX_BITS

    def __post_init__(self) -> None:
        """ValueError for sets or cells outside of the shape: a loop that is compiled would read what lies beside it.

        Likewise for sets with so many ways down that no product ends in seconds.
        """
        for axes, cells in self.fine.items():
            if any(not 0 <= a < len(self.shape) for a in axes) or list(axes) != sorted(set(axes)):
                raise ValueError(f"no set {axes} in {len(self.shape)} attributes")
            outside = cells.size and (cells[0] < 0 or cells[-1] >= math.prod(self.shape[a] for a in axes))
            if outside or (np.diff(cells) < 1).any():
                raise ValueError(f"the fine cells of {axes} are out of order or outside")
        if ways_down(list(self.fine)) > MOST_WAYS:
            raise ValueError(f"a grid with more ways down to its parts than {MOST_WAYS:,}")

    @cached_property
    def _root(self) -> _Node:
        nodes: dict[Axes, _Node] = {}
        for axes in sorted(self.fine, key=lambda a: (len(a), a)):
            nodes[axes] = self._node(axes, nodes)
        return nodes[tuple(range(len(self.shape)))]

    def _node(self, axes: Axes, smaller: Mapping[Axes, _Node]) -> _Node:
        shape, fine = tuple(self.shape[a] for a in axes), self.fine[axes]
        coarse = np.ones(shape, np.int8)  # 0 for the fine cells
        coarse.ravel()[fine] = 0
        inside = largest_inside(axes, list(smaller))
        if not coarse.any():
            return _Node(shape, fine, (), np.ones(fine.size, np.int64))
        if not inside:
            raise ValueError(f"the set {axes} has no parent to cover the cells that are not fine")
        parents, parts = [], [np.ones(fine.size, np.int64)]
        for parent in inside:
            summed, node = tuple(i for i, a in enumerate(axes) if a not in parent), smaller[parent]
            touched = node.answer(coarse.sum(axis=summed, dtype=np.int64), np.arange(node.parts.size))
            rows = np.flatnonzero(touched)
            parents.append((summed, node, rows))
            parts.append(node.parts[rows] * len(inside))
        return _Node(shape, fine, tuple(parents), np.concatenate(parts))

    @cached_property
    def _weights(self) -> Ints:
        """The entries of each row, times 2**bits, rounded down."""
        kinds, place = np.unique(self._root.parts, return_inverse=True)
        one = 1 << self.bits
        weights = [math.isqrt(one * one // int(n)) if self.norm == "l2" else one // int(n) for n in kinds]
        return np.array(weights, np.int64)[place]

    @property
    def rows(self) -> int:
        return int(self._root.parts.size)

    @property
    def columns(self) -> int:
        return math.prod(self.shape)

    @property
    def fine_cells(self) -> Ints:
        """The cells that are measured one by one: their answers come first, each with entry 1."""
        return self._root.fine

    def _structure(self, marginal: Numbers) -> Numbers:
        return self._root.answer(np.ascontiguousarray(marginal).reshape(self.shape), np.arange(self.rows))

    def _transposed(self, answers: Numbers) -> Numbers:
        return self._root.transpose(answers, np.arange(self.rows)).ravel()

    def answer(self, marginal: Floats) -> Floats:
        return np.asarray(self._structure(marginal) * (self._weights * 2.0**-self.bits))

    def answer_exact(self, marginal: Ints) -> Ints:
        if float(np.abs(marginal).astype(np.float64).sum()) * 2.0**self.bits >= 2.0**62:
            raise too_many_records("the answers of a grid do not fit 63 bits")
        return np.asarray(self._structure(marginal) * self._weights, np.int64)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(self._transposed(answers * (self._weights * 2.0**-self.bits)), np.float64)

    def _column_sums(self, norm: Norm) -> Ints:
        """Per column the sum of entries (L1) or of their squares (L2), exact, times 2**bits or 4**bits."""
        entries = self._weights if norm == "l1" else self._weights**2
        return np.asarray(self._transposed(entries), np.int64)

    def largest_column_norm(self, norm: Norm) -> float:
        """max over columns of ‖q‖, rounded up."""
        return _length(int(self._column_sums(norm).max(initial=0)), norm, self.bits)

    def largest_column_distance(self, norm: Norm) -> float:
        """A bound on max over pairs of columns of ‖q − q'‖; attained where the two largest columns share no row.

        Entries are not negative, so that ‖q − q'‖₂² ≤ ‖q‖₂² + ‖q'‖₂² and ‖q − q'‖₁ ≤ ‖q‖₁ + ‖q'‖₁.
        """
        if self.columns < 2:
            return 0.0
        two = np.partition(self._column_sums(norm), self.columns - 2)[-2:]
        return _length(int(two[0]) + int(two[1]), norm, self.bits)

    def arrays(self) -> dict[str, Ints]:
        facts = {"shape": np.array(self.shape), "settings": np.array([1 if self.norm == "l1" else 2, self.bits])}
        return {**facts, **{"fine_" + "_".join(map(str, axes)): cells for axes, cells in self.fine.items()}}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> GridQuery:
        """The query of `arrays`; ValueError for cells or sets outside of its shape."""
        shape = tuple(int(n) for n in arrays["shape"])
        fine = {tuple(map(int, k.split("_")[1:])): arrays[k] for k in arrays if k.startswith("fine_")}
        norm, bits = (int(n) for n in arrays["settings"])
        if tuple(range(len(shape))) not in fine or norm not in (1, 2) or not 0 <= bits <= MATRIX_BITS:
            raise ValueError("no adaptive grid")
        return cls(shape, fine, "l1" if norm == 1 else "l2", bits)


def _length(total: int, norm: Norm, bits: int) -> float:
    """A sum of entries or of squares as a norm: exact where it is, else rounded up."""
    return total * 2.0**-bits if norm == "l1" else exact_root(total, bits)


S = TypeVar("S", Axes, Clique)


def largest_inside(whole: S, sets: Sequence[S]) -> list[S]:
    """The sets strictly inside `whole` that lie in no larger one that does, in the order given."""
    inside = [s for s in sets if set(s) < set(whole)]
    return [s for s in inside if not any(set(s) < set(t) for t in inside)]


def ways_down(sets: Sequence[S]) -> int:
    """The most ways from one of the sets to the parents, theirs, and so on; no more are counted than MOST_WAYS."""
    ways: dict[S, int] = {}
    for one in sorted(sets, key=len):
        ways[one] = 1 + sum(ways[parent] for parent in largest_inside(one, list(ways)))
        if ways[one] > MOST_WAYS:
            return ways[one]
    return max(ways.values(), default=0)


def plausible(answers: Sequence[NoisyMarginal], threshold: float) -> Flags:
    """Which cells of a marginal were measured one by one and have a noisy count of at least threshold · σ.

    Args:
        answers: all answers of one clique (whole, or adaptive grids of the same fine cells); several are averaged with
            weights 1/σ².
    """
    fine = _fine_cells(answers[0])
    mean, stddev = averaged([replace(a, values=a.values[: fine.size]) for a in answers])
    occupied = np.zeros(answers[0].query.columns, np.bool_)
    occupied[fine[mean >= threshold * stddev]] = True
    return occupied


def grid_query(
    domain: Domain,
    clique: Clique,
    answers: Sequence[NoisyMarginal],
    *,
    threshold: float,
    norm: Norm,
) -> Identity | GridQuery:
    """The query matrix of a marginal from the noisy answers of the rounds before (McKenna 2021).

    A cell is measured finely where every parent's cell was and its noisy count is at least threshold · σ; all other
    cells are covered by the parents' queries, restricted to them. Without parents, or with every cell fine: the
    identity. With no fine cell: the parents' queries again, as one measurement.

    Guarantee: a function of noisy answers and public facts alone.
    Args:
        answers: answers so far, identities or adaptive grids; the parents are the largest cliques strictly inside.
        threshold: in standard deviations of the parent's noise.
        norm: l2 for Gaussian, l1 for Laplace noise: every column has norm 1, up to rounding down by 2**-bits.
    """
    by_clique: dict[Clique, list[NoisyMarginal]] = {}
    for answer in answers:
        if set(answer.clique) < set(clique):
            by_clique.setdefault(answer.clique, []).append(answer)
    parents = largest_inside(clique, list(by_clique))
    shape = domain.shape(clique)
    keep = np.ones(shape, np.bool_)
    fine: dict[Axes, Ints] = {}
    for parent in parents:
        axes = tuple(clique.index(n) for n in parent)
        mask = plausible(by_clique[parent], threshold).reshape(domain.shape(parent))
        keep &= np.expand_dims(mask, tuple(i for i in range(len(clique)) if i not in axes))
        fine.update(_sets(by_clique[parent][0], axes))
    if not parents or keep.all():
        return Identity(domain.cells(clique))
    fine[tuple(range(len(clique)))] = np.flatnonzero(keep)
    return GridQuery(shape, fine, norm)


def _fine_cells(answer: NoisyMarginal) -> Ints:
    query = answer.query
    if isinstance(query, GridQuery):
        return query.fine_cells
    if isinstance(query, Identity):
        return np.arange(query.cells)
    raise TypeError(f"an adaptive grid cannot build on a {type(query).__name__}")


def _sets(answer: NoisyMarginal, axes: Axes) -> dict[Axes, Ints]:
    """The sets that a parent's query is made of, by their axes in the child."""
    if isinstance(answer.query, GridQuery):
        return {tuple(axes[a] for a in inner): cells for inner, cells in answer.query.fine.items()}
    return {axes: _fine_cells(answer)}
