"""Counting: many marginals per pass over columns of codes; plain arrays in and out."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique
from mechanisms.public.table import CodedTable

#: Rows per step: a step's columns and keys stay in the processor's cache.
STEP = 1 << 16


@numba.njit(cache=True, nogil=True)
def _extend(keys: NDArray[np.int64], column: NDArray[np.unsignedinteger], size: int) -> None:
    for i in range(len(column)):
        keys[i] = keys[i] * size + column[i]


@numba.njit(cache=True, nogil=True)
def _tally(counts: NDArray[np.int64], keys: NDArray[np.int64], rows: int) -> None:
    for i in range(rows):
        counts[keys[i]] += 1


@numba.njit(cache=True, nogil=True)
def _tally_weighted(counts: NDArray[np.int64], keys: NDArray[np.int64], weights: NDArray[np.uint32]) -> None:
    for i in range(len(weights)):
        counts[keys[i]] += np.int64(weights[i])


def count_cliques(table: CodedTable, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
    """Counts of each clique, flattened in C order: whole rows, or units of 2**-WEIGHT_BITS records where weighted.

    Cost: one pass over the rows, about a nanosecond per row, marginal and attribute; memory: the cells counted.
    """
    domain = table.domain
    counts = [np.zeros(domain.cells(c), np.int64) for c in cliques]
    axes = [domain.axes(c) for c in cliques]
    keys = np.empty(STEP, np.int64)
    for start in range(0, table.rows, STEP):
        part = slice(start, min(start + STEP, table.rows))
        columns = [np.ascontiguousarray(c[part]) for c in table.columns]
        weights = None if table.weights is None else np.ascontiguousarray(table.weights[part])
        for out, places in zip(counts, axes, strict=True):
            keys[:] = 0
            for place in places:
                _extend(keys, columns[place], domain.attributes[place].size)
            if weights is None:
                _tally(out, keys, part.stop - part.start)
            else:
                _tally_weighted(out, keys, weights)
    return counts
