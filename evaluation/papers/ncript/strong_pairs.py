"""Which true series are strongly correlated: C(X^A) of all series at once, made once for many tables (2.2.4).

Series that are equal in the truth have equal correlations with all others, so that pairs of different series are looked
at and kept alone: of a map with many rare types these are few.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_with

Cube = NDArray[np.float64]
Places = NDArray[np.int64]

#: Series compared with one series at a time: a tile stays in the processor's nearest cache.
TILE = 512
#: Independent strands of work.
STRANDS = 32
#: Pairs of different series that are kept, 4 bytes each; more are found again for every table.
MOST_PAIRS = 50_000_000


@dataclass(frozen=True, eq=False)
class StrongPairs:
    """The strongly correlated true series.

    Attributes:
        threshold: |r| above it is strong.
        units: times × different series, centred and of length 1.
        starts, members: of each different series its places among all varying ones.
        pair_starts, pairs: of each different series the later ones, and itself, that it is strongly correlated with;
            None where they are too many to keep.
    """

    threshold: float
    units: Cube
    starts: Places
    members: Places
    pair_starts: Places | None
    pairs: NDArray[np.int32] | None


def unit_series(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


def strong_pairs(series: Cube, threshold: float, *, most: int = MOST_PAIRS) -> StrongPairs:
    """The strongly correlated pairs of varying true series.

    Cost: the pairs of different series once or twice, in tiles.

    Args:
        series: times × varying series.
    """
    different, group = np.unique(series, axis=1, return_inverse=True)
    group = group.reshape(-1)
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=different.shape[1]))])
    units = unit_series(different)
    counts = _count_strong(units, threshold)
    pair_starts = np.concatenate([[0], np.cumsum(counts)])
    if pair_starts[-1] > most:
        return StrongPairs(threshold, units, starts, members, None, None)
    pairs = np.empty(int(pair_starts[-1]), np.int32)
    _fill_strong(units, threshold, pair_starts, pairs)
    return StrongPairs(threshold, units, starts, members, pair_starts, pairs)


_LAST: dict[bytes, StrongPairs] = {}


def kept_pairs(series: Cube, threshold: float) -> StrongPairs:
    """The same, kept for the next table against the same truth: those of the last truth alone."""
    digest = hashlib.blake2b(np.ascontiguousarray(series).tobytes(), digest_size=16)
    digest.update(f"{series.shape}|{threshold!r}".encode())
    cached = _LAST.get(digest.digest())
    if cached is None:
        cached = strong_pairs(series, threshold)
        _LAST.clear()
        _LAST[digest.digest()] = cached
    return cached


def mean_changes(strong: StrongPairs, synthetic: Cube) -> NDArray[np.float64]:
    """Of each varying series: the mean of |r − r̂| over the series that the true one is strongly correlated with.

    A series is among its own.

    Args:
        synthetic: times × varying series, centred and of length 1, in the order of the true ones.
    """
    listed = strong.pairs is not None
    nothing = np.zeros(0, np.int64)
    pair_starts = nothing if strong.pair_starts is None else strong.pair_starts
    pairs = np.zeros(0, np.int32) if strong.pairs is None else strong.pairs
    truth, synthetic_units = (np.ascontiguousarray(units.T) for units in (strong.units, synthetic))
    groups = (strong.starts, strong.members, pair_starts, pairs, listed)
    return _changes(strong.units, truth, synthetic_units, strong.threshold, groups)


@compiled_with(parallel=True)
def _count_strong(units: Cube, threshold: float) -> Places:
    """How many series from itself on each is strongly correlated with."""
    n = units.shape[1]
    counts = np.zeros(n, np.int64)
    for strand in numba.prange(STRANDS):
        r = np.empty(TILE)
        for i in range(strand, n, STRANDS):
            strong = 1
            for start in range(i + 1, n, TILE):
                width = min(TILE, n - start)
                _products(units, i, start, r[:width])
                for j in range(width):
                    strong += abs(r[j]) > threshold
            counts[i] = strong
    return counts


@compiled_with(parallel=True)
def _fill_strong(units: Cube, threshold: float, starts: Places, pairs: NDArray[np.int32]) -> None:
    """The series that `_count_strong` counted, each from `starts` on."""
    n = units.shape[1]
    for strand in numba.prange(STRANDS):
        r = np.empty(TILE)
        for i in range(strand, n, STRANDS):
            if starts[i + 1] > starts[i]:
                _strong_of(units, i, threshold, r, pairs[starts[i] : starts[i + 1]])


@compiled
def _strong_of(units: Cube, i: int, threshold: float, r: NDArray[np.float64], out: NDArray[np.int32]) -> int:
    """Series i and the later ones that it is strongly correlated with; how many."""
    n = units.shape[1]
    out[0], count = i, 1
    for start in range(i + 1, n, r.size):
        width = min(r.size, n - start)
        _products(units, i, start, r[:width])
        for j in range(width):
            if abs(r[j]) > threshold:
                out[count] = start + j
                count += 1
    return count


@compiled_with(fastmath={"contract"})
def _products(units: Cube, i: int, start: int, out: NDArray[np.float64]) -> None:
    """Products of column i with the columns of one tile."""
    out[:] = 0.0
    for t in range(units.shape[0]):
        factor = units[t, i]
        row = units[t, start : start + out.size]
        for j in range(out.size):
            out[j] += factor * row[j]


@compiled_with(parallel=True)
def _changes(
    units: Cube,
    lines: Cube,
    synthetic: Cube,
    threshold: float,
    groups_of: tuple[Places, Places, Places, NDArray[np.int32], bool],
) -> NDArray[np.float64]:
    """Each pair of series is looked at once, from its first group; every strand of work keeps sums of its own.

    Args:
        units: times × groups; lines: the same, a row per group; synthetic: a row per series.
        groups_of: where each group's series start; the series; where its pairs start; the pairs; whether these are
            listed.
    """
    starts, members, pair_starts, pairs, listed = groups_of
    n, groups = synthetic.shape[0], units.shape[1]
    totals, counts = np.zeros((STRANDS, n)), np.zeros((STRANDS, n))
    for strand in numba.prange(STRANDS):
        r = np.empty(TILE)
        partners = np.empty(0 if listed else groups, np.int32)
        for u in range(strand, groups, STRANDS):
            if listed:
                others = pairs[pair_starts[u] : pair_starts[u + 1]]
            else:
                others = partners[: _strong_of(units, u, threshold, r, partners)]
            for v in others:
                truth = 1.0 if u == v else _product(lines, u, v)
                one, two = members[starts[u] : starts[u + 1]], members[starts[v] : starts[v + 1]]
                _add_pairs(synthetic, truth, one, two, u == v, totals[strand], counts[strand])
    mean = np.zeros(n)
    for i in range(n):
        mean[i] = totals[:, i].sum() / max(counts[:, i].sum(), 1.0)
    return mean


@compiled
def _product(lines: Cube, i: int, j: int) -> float:
    """The product of two rows."""
    total = 0.0
    for t in range(lines.shape[1]):
        total += lines[i, t] * lines[j, t]
    return total


@compiled
def _add_pairs(
    synthetic: Cube,
    truth: float,
    one: Places,
    two: Places,
    same: bool,
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> None:
    """The changes of all pairs of two groups of equal true series, added to both series of each pair."""
    for a in range(one.size):
        x = one[a]
        for b in range(a if same else 0, two.size):
            y = two[b]
            change = abs(truth - _product(synthetic, x, y))
            totals[x] += change
            counts[x] += 1
            if x != y:
                totals[y] += change
                counts[y] += 1
