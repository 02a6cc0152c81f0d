"""Labels: what the value codes of a column are called; the leaves of its hierarchy."""

from __future__ import annotations

import datetime
import itertools
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.schema.bins import CYCLIC, DAY, Bins, FloatGrid, Grid, IntegerGrid

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Calendar unit → how a moment in it is written.
CALENDAR_FORMATS = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d %H"}


class Labelled(Protocol):
    """What a column says about its value codes."""

    @property
    def kind(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...

    @property
    def false(self) -> tuple[str, ...]: ...

    @property
    def true(self) -> tuple[str, ...]: ...

    @property
    def codes(self) -> int | None: ...

    @property
    def bins(self) -> Bins | None: ...

    @property
    def grid(self) -> Grid: ...

    @property
    def width(self) -> int | None: ...


def value_labels(column: Labelled) -> tuple[str, ...]:
    """A name for each value code, all distinct: the text, number or day, or `first to last` for a bin.

    Bins of floats are named by their edges. Calendar units are 2016, 2016-12, 2016-12-31 or 2016-12-31 23; cyclic ones
    January, Monday or the hour 0 … 23. The special codes (*other*, *missing*) are not among them.
    """
    if column.kind == "flag":
        return (column.false[0], column.true[0])
    if column.kind == "categorical" and column.codes is None:
        return column.values
    grid = column.grid
    if isinstance(grid, FloatGrid):
        return _float_bins(grid.edges)
    assert isinstance(grid, IntegerGrid)
    calendar = None if column.bins is None else column.bins.calendar
    if calendar in CYCLIC:
        return {"month_of_year": MONTHS, "day_of_week": DAYS}.get(calendar, tuple(map(str, range(24))))
    starts, last = grid.starts[grid.first[:-1]], grid.ends[grid.first[:-1]] - 1
    if grid.unit == "integer":
        digits = column.width or 0
        return tuple(_run(str(a).zfill(digits), str(b).zfill(digits)) for a, b in zip(starts, last, strict=True))
    unit = DAY if grid.unit == "day" else 1
    if calendar in CALENDAR_FORMATS:
        form = CALENDAR_FORMATS[calendar]
        return tuple(_moment(int(a) * unit, form) for a in starts)
    form = "%Y-%m-%d" if grid.unit == "day" else "%Y-%m-%d %H:%M:%S"
    return tuple(
        _run(_moment(int(a) * unit, form), _moment(int(b) * unit, form)) for a, b in zip(starts, last, strict=True)
    )


def _run(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _moment(seconds: int, form: str) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.strftime(form.replace("%Y", f"{moment.year:04d}"))


def _float_bins(edges: NDArray[np.float64]) -> tuple[str, ...]:
    """`0 to 2.5`: edges in ten digits, or in all where ten cannot tell them apart."""
    short = [f"{e:.10g}" for e in edges]
    texts = short if len(set(short)) == len(short) else [repr(float(e)) for e in edges]
    return tuple(f"{a} to {b}" for a, b in itertools.pairwise(texts))
