"""Distances: an explicit matrix between the values of an attribute, instead of a hierarchy (Li et al. 2021a, 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Values of a column with an explicit matrix: it is written out in the schema.
MAX_VALUES = 2_000


@dataclass(frozen=True, eq=False)
class Distances:
    """What it costs to take one value for another.

    Attributes:
        matrix: k × k, from (row) and to (column) the k value codes; 0 on the diagonal, else in [0, 1] or inf, where
            no value may be taken for the other. It need not be symmetric, nor keep the triangle inequality. Read-only.
    """

    matrix: Floats

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distances) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())
