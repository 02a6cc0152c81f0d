"""Independent parts of a marginal: cells that can exchange mass, sorted by part in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from evaluation.mgd.geometry import Axis
from mechanisms.public.jit import compiled

#: Labels of parts are marked in an array if there are at most this many, or four per occupied cell.
FEW_LABELS = 1 << 22


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
    order: NDArray[np.int32]
    place: NDArray[np.int32]
    pattern: NDArray[np.int16]

    def groups(self) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
        """The moving axes of each pattern, with the numbers of its parts."""
        groups = []
        for bits in np.unique(self.pattern):
            axes = tuple(i for i in range(15) if int(bits) >> i & 1)
            groups.append((axes, np.flatnonzero(self.pattern == bits)))
        return groups


def split(cells: Cells, axes: Sequence[Axis], delta: float) -> FlowParts:
    """Cells that share the codes on which no mass moves form one part.

    Cost: three passes over the occupied cells, and an array over the labels of parts (sorting where they are many).
    """
    lengths = np.array([a.length if a.moves else 0 for a in axes], np.int64)
    sizes = np.array(cells.shape, np.int64)
    count = cells.ids.size
    part, place = np.empty(count, np.int64), np.empty(count, np.int32)
    alone = _label(cells.ids, (sizes, lengths), cells.p, cells.q, float(delta), part, place)
    labels = int(np.prod(np.where(lengths > 0, sizes - lengths + 1, sizes)))
    if labels > 4 * count + FEW_LABELS:
        parts, inverse = np.unique(part, return_inverse=True)
        shift = int(parts.size > 0 and parts[0] < 0)
        part, labels = inverse.astype(np.int64) - shift, parts.size - shift
    starts, order, first = _sort(part, labels, cells.p, cells.q, float(delta))
    pattern = _patterns(cells.ids[first], sizes, lengths)
    return FlowParts(alone, starts, order, place, pattern)


def _patterns(ids: NDArray[np.int64], sizes: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int16]:
    codes = np.stack(np.unravel_index(ids, tuple(sizes)))
    bits = (codes < lengths[:, None]) << np.arange(len(sizes))[:, None]
    return np.asarray(bits.sum(axis=0), np.int16)


@compiled
def _label(
    ids: NDArray[np.int64],
    axes: tuple[NDArray[np.int64], NDArray[np.int64]],
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    delta: float,
    part: NDArray[np.int64],
    place: NDArray[np.int32],
) -> float:
    """Fill part (−1 for cells alone) and place; returns what the cells alone are beyond tolerance.

    Args:
        axes: of each, its codes and how many of them exchange mass.
    """
    sizes, lengths = axes
    alone = 0.0
    for i in range(len(ids)):
        rest = np.uint64(ids[i])
        label, label_by, at, at_by, moving = 0, 1, 0, 1, False
        for axis in range(len(sizes) - 1, -1, -1):
            size, length = sizes[axis], lengths[axis]
            above = rest // np.uint64(size)
            code = int(np.int64(rest - above * np.uint64(size)))
            rest = above
            if code < length:
                at += code * at_by
                at_by *= length
                moving = True
            elif length > 0:
                label += (code - length + 1) * label_by
            else:
                label += code * label_by
            label_by *= size - length + 1 if length > 0 else size
        place[i] = at
        part[i] = label if moving else -1
        if not moving:
            alone += max(abs(p[i] - q[i]) - delta, 0.0)
    return alone


@compiled
def _sort(
    part: NDArray[np.int64], labels: int, p: NDArray[np.float64], q: NDArray[np.float64], delta: float
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Counting sort of the cells of those parts that hold a cell beyond tolerance."""
    number = np.full(labels, -1, np.int32)
    for i in range(len(part)):
        if part[i] >= 0 and abs(p[i] - q[i]) > delta:
            number[part[i]] = 0
    parts = 0
    for label in range(labels):
        if number[label] == 0:
            number[label] = parts
            parts += 1
    starts = np.zeros(parts + 1, np.int64)
    for i in range(len(part)):
        if part[i] >= 0 and number[part[i]] >= 0:
            starts[number[part[i]] + 1] += 1
    for j in range(parts):
        starts[j + 1] += starts[j]
    put = starts[:parts].copy()
    order = np.empty(starts[parts], np.int32)
    for i in range(len(part)):
        if part[i] >= 0 and number[part[i]] >= 0:
            j = number[part[i]]
            order[put[j]] = i
            put[j] += 1
    first = np.empty(parts, np.int64)
    for j in range(parts):
        first[j] = order[starts[j]]
    return starts, order, first
