"""Fine answers cleared of noise: a range halved again and again, with records only where answers stand out of noise."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.marginals import Values
from mechanisms.public.schema.column import Column
from synthesis.numbers.fine_evidence import Answer, FineEvidence, evidence_of

#: A half at the end of the range is empty where its records are fewer than so many standard deviations of their noise …
#: elsewhere where they also differ from an even spread by so many …
EMPTY = 3.0
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
    column: Column,
    fine: Answer | None,
    bins: Answer | None,
    widths: Values,
    filled: Sequence[tuple[int, int]] = (),
) -> list[ClearedPart]:
    """Parts of the range with their records, ascending, not negative, and of the answers' sum.

    The range is halved again and again, and each part's records are split between its halves. A half at the end of the
    range, or beside an empty one or a narrow peak, stays empty where it does not stand out of its noise and the other
    half does: noise alone never fills a tail or a gap, and records that stand out in no half are not piled up in one.
    Elsewhere the records are split as the answers say where that differs from an even spread by more than their noise
    (non-negative garrote; Breiman 1995), else evenly; a half is empty there only where that differs by far more. The
    threshold is chosen for all halves of one depth (Stein's unbiased estimate of the error, as in SureShrink; Donoho &
    Johnstone 1995): where a depth shows hardly more than noise, its halves are even but for those that stand far out.
    Where all halves of a part are even, it stays one part.

    All this is done twice: gaps are known after the first time, so that their noise is not in what stands beyond them.

    Args:
        fine, bins: as of `evidence_of`.
        widths: what an even spread is even in, per cell.
        filled: bins, from one to before another, that other answers show to hold records: such a range is no gap or
            tail, as with a peak.
    """
    every = evidence_of(column, fine, bins)
    total = max(float(every.cells.sum()), 0.0)
    support = np.zeros(every.cells.size, np.bool_)
    held = [(int(every.first[low]), int(every.first[high])) for low, high in filled]
    for part in _Halving.of(every, widths, held).parts(0, every.cells.size, total, tails=(True, True)):
        support[part.start : part.stop] = part.records > 0
    ends = np.flatnonzero(support)[[0, -1]] if support.any() else (0, 0)
    support[: ends[0]] = support[ends[1] :] = True
    again = _Halving.of(evidence_of(column, fine, bins, support), np.where(support, widths, 0.0), held)
    return again.parts(0, every.cells.size, total, tails=(True, True))


@dataclass(eq=False)
class _Halving:
    """One pass of `cleared`: the evidence, and running sums of its cells and their widths."""

    evidence: FineEvidence
    sums: list[float]
    widths: list[float]
    first: list[int]
    filled: Sequence[tuple[int, int]]
    known_peaks: dict[tuple[int, int], bool] = field(default_factory=dict)

    @cached_property
    def apart(self) -> list[float]:
        """Per depth, by how many standard deviations halves differ from an even spread to be told apart."""
        depths: list[list[tuple[float, float]]] = []
        self._differences(0, self.evidence.cells.size, 0, depths)
        chosen = []
        for differences in depths:
            off, noise = np.array(differences).reshape(-1, 2).T
            costs = [float((noise**2 * _garrote_error(off / noise, reach)).sum()) for reach in APART]
            chosen.append(APART[int(np.argmin(costs))] if len(differences) >= MANY else APART[0])
        return chosen

    def _differences(self, start: int, stop: int, depth: int, depths: list[list[tuple[float, float]]]) -> None:
        """Adds, by depth, how far the halves of a part differ from an even spread, and the noise of that."""
        middle = self.middle(start, stop)
        if middle is None:
            return
        depths.extend([] for _ in range(depth + 1 - len(depths)))
        share, noise = self.spread(start, middle, stop)
        if noise:
            own = self.sums[middle] - self.sums[start]
            depths[depth].append((own - share * (self.sums[stop] - self.sums[start]), noise))
        self._differences(start, middle, depth + 1, depths)
        self._differences(middle, stop, depth + 1, depths)

    def spread(self, start: int, middle: int, stop: int) -> tuple[float, float]:
        """The lower half's part of an even spread, and the noise of a difference from it; 0 where one is empty."""
        below, above = self.evidence.variance(start, middle), self.evidence.variance(middle, stop)
        if not below or not above:
            return 0.0, 0.0
        share = (self.widths[middle] - self.widths[start]) / (self.widths[stop] - self.widths[start])
        return share, math.sqrt((1 - share) ** 2 * below + share**2 * above)

    @cached_property
    def far(self) -> float:
        """Standard deviations of a peak."""
        return NormalDist().inv_cdf(1 - PEAK / (2 * self.evidence.cells.size))

    @classmethod
    def of(cls, evidence: FineEvidence, widths: Values, filled: Sequence[tuple[int, int]]) -> _Halving:
        sums, lengths = (np.concatenate([[0.0], np.cumsum(x)]).tolist() for x in (evidence.cells, widths))
        return cls(evidence, sums, lengths, evidence.first.tolist(), filled)

    def parts(
        self, start: int, stop: int, records: float, *, tails: tuple[bool, bool], depth: int = 0
    ) -> list[ClearedPart]:
        """The parts of a part; `tails`: whether nothing lies below it, and above it."""
        middle = self.middle(start, stop)
        if middle is None or records <= 0:
            return [ClearedPart(start, stop, records)]
        lower, even = self.lower(start, middle, stop, records, tails, self.apart[depth])
        beyond = (tails[0], tails[1] and records == lower), (tails[0] and lower == 0, tails[1])
        parts = self.parts(start, middle, lower, tails=beyond[0], depth=depth + 1)
        parts += self.parts(middle, stop, records - lower, tails=beyond[1], depth=depth + 1)
        return [ClearedPart(start, stop, records)] if even and len(parts) == 2 else parts

    def middle(self, start: int, stop: int) -> int | None:
        """Where the cells are halved: between bins, where there are several; None where nothing more is known."""
        first, half = self.first, (start + stop) // 2
        low, high = bisect_right(first, start), bisect_left(first, stop)
        if low < high:
            return min(first[low:high], key=lambda edge: abs(edge - half))
        return half if stop - start > 1 and self.evidence.cell_variance > 0 else None

    def has_peak(self, start: int, stop: int) -> bool:
        """Whether some half of a half stands far out of its noise."""
        if (start, stop) not in self.known_peaks:
            middle = self.middle(start, stop)
            own = self.sums[stop] - self.sums[start] > self.far * math.sqrt(self.evidence.variance(start, stop))
            self.known_peaks[start, stop] = own or (middle is not None and self.narrow_peak(start, stop))
        return self.known_peaks[start, stop]

    def stands_far(self, start: int, stop: int) -> bool:
        """Whether it has a peak, or other answers show records in it."""
        return self.has_peak(start, stop) or any(start <= low and high <= stop for low, high in self.filled)

    def narrow_peak(self, start: int, stop: int) -> bool:
        """Whether some half of it, or it itself where it has none, stands far out of its noise."""
        middle = self.middle(start, stop)
        if middle is None:
            return self.has_peak(start, stop)
        return self.has_peak(start, middle) or self.has_peak(middle, stop)

    def lower(
        self, start: int, middle: int, stop: int, records: float, tails: tuple[bool, bool], apart: float
    ) -> tuple[float, bool]:
        """The records of the lower half, and whether they are those of an even spread."""
        below, above = self.evidence.variance(start, middle), self.evidence.variance(middle, stop)
        if not below or not above:  # one of them is known to be empty
            return (records if below else 0.0), False
        gap = records - (self.sums[stop] - self.sums[start])
        answer = self.sums[middle] - self.sums[start] + gap * below / (below + above)
        least = EMPTY * math.sqrt(below), EMPTY * math.sqrt(above)
        peaks = self.stands_far(start, middle), self.stands_far(middle, stop)
        # What a neighbour that was found empty has left to this part says nothing of where in it records are.
        low = min(answer, self.sums[middle] - self.sums[start])
        high = min(records - answer, self.sums[stop] - self.sums[middle])
        stands = low >= least[0] or peaks[0], high >= least[1] or peaks[1]
        if (tails[1] or (peaks[0] and self.narrow_peak(start, middle))) and stands[0] and not stands[1]:
            return records, False
        if (tails[0] or (peaks[1] and self.narrow_peak(middle, stop))) and stands[1] and not stands[0]:
            return 0.0, False
        share, noise = self.spread(start, middle, stop)
        even = records * share
        off, reach = answer - even, apart * noise
        if abs(off) <= reach:
            return even, True
        answer = min(max(even + off * (1 - (reach / off) ** 2), 0.0), records)
        if abs(off) < EMPTY * noise:
            return answer, False
        if answer < least[0] and off < 0 and not peaks[0]:
            return 0.0, False
        return (records if records - answer < least[1] and off > 0 and not peaks[1] else answer), False


def _garrote_error(z: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
    """Stein's estimate of the squared error of z (1 − reach²/z²)₊, where z has noise of 1."""
    with np.errstate(divide="ignore"):
        ratio = reach**2 / z**2
    return np.where(ratio >= 1, z**2 - 1, 1 + ratio * (reach**2 + 2))
