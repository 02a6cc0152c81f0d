"""Fine answers cleared of noise: a range halved again and again, with records only where answers stand out of noise."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.jit import compiled
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import wide
from synthesis.numbers.fine_evidence import Answer, FineEvidence, evidence_of

#: A half at the end of the range is empty where its records are fewer than so many standard deviations of their noise …
EMPTY = 3.0
#: … beside a narrow peak where they are fewer than so many: with 3 a peak took the records of its neighbours, and with
#: none of it the mean of a range of zeros and far values was off by more (decision 085) …
BESIDE = 1.5
#: … only where the other half then has no more records than its answers and so many say: else what was emptied was not
#: empty. In wide ranges it may be noise so far out that it would move the mean …
MORE = 2.0
#: … unless a part of it stands out so far that noise alone does so in no more than this share of the columns: a peak.
PEAK = 0.004
#: Halves are told apart where they differ from an even spread by more than so many: the non-negative garrote. Halves of
#: one depth have the one of these with the least expected error, where there are so many of them, else the first.
APART, MANY = (2.0**0.5, 2.0, 3.0), 8


@dataclass(frozen=True)
class ClearedPart:
    """Neighbouring fine cells, from `start` to before `stop`, whose records are spread evenly or by the curve."""

    start: int
    stop: int
    records: float


def cleared(
    column: Column, fine: Answer | None, bins: Answer | None, widths: Floats, filled: Sequence[tuple[int, int]] = ()
) -> list[ClearedPart]:
    """Parts of the range with their records, ascending, not negative, and of the answers' sum.

    The range is halved again and again, and each part's records are split between its halves. A half at the end of the
    range, or beside an empty one, stays empty where it does not stand out of its noise and the other half does; beside
    a narrow peak, where it hardly exceeds its noise: noise alone never fills a tail or a wide gap, and records that
    stand out in no half are not piled up in one; nor is any half emptied for one that would hold far more than its own
    answers say. Elsewhere the records are split as the answers say where that differs from an even spread by more than
    their noise (non-negative garrote; Breiman 1995), else evenly. The threshold is chosen for all halves of one depth
    (Stein's unbiased estimate of the error, as in SureShrink; Donoho & Johnstone 1995): where a depth shows hardly more
    than noise, its halves are even but for those that stand far out. Where all halves of a part are even, it stays one
    part.

    All this is done twice: gaps are known after the first time, so that their noise is not in what stands beyond them.
    A tail of which no half stands out may stand out as a whole: the end of the records that the first time found moves
    outwards, from place to place, while all records between stand out of their noise. It is no tail then, not even
    beside a narrow peak. Not in wide ranges: there noise so far out would move the mean many times over.

    Args:
        fine, bins: as of `evidence_of`.
        widths: what an even spread is even in, per cell.
        filled: bins, from one to before another, that other answers show to hold records: such a range is no gap or
            tail, as with a peak.
    """
    every = evidence_of(column, fine, bins)
    held = [(int(every.first[low]), int(every.first[high])) for low, high in filled]
    total = max(float(every.cells.sum()), 0.0)
    more = math.inf if wide(column) else MORE
    parts = _parts(every, widths, held, total, more)
    support = np.repeat([p.records > 0 for p in parts], [p.stop - p.start for p in parts])
    low, high = np.flatnonzero(support)[[0, -1]] + [0, 1] if support.any() else (0, support.size)
    start, stop = low, high
    if not wide(column):
        start = _farther(every, low, np.arange(low)[::-1])
        stop = _farther(every, high, np.arange(high, support.size) + 1)
    support[start if start < low else 0 : low] = support[high : stop if high < stop else support.size] = True
    moved = [(start, low), (high, stop)] if (start, stop) != (low, high) else []
    return _parts(evidence_of(column, fine, bins, support), np.where(support, widths, 0.0), held, total, more, moved)


def _farther(evidence: FineEvidence, end: int, places: Ints) -> int:
    """Where the records beyond an end of the support end, if all from it to some place stand out of their noise."""
    sums = np.concatenate([[0.0], np.cumsum(evidence.cells)])
    places = places if evidence.cell_variance > 0 else places[np.isin(places, evidence.first)]
    while places.size:
        low, high = np.minimum(places, end), np.maximum(places, end)
        out = np.flatnonzero(sums[high] - sums[low] > EMPTY * np.sqrt(evidence.variance(low, high)))
        if not out.size:
            break
        end, places = int(places[out[0]]), places[out[0] + 1 :]
    return end


@dataclass(frozen=True, eq=False)
class _Halves:
    """A range halved again and again: it, its lower half and all that is made of this, then so its upper half.

    Attributes:
        start, stop, depth: of each part, in cells; how often the range was halved to make it.
        end: the first part that is not made of this one.
        halved: whether it has halves; the lower is the next part, the upper the `end` of that.
    """

    start: Ints
    stop: Ints
    depth: Ints
    end: Ints
    halved: Flags


@lru_cache(maxsize=8)
def _halves(first: tuple[int, ...], inside: bool) -> _Halves:
    """Between bins, where a part has several; else in its middle, if something is known `inside` of bins."""
    parts, left = list[tuple[int, int, int, bool]](), [(0, first[-1], 0)]
    while left:
        start, stop, depth = left.pop()
        low, high, half = bisect_right(first, start), bisect_left(first, stop), (start + stop) // 2
        halved = low < high or (inside and stop - start > 1)
        parts.append((start, stop, depth, halved))
        if halved:
            middle = min(first[low:high], key=lambda edge: abs(edge - half), default=half)
            left += [(middle, stop, depth + 1), (start, middle, depth + 1)]
    end = list(range(1, len(parts) + 1))
    for i in reversed(range(len(parts))):
        if parts[i][3]:
            end[i] = end[end[i + 1]]
    starts, stops, depths, flags = (np.array(each) for each in zip(*parts, strict=True))
    return _Halves(starts, stops, depths, np.array(end), flags)


def _parts(
    evidence: FineEvidence,
    widths: Floats,
    filled: Sequence[tuple[int, int]],
    total: float,
    more: float,
    moved: Sequence[tuple[int, int]] = (),
) -> list[ClearedPart]:
    """One pass of `cleared`: which halves stay parts, and the records of each."""
    halves = _halves(tuple(evidence.first.tolist()), evidence.cell_variance > 0)
    start, stop, end, inner = halves.start, halves.stop, halves.end, np.flatnonzero(halves.halved)
    sums, lengths = (np.concatenate([[0.0], np.cumsum(x)]) for x in (evidence.cells, widths))
    own, evenly, variance = sums[stop] - sums[start], lengths[stop] - lengths[start], evidence.variance(start, stop)
    # How far halves differ from an even spread, and the noise of that; 0 where one is known to be empty.
    share, noise, off = np.zeros(own.size), np.zeros(own.size), np.zeros(own.size)
    held = inner[(variance[inner + 1] > 0) & (variance[end[inner + 1]] > 0)]
    share[held] = evenly[held + 1] / evenly[held]
    below, above = variance[held + 1], variance[end[held + 1]]
    noise[held] = np.sqrt((1 - share[held]) ** 2 * below + share[held] ** 2 * above)
    off[held] = own[held + 1] - share[held] * own[held]
    apart, depths = np.full(own.size, APART[0]), halves.depth[held]
    costs = np.stack([noise[held] ** 2 * _garrote_error(off[held] / noise[held], reach) for reach in APART])
    for depth in np.flatnonzero(np.bincount(depths) >= MANY):
        apart[halves.depth == depth] = APART[int(np.argmin(costs[:, depths == depth].sum(axis=1)))]
    # Peaks: some part of it, or it itself, stands far out of its noise; of a narrow one, some half or part of a half.
    peak = own > NormalDist().inv_cdf(1 - PEAK / (2 * evidence.cells.size)) * np.sqrt(variance)
    peaks = np.concatenate([[0], np.cumsum(peak)])
    far, narrow = peaks[end] > peaks[:-1], peaks[end] > peaks[np.arange(own.size) + halves.halved]
    narrow &= not moved
    for low, high in filled:
        far |= (start <= low) & (high <= stop)
    shown = np.zeros(own.size, np.bool_)
    for low, high in moved:
        shown |= (start < high) & (low < stop)
    records = np.full(own.size, total)
    cleared = _split(end, halves.halved, own, variance, far, narrow, shown, share, noise, apart, more, records)
    return [ClearedPart(*each) for each in zip(*(x[cleared].tolist() for x in (start, stop, records)), strict=True)]


@compiled
def _split(
    end: Ints,
    halved: Flags,
    own: Floats,
    variance: Floats,
    far: Flags,
    narrow: Flags,
    shown: Flags,
    share: Floats,
    noise: Floats,
    apart: Floats,
    more: float,
    records: Floats,
) -> Flags:
    """Splits the records of each part between its halves; which parts stay whole and lie in no other that does.

    Args:
        own: the answers' records of each part, and their `variance`.
        far, narrow: whether it has a peak, or other answers show records in it; whether it has a narrow peak.
        shown: whether it has a part of an end that stands out as a whole: it is no tail.
        share, noise: the lower half's part of an even spread, and the noise of a difference from it.
        apart: by how many standard deviations halves differ from an even spread to be told apart.
        more: how many standard deviations more than its answers say a half may hold, where the other one is emptied.
        records: of the first part; those of all others are written.
    """
    last_below, last_above = np.ones(end.size, np.bool_), np.ones(end.size, np.bool_)  # nothing lies beyond it
    even, count, gone = np.zeros(end.size, np.bool_), np.ones(end.size, np.int64), np.zeros(end.size)
    i = 0
    while i < end.size:
        if not halved[i] or records[i] <= 0:
            i = end[i]
            continue
        low, high = i + 1, end[i + 1]
        lower, even[i] = _lower(
            records[i],
            (last_below[i], last_above[i]),
            (own[low], own[high], own[i]),
            (variance[low], variance[high]),
            (far[low], far[high]),
            (narrow[low], narrow[high]),
            (shown[low], shown[high]),
            share[i],
            noise[i],
            apart[i],
            more,
            gone[i],
        )
        records[low], records[high] = lower, records[i] - lower
        gone[low] = gone[i] + (variance[high] if records[high] == 0 else 0.0)
        gone[high] = gone[i] + (variance[low] if lower == 0 else 0.0)
        last_below[low], last_above[low] = last_below[i], last_above[i] and records[i] == lower
        last_below[high], last_above[high] = last_below[i] and lower == 0, last_above[i]
        count[i] = 2
        i += 1
    for i in range(end.size - 1, -1, -1):
        if count[i] > 1:
            count[i] = count[i + 1] + count[end[i + 1]]
            if even[i] and count[i] == 2:
                count[i] = 1
    stays = np.zeros(end.size, np.bool_)
    i = 0
    while i < end.size:
        stays[i] = count[i] == 1
        i = end[i] if stays[i] else i + 1
    return stays


@compiled
def _lower(
    records: float,
    tails: tuple[bool, bool],
    own: tuple[float, float, float],
    variance: tuple[float, float],
    peaks: tuple[bool, bool],
    narrow: tuple[bool, bool],
    shown: tuple[bool, bool],
    share: float,
    noise: float,
    apart: float,
    more: float,
    gone: float,
) -> tuple[float, bool]:
    """The records of the lower half, and whether they are those of an even spread.

    Args:
        tails: whether nothing lies below the part, and above it.
        gone: the variance of what was emptied on the way to the part, whose records it holds.
        own: the answers' records of the lower half, of the upper and of the part; the others as of `_split`, of halves.
    """
    below, above = variance
    if not below or not above:  # one of them is known to be empty
        return (records if below else 0.0), False
    answer = own[0] + (records - own[2]) * below / (below + above)
    # What a neighbour that was found empty has left to this part says nothing of where in it records are.
    low, high = min(answer, own[0]) / math.sqrt(below), min(records - answer, own[1]) / math.sqrt(above)
    empty = low < EMPTY and not peaks[0], high < EMPTY and not peaks[1]
    most = more * math.sqrt(below + above + gone)
    below_alone, above_alone = records - own[0] <= most, records - own[1] <= most
    if below_alone and empty[1] and ((tails[1] and not shown[1] and not empty[0]) or (narrow[0] and high < BESIDE)):
        return records, False
    if above_alone and empty[0] and ((tails[0] and not shown[0] and not empty[1]) or (narrow[1] and low < BESIDE)):
        return 0.0, False
    even = records * share
    off, reach = answer - even, apart * noise
    if abs(off) <= reach:
        return even, True
    return min(max(even + off * (1 - (reach / off) ** 2), 0.0), records), False


def _garrote_error(z: Floats, reach: float) -> Floats:
    """Stein's estimate of the squared error of z (1 − reach²/z²)₊, where z has noise of 1."""
    with np.errstate(divide="ignore"):
        ratio = reach**2 / z**2
    return np.where(ratio >= 1, z**2 - 1, 1 + ratio * (reach**2 + 2))
