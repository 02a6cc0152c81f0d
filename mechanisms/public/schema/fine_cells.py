"""Fine cells: public sub-bins of a number or a date, measured alone beside the bins that stand in joint marginals.

Leaves: fine public bins by which a column is read before its bounds, bins or values are known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import code_dtype
from mechanisms.public.schema.bins import LENGTHS, Bins, multiple, steps_to
from mechanisms.public.schema.column import ORDERED_KINDS, Column

#: A bin of several values is crowded where it holds so much of the records.
CROWDED = 0.9
#: The fine cells of a column where nothing else is asked for, and the most that may be.
USUAL_FINE, MAX_FINE = 256, 10_000
#: Columns of at most so many whole numbers (or twice the cells that are asked for) get a fine cell for each.
SINGLE = 1_024
#: A range is wide from this size on, if its ends differ by a factor of more than RATIO; so are its bins of equal width
#: where theirs do.
WIDE = 1_000.0
RATIO = 2.5
#: Where a decade is cut; and where below a part of 1 / DEPTH of the bin's upper end, down to one of 1 / DEEPEST.
STEPS, COARSE_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 3.0)
DEPTH, DEEPEST = 100.0, 1e6
#: A peak of a float column has a cell of so many of its smallest distances.
PEAK = 64
#: Leaves of numbers; of days and times at most so many (two hundred years of days).
LEAVES, MAX_LEAVES = 4096, 80_000
#: Stands for the value of a column whose values nobody knows: a text of private use, which no table should hold.
NOTHING_LISTED = "\ue000"


def plain_edges(column: Column) -> Floats | None:
    """Where the bins begin and the last one ends, in the column's unit; None where they lie on no line.

    The cyclic calendar units (months of the year, hours of the day) lie on none.
    """
    return None if column.kind not in ORDERED_KINDS or column.width is not None else column.grid.edges


def bins_of_several(column: Column) -> Flags | None:
    """Whether each bin holds several values; None where the bins lie on no line."""
    edges = plain_edges(column)
    if edges is None:
        return None
    return np.asarray(np.diff(edges) > _least_step(column) * (1 + 1e-9))


def from_edge(column: Column, value: float) -> tuple[int, float]:
    """The bin of floats that holds a value; and, where it begins there, the width of what is there: a multiple, or all.

    All of a bin is there where it holds no other value, as [0, 0.01) of amounts with two decimals.
    """
    edges, several = plain_edges(column), bins_of_several(column)
    assert edges is not None and several is not None
    place = int(np.clip(np.searchsorted(edges, value, side="right"), 1, len(several))) - 1
    width = float(edges[place + 1] - edges[place])
    part = column.multiple_of or (0.0 if several[place] else width)
    return place, min(part, width) if value in edges else 0.0


def wide(column: Column) -> bool:
    """Whether the range of a column of numbers is so wide that its values are better told apart by their ratio."""
    far = max(abs(column.low), abs(column.high))
    return column.kind in ("integer", "float") and far >= WIDE and far > RATIO * _near(column.low, column.high)


def _near(low: float, high: float) -> float:
    """The least size of a number between these."""
    return 0.0 if low < 0 < high else min(abs(low), abs(high))


def log_cut(column: Column) -> Column:
    """The column with its bins of equal width cut in about equal ratios, where its range is wide.

    Bins whose ends differ by a factor of more than RATIO are cut at 1, 1.5, 2, 3, 5, 7 times powers of ten, and far
    below their upper end at 1 and 3 times, down to the least step of the values. So 0 has a bin of its own, and values
    of any size lie in a bin that is not much wider than they are large. Edges that somebody chose stay as they are.
    """
    edges = plain_edges(column)
    if edges is None or column.bins is None or column.bins.count is None or not wide(column):
        return column
    top = max(abs(column.low), abs(column.high))
    least = _least_step(column)
    cuts = []
    for low, high in itertools.pairwise(edges):
        far = max(abs(low), abs(high))
        if far > RATIO * _near(low, high):
            sizes = [
                *_decades(STEPS, far / DEPTH, top),
                *_decades(COARSE_STEPS, max(far / DEEPEST, least), far / DEPTH),
            ]
            cuts += [p for p in (0.0, least, *sizes, *(-x for x in sizes)) if low < p < high]
    if column.kind == "integer":
        cuts = [p for p in cuts if p == int(p)]
    every = np.unique(np.concatenate([edges, _at_multiples(column, np.array(cuts))]))
    return replace(column, bins=Bins(edges=_as_declared(column, every))) if cuts else column


def _decades(steps: Sequence[float], low: float, high: float) -> list[float]:
    """These times powers of ten, from `low` on and below `high`."""
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [x for ten in tens for x in (float(f"{step}e{ten}") for step in steps) if low <= x < high]


def _least_step(column: Column) -> float:
    """How far values of a column of numbers lie apart at least."""
    return max(column.step, _peak(column)) if column.kind == "float" else column.step


def _at_multiples(column: Column, places: Floats) -> Floats:
    """Places inside the bounds, moved up to the next multiples that the column's values are, where they are some."""
    step = column.multiple_of
    if step is None:
        return places
    moved = multiple(steps_to(places, step), step)
    return np.asarray(moved[(moved >= column.low) & (moved <= column.high)], np.float64)


def _peak(column: Column) -> float:
    """The width of the cell of a single value of floats."""
    return float(PEAK * np.spacing(max(abs(column.low), abs(column.high))))


