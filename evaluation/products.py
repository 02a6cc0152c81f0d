"""Products of matrices in steps so small that BLAS starts no threads: on a busy machine these spin for seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Multiplications of one step, and cells that one step adds to.
ONE_THREAD, CELLS = 200_000, 20_000

Matrix = NDArray[np.floating[Any]]


def inner(one: Matrix, two: Matrix) -> Matrix:
    """oneᵀ · two of (rows, a) and (rows, b)."""
    total = np.zeros((one.shape[1], two.shape[1]), np.result_type(one, two))
    for columns in _steps(two.shape[1], one.shape[1], CELLS):
        out = total[:, columns]
        for part in _steps(len(one), out.size, ONE_THREAD):
            out += one[part].T @ two[part, columns]
    return total


def times(one: Matrix, two: Matrix) -> Matrix:
    """one · two of (rows, a) and (a, b)."""
    out = np.empty((len(one), two.shape[1]), np.result_type(one, two))
    for part in _steps(len(one), two.size, ONE_THREAD):
        out[part] = one[part] @ two
    return out


def _steps(count: int, each: int, most: int) -> Iterator[slice]:
    """Runs of so many things that they take `most` together, where each takes so much; one at least."""
    step = max(most // max(each, 1), 1)
    return (slice(start, start + step) for start in range(0, count, step))
