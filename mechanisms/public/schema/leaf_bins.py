"""Leaves: fine public bins by which a column is read before its bounds, bins or values are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanisms.public.schema.bins import LENGTHS, Bins
from mechanisms.public.schema.column import Column

#: Leaves of numbers; of days and times at most so many (two hundred years of days).
LEAVES, MAX_LEAVES = 4096, 80_000
#: Stands for the value of a column whose values nobody knows: a text of private use, which no table should hold.
NOTHING_LISTED = "\ue000"


def scouting_column(column: Column) -> Column:
    """The column with leaves for bins; or with all its values under *other*."""
    assert column.discover is not None
    if column.discover.values:
        return replace(column, values=(NOTHING_LISTED,), joint_bins=None)
    return _with_leaves(column)


def nothing_found(column: Column, leaves: int) -> bool:
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
