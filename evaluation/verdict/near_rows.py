"""The real rows that lie nearest to synthetic ones, by Gower's distance on whole numbers: ties are exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.jit import compiled

Places = NDArray[np.unsignedinteger[Any]]

#: The distance of two different values in bytes; also of the two ends of an ordered column.
APART = 255
#: The distance to a row that there is not.
NO_ROW = 2**62
#: Rows compared at a time: their distances stay in the processor's nearest cache.
TILE = 1024
#: Rows whose distances to all others are held in memory at a time.
BATCH = 200
#: The most comparisons of values; samples of rows shrink if tables are wide.
COMPARISONS = 4_000_000_000
#: Rows of a table in a search for neighbours, at most.
ROWS = 10_000
#: Real rows that synthetic ones are compared with, at most, and synthetic rows, at least.
POOL, ASKED = 2_000_000, 300


def affordable_rows(columns: int) -> int:
    """How many rows of each of three tables can be compared with each other."""
    most = math.isqrt(COMPARISONS // (4 * max(columns, 1)))
    return min(ROWS, most) if most > 100 else 100


def affordable_search(rows: int, columns: int) -> tuple[int, int]:
    """Of so many real rows, how many are searched, and how many synthetic rows are asked about.

    Rather all real rows and few synthetic ones than the reverse: the row that one was made from must be among them.
    """
    pool, most = min(rows, POOL), affordable_rows(columns)
    return pool, min(most, max(ASKED, COMPARISONS // (2 * max(pool * columns, 1))))


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """Rows as whole numbers.

    Attributes:
        ordered: columns × rows; places on a line, whose distances count as `apart` at most; bytes lie within it.
        others: columns × rows; equal or not.
        apart: the distance of two different values; also of the two ends of an ordered column.
    """

    ordered: Places
    others: Places
    apart: int = APART

    def only(self, rows: Ints) -> RowPlaces:
        """Some of the rows."""
        ordered, others = (np.ascontiguousarray(part[:, rows]) for part in (self.ordered, self.others))
        return replace(self, ordered=ordered, others=others)

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.ordered.shape[1])


def places(tables: list[CodedTable]) -> RowPlaces:
    """Several tables over one domain, one below the other, as bytes.

    Values of ordered columns lie at their middle rank among all rows; what is other or missing lies at least `APART`
    from all values. Of a column with more than 255 unordered values, the rarest count as one.
    """
    ordered, others = [], []
    for i, attribute in enumerate(tables[0].domain.attributes):
        codes = np.concatenate([np.asarray(t.columns[i]) for t in tables]).astype(np.int64)
        k = attribute.ordered
        if k < 2:
            others.append(_numbered(codes))
            continue
        counts = np.bincount(codes, minlength=attribute.size)[:k]
        middle = np.cumsum(counts) - (counts + 1) / 2
        last = max(float(counts.sum()) - 1, 1.0)
        spots = np.append(np.clip(np.rint(middle / last * APART), 0, APART), np.full(attribute.size - k, APART // 2))
        ordered.append(spots[codes].astype(np.uint8))
        if (codes >= k).any():
            others.append(np.where(codes < k, 0, codes - k + 1).astype(np.uint8))
    rows = sum(t.rows for t in tables)
    lines, values = (np.array(part, np.uint8).reshape(len(part), rows) for part in (ordered, others))
    return RowPlaces(lines, values)


def _numbered(codes: Ints) -> NDArray[np.uint8]:
    counts = np.bincount(codes)
    order = np.argsort(-counts, kind="stable")
    numbers = np.full(counts.size, APART)
    numbers[order[:APART]] = np.arange(min(order.size, APART))
    return np.asarray(numbers[codes].astype(np.uint8))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each row asked about: its nearest rows of a pool; and for each row of the pool: whose nearest it is.

    Attributes:
        first, second: distances to the nearest row and to the next one after it, which may be as near; `NO_ROW` where
            the pool has no next one.
        ties: how many rows of the pool are as near as the nearest. index: the first of them.
        nearest_of: how many rows each row of the pool is the nearest of, ties in equal parts.
        outstanding_of: the same of those rows alone that are at least twice as far from the next one.
    """

    first: Ints
    second: Ints
    ties: Ints
    index: Ints
    nearest_of: Floats
    outstanding_of: Floats


