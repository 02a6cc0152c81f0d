"""What a condition on a column holds: how much of each code, its ranges, and what it leaves out."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.bins import Bins, FloatGrid, steps_to
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.column_parse import bound
from mechanisms.public.schema.fine_cells import from_edge, plain_edges
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.text_forms import NumberForm


def code_weights(schema: Schema, name: str, value: Any) -> Floats:
    """How much of each code of a column a condition holds: 1, 0, or the part of a bin that it cuts.

    Args:
        value: one value, a list of values, or [low, high] of a column on a line; None: missing.
    Raises:
        UserError: no range, or a value that the column has not.
    """
    column, items = schema[name], _items(value)
    if not items:
        raise UserError(f"column {name!r}: an empty list", where="where", fix="values, or [low, high]")
    if (ranges := asked_ranges(column, value, name)) is not None:
        weights = sum((_range(column, low, high) for low, high in ranges), np.zeros(column.size))
        if not np.any(weights):
            bounds = f"a part of {column.labels[0]} … {column.labels[-1]}"
            steps = "" if column.step in (0, 1) else f", which holds a multiple of {column.step:g}"
            raise UserError(f"column {name!r} has no value there", where="where", fix=bounds + steps)
        return np.minimum(weights, 1.0)
    weights, codes = np.zeros(column.size), _codes(column)
    whole = all(isinstance(item, int | np.integer) and str(item) in codes for item in items)
    if column.bins == Bins(calendar="hour_of_day") and len(items) == 2 and whole:  # through midnight, if need be
        items = [(items[0] + k) % 24 for k in range((items[1] - items[0]) % 24 + 1)]
    for item in items:
        text = _text(item, column)
        if text not in codes:
            form = f" in the form {column.format}" if column.kind in DATE_KINDS and column.format else ""
            or_ranges = f"[low, high]{form}, or " * (column.on_a_line and not column.values)
            allowed = f"{or_ranges}values such as {', '.join([label for label in codes if label][:6])}"
            fix = ("" if text.isdigit() else did_you_mean(text, codes)) or allowed
            problem = "no value that is missing" if item is None else f"no value {text!r}"
            raise UserError(f"column {name!r} has {problem}", where="where", fix=fix)
        weights[codes[text]] = 1.0
    return weights


def asked_ranges(column: Column, value: Any, name: str) -> list[tuple[float, float]] | None:
    """The ranges that a condition names, in the column's unit, both ends included; None where it names values.

    Two numbers are a range; one, or three and more, are values: ranges of one whole unit.
    """
    if not column.on_a_line or column.values or (column.cell_of and not column.between):
        return None
    items = _items(value)
    if column.bins == Bins(calendar="hour") and all(str(item) in _codes(column) for item in items):
        return None  # names of hours, each a value, though they can be read as instants
    ends = [_number(column, item, last=i == 1) for i, item in enumerate(items)]
    if not ends or any(e is None for e in ends):
        return None
    low, high = ends[0], ends[-1]
    if len(items) == 2 and not low <= high:  # type: ignore[operator]  # None was left out
        shown = ", ".join(str(item) for item in items)
        raise UserError(f"column {name!r}: got [{shown}]", where="where", fix="[low, high], low first")
    if len(items) == 2 and (low != high or column.kind != "float" or column.multiple_of is not None):
        return _near(column, [(low, high)])  # type: ignore[list-item]
    if column.kind == "float" and not all(from_edge(column, e)[1] for e in ends if e is not None):
        raise UserError(f"column {name!r}: single numbers have no width", where="where", fix="a range: [low, high]")
    last = [_number(column, item, last=True) for item in items]
    each: list[tuple[float, float]] = _near(column, sorted(set(zip(ends, last, strict=True))))  # type: ignore[arg-type]
    return [pair for pair in each if np.any(_range(column, *pair))]


def _near(column: Column, ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same ranges; what lies far beyond the bounds, which no whole number may hold, lies just beyond them."""
    least, most = column.bounds[0] - 1, column.bounds[1] + 1
    return [(min(max(low, least), most), min(max(high, least), most)) for low, high in ranges]


