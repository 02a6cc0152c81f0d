"""N-CRiPT's metrics by time series (N-CRiPT 2021, 2.2.4 and 2.2.5): horizontal and vertical correlation.

A series is the run of one record type in one segment over the M times; arrays are time × segment × type.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_with

Cube = NDArray[np.float64]

#: Series compared with one series at a time: a tile stays in the processor's nearest cache.
TILE = 512
#: Independent strands of work.
STRANDS = 32
#: Shares and correlations that equal a threshold up to rounding count as equal to it.
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
    if q.size == 0:
        return np.zeros(segments)
    q, p = q.reshape(times, -1), p.reshape(times, -1)
    varies = q.max(axis=0) > q.min(axis=0)
    varying = np.flatnonzero(varies)
    loss = np.zeros(segments * types)
    loss[varying] = times / 2 * _mean_change(_unit(q[:, varying]), _unit(p[:, varying]), threshold + ROUNDING)
    return np.asarray(loss.reshape(segments, types).sum(axis=1) / types)


def _unit(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


@compiled_with(parallel=True)
def _mean_change(real: Cube, synthetic: Cube, threshold: float) -> NDArray[np.float64]:
    """For each column i of `real`: the mean of |r − r̂| over the columns j with |r| above the threshold, i among them.

    Each pair is looked at once, from its first column; every strand of work keeps sums of its own.
    """
    n = real.shape[1]
    totals, counts = np.zeros((STRANDS, n)), np.zeros((STRANDS, n))
    for strand in numba.prange(STRANDS):
        r, s = np.empty(TILE), np.empty(TILE)
        for i in range(strand, n, STRANDS):
            for start in range(i + 1, n, TILE):
                width = min(TILE, n - start)
                _products(real, i, start, r[:width])
                strong = 0
                for j in range(width):
                    strong += abs(r[j]) > threshold
                if strong:
                    _products(synthetic, i, start, s[:width])
                    total = _add(r[:width], s[:width], threshold, totals[strand], counts[strand], start)
                    totals[strand, i] += total
                    counts[strand, i] += strong
    mean = np.zeros(n)
    for i in range(n):
        own = abs(1.0 - np.sum(synthetic[:, i] ** 2))
        mean[i] = (totals[:, i].sum() + own) / (counts[:, i].sum() + 1)
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
def _add(
    r: NDArray[np.float64],
    s: NDArray[np.float64],
    threshold: float,
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    start: int,
) -> float:
    """The changes of one tile, added to its columns; their sum."""
    whole = 0.0
    for j in range(r.size):
        if abs(r[j]) > threshold:
            change = abs(r[j] - s[j])
            whole += change
            totals[start + j] += change
            counts[start + j] += 1
    return whole


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
    if shares[0].size == 0:
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
