"""N-CRiPT's metrics by row (N-CRiPT 2021, 2.2.1 to 2.2.3) and by time series (2.2.4 and 2.2.5: correlations).

A row is one segment at one time: counts over the record types on the last axis. Every function takes the true and the
synthetic counts in any shape with the types last, and returns one loss per row: 0 is perfect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from evaluation.counts import row_shares
from evaluation.products import inner
from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.settings import BoundedSettings, setting

#: Sums that differ by more than this are biased (2.2.1).
BIAS_CUTOFF = 500


@dataclass(frozen=True)
class NcriptSpec(BoundedSettings):
    """The parameters, with the defaults of 3.1.2.

    Attributes:
        weights: ω of JSD, JD, HH, HC and VC (2.3.2); the bias penalty has none.
        frequency_threshold: FT: smaller shares of a row are not significant.
        bias_penalty: BP (the formula section 2.2.1 prints 0.2).
        bias_cutoff: sums of a row that are farther apart are biased.
        delta, k, h: of the heavy hitters: Δ, their level as a share of the true row's sum (rounded down), and h.
        strong: correlations above it are strong.
        places: segments whose temporal scores are told (2.4.2), by their labels; empty for the worst ones.
    """

    settings_group: ClassVar[str] = "evaluation.ncript"
    weights: tuple[float, ...] = setting((0.3, 0.15, 0.15, 0.15, 0.15), least=0, parts=("JSD", "JD", "HH", "HC", "VC"))
    frequency_threshold: float = setting(0.05, least=0, most=1)
    bias_penalty: float = setting(0.1, least=0)
    bias_cutoff: float = setting(BIAS_CUTOFF, least=0)
    delta: float = setting(0.2, least=0, most=1)
    k: float = setting(0.1, least=0, most=1)
    h: float = setting(0.02, least=0)
    strong: float = setting(0.9, least=0, most=1)
    places: tuple[str, ...] = ()


#: Counts, the record types on the last axis.
Rows = Floats


def thresholded(counts: NDArray[np.number], threshold: float) -> Rows:
    """Counts with every cell below `threshold` of its row's sum set to 0 (2.2.1); an empty row stays empty."""
    rows = np.asarray(counts, float)
    return np.where(row_shares(rows) >= threshold, rows, 0.0)


def jsd(real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05) -> Rows:
    """Jensen-Shannon distance of the significant types (2.2.1).

    Goal: the same mix of frequent types. Range: [0, 1] (base 2, square root); 0 is perfect.
    Edge cases: two rows without significant types are alike (0); one alone has nothing in common with the other (1).
    The paper prints 0.46 and 0.16 in 2.2.3 for rows whose distances are 0.629 and 0.486 (0.16 is the divergence, in
    natural logarithms), and 0.75 and 0.37 in Table 1, which are sums of this distance over the months.
    """
    return np.asarray(jsd_by_type(real, synthetic, threshold=threshold).sum(axis=-1))


def jsd_by_type(real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05) -> Rows:
    """The distance of each row shared out over its types, in proportion to their terms of the divergence."""
    p, q = (row_shares(thresholded(x, threshold)) for x in (synthetic, real))
    middle = (p + q) / 2
    terms = np.maximum((rel_entr(p, middle) + rel_entr(q, middle)) / math.log(4), 0.0)
    divergence = terms.sum(axis=-1)
    distance = np.sqrt(np.minimum(divergence, 1.0))
    one_is_empty = (p.sum(axis=-1) == 0) ^ (q.sum(axis=-1) == 0)
    distance = np.where(one_is_empty, 1.0, distance)
    factor = np.divide(distance, divergence, out=np.zeros_like(distance), where=divergence > 0)
    return np.asarray(terms * factor[..., None])


def bias_penalty(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, penalty: float = 0.1, cutoff: float = BIAS_CUTOFF
) -> Rows:
    """`penalty` where the sums of the raw counts are more than `cutoff` apart (2.2.1), else 0.

    The formula section prints 0.2; the defaults of 3.1.2, the range of 2.3.2 and Table 2 say 0.1.
    """
    off = np.abs(np.asarray(real, float).sum(axis=-1) - np.asarray(synthetic, float).sum(axis=-1))
    return np.where(off > cutoff, penalty, 0.0)


