"""Fine answers cleared of noise: a range halved again and again, with records only where answers stand out of noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.public.marginals import Values
from synthesis.numbers.fine_evidence import FineEvidence

#: A half at the end of the range is empty where its records are fewer than so many standard deviations of their noise.
EMPTY = 2.5
#: Halves are told apart where they differ from an even spread by more than so many: the non-negative garrote.
APART = 2.0**0.5


@dataclass(frozen=True)
class Part:
    """Neighbouring fine cells, from `start` to before `stop`, whose records are spread evenly or by the curve."""

    start: int
    stop: int
    records: float


def cleared(evidence: FineEvidence, widths: Values) -> list[Part]:
    """Parts of the range with their records, ascending, not negative, and of the answers' sum.

    The range is halved again and again, and each part's records are split between its halves. A half at the end of the
    range, or beside an empty one, stays empty unless it stands out of its noise: noise alone never fills a tail.
    Elsewhere the records are split as the answers say where that differs from an even spread by more than their noise
    (non-negative garrote; Breiman 1995), else evenly; where all halves of a part are even, it stays one part.

    Args:
        widths: what an even spread is even in, per cell.
    """
    halving = _Halving(evidence, *(np.concatenate([[0.0], np.cumsum(x)]) for x in (evidence.cells, widths)))
    total = max(float(evidence.cells.sum()), 0.0)
    return halving.parts(0, evidence.cells.size, total, tails=(True, True))


@dataclass(frozen=True, eq=False)
class _Halving:
    """One pass of `cleared`: the evidence, and running sums of its cells and their widths."""

    evidence: FineEvidence
    sums: Values
    widths: Values

    def parts(self, start: int, stop: int, records: float, *, tails: tuple[bool, bool]) -> list[Part]:
        """The parts of a part; `tails`: whether nothing lies below it, and above it."""
        middle = self.middle(start, stop)
        if middle is None or records <= 0:
            return [Part(start, stop, records)]
        lower, even = self.lower(start, middle, stop, records, tails)
        upper = self.parts(middle, stop, records - lower, tails=(tails[0] and lower == 0, tails[1]))
        parts = self.parts(start, middle, lower, tails=(tails[0], tails[1] and records == lower)) + upper
        return [Part(start, stop, records)] if even and len(parts) == 2 else parts

    def middle(self, start: int, stop: int) -> int | None:
        """Where the cells are halved: between bins, where there are several; None where nothing more is known."""
        first, half = self.evidence.first, (start + stop) // 2
        inner = first[(first > start) & (first < stop)]
        if inner.size:
            return int(inner[np.argmin(np.abs(inner - half))])
        return half if stop - start > 1 and self.evidence.cell_variance > 0 else None

    def lower(self, start: int, middle: int, stop: int, records: float, tails: tuple[bool, bool]) -> tuple[float, bool]:
        """The records of the lower half, and whether they are those of an even spread."""
        below, above = self.evidence.variance(start, middle), self.evidence.variance(middle, stop)
        gap = records - float(self.sums[stop] - self.sums[start])
        answer = float(self.sums[middle] - self.sums[start]) + gap * below / (below + above)
        least = EMPTY * float(np.sqrt(below)), EMPTY * float(np.sqrt(above))
        if tails[1] and records - answer < least[1] and answer >= records - answer:
            return records, False
        if tails[0] and answer < least[0] and answer < records - answer:
            return 0.0, False
        share = float((self.widths[middle] - self.widths[start]) / (self.widths[stop] - self.widths[start]))
        even = records * share
        off, reach = answer - even, APART * float(np.sqrt((1 - share) ** 2 * below + share**2 * above))
        if abs(off) <= reach:
            return even, True
        answer = even + off * (1 - (reach / off) ** 2)
        if answer < least[0] and off < 0:
            return 0.0, False
        return (records if records - answer < least[1] and off > 0 else answer), False
