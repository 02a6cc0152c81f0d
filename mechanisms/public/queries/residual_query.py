"""The residual of a marginal: what lies in none of its smaller marginals (ResidualPlanner, Xiao et al. 2023)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.queries.query_matrices import (
    MATRIX_BITS,
    Identity,
    QueryMatrix,
    exact_root,
    proved,
    too_many_records,
)
from mechanisms.public.units import Norm

#: Cells: smaller pairs are measured whole, since combined pairs also describe three columns and more.
SMALL_CELLS = 9


@proved
@dataclass(frozen=True)
class ResidualQuery:
    """The matrix ⊗ᵢ (kᵢ·I − J) over a marginal whose columns have kᵢ codes, in multiples of 2**-bits.

    Divided by ∏ kᵢ it is the projection ⊗ᵢ (I − J/kᵢ) onto the tables all of whose sums along an axis are 0: a basis of
    contrasts would answer the same, but not in whole numbers. One record moves its answers in L2 by √∏ (1 − 1/kᵢ) of
    what it moves all cells by. Every cell is answered, with its own noise; what noise lies outside of the projection
    is taken off again by `residual`.

    Attributes:
        shape: how many codes each column has, at least 2; all cells together at most 2**MATRIX_BITS.
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 2 or self.rows > 1 << MATRIX_BITS:
            raise ValueError(f"no residual of a marginal of {self.shape}")

    @property
    def rows(self) -> int:
        return math.prod(self.shape)

    columns = rows

    @property
    def bits(self) -> int:
        """The least that make every entry at most 1: answers are never larger than counts of records."""
        return (self.rows - 1).bit_length()

    @property
    def unit(self) -> float:
        """What the answers are over the residual in records: above ½, at most 1."""
        return self.rows * 2.0**-self.bits

    def answer(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        return projected(marginal.reshape(self.shape)).ravel() * self.unit

    def answer_exact(self, marginal: NDArray[np.int64]) -> NDArray[np.int64]:
        if float(np.abs(marginal).astype(np.float64).sum()) * self.rows >= 2.0**62:
            raise too_many_records("the answers of a residual do not fit 63 bits")
        table = marginal.reshape(self.shape)
        for axis, size in enumerate(self.shape):
            table = size * table - table.sum(axis=axis, keepdims=True)
        return np.asarray(table.ravel(), np.int64)

    def transpose(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.answer(answers)

    def residual(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The residual in records, shaped, from noisy answers: the noise outside of the projection is taken off."""
        return projected(answers.reshape(self.shape)) / self.unit

    def noise(self, each: float) -> float:
        """The noise of a cell of `residual`, in records, from that of an answer."""
        return each / self.unit * math.sqrt(math.prod(1 - 1 / k for k in self.shape))

    def largest_column_norm(self, norm: Norm) -> float:
        """Of every column: √∏ kᵢ(kᵢ − 1) in L2, ∏ 2(kᵢ − 1) in L1, times 2**-bits."""
        if norm == "l1":
            return math.prod(2 * (k - 1) for k in self.shape) * 2.0**-self.bits
        return exact_root(math.prod(k * (k - 1) for k in self.shape), self.bits)

    def largest_column_distance(self, norm: Norm) -> float:
        """Exact, over the sets of columns of the marginal in which two cells differ."""
        sets = subsets(tuple(range(len(self.shape))))
        if norm == "l1":
            return max(self._apart(s) for s in sets) * 2.0**-self.bits
        alike = math.prod(k * (k - 1) for k in self.shape)
        products = [math.prod(-k if i in s else k * (k - 1) for i, k in enumerate(self.shape)) for s in sets]
        return exact_root(2 * (alike - min(products)), self.bits)

    def _apart(self, differ: tuple[int, ...]) -> int:
        """The L1 distance of the columns of two cells that differ on these axes: by the values of the factors."""
        outside = math.prod(2 * (k - 1) for i, k in enumerate(self.shape) if i not in differ)
        kinds = [[(k - 1, -1, 1), (-1, k - 1, 1), (-1, -1, k - 2)] for i, k in enumerate(self.shape) if i in differ]
        return outside * sum(
            abs(math.prod(a for a, _, _ in some) - math.prod(b for _, b, _ in some)) * math.prod(n for _, _, n in some)
            for some in itertools.product(*kinds)
        )

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        return {"shape": np.array(self.shape)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.int64]]) -> ResidualQuery:
        """The query of `arrays`; ValueError for a shape that has no residual."""
        return cls(tuple(int(k) for k in arrays["shape"]))


def projected(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """A table less its means along every axis: all its sums along an axis are 0."""
    for axis, size in enumerate(table.shape):
        table = table - np.add.reduce(table, axis=axis, keepdims=True) / size
    return table


def with_residuals(
    domain: Domain, queries: Mapping[Clique, QueryMatrix], bound: Callable[[QueryMatrix], float]
) -> tuple[dict[Clique, QueryMatrix], dict[Clique, float]]:
    """What is asked of each pair, and its noise over that of all its cells for the same part of a budget.

    Of pairs that would be asked whole the residual is asked, where its noise is less: what one-way marginals tell is
    not paid for in each of their pairs again. Pairs over coarser values stay as they are.

    Args:
        bound: the sensitivity of the answers to a matrix, in the norm of the noise. Under L1 a residual never has less
            noise; under `replace` it has more than under `add_remove`.
    Returns:
        queries by pair, and factors by pair, 1 where nothing changes.
    """
    asked, factor = dict(queries), dict.fromkeys(queries, 1.0)
    for pair, query in queries.items():
        shape = domain.shape(pair)
        if not isinstance(query, Identity) or min(shape) < 2 or not SMALL_CELLS < query.cells <= 1 << MATRIX_BITS:
            continue
        residual = ResidualQuery(shape)
        less = bound(residual) / residual.unit / bound(query)
        if less < 1:
            asked[pair], factor[pair] = residual, less
    return asked, factor
