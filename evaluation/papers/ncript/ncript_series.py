"""N-CRiPT's metrics by time series (N-CRiPT 2021, 2.2.4 and 2.2.5): the losses of horizontal and vertical correlation.

A series is the run of one record type in one segment over the M times; arrays are time × segment × type.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.papers.ncript.strong_pairs import kept_pairs, mean_changes, unit_series

Cube = NDArray[np.float64]

#: Shares and correlations that equal a threshold up to rounding count as equal to it.
ROUNDING = 1e-12


def horizontal_losses(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.9
) -> NDArray[np.float64]:
    """The loss of each series X^A, segment × type: the mean over C(X^A) of M/2 · |r − r̂| (2.2.4, equation 3).

    C(X^A) are all series Y^B of |r| > `threshold`, X^A among them.
    Edge cases: a constant true series has no correlation: it is in no C, and its own loss is 0. A constant synthetic
    series gives r̂ = 0. No |r| is above a threshold of 1.
    Cost: C of all series is found once and kept for the next tables against the same truth, as the source says; a
    table then costs a product for each pair.
    """
    q, p = (np.asarray(x, float) for x in (real, synthetic))
    times, segments, types = q.shape
    if q.size == 0 or threshold >= 1:
        return np.zeros((segments, types))
    q, p = q.reshape(times, -1), p.reshape(times, -1)
    varying = np.flatnonzero(q.max(axis=0) > q.min(axis=0))
    loss = np.zeros(segments * types)
    strong = kept_pairs(q[:, varying], threshold + ROUNDING)
    loss[varying] = times / 2 * mean_changes(strong, unit_series(p[:, varying]))
    return loss.reshape(segments, types)


def vertical_losses(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05
) -> NDArray[np.float64]:
    """The loss of each series, segment × type: M/2 · (1 − r), r between its true and its synthetic course (2.2.5).

    Its course are the shares of all records of that segment and time (an empty row has shares 0).
    Edge cases: where either series is constant, r does not exist, and the largest difference of shares decides: at most
    FT/2 gives 0, at most FT gives M/2, more gives M (`threshold` is FT).
    """
    shares = [_row_shares(np.asarray(x, float)) for x in (real, synthetic)]
    times, segments, types = shares[0].shape
    if shares[0].size == 0:
        return np.zeros((segments, types))
    constant = np.any([x.max(axis=0) == x.min(axis=0) for x in shares], axis=0)
    units = [unit_series(x.reshape(times, -1)).reshape(x.shape) for x in shares]
    r = np.clip((units[0] * units[1]).sum(axis=0), -1.0, 1.0)
    gap = np.abs(shares[0] - shares[1]).max(axis=0)
    step = 0.5 * (gap > threshold / 2 + ROUNDING) + 0.5 * (gap > threshold + ROUNDING)
    return np.asarray(times * np.where(constant, step, 0.5 * (1.0 - r)))


def _row_shares(counts: Cube) -> Cube:
    total = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
