"""Nearest and second nearest records under exact distances: Hamming, or mixed for ordinal and categorical columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numba
import numpy as np
from numpy.typing import NDArray

from evaluation.verdict.rare_matches import column_marks, row_sums
from mechanisms.public.coded_table import CodedTable, check_same_domain
from mechanisms.public.jit import compiled
from mechanisms.public.json_values import JsonDict

Kind = Literal["hamming", "mixed"]
Places = NDArray[np.float32] | NDArray[np.uint8]
#: First, second and index of `Nearest`.
Found = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]

#: Reference rows compared at a time: their codes and distances stay in the processor's nearest cache.
TILE = 1024
#: Mixed distances closer than this are equal (sums of 32-bit numbers).
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each record asked about: how far the two nearest reference records are.

    Attributes:
        first, second: distances in attributes, from 0 to the number of columns; second is inf for a single reference.
        index: the first of the nearest reference records.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    index: NDArray[np.int64]

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Nearest over second nearest, in [0, 1]: 1 where both are 0 (neither stands out), NaN without a second."""
        safe = np.where(self.second > 0, self.second, 1.0)
        ratio = np.where(self.second > 0, self.first / safe, 1.0)
        return np.asarray(np.where(np.isinf(self.second), np.nan, ratio))


def nearest(queries: CodedTable, reference: CodedTable, *, kind: Kind = "hamming") -> Nearest:
    """The two nearest reference records of every query record, compared with all of them.

    Hamming counts the attributes that differ. Mixed counts |i − j| / (k − 1) of ordinal attributes instead, and 1
    between *other*, *missing* and the values.
    Cost: rows × rows × columns comparisons, many at a time, on all cores; memory: the tables again.
    """
    check_same_domain(queries, reference)
    n = queries.rows
    if n == 0 or reference.rows == 0:
        return Nearest(np.full(n, np.inf), np.full(n, np.inf), np.full(n, -1, np.int64))
    both, ends = _positions(queries, reference, kind), np.linspace(0, n, numba.get_num_threads() + 1).astype(np.int64)
    # Threads of Python in place of numba's: the loop lets go of the lock, and compiles in a fraction of the time.
    with ThreadPoolExecutor(ends.size - 1) as threads:
        parts = list(threads.map(lambda a, b: _search(*both, a, b), ends[:-1], ends[1:]))
    first, second, index = (np.concatenate([part[i] for part in parts]) for i in range(3))
    for values in (first, second):
        values[values < TOLERANCE] = 0.0
    return Nearest(first, second, index)


def _positions(queries: CodedTable, reference: CodedTable, kind: Kind) -> tuple[Places, Places]:
    """Places on lines of length 1, columns × rows of both tables: whatever has no order is at least 1 apart.

    In bytes where columns only are equal or not, and both values and columns are few: four times as fast.
    """
    rows = []
    for attribute, *both in zip(queries.domain.attributes, queries.columns, reference.columns, strict=True):
        k, codes = attribute.ordered if kind == "mixed" else 0, np.concatenate(both)
        if k < 2:  # numbered, so that 32 bits tell all of them apart
            rows.append(np.unique(codes, return_inverse=True)[1].astype(np.float32))
        else:
            line = codes.astype(np.float32)
            rows.append(np.where(codes < k, line / np.float32(k - 1), line + 2))
    places = np.array(rows, np.float32)
    if kind == "hamming" and len(rows) < 256 and places.max() < 256:
        places = places.astype(np.uint8)
    return np.ascontiguousarray(places[:, : queries.rows]), np.ascontiguousarray(places[:, queries.rows :])


@compiled
def _search(queries: Places, reference: Places, begin: int, end: int) -> Found:
    """The two nearest of the rows from `begin` to `end`; places are columns × rows."""
    n, m = end - begin, reference.shape[1]
    first, second = np.full(n, np.inf), np.full(n, np.inf)
    index = np.full(n, -1, np.int64)
    apart = np.empty(TILE, queries.dtype)
    for i in range(n):
        one, two, where = np.inf, np.inf, -1
        for start in range(0, m, TILE):
            size = min(TILE, m - start)
            if _gaps(queries[:, begin + i], reference, start, apart[:size]) < two:
                for j in range(size):
                    if apart[j] < one:
                        one, two, where = apart[j], one, start + j
                    elif apart[j] < two:
                        two = apart[j]
        first[i], second[i], index[i] = one, two, where
    return first, second, index


@compiled
def _gaps(query: Places, reference: Places, start: int, apart: Places) -> Any:
    """How far one record is from each of a tile, and the least of it."""
    apart[:] = 0
    one = np.float32(1.0)
    for c in range(query.size):
        value = query[c]
        row = reference[c, start : start + apart.size]
        if apart.itemsize == 1:
            for j in range(apart.size):
                apart[j] += row[j] != value
            continue
        for j in range(apart.size):
            apart[j] += min(abs(row[j] - value), one)
    least = apart[0]
    for j in range(apart.size):
        least = min(least, apart[j])
    return least


def matches(queries: CodedTable, reference: CodedTable) -> JsonDict:
    """How many records equal a reference record in every attribute, and in all but one alone (Platzer 2020, section 3).

    As JSON values: rows, exact and all_but_one, and the shares of both (`exact_share` …).
    Cost: one sort of the reference per attribute; records are compared by 64-bit sums, whose chance to collide is
    about rows × rows × columns / 2⁶⁴.
    """
    check_same_domain(queries, reference)
    asked, stored = row_sums(queries), row_sums(reference)
    exact = np.isin(asked, stored)
    near, left = np.zeros(queries.rows, bool), np.flatnonzero(~exact)
    for i in range(len(queries.domain)) if len(queries.domain) > 1 else ():
        marks = column_marks(queries, i)
        near[left] |= np.isin(asked[left] - marks[queries.columns[i][left]], stored - marks[reference.columns[i]])
    found: JsonDict = {"rows": queries.rows}
    for name, places in (("exact", exact), ("all_but_one", near)):
        count = int(places.sum())
        found |= {name: count, f"{name}_share": count / queries.rows if queries.rows else None}
    return found
