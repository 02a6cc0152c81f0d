"""N-CRiPT's metrics by row (N-CRiPT 2021, 2.2.1 to 2.2.3): JSD, bias, Jaccard distance and heavy hitters.

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


Rows = NDArray[np.float64]


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
    real: NDArray[np.number],
    synthetic: NDArray[np.number],
    *,
    k: float = 0.1,
    delta: float = 0.2,
) -> NDArray[np.bool_]:
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
