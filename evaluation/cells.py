"""The occupied cells of one marginal in two tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.public.errors import UserError

#: A marginal beyond this cannot be numbered in 64 bits.
MOST_CELLS = 2**62


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells that either table occupies; all others hold no records, but may still take what Δ tolerates.

    Attributes:
        shape: number of codes of each attribute.
        ids: the occupied cells by their number in C order, ascending.
        p, q: synthetic and true records of each of them.
    """

    shape: tuple[int, ...]
    ids: NDArray[np.int64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]

    def __post_init__(self) -> None:
        if math.prod(self.shape) > MOST_CELLS:
            fix = "fewer attributes, or values at a coarser level"
            raise UserError(f"{math.prod(self.shape):.3g} cells are too many to number", where="marginal", fix=fix)
        if not len(self.ids) == len(self.p) == len(self.q):
            raise UserError("cells and counts differ in number", where="marginal")
        for name, counts in (("synthetic", self.p), ("true", self.q)):
            least, most = (counts.min(), counts.max()) if counts.size else (0.0, 0.0)
            if not (least >= 0 and most < math.inf):
                problem = "NaN or infinite" if not math.isfinite(least + most) else "negative"
                fix = "counts or weights of at least 0; clamp noisy counts first"
                raise UserError(f"{problem} counts in the {name} table", where="marginal", fix=fix)

    @staticmethod
    def dense(p: ArrayLike, q: ArrayLike) -> Cells:
        """From two whole tables of the same shape."""
        left, right = np.asarray(p, np.float64), np.asarray(q, np.float64)
        if left.shape != right.shape:
            raise UserError(f"shapes {left.shape} and {right.shape} differ", where="marginal")
        ids = np.flatnonzero((left != 0) | (right != 0))
        if ids.size == left.size:
            return Cells(left.shape, ids, left.ravel(), right.ravel())
        return Cells(left.shape, ids, left.ravel()[ids], right.ravel()[ids])

    @property
    def codes(self) -> NDArray[np.int64]:
        """One row per attribute, one column per occupied cell."""
        return np.stack(np.unravel_index(self.ids, self.shape)).astype(np.int64, copy=False)
