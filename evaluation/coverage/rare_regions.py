"""Where a column's values are rare: beyond the fences of its quartiles, or values that few records have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: A value lies outside where it is farther from the quartiles than so many times their distance (Tukey 1977).
FENCE = 1.5
#: The values on a side of the fences are taken in so many regions of about as many real records.
REGIONS = 5
#: A value of a column without an order is rare where at most this share of the records have it.
RARE = 0.01
#: All that is rare on a side, or among such values, is at most this share of the records: the rarest or outermost.
TOGETHER = 0.1
#: No region has fewer real records: a release that keeps what a few people alone have is no better for it.
LEAST = 5


@dataclass(frozen=True, eq=False)
class Region:
    """Values of one column that are rare together.

    Attributes:
        codes: ascending; some may be those of synthetic values alone.
        first, last: the least and the largest of them that real records have.
    """

    codes: Counts
    first: int
    last: int


def rare_regions(counts: Counts, numbers: Floats | None = None) -> list[Region]:
    """The rare regions of a column; no two have a code in common.

    Args:
        counts: real records of each code.
        numbers: of each code, ascending, NaN for what is no number; None where the codes have no order.
    """
    if numbers is None:
        return _rare_values(counts)
    there = np.flatnonzero(np.isfinite(numbers))
    above = np.cumsum(counts[there])
    if not there.size or not above[-1]:
        return []
    low, high = (float(numbers[there[np.searchsorted(above, q * above[-1])]]) for q in (0.25, 0.75))
    reach = FENCE * (high - low)
    outer = there[numbers[there] < low - reach], there[numbers[there] > high + reach][::-1]
    return [region for codes in outer for region in _side(codes, counts)]


def _rare_values(counts: Counts) -> list[Region]:
    codes = np.flatnonzero((counts >= LEAST) & (counts <= RARE * counts.sum()))
    codes = codes[np.argsort(counts[codes], kind="stable")]
    codes = codes[np.cumsum(counts[codes]) <= TOGETHER * counts.sum()]
    return [Region(np.array([code]), int(code), int(code)) for code in np.sort(codes)]


def _side(codes: Counts, counts: Counts) -> list[Region]:
    """The regions of the codes beyond a fence, which are given from the outermost inwards."""
    reached = np.cumsum(counts[codes])
    codes = codes[reached <= TOGETHER * counts.sum()]
    total = int(counts[codes].sum())
    groups = min(REGIONS, total // LEAST)
    if not groups:
        return []
    before = np.cumsum(counts[codes]) - counts[codes]
    of = np.minimum(before * groups // total, groups - 1)
    regions = []
    for group in np.unique(of):
        own = np.sort(codes[of == group])
        real = own[counts[own] > 0]
        if counts[own].sum() >= LEAST:
            regions.append(Region(own, int(real[0]), int(real[-1])))
    return regions
