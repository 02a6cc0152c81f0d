"""N-CRiPT's metrics by time series (N-CRiPT 2021, 2.2.4 and 2.2.5): the losses of horizontal and vertical correlation.

A series is the run of one record type in one segment over the M times; arrays are time × segment × type.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from evaluation.counts import row_shares
from mechanisms.public.jit import compiled, compiled_with

#: Shares and correlations that equal a threshold up to rounding count as equal to it.
ROUNDING = 1e-12


def horizontal_losses(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.9
) -> NDArray[np.float64]:
    """The loss of each series X^A, segment × type: the mean over C(X^A) of M/2 · |r − r̂| (2.2.4, equation 3).

    C(X^A) are all series Y^B of |r| > `threshold`, X^A among them.
    Edge cases: a constant true series has no correlation: it is in no C, and its own loss is 0. A constant synthetic
    series gives r̂ = 0. No |r| is above a threshold of 1.
    Cost: the pairs of different series; where the source finds C once for many tables, each table finds it here.
    """
    q, p = (np.asarray(x, float) for x in (real, synthetic))
    times, segments, types = q.shape
    if q.size == 0 or threshold >= 1:
        return np.zeros((segments, types))
    q, p = q.reshape(times, -1), p.reshape(times, -1)
    varying = np.flatnonzero(q.max(axis=0) > q.min(axis=0))
    loss = np.zeros(segments * types)
    loss[varying] = times / 2 * mean_changes(q[:, varying], p[:, varying], threshold + ROUNDING)
    return loss.reshape(segments, types)


def vertical_losses(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05
) -> NDArray[np.float64]:
    """The loss of each series, segment × type: M/2 · (1 − r), r between its true and its synthetic course (2.2.5).

    Its course are the shares of all records of that segment and time (an empty row has shares 0).
    Edge cases: where either series is constant, r does not exist, and the largest difference of shares decides: at most
    FT/2 gives 0, at most FT gives M/2, more gives M (`threshold` is FT).
    """
    shares = [row_shares(np.asarray(x, float)) for x in (real, synthetic)]
    times, segments, types = shares[0].shape
    if shares[0].size == 0:
        return np.zeros((segments, types))
    constant = np.any([x.max(axis=0) == x.min(axis=0) for x in shares], axis=0)
    units = [unit_series(x.reshape(times, -1)).reshape(x.shape) for x in shares]
    r = np.clip((units[0] * units[1]).sum(axis=0), -1.0, 1.0)
    gap = np.abs(shares[0] - shares[1]).max(axis=0)
    step = 0.5 * (gap > threshold / 2 + ROUNDING) + 0.5 * (gap > threshold + ROUNDING)
    return np.asarray(times * np.where(constant, step, 0.5 * (1.0 - r)))


Cube = NDArray[np.float64]
Places = NDArray[np.int64]

#: Series compared with one series at a time: a tile stays in the processor's nearest cache.
TILE = 512
#: Independent strands of work.
STRANDS = 32


def unit_series(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


def mean_changes(truth: Cube, synthetic: Cube, threshold: float) -> NDArray[np.float64]:
    """Of each series: the mean of |r − r̂| over the series with which |r| is above the threshold in the truth.

    A series is among its own.
    Cost: the pairs of different true series, in tiles, and a product for each pair that is strong.

    Args:
        truth, synthetic: times × series; no true one is constant.
    """
    different, group = np.unique(truth, axis=1, return_inverse=True)
    group = group.reshape(-1)
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=different.shape[1]))])
    return _changes(unit_series(different), np.ascontiguousarray(unit_series(synthetic).T), threshold, starts, members)


@compiled_with(parallel=True)
def _changes(units: Cube, synthetic: Cube, threshold: float, starts: Places, members: Places) -> NDArray[np.float64]:
    """Each pair of series is looked at once, from its first group; every strand of work keeps sums of its own.

    Args:
        units: times × groups; synthetic: a row per series.
        starts, members: where each group's series start; the series.
    """
    n, groups = synthetic.shape[0], units.shape[1]
    totals, counts = np.zeros((STRANDS, n)), np.zeros((STRANDS, n))
    for strand in numba.prange(STRANDS):
        r = np.empty(TILE)
        for u in range(strand, groups, STRANDS):
            one = members[starts[u] : starts[u + 1]]
            _add_pairs(synthetic, 1.0, one, one, True, totals[strand], counts[strand])
            for start in range(u + 1, groups, TILE):
                width = min(TILE, groups - start)
                _products(units, u, start, r[:width])
                for j in range(width):
                    if abs(r[j]) > threshold:
                        two = members[starts[start + j] : starts[start + j + 1]]
                        _add_pairs(synthetic, r[j], one, two, False, totals[strand], counts[strand])
    mean = np.zeros(n)
    for i in range(n):
        mean[i] = totals[:, i].sum() / max(counts[:, i].sum(), 1.0)
    return mean


@compiled_with(fastmath={"contract"})
def _products(units: Cube, i: int, start: int, out: NDArray[np.float64]) -> None:
    """Products of column i with the columns of one tile."""
    out[:] = 0.0
    for t in range(units.shape[0]):
        factor = units[t, i]
        row = units[t, start : start + out.size]
        for j in range(out.size):
            out[j] += factor * row[j]


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
