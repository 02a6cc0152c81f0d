"""joint_bins: coarse bins of a column for joint marginals, from its declaration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import code_dtype
from mechanisms.public.domain import Attribute
from mechanisms.public.errors import UserError
from mechanisms.public.rules.transforms import Coarsen
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fields import whole_number

FIX = "joint_bins: {count: 10}, {level: a level of the hierarchy}, or {starts: [0, 5, 9]} with the first code of each"
Bins = tuple[str, object]


def parse_joint_bins(given: object, where: str) -> Bins | None:
    """The declaration as one name and its value; what it means is checked with the whole column."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in {"count", "level", "starts"}:
        raise UserError(f"joint_bins: got {given!r}", where=where, fix=FIX)
    name, value = next(iter(given.items()))
    return str(name), tuple(value) if isinstance(value, list | tuple) else value


def coarsened(column: Column, *, where: str) -> Coarsen:
    """The step of a column with `joint_bins`; *other* and *missing* keep bins of their own.

    Raises:
        UserError: bins that do not fit the column.
    """
    assert column.joint_bins is not None
    name, value = column.joint_bins
    size = column.value_codes
    groups = {"count": _counted, "level": _level, "starts": _starts}[name](column, value, where)
    bins = int(groups.max()) + 1
    groups = np.concatenate([groups, bins + np.arange(column.size - size)])
    ordered = bins if column.on_a_line and bool((np.diff(groups[:size]) >= 0).all()) else 0
    coarse = Attribute(column.name, bins + column.size - size, ordered)
    return Coarsen(column.attribute, coarse, groups.astype(code_dtype(coarse.size)))


def _counted(column: Column, value: object, where: str) -> NDArray[np.int64]:
    """Runs of codes of nearly equal length."""
    size = column.value_codes
    count = whole_number(value, "joint_bins: count", where, low=1, high=size)
    return np.arange(size, dtype=np.int64) * count // size


def _starts(column: Column, value: object, where: str) -> NDArray[np.int64]:
    starts = list(value) if isinstance(value, tuple) else []
    whole = all(isinstance(s, int) and not isinstance(s, bool) for s in starts)
    fits = whole and starts and starts[0] == 0 and starts == sorted(set(starts)) and starts[-1] < column.value_codes
    if not fits:
        fix = f"ascending codes from 0 to at most {column.value_codes - 1}, the first one 0"
        raise UserError(f"joint_bins: starts: got {value!r}", where=where, fix=fix)
    return (np.searchsorted(np.array(starts), np.arange(column.value_codes), side="right") - 1).astype(np.int64)


def _level(column: Column, value: object, where: str) -> NDArray[np.int64]:
    """Each value's node on a level of the hierarchy."""
    if column.tree is None:
        raise UserError("joint_bins: level, but the column has no hierarchy", where=where, fix=FIX)
    try:
        return column.tree.nodes_of(value if isinstance(value, int) else str(value))
    except UserError as error:
        raise UserError(f"joint_bins: {error.what}", where=where, fix=error.fix) from error
