"""Independent parts of a marginal: cells that can exchange mass, sorted by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from evaluation.mgd.geometry import Axis


@dataclass(frozen=True, eq=False)
class FlowParts:
    """The parts of one marginal that hold a cell beyond tolerance; the others cost nothing.

    Attributes:
        alone: Σ max(|p − q| − Δ, 0) over the cells that exchange no mass with any other, in records.
        starts: where each part begins in `order`; one more entry than parts.
        order: the occupied cells of the parts, part after part.
        place: of each occupied cell of the marginal, its number in C order among the codes of the part's moving axes.
        pattern: of each part, the axes along which its mass moves, as bits.
    """

    alone: float
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    place: NDArray[np.int64]
    pattern: NDArray[np.int64]

    def groups(self) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
        """The moving axes of each pattern, with the numbers of its parts."""
        groups = []
        for bits in np.unique(self.pattern):
            axes = tuple(i for i in range(int(bits).bit_length()) if int(bits) >> i & 1)
            groups.append((axes, np.flatnonzero(self.pattern == bits)))
        return groups


def split(cells: Cells, axes: Sequence[Axis], delta: float) -> FlowParts:
    """Cells that share the codes on which no mass moves form one part.

    Cost: some passes over the occupied cells, and a sort of those in parts beyond tolerance.
    """
    count, beyond = cells.ids.size, np.abs(cells.p - cells.q) - delta
    label, place, pattern = np.zeros((3, count), np.int64)
    here, step, rest = np.ones(count, np.int64), 1, cells.ids
    for number, axis in reversed(list(enumerate(axes))):
        rest, code = np.divmod(rest, axis.size)
        length = axis.length if axis.moves else 0
        inside = code < length
        place += np.where(inside, code * here, 0)
        here[inside] *= length
        label += np.where(inside, 0, code - max(length - 1, 0)) * step
        step *= axis.size - max(length - 1, 0)
        pattern |= inside << number
    moving = pattern > 0
    alone = float(np.maximum(beyond[~moving], 0.0).sum())
    order = np.flatnonzero(moving & np.isin(label, label[moving & (beyond > 0)]))
    order = order[np.argsort(label[order], kind="stable")]
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    return FlowParts(alone, np.append(starts, order.size), order, place, pattern[order[starts]])