def finest(column: Column) -> Column:
    """The column with its fine cells in the place of its bins; itself where it asks for none, or none are finer."""
    edges = plain_edges(column)
    if edges is None or not column.fine:
        return column
    floats = column.kind == "float"
    whole = edges[-1] - edges[0]
    if not floats and whole <= max(SINGLE, 2 * column.fine):
        cells = np.arange(edges[0], edges[-1] + 1)
    else:
        each = max(column.fine // (len(edges) - 1), 1)
        parts = [_split(low, high, each, ratio=wide(column)) for low, high in itertools.pairwise(edges)]
        cells = np.concatenate([*parts, edges[-1:]])
        cells = np.unique(cells if floats else np.rint(cells))
        cells = _with_peaks(column, edges, cells)
    if column.multiple_of is not None:  # the last of floats is the peak of the upper bound
        cells = np.unique([*edges, *_at_multiples(column, cells), *(cells[-2:-1] if floats else ())])
    if len(cells) <= len(edges):
        return column
    bins = Bins(edges=_as_declared(column, cells))
    return replace(column, bins=bins, fine=None, tree=None, distances=None, places=None)


@lru_cache(maxsize=256)
def fine_edges(column: Column) -> Floats | None:
    """Where the fine cells of a column begin and the last one ends; its bins' where it has none."""
    return plain_edges(finest(column))


def _split(low: float, high: float, count: int, *, ratio: bool) -> Floats:
    """The edges of `count` cells from `low` on, without `high`: equal steps, or equal ratios if asked for."""
    if ratio and low * high > 0 and max(abs(low), abs(high)) >= 2 * min(abs(low), abs(high)):
        return np.geomspace(low, high, count + 1)[:-1]
    return np.linspace(low, high, count + 1)[:-1]


def _with_peaks(column: Column, edges: Floats, cells: Floats) -> Floats:
    """Cells of their own for 0 and for the bounds, where values that were clipped stand."""
    if column.kind not in ("integer", "float"):
        return cells
    step = _peak(column) if column.kind == "float" else 1.0
    peaks = [edges[0], edges[0] + step, edges[-1] - step]
    peaks += [0.0, step] if edges[0] < 0 < edges[-1] else []
    apart = np.array([c for c in cells if all(abs(c - p) >= step or c == p for p in peaks)])
    every = np.unique(np.concatenate([apart, edges, [p for p in peaks if edges[0] < p < edges[-1]]]))
    close = np.flatnonzero(np.diff(every) < step / 2)
    drop = [i if every[i] not in edges else i + 1 for i in close]
    return np.asarray(np.delete(every, drop), np.float64)


def _as_declared(column: Column, edges: Floats) -> tuple[float, ...]:
    return tuple(edges.tolist()) if column.kind == "float" else tuple(int(e) for e in edges)


def peaks_of(column: Column) -> Floats:
    """The places where a fine cell of a float column stands for a single value: where it begins."""
    edges = fine_edges(column)
    if edges is None or column.kind != "float":
        return np.zeros(0)
    return np.asarray(edges[:-1][np.diff(edges) < 2 * _peak(column)], np.float64)


def cells_of_bins(column: Column) -> Ints:
    """(bins + 1,) the first fine cell of each bin, and their number."""
    edges, cells = plain_edges(column), fine_edges(column)
    assert edges is not None and cells is not None
    return np.searchsorted(cells, edges).astype(np.int64)


def bins_of_cells(column: Column) -> Ints:
    """The code of the bin that each fine cell lies in; *other* and *missing* behind them are what they are."""
    bins = np.repeat(np.arange(column.value_codes), np.diff(cells_of_bins(column)))
    return np.append(bins, np.arange(column.value_codes, column.size))


def fine_codes(column: Column, codes: NDArray[np.integer], values: Floats) -> Codes:
    """The fine cell of each value, inside the bin of its code; *other* and *missing* stand behind the cells.

    Args:
        values: inside the bounds; of no account where the code is none of a value.
    """
    cells, first, bins = fine_edges(column), cells_of_bins(column), column.value_codes
    assert cells is not None
    codes = codes.astype(np.int64)
    inside = np.minimum(codes, bins - 1)
    place = np.searchsorted(cells, values, side="right") - 1
    place = np.where(codes < bins, np.clip(place, first[inside], first[inside + 1] - 1), codes + (first[-1] - bins))
    return place.astype(code_dtype(int(first[-1]) + column.size - bins))


def scouting_column(column: Column) -> Column:
    """The column with leaves for bins; or with all its values under *other*."""
    assert column.discover is not None
    if column.discover.values:
        return replace(column, values=(NOTHING_LISTED,), joint_bins=None)
    return _with_leaves(column)


def is_as_assumed(column: Column, leaves: int) -> bool:
    """Whether the column of a release may be one whose answer was lost: no value, or bounds and bins as assumed.

    Args:
        leaves: of its tree; values have none.
    """
    if "values" in column.discovered:
        return column.constant
    scout = _with_leaves(column)
    cuts = np.linspace(0, leaves, column.value_codes + 1).astype(int)
    if scout.value_codes != leaves or "bins" not in column.discovered:
        return scout.value_codes == leaves
    edges, leaf_edges = column.grid.edges, scout.grid.edges
    return edges is not None and leaf_edges is not None and np.array_equal(edges, leaf_edges[cuts])


def _with_leaves(column: Column) -> Column:
    return replace(column, bins=_leaf_bins(column), joint_bins=None, fine=None)


def _leaf_bins(column: Column) -> Bins | None:
    low, high = column.bounds
    if column.kind == "float":
        return Bins(cells=LEAVES)
    span = int(high) - int(low) + 1
    if column.kind == "integer":
        return None if span <= LEAVES else Bins(cells=LEAVES)
    if span <= MAX_LEAVES:
        return None
    for name in ("hour", "day"):
        length = LENGTHS[name]
        if column.kind == "datetime" and LEAVES * length <= span <= MAX_LEAVES * length:
            return Bins(calendar=name)
    return Bins(count=MAX_LEAVES)