def left_out(column: Column, value: Any) -> list[str]:
    """What lies on an edge of two bins of floats, up to which a range was asked; bins between two names of dates."""
    if column.kind in DATE_KINDS and column.on_a_line and len(ends := _items(value)) == 2:
        apart = asked_ranges(column, value, column.name) is None
        return [f"{column.name}: {ends[0]} and {ends[1]} are two bins; a range has two dates as its ends"] * apart
    if column.kind != "float":
        return []
    on = [high for _, high in asked_ranges(column, value, column.name) or () if high in column.grid.spans[0][1:]]
    on = [high for high in on if not from_edge(column, high)[1]]
    return [f"{column.name}: a value of exactly {high:g} lies in the bin above, and is not counted" for high in on]


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _codes(column: Column) -> dict[str, int]:
    """Every text that names a code, and what the codes without a value are called."""
    named = dict(column.codes_by_label)
    for place, label in enumerate(column.specials):
        named.setdefault(label, column.value_codes + place)
    return named


def _text(item: Any, column: Column) -> str:
    if item is None:
        return ""
    if isinstance(item, bool) and column.kind == "flag":
        return column.values[item]
    return str(item).lower() if isinstance(item, bool) else str(item)


def _number(column: Column, item: Any, *, last: bool) -> float | None:
    """An end of a range in the column's unit, of a float as its table writes it (4,5) too.

    A day as the last end is its last second, 1950 of dates all the year.
    """
    if isinstance(item, bool):
        return None
    if column.kind not in DATE_KINDS:
        if isinstance(item, str) and column.kind == "float" and item not in _codes(column):
            return NumberForm(column.strip, column.decimal).number(item)
        if isinstance(item, int) and abs(item) > sys.float_info.max:  # no float holds it
            return math.inf if item > 0 else -math.inf
        return float(item) if isinstance(item, int | float | np.integer | np.floating) else None
    form = None if str(item) in _codes(column) else column.format  # a name of a bin stays one
    if isinstance(item, int) and item > 999:  # smaller ones name hours
        item = f"{item}-12-31" if last else f"{item}-01-01"
    try:
        return bound(str(item), column.kind, form, "max" if last else "min", "where")
    except UserError:
        return None


def _range(column: Column, low: float, high: float) -> Floats:
    """The part of each bin between two ends, as if its values were spread evenly; of steps that lie between, none.

    Where a bin holds multiples, or numbers of so many decimals, its values are those alone.
    """
    even = _even(column, low, high)
    if plain_edges(column) is not None and column.step not in (0, 1):
        within = (_steps(column, low, high) > 0) | (_steps(column, -math.inf, math.inf) <= 0)
        even[: within.size] *= within
    return even


def _steps(column: Column, low: float, high: float) -> Floats:
    """How many of the values that are drawn each bin holds between two ends."""
    first, last = column.grid.spans
    closed = (np.arange(last.size) == last.size - 1) | (column.kind != "float") | (last > high)
    end = np.minimum(last, high)
    beyond = np.where(closed, 1 - steps_to(-end, column.step), steps_to(end, column.step))
    return beyond - steps_to(np.maximum(first, low), column.step)


def _even(column: Column, low: float, high: float) -> Floats:
    """The part of each bin's width between two ends."""
    grid, weights = column.grid, np.zeros(column.size)
    if isinstance(grid, FloatGrid):
        edges = grid.edges
        inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        last, part = from_edge(column, high)  # a multiple on an edge lies in the upper bin
        inside[last] = max(inside[last], part)
        weights[: column.value_codes] = np.clip(inside, 0, None) / np.diff(edges)
        return weights
    inside = np.clip(np.minimum(grid.ends, np.floor(high) + 1) - np.maximum(grid.starts, np.ceil(low)), 0, None)
    sums = np.add.reduceat(np.stack([inside, grid.ends - grid.starts]).astype(float), grid.first[:-1], axis=1)
    weights[: column.value_codes] = sums[0] / sums[1]
    return weights
