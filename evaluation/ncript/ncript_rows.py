"""N-CRiPT's metrics by row (N-CRiPT 2021, 2.2.1 to 2.2.3): JSD, bias, Jaccard distance and heavy hitters.

A row is one segment at one time: counts over the record types on the last axis. Every function takes the true and the
synthetic counts in any shape with the types last, and returns one loss per row: 0 is perfect.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

#: Sums that differ by more than this are biased (N-CRiPT 2021, 2.2.1).
BIAS_CUTOFF = 500


def thresholded(counts: NDArray[np.number], threshold: float) -> Rows:
    """Counts with every cell below `threshold` of its row's sum set to 0 (2.2.1); an empty row stays empty."""
    rows = np.asarray(counts, float)
    total = rows.sum(axis=-1, keepdims=True)
    share = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    return np.where(share >= threshold, rows, 0.0)


def jsd(real: NDArray[np.number], synthetic: NDArray[np.number], *, threshold: float = 0.05) -> Rows:
    """Jensen-Shannon distance of the significant types (2.2.1).

    Goal: the same mix of frequent types. Range: [0, 1] (base 2, square root); 0 is perfect.
    Edge cases: two rows without significant types are alike (0); one alone has nothing in common with the other (1).
    The paper prints 0.46 and 0.16 in 2.2.3 for rows whose distances are 0.629 and 0.486 (0.16 is the divergence, in
    natural logarithms), and 0.75 and 0.37 in Table 1, which are sums of this distance over the months.
    """
    p, q = (_shares(thresholded(x, threshold)) for x in (synthetic, real))
    middle = (p + q) / 2
    divergence = (_kl(p, middle) + _kl(q, middle)) / 2
    distance = np.sqrt(np.clip(divergence, 0.0, 1.0))
    empty_p, empty_q = (x.sum(axis=-1) == 0 for x in (p, q))
    distance = np.where(empty_p ^ empty_q, 1.0, distance)
    return np.asarray(np.where(empty_p & empty_q, 0.0, distance))


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
    Table 2 suggest that the paper's code reads the counts left by the frequency threshold: pass `thresholded` ones.
    """
    a, b = np.asarray(real) > 0, np.asarray(synthetic) > 0
    union = (a | b).sum(axis=-1)
    both = (a & b).sum(axis=-1)
    return np.where(union == 0, 0.0, 1.0 - both / np.maximum(union, 1))


def heavy_hitter_violations(
    real: NDArray[np.number],
    synthetic: NDArray[np.number],
    *,
    k: NDArray[np.number] | float | None = None,
    delta: float = 0.2,
) -> NDArray[np.int64]:
    """How many types of each row break a condition of 2.2.3; a k-heavy hitter occurs more than k times.

    A (1 + Δ)k-heavy hitter of the synthetic row must be a k-heavy hitter of the true one; a type that is not even a
    (1 − Δ)k-heavy hitter of the synthetic row must not be a k-heavy hitter of the true one.

    Args:
        k: the level, for all rows or one a row; None for ⌊sum of the true row / 10⌋ (2.3.2).
    """
    q, p = np.asarray(real, float), np.asarray(synthetic, float)
    level = np.floor(q.sum(axis=-1) / 10) if k is None else np.asarray(k, float)
    level = level[..., None] if level.ndim else level
    slack = Fraction(str(delta))
    # Whole numbers on both sides, so that a count exactly at (1 ± Δ)k is decided exactly.
    above, below = ((slack.denominator + s * slack.numerator) * level for s in (1, -1))
    heavy = q > level
    invented = (p * slack.denominator > above) & ~heavy
    lost = (p * slack.denominator <= below) & heavy
    return np.asarray((invented | lost).sum(axis=-1), np.int64)


def heavy_hitters(
    real: NDArray[np.number],
    synthetic: NDArray[np.number],
    *,
    k: NDArray[np.number] | float | None = None,
    delta: float = 0.2,
    h: float = 0.02,
) -> Rows:
    """min(h · violations, 1) of each row (2.2.3, equation 2).

    Goal: the frequent types stay the frequent ones. Range: [0, 1]; 0 is perfect.
    The example of 2.2.3 (k = 250, h = 0.2) prints five violations and the penalty 1; by the definition above it only
    one type is lost and none invented, which makes 0.2.
    """
    return np.asarray(np.minimum(heavy_hitter_violations(real, synthetic, k=k, delta=delta) * h, 1.0))


def _shares(rows: Rows) -> Rows:
    total = rows.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(rows, total, out=np.zeros_like(rows), where=total > 0))


def _kl(p: Rows, q: Rows) -> Rows:
    ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.asarray((p * np.log2(ratio)).sum(axis=-1))
