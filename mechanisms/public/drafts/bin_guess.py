"""Bounds and bins of a column of numbers that a draft proposes, and words for them. NOT private."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.drafts.seen import FEWEST_UNITS, Numbers, step
from mechanisms.public.schema.discover_fields import FieldDict

#: Bounds of fewer whole numbers stay as they are, and so do these upper ones.
FEW_CODES, LAST_ONES = 20, (23, 24, 31, 52, 53, 59, 99)
#: Rounded amounts take at least so many steps. Bins of one number are so wide at least.
FEW_STEPS, LEAST_UNIT = 8, 1e-4
#: A column keeps so many decimals at most.
MOST_DECIMALS = 15
#: Fewer numbers than these have a bin each. A ratio so near a whole number is one.
ONE_EACH, NEAR = 100, 1e-6
#: Bins of lengths grow by these steps. A length has one of its own where so large a share of them is it, and so many
#: times those that are a unit shorter or longer.
STEPS, SHARED, STANDS_OUT = (1, 1.5, 2, 3, 4, 5, 7), 0.08, 4
#: Where nine lengths in ten are at least this part of the longest, bins that grow would leave most of them to a few:
#: about so many are even.
PART_OF_LONGEST, EVEN_BINS = 0.1, 32


def guess_bins(seen: Numbers, low: float, high: float) -> tuple[FieldDict, str]:
    """Bounds that a person would write, and bins that grow where few numbers are large."""
    whole = seen.wholes == seen.count and max(abs(low), abs(high)) < 2**52  # bounds are rounded outwards
    fixed: FieldDict = {"fixed": seen.decimals} if seen.fixed and seen.decimals > int(whole) else {}
    whose = "those of all but few values" if seen.cut else "the least and the largest seen"
    outwards = f"bounds are {whose}, rounded outwards"
    if whole and high - low < ONE_EACH:
        low, high = _round_ends(int(low), int(high))
        return {"kind": "integer", "min": low, "max": high} | fixed, f"whole numbers, one code each; {outwards}"
    kind: FieldDict = {"kind": "integer"} if whole else {"kind": "float"}
    small = 0 if whole else max(-math.floor(math.log10(max(abs(low), abs(high)) or 1)), 0)
    decimals: FieldDict = {} if whole else {"decimals": min(seen.decimals, 9 + small, MOST_DECIMALS)}
    rounded = seen.multiple_of
    if rounded is not None and high - low >= FEW_STEPS * rounded:
        decimals, outwards = {"multiple_of": rounded}, f"nearly all are multiples of {rounded:.15g}; {outwards}"
    unit, count = decimals.get("multiple_of", 1 if whole else 10.0**-seen.decimals), EVEN_BINS if whole else 20
    sort = "whole numbers" if whole else "numbers"
    edges, last, words = _edges(seen, low, high, unit, count, whole=whole)
    if words or "multiple_of" in decimals:
        listed = [int(e) if e == int(e) and abs(e) < 2**53 else e for e in edges if not whole or e == int(e)]
        fields = {"min": listed[0], "max": type(listed[-1])(last), "bins": {"edges": listed}}
        return kind | fields | decimals | fixed, f"{words.format(sort) or 'numbers in bins'}; {outwards}"
    if low == high:
        low, high = math.floor(low), math.floor(low) + 1
    power = math.floor(math.log10(high - low) - 1)
    low, high = (_rounded(end, power, up=up) for end, up in ((low, False), (high, True)))
    ends: FieldDict = {"min": int(low), "max": int(high)} if whole else {"min": low, "max": high}
    return kind | ends | {"bins": {"count": count}} | decimals | fixed, f"{sort} in {count} bins; {outwards}"


def bins_of_lengths(lengths: Floats, high: float) -> FieldDict:
    """The least and the most whole units, and bins, that a person would write; periods that many share stand alone.

    Args:
        lengths: in whole units.
        high: the longest but for rare ones.
    """
    if max(high, 1.0) <= ONE_EACH:
        return {"max": math.ceil(max(high, 1.0) / 5) * 5}
    every = (int(s * 10**k) for k in itertools.count() for s in STEPS if s * 10**k == int(s * 10**k))
    edges: list[float] = [0]
    while edges[-1] < high:
        edges.append(next(every))
    if np.quantile(lengths, 0.1) >= PART_OF_LONGEST * high:
        edges = even_edges(0, high, EVEN_BINS, 1)
    most = edges[-1]
    periods, rows = np.unique(lengths[(lengths > 0) & (lengths < most)], return_counts=True)
    often = rows >= max(SHARED * lengths.size, FEWEST_UNITS)
    for period, n in zip(periods[often], rows[often], strict=True):
        if n >= STANDS_OUT * max(np.count_nonzero(lengths == period + i) for i in (-1, 1)):
            edges = parted(edges, float(period), 1, whole=True)
    return {"max": int(most), "bins": {"edges": [int(e) for e in edges]}}


def _edges(
    seen: Numbers, low: float, high: float, unit: float, count: int, *, whole: bool
) -> tuple[list[float], float, str]:
    """Edges of bins, the upper bound, and words for them; none where as many bins of equal width do.

    Few numbers have a bin each, those of which few are large bins that grow, and frequent ones a bin of their own.
    """
    narrow = 64 * math.ulp(max(abs(low), abs(high)))
    growing = [e for e in seen.growing_edges(low, high) if not e or abs(e) >= max(10.0**-MOST_DECIMALS, narrow)]
    edges = growing or even_edges(low, high, count, unit)
    each, last, own = not growing and len(edges) > 1 and high - low < ONE_EACH * unit, edges[-1], ""
    apart = max(unit, LEAST_UNIT, narrow)
    for value in seen.frequent:
        more = parted(edges, value, apart, whole=whole)
        own += f", {value:.15g} in one of its own" * (more != edges)
        edges = more
    if each:
        return parted(edges, last, unit, whole=whole), last, "{}, one code each"
    grow = "numbers in bins that grow, since few are large" if growing else "numbers in bins" * bool(own)
    return edges, last, grow + own


def _rounded(end: float, power: int, *, up: bool) -> float:
    """A bound as a multiple of a power of ten, in as few digits: −122.5, not −122.50000000000001."""
    width = Decimal(1).scaleb(power)
    steps = (Decimal(repr(end)) / width).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR)
    return float(steps * width)


def _round_ends(low: int, high: int) -> tuple[int, int]:
    """Multiples of five around many whole numbers; 1, and the last one of a clock, a calendar or two digits, stay."""
    if high - low < FEW_CODES:
        return low, high
    return low if low == 1 else low // 5 * 5, high if high in LAST_ONES else -(-high // 5) * 5


def even_edges(low: float, high: float, count: int, unit: float) -> list[float]:
    """Edges from `low` or below to `high` or further, a unit apart where that makes fewer bins than ONE_EACH.

    Else they make at most so many bins, or one more, 1, 2, 5, 10, … wide, or so many units.
    """
    width = unit
    if high - low >= ONE_EACH * unit:
        ranks = itertools.count(3 * math.floor(math.log10((high - low) / count)))
        width = next(step(k) for k in ranks if step(k) * count >= high - low)
        if abs(width / unit - round(width / unit)) > NEAR:
            width = next(unit * step(k) for k in itertools.count() if unit * step(k) * count >= high - low)
    first, last = (round(end / width, 6) for end in (low, high))
    return [float(f"{width * i:.10g}") for i in range(math.floor(first), math.ceil(last) + 1)]


def parted(edges: Sequence[float], value: float, unit: float, *, whole: bool) -> list[float]:
    """The same edges and more, so that a value, from which others lie a unit away, has a bin of its own."""
    after = bisect.bisect_right(edges, value)
    if value == edges[-1]:  # which bounds floats, and is a value of the last bin
        more = [value + 1] if whole else [value - unit / 2]
    else:
        alone = after in {0, len(edges)} or edges[after] - edges[after - 1] <= unit * (1 + NEAR)
        more = [] if alone else [value, value + unit]
    return sorted({*edges, *(float(f"{e:.10g}") for e in more)})
