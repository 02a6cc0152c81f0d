"""The residual of a marginal: what lies in none of its smaller marginals (ResidualPlanner, Xiao et al. 2023)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.queries.query_matrices import MATRIX_BITS, proved, too_many_records
from mechanisms.public.units import Norm, round_up


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

    @property
    def columns(self) -> int:
        return math.prod(self.shape)

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
        return self._root(math.prod(k * (k - 1) for k in self.shape))

    def largest_column_distance(self, norm: Norm) -> float:
        """Exact, over the sets of columns of the marginal in which two cells differ."""
        places = range(len(self.shape))
        sets = [s for size in range(1, len(self.shape) + 1) for s in itertools.combinations(places, size)]
        if norm == "l1":
            return max(self._apart(s) for s in sets) * 2.0**-self.bits
        alike = math.prod(k * (k - 1) for k in self.shape)
        products = [math.prod(-k if i in s else k * (k - 1) for i, k in enumerate(self.shape)) for s in sets]
        return self._root(2 * (alike - min(products)))

    def _apart(self, differ: tuple[int, ...]) -> int:
        """The L1 distance of the columns of two cells that differ on these axes: by the values of the factors."""
        outside = math.prod(2 * (k - 1) for i, k in enumerate(self.shape) if i not in differ)
        kinds = [[(k - 1, -1, 1), (-1, k - 1, 1), (-1, -1, k - 2)] for i, k in enumerate(self.shape) if i in differ]
        return outside * sum(
            abs(math.prod(a for a, _, _ in some) - math.prod(b for _, b, _ in some)) * math.prod(n for _, _, n in some)
            for some in itertools.product(*kinds)
        )

    def _root(self, square: int) -> float:
        root = math.isqrt(square)
        exact = root * root == square
        return root * 2.0**-self.bits if exact else round_up(math.sqrt(square) * 2.0**-self.bits)

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """What the query is saved as; `from_arrays` takes it back."""
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