def jaccard_distance(real: NDArray[np.number], synthetic: NDArray[np.number]) -> Rows:
    """1 − |A ∩ B| / |A ∪ B| of the sets of types that occur (2.2.2, equation 1).

    Goal: no invented and no lost types, on the scale of the JSD. Range: [0, 1]; 0 is perfect.
    Edge cases: two empty rows are alike (0). Equation 1 reads counts above 0. The few types behind the values of
    Table 2 suggest that the paper's code reads the counts left by the frequency threshold.
    """
    return np.asarray(jaccard_by_type(real, synthetic).sum(axis=-1))


def jaccard_by_type(real: NDArray[np.number], synthetic: NDArray[np.number]) -> Rows:
    """The Jaccard distance shared out over the types that one row alone has: 1 / |A ∪ B| each."""
    a, b = np.asarray(real) > 0, np.asarray(synthetic) > 0
    union = np.maximum((a | b).sum(axis=-1, keepdims=True), 1)
    return np.asarray((a ^ b) / union)


def violating_types(
    real: NDArray[np.number], synthetic: NDArray[np.number], *, k: float = 0.1, delta: float = 0.2
) -> Flags:
    """Which types of each row break a condition of 2.2.3; a k-heavy hitter occurs more than k times.

    A (1 + Δ)k-heavy hitter of the synthetic row must be a k-heavy hitter of the true one; a type that is not even a
    (1 − Δ)k-heavy hitter of the synthetic row must not be a k-heavy hitter of the true one.

    Args:
        k: the paper's k as a share of the true row's sum, rounded down (2.3.2).
    """
    q, p = np.asarray(real, float), np.asarray(synthetic, float)
    part = Fraction(str(k))
    bar = np.floor(q.sum(axis=-1, keepdims=True) * part.numerator / part.denominator)
    slack = Fraction(str(delta))
    # Whole numbers on both sides, so that a count exactly at (1 ± Δ)k is decided exactly.
    above, below = ((slack.denominator + s * slack.numerator) * bar for s in (1, -1))
    heavy = q > bar
    invented = (p * slack.denominator > above) & ~heavy
    lost = (p * slack.denominator <= below) & heavy
    return np.asarray(invented | lost)


def heavy_hitters(
    real: NDArray[np.number],
    synthetic: NDArray[np.number],
    *,
    k: float = 0.1,
    delta: float = 0.2,
    h: float = 0.02,
) -> Rows:
    """min(h · violations, 1) of each row (2.2.3, equation 2).

    Goal: the frequent types stay the frequent ones. Range: [0, 1]; 0 is perfect.
    The example of 2.2.3 (k = 250, h = 0.2) prints five violations and the penalty 1; by the definition above it only
    one type is lost and none invented, which makes 0.2.
    """
    violations = violating_types(real, synthetic, k=k, delta=delta).sum(axis=-1)
    return np.asarray(np.minimum(violations * h, 1.0))


#: Shares and correlations that equal a threshold up to rounding count as equal to it.
ROUNDING = 1e-12


def horizontal_losses(real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.9) -> Floats:
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
    loss[varying] = times / 2 * _mean_changes(q[:, varying], p[:, varying], threshold + ROUNDING)
    return loss.reshape(segments, types)


def vertical_losses(real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05) -> Floats:
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


#: Counts, time × segment × record type; a series is one type in one segment over the times.
Cube = Floats

#: Correlations of series that are held at a time.
CELLS = 1_000_000


def unit_series(series: Cube) -> Cube:
    """Centred columns of length 1, so that a product of two is their correlation; constant ones become 0."""
    centred = series - series.mean(axis=0)
    centred[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    length = np.sqrt((centred * centred).sum(axis=0))
    return np.ascontiguousarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


def _mean_changes(truth: Cube, synthetic: Cube, threshold: float) -> Floats:
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
