"""Distances: an explicit matrix between the values of an attribute, instead of a hierarchy (Li et al. 2021a, 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError

Floats = NDArray[np.float64]
#: Values of a column with an explicit matrix: it is written out in the schema.
MAX_VALUES = 2_000


@dataclass(frozen=True, eq=False)
class Distances:
    """What it costs to take one value for another.

    Attributes:
        matrix: k × k, from (row) and to (column) the k value codes; 0 on the diagonal, else in [0, 1] or inf, where
            no value may be taken for the other. It need not be symmetric, nor keep the triangle inequality. Read-only.
        names: of the value codes, for messages.

    Raises:
        UserError: not square, or an entry that is no such number; names the two values.
    """

    matrix: Floats
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        size = len(self.names)
        if matrix.shape != (size, size):
            shape = " × ".join(map(str, matrix.shape))
            raise UserError(
                f"{shape} numbers for {size} values", where="distances", fix=f"{size} rows of {size} numbers"
            )
        bad = ~((matrix >= 0) & (matrix <= 1) | (matrix == np.inf))
        bad |= np.eye(size, dtype=bool) & (matrix != 0)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            fix = "0: a value is at no distance from itself" if i == j else "a number from 0 to 1, or inf"
            problem = f"from {self.names[i]!r} to {self.names[j]!r}: got {matrix[i, j]:g}"
            raise UserError(problem, where="distances", fix=fix)
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distances) and self.names == other.names and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.names, self.matrix.tobytes()))
