"""Bounds and bins of an ordered column as a schema's file says them, and those that fit several columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.fields import FieldDict


def written_bound(column: Column, value: float) -> object:
    """A bound in the column's unit as a schema's file says it."""
    if column.kind not in DATE_KINDS:
        return value
    moment = np.datetime64(int(value), "D" if column.kind == "date" else "s").astype(object)
    return str(moment.isoformat(sep=" ") if column.kind == "datetime" else moment.isoformat())


def written_bins(column: Column) -> FieldDict:
    """The field `bins`; empty where each whole number has a code of its own."""
    bins = column.bins
    if bins is None or bins.edges is None:
        return {} if bins is None else {"count": bins.count} if bins.count else {"calendar": bins.calendar}
    return {"edges": [written_bound(column, e) for e in bins.edges]}


def common_bins(columns: Sequence[Column]) -> FieldDict:
    """The fields `min`, `max` and `bins` with which columns of one kind have the same bins: those of the most bins.

    Its edges are widened to the bounds that hold all columns.
    """
    low, high = min(c.low for c in columns), max(c.high for c in columns)
    most = max(columns, key=lambda c: c.value_codes)
    bins = written_bins(most)
    if most.bins is not None and most.bins.edges is not None:
        last = high + (most.kind != "float")
        edges = sorted({low, *(e for e in most.bins.edges[1:-1] if low < e < last), last})
        return {"bins": {"edges": [written_bound(most, e) for e in edges]}}
    return {"min": written_bound(most, low), "max": written_bound(most, high)} | ({"bins": bins} if bins else {})
