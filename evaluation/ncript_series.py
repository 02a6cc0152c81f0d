"""N-CRiPT's metrics by time series (paper 001, 2.2.4 and 2.2.5): horizontal and vertical correlation.

A series is the run of one record type in one segment over the M times; arrays are time × segment × type.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Cube = NDArray[np.float64]

#: Series compared with one series at a time: a tile stays in the processor's nearest cache.
TILE = 512
#: Shares that differ by a threshold up to rounding count as differing by it.
ROUNDING = 1e-12


def horizontal_correlation(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.9
) -> NDArray[np.float64]:
    """HC^A of each segment (2.2.4, equation 3): how far strong correlations between any two series are kept.

    The mean over types X of the mean over C(X^A) of M/2 · |r − r̂|, with C(X^A) all series Y^B of |r| > `threshold`.
    Goal: related series stay related. Range: [0, M]; 0 is perfect. Divided by M it is the loss of a row (2.4.1).
    Edge cases: a constant true series has no correlation: it is in no C, and its own loss is 0; it counts in the mean
    over types. A constant synthetic series gives r̂ = 0. A series belongs to its own C (r = 1).
    Cost: all pairs of series once, in tiles; memory: a few copies of the counts.
    """
    q, p = (np.asarray(x, float) for x in (real, synthetic))
    times, segments, types = q.shape
    q, p = q.reshape(times, -1), p.reshape(times, -1)
    varies = q.max(axis=0, initial=-np.inf) > q.min(axis=0, initial=np.inf)
    kept = np.flatnonzero(varies)
    loss = np.zeros(segments * types)
    loss[kept] = times / 2 * _mean_change(_unit(q[:, kept]), _unit(p[:, kept]), threshold)
    return np.asarray(loss.reshape(segments, types).sum(axis=1) / types)


def _unit(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0, initial=-np.inf) == series.min(axis=0, initial=np.inf)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


@numba.njit(cache=True, nogil=True, parallel=True)
def _mean_change(real: Cube, synthetic: Cube, threshold: float) -> NDArray[np.float64]:
    """For each column i of `real`: the mean of |r − r̂| over the columns j with |r| above the threshold."""
    n = real.shape[1]
    mean = np.zeros(n)
    for i in numba.prange(n):
        r, s = np.empty(TILE), np.empty(TILE)
        total, count = 0.0, 0
        for start in range(0, n, TILE):
            width = min(TILE, n - start)
            strong = _products(real, i, start, width, r, threshold)
            if strong:
                count += strong
                _products(synthetic, i, start, width, s, threshold)
                for j in range(width):
                    if abs(r[j]) > threshold:
                        total += abs(r[j] - s[j])
        if count:
            mean[i] = total / count
    return mean


@numba.njit(cache=True, nogil=True)
def _products(units: Cube, i: int, start: int, width: int, out: NDArray[np.float64], threshold: float) -> int:
    """Products of column i with the columns of one tile; how many are above the threshold."""
    out[:width] = 0.0
    for t in range(units.shape[0]):
        factor = units[t, i]
        for j in range(width):
            out[j] += factor * units[t, start + j]
    strong = 0
    for j in range(width):
        strong += abs(out[j]) > threshold
    return strong


def vertical_correlation(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05
) -> NDArray[np.float64]:
    """VC^A of each segment (2.2.5, equation 4): whether each type's share keeps its course over time.

    The mean over types of M/2 · (1 − r), r between the true and the synthetic series of shares of all records of that
    segment and time (an empty row has shares 0).
    Goal: trends and seasons stay. Range: [0, M]; 0 is perfect; M/2 is what unrelated series score. Divided by M it is
    the loss of a row (2.4.1).
    Edge cases: where either series is constant, r does not exist, and the largest difference of shares decides: at most
    FT/2 gives 0, at most FT gives M/2, more gives M (`threshold` is FT).
    """
    shares = [_row_shares(np.asarray(x, float)) for x in (real, synthetic)]
    times, _, types = shares[0].shape
    if times == 0 or types == 0:
        return np.zeros(shares[0].shape[1])
    constant = np.any([x.max(axis=0) == x.min(axis=0) for x in shares], axis=0)
    units = [_unit(x.reshape(times, -1)).reshape(x.shape) for x in shares]
    r = np.clip((units[0] * units[1]).sum(axis=0), -1.0, 1.0)
    gap = np.abs(shares[0] - shares[1]).max(axis=0)
    step = 0.5 * (gap > threshold / 2 + ROUNDING) + 0.5 * (gap > threshold + ROUNDING)
    loss = times * np.where(constant, step, 0.5 * (1.0 - r))
    return np.asarray(loss.sum(axis=1) / types)


def _row_shares(counts: Cube) -> Cube:
    total = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