def nearest_rows(asked: RowPlaces, pool: RowPlaces, *, same: bool = False) -> Neighbours:
    """The nearest rows of a pool of at least one row, or two where `same`.

    Cost: rows × rows × columns comparisons, many at a time, on all cores.

    Args:
        same: the rows asked about are those of the pool: none is its own neighbour.
    """
    farthest = asked.apart * (len(asked.ordered) + len(asked.others))
    far = np.min_scalar_type(farthest).type(asked.apart)
    ends = np.linspace(0, asked.rows, numba.get_num_threads() + 1).astype(np.int64)
    both = (asked.ordered, asked.others), (pool.ordered, pool.others)
    # Threads of Python in place of numba's: the loop lets go of the lock, and compiles in a fraction of the time.
    with ThreadPoolExecutor(ends.size - 1) as threads:
        parts = list(threads.map(lambda a, b: _search(*both, (a, b), same, far), ends[:-1], ends[1:]))
    first, second, ties, index = (np.concatenate([part[i] for part in parts]) for i in range(4))
    near, alone = (np.sum([part[i] for part in parts], axis=0) for i in (4, 5))
    return Neighbours(first, second, ties, index, near, alone)


@compiled
def _distances(
    query: Places, other: Places, ordered: Places, others: Places, start: int, far: Any, apart: NDArray[Any]
) -> None:
    """How far one row is from each of a tile; two different values are `far` from each other."""
    apart[:] = 0
    for c in range(query.size):
        value = query[c]
        row = ordered[c, start : start + apart.size]
        for j in range(apart.size):
            if ordered.itemsize == 1:  # bytes lie no further apart
                apart[j] += max(row[j], value) - min(row[j], value)
            else:  # a difference has 64 bits; of 32 twice as many are compared at once
                apart[j] += min(np.uint32(max(row[j], value) - min(row[j], value)), np.uint32(far))
    for c in range(other.size):
        kind = other[c]
        row = others[c, start : start + apart.size]
        for j in range(apart.size):
            apart[j] += far * (row[j] != kind)


@compiled
def _search(
    asked: tuple[Places, Places], pool: tuple[Places, Places], span: tuple[int, int], same: bool, far: Any
) -> tuple[Any, ...]:
    """The rows of a span, in one pass; `far`, between two different values, has the type that distances add up in."""
    (ordered, others), (pool_ordered, pool_others), (begin, end) = asked, pool, span
    n, m = end - begin, pool_ordered.shape[1]
    none = np.int64(NO_ROW)
    first, second = np.full(n, none), np.full(n, none)
    ties, index = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    near, alone = np.zeros(m), np.zeros(m)
    apart = np.full(m, far)
    for i in range(begin, end):
        for start in range(0, m, TILE):
            tile = apart[start : min(start + TILE, m)]
            _distances(ordered[:, i], others[:, i], pool_ordered, pool_others, start, far, tile)
        one, two, count, where = none, none, 0, -1
        for j in range(m):
            d = np.int64(apart[j])
            if d > two or (same and j == i):
                continue
            if d < one:
                one, two, count, where = d, one, 1, j
            elif d == one:
                two, count = d, count + 1
            else:
                two = d
        first[i - begin], second[i - begin], ties[i - begin], index[i - begin] = one, two, count, where
        worth = 1.0 if 2 * one <= two and two > 0 else 0.0
        for j in range(m):
            if np.int64(apart[j]) == one and not (same and j == i):
                near[j] += 1.0 / count
                alone[j] += worth / count
    return first, second, ties, index, near, alone


def all_distances(asked: RowPlaces, pool: RowPlaces) -> Iterator[NDArray[np.int32]]:
    """All distances, BATCH rows at a time: a row for each row asked about, a column for each row of the pool."""
    for start in range(0, asked.rows, BATCH):
        some = asked.only(np.arange(start, min(start + BATCH, asked.rows)))
        yield np.asarray(_all_distances(some.ordered, some.others, pool.ordered, pool.others, np.int32(asked.apart)))


@compiled
def _all_distances(
    ordered: Places, others: Places, pool_ordered: Places, pool_others: Places, far: Any
) -> NDArray[np.int32]:
    n, m = ordered.shape[1], pool_ordered.shape[1]
    apart = np.empty((n, m), np.int32)
    for i in range(n):
        for start in range(0, m, TILE):
            tile = apart[i, start : min(start + TILE, m)]
            _distances(ordered[:, i], others[:, i], pool_ordered, pool_others, start, far, tile)
    return apart
