"""Fine answers: those about the cells of a column and about its bins as one, and counts of a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.bins import multiple, steps_to
from mechanisms.public.schema.column import Column, Shape
from mechanisms.public.schema.fine_cells import cells_of_bins, fine_edges

#: Noisy records per code, and the variance of one.
Answer = tuple[Floats, float]


@dataclass(frozen=True, eq=False)
class FineEvidence:
    """What noisy answers say of the fine cells of a column.

    Attributes:
        cells: records per fine cell, from both kinds of answers; unbiased where cells that are no support hold none.
        first: (bins + 1,) the first fine cell of each bin, and their number.
        bin_variance: of the records of a bin.
        cell_variance: of a fine answer alone; 0 where none was measured: then a bin is known as a whole.
        support: cells that may hold records.
    """

    cells: Floats
    first: Ints
    bin_variance: Floats
    cell_variance: float
    support: Flags

    def variance(self, start: Ints, stop: Ints) -> Floats:
        """Of the sums of the cells from each `start` to before `stop`: whole bins, and parts of those at the ends."""
        variances = np.concatenate([[0], np.cumsum(self.bin_variance)])
        low, high = np.searchsorted(self.first, start), np.searchsorted(self.first, stop, side="right") - 1
        whole = np.where(low <= high, variances[high] - variances[np.minimum(low, high)], 0.0)
        begin, end = (np.where(low <= high, self.first[np.minimum(each, high)], stop) for each in (low, high))
        return np.asarray(whole + self._inside(start, begin) + self._inside(end, stop))

    def _inside(self, start: Ints, stop: Ints) -> Floats:
        """As `variance`, where each part lies inside one bin."""
        cells = np.concatenate([[0], np.cumsum(self.support)])
        own = np.minimum(np.searchsorted(self.first, start, side="right"), self.bin_variance.size) - 1
        part = cells[stop] - cells[start]
        share = part / np.maximum(cells[self.first[own + 1]] - cells[self.first[own]], 1)
        return np.asarray(self.cell_variance * part * (1 - share) + share**2 * self.bin_variance[own])


def mean_of(answers: Sequence[NoisyMarginal]) -> Answer | None:
    """The mean of whole answers about one marginal, weighed by 1/σ², and its variance; None where there is none."""
    whole = [a for a in answers if isinstance(a.query, Identity)]
    if not whole:
        return None
    precision = sum(a.stddev**-2 for a in whole)
    return np.asarray(sum(a.values * a.stddev**-2 for a in whole)) / precision, 1 / precision


def evidence_of(column: Column, fine: Answer | None, bins: Answer | None, support: Flags | None = None) -> FineEvidence:
    """Both answers as one: the bins' records weighed by precision, and what is left of the fine answers inside them.

    Two levels of a tree with a consistent sum (Hay et al. 2010, section 4), for bins of any size: least squares, given
    that cells outside of the support hold nothing.

    Args:
        fine, bins: as of `mean_of`; not both None.
        support: cells that may hold records; None: all.
    """
    first = cells_of_bins(column)
    support = np.ones(first[-1], np.bool_) if support is None else support
    sizes = np.add.reduceat(support.astype(np.int64), first[:-1])
    some, least = sizes > 0, np.maximum(sizes, 1)
    values = np.where(support, 0.0 if fine is None else fine[0][: first[-1]], 0.0)
    precision, total = np.zeros(sizes.size), np.zeros(sizes.size)
    sums = np.add.reduceat(values, first[:-1])
    if fine is not None:
        precision, total = precision + 1 / (least * fine[1]), total + sums / (least * fine[1])
    if bins is not None:
        precision, total = precision + 1 / bins[1], total + bins[0][: sizes.size] / bins[1]
    counts = np.where(some, total / precision, 0.0)
    cells = values + np.where(support, np.repeat((counts - sums) / least, np.diff(first)), 0.0)
    return FineEvidence(cells, first, np.where(some, 1 / precision, 0.0), 0.0 if fine is None else fine[1], support)


#: Ranges in a column's unit, both ends included.
Ranges = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class RangeCount:
    """How many records lie in a range.

    Attributes:
        value, error: the estimate and the standard error of its noise.
        least, most: the counts, each with its error, if cells that the range cuts held all of their records outside of
            it, and inside.
        cut: the fine cells that it cuts.
    """

    value: float
    error: float
    least: tuple[float, float]
    most: tuple[float, float]
    cut: tuple[int, ...]


def curve_shares(shape: Shape, edges: Floats, column: Column, ranges: Ranges) -> Floats:
    """The part of each interval between edges that the ranges hold, by the curve; of its width where it holds nothing.

    Args:
        edges: in the column's unit, ascending.
    """
    below, whole = _below(shape, edges), np.zeros(edges.size - 1)
    below[-1] = shape.below[-1]
    for low, high in (_drawn_ends(column, r) for r in ranges):
        ends = _below(shape, np.array([low, high]))
        records = np.clip(np.minimum(below[1:], ends[1]) - np.maximum(below[:-1], ends[0]), 0.0, None)
        width = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None) / np.diff(edges)
        held = np.diff(below)
        whole += np.where((width > 0) | (records > 0), np.where(held > 0, records / np.maximum(held, 1e-300), width), 0)
    return np.minimum(whole, 1.0)


def range_count(
    column: Column, shape: Shape | None, fine: Answer | None, bins: Answer | None, ranges: Ranges
) -> RangeCount:
    """The records of a column in ranges that do not overlap.

    Args:
        shape: the curve; None: cut cells count by how much of their width is inside.
        fine, bins: as of `evidence_of`; not both None.
    """
    edges = fine_edges(column)
    assert edges is not None
    evidence = evidence_of(column, fine, bins)
    whole, touched = np.zeros(edges.size - 1, np.bool_), np.zeros(edges.size - 1, np.bool_)
    for low, high in (_ends(column, r) for r in ranges):
        whole |= (edges[:-1] >= low) & (edges[1:] <= high)
        touched |= (edges[:-1] < high) & (edges[1:] > low)
    if column.kind == "float":  # the last value is in the last cell, and one on an edge in the cell above it
        touched |= np.isin(edges[:-1], [high for _, high in ranges])
    if shape is None:
        shape = Shape(edges, np.arange(float(edges.size)), edges, np.arange(float(edges.size)))
    shares = np.where(whole, 1.0, np.where(touched, curve_shares(shape, edges, column, ranges), 0.0))
    value, least, most = (_counted(evidence, np.asarray(w, np.float64)) for w in (shares, whole, touched))
    return RangeCount(*value, least, most, tuple(np.flatnonzero(touched & ~whole).tolist()))


def _ends(column: Column, asked: tuple[float, float]) -> tuple[float, float]:
    """Where a range begins and ends on the line: whole units have a width of 1; the last bound of floats is a value."""
    low, high = asked
    return (low, high) if column.kind == "float" else (math.ceil(low), math.floor(high) + 1)


def _drawn_ends(column: Column, asked: tuple[float, float]) -> tuple[float, float]:
    """The same; of multiples from the first one inside to where the one after the last begins."""
    if (step := column.multiple_of) is None:
        return _ends(column, asked)
    first, beyond = steps_to(np.array([asked[0], -asked[1]]), step) * (1, -1) + (0, 1)
    return float(multiple(first, step)), float(multiple(beyond, step))


def _below(shape: Shape, places: Floats) -> Floats:
    """The records below each place; at a peak, those below it."""
    return np.asarray(np.interp(np.nextafter(places, -np.inf), shape.places, shape.below), np.float64)


def _counted(evidence: FineEvidence, weights: Floats) -> tuple[float, float]:
    """The weighted sum of the cells, and its standard error by both levels of the evidence."""
    starts = evidence.first[:-1]
    sizes = np.diff(evidence.first)
    sums, squares = (np.add.reduceat(x, starts) for x in (weights, weights**2))
    inside = np.maximum(squares - sums**2 / sizes, 0.0).sum() * evidence.cell_variance
    across = ((sums / sizes) ** 2 * evidence.bin_variance).sum()
    return float(weights @ evidence.cells), math.sqrt(inside + across)
