"""N-CRiPT's metrics by time series (N-CRiPT 2021, 2.2.4 and 2.2.5): the losses of horizontal and vertical correlation.

A series is the run of one record type in one segment over the M times; arrays are time × segment × type.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import row_shares
from evaluation.products import inner

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

#: Correlations of series that are held at a time.
CELLS = 1_000_000


def unit_series(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


def mean_changes(truth: Cube, synthetic: Cube, threshold: float) -> NDArray[np.float64]:
    """Of each series: the mean of |r − r̂| over the series with which |r| is above the threshold in the truth.

    A series is among its own.
    Cost: the pairs of series, some rows of their matrix at a time, and a product for each pair that is strong.

    Args:
        truth, synthetic: times × series; no true one is constant.
    """
    units, theirs, count = unit_series(truth), unit_series(synthetic), truth.shape[1]
    totals, strong = np.abs(1.0 - (theirs * theirs).sum(axis=0)), np.ones(count)
    step = max(CELLS // max(count, 1), 1)
    for start in range(0, count, step):
        r = inner(units[:, start : start + step], units[:, start:])
        one, two = np.nonzero(np.triu(np.abs(r) > threshold, 1))
        changes = np.abs(r[one, two] - np.einsum("ij,ij->j", theirs[:, start + one], theirs[:, start + two]))
        for series in (start + one, start + two):
            totals += np.bincount(series, changes, count)
            strong += np.bincount(series, minlength=count)
    return np.asarray(totals / strong)
