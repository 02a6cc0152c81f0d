"""Records in a range, from fine answers: whole cells counted, cut ones by the curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.schema.column import Column, Shape
from mechanisms.public.schema.fine_cells import fine_edges
from synthesis.numbers.fine_evidence import Answer, FineEvidence, evidence_of

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


def curve_shares(shape: Shape, edges: Values, column: Column, ranges: Ranges) -> Values:
    """The part of each interval between edges that the ranges hold, by the curve; of its width where it holds nothing.

    Args:
        edges: in the column's unit, ascending.
    """
    below, whole = _below(shape, edges), np.zeros(edges.size - 1)
    below[-1] = shape.below[-1]
    for low, high in (_ends(column, r) for r in ranges):
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


def _below(shape: Shape, places: Values) -> Values:
    """The records below each place; at a peak, those below it."""
    return np.asarray(np.interp(np.nextafter(places, -np.inf), shape.places, shape.below), np.float64)


def _counted(evidence: FineEvidence, weights: Values) -> tuple[float, float]:
    """The weighted sum of the cells, and its standard error by both levels of the evidence."""
    starts = evidence.first[:-1]
    sizes = np.diff(evidence.first)
    sums, squares = (np.add.reduceat(x, starts) for x in (weights, weights**2))
    inside = np.maximum(squares - sums**2 / sizes, 0.0).sum() * evidence.cell_variance
    across = ((sums / sizes) ** 2 * evidence.bin_variance).sum()
    return float(weights @ evidence.cells), math.sqrt(inside + across)
