"""What codes, bounds and bins of a column are called in a schema, and the code of a value as rules name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.bins import multiple
from mechanisms.public.schema.column import DATE_KINDS, ORDERED_KINDS, Column
from mechanisms.public.schema.discover_fields import FieldDict, as_text


def code_names(column: Column) -> tuple[str, ...]:
    """What each code is called for a reader: its label; then *other*, *missing* and *outside the schema*."""
    return (*column.labels, *column.specials)


def code_values(column: Column) -> tuple[object, ...]:
    """What each code stands for: its text, its whole number, or the number of its bin; then as `code_names`."""
    values: tuple[object, ...] = column.values
    if not values:
        whole = column.kind == "integer" and column.bins is None and column.codes is None
        first = int(column.low) if whole else 0
        values = tuple(range(first, first + column.value_codes))
    return (*values, *column.specials)


def label_of(column: Column, code: int) -> str | None:
    """The label that `code_of` reads back; None for missing."""
    if code == column.missing_code:
        return None
    return column.other if code == column.other_code else column.labels[code]


def labels_of(columns: Sequence[Column], codes: Iterable[int]) -> list[str | None]:
    """The labels of a code of each column."""
    return [label_of(column, int(code)) for column, code in zip(columns, codes, strict=True)]


def codes_of(columns: Sequence[Column], values: Iterable[object], *, rule: str, where: str) -> list[int]:
    """The codes that a rule's values name, one of each column; UserError as of `code_of`."""
    return [code_of(column, value, rule=rule, where=where) for column, value in zip(columns, values, strict=True)]


def code_of(column: Column, value: object, *, rule: str, where: str) -> int:
    """The code that a rule's value names; null is missing.

    Args:
        rule: names the rule in messages.

    Raises:
        UserError: the column has no such value; suggests one.
    """
    if value is None:
        if column.missing_code is None:
            never = f"{rule}: column {column.name!r} is never missing"
            raise UserError(never, where=where, fix="a value of the column")
        return column.missing_code
    text = as_text(value, rule, where)
    if text not in (codes := column.codes_by_label):
        few = ", ".join(map(repr, list(codes)[:8])) + (", …" if len(codes) > 8 else "")
        fix = did_you_mean(text, codes) or f"one of {few}"
        raise UserError(f"{rule}: column {column.name!r} has no value {text!r}", where=where, fix=fix)
    return codes[text]


def codes_meant(column: Column, meant: object, *, rule: str, where: str) -> Flags:
    """Which codes a pattern means: a value, a list of values, {min, max} of numbers, or {}: any but empty ones.

    Raises:
        UserError: an unknown value, bounds on a column that has none, or that cut a bin; {} of one that is never empty.
    """
    is_meant = np.zeros(column.size, np.bool_)
    if isinstance(meant, Mapping) and not meant:
        gaps: list[object] = [""] if "" in column.codes_by_label else []
        gaps += [] if column.missing_code is None else [None]
        return ~codes_meant(column, gaps or None, rule=rule, where=where)
    if isinstance(meant, Mapping):
        is_meant[: column.value_codes] = _between(column, meant, rule, where)
        return is_meant
    for value in meant if isinstance(meant, list | tuple) else [meant]:
        is_meant[code_of(column, value, rule=rule, where=where)] = True
    return is_meant


def _between(column: Column, bounds: Mapping[object, object], rule: str, where: str) -> Flags:
    numbers = column.kind in ORDERED_KINDS and column.kind not in DATE_KINDS
    if not (numbers or column.codes is not None) or set(bounds) - {"min", "max"}:
        fix = "a value, a list of values, {} for any value, or {min: …, max: …} for a column of numbers"
        raise UserError(f"{rule}: column {column.name!r}: got {dict(bounds)!r}", where=where, fix=fix)
    low, high = (_number(bounds.get(k), d, rule, where) for k, d in (("min", -np.inf), ("max", np.inf)))
    first, last = drawn_ends(column)
    inside, touched = (first >= low) & (last <= high), (last >= low) & (first <= high)
    if (inside != touched).any():
        stepped = column.kind == "float" and column.step
        each = [f"{a:.15g} to {b:.15g}" for a, b in zip(first, last, strict=True)] if stepped else column.labels
        fix = "bounds at the edges of the bins: " + ", ".join(each[i] for i in np.flatnonzero(inside != touched))
        raise UserError(f"{rule}: the bounds cut a bin of column {column.name!r}", where=where, fix=fix)
    return np.asarray(inside)


def _number(value: object, default: float, rule: str, where: str) -> float:
    if value is None:
        return default
    try:
        return float(str(value))
    except ValueError as error:
        raise UserError(f"{rule}: got {value!r}", where=where, fix="a number") from error


def bin_bounds(column: Column) -> tuple[Floats, Floats]:
    """The least and the largest value of each bin of a column of numbers; floats: bins without their upper edge."""
    low, high = column.grid.spans
    return low, np.append(np.nextafter(high[:-1], -np.inf), high[-1:]) if column.kind == "float" else high


def drawn_ends(column: Column) -> tuple[Floats, Floats]:
    """The least and the largest value that each code decodes to: (value codes,)."""
    (low, last), step = bin_bounds(column), column.step
    if not step:
        return low, last
    first, final = step_from(low, step), -step_from(-last, step)
    held = first <= final
    return np.where(held, multiple(first, step), low), np.where(held, multiple(final, step), last)


def step_from(edges: Floats, step: float) -> Floats:
    """How many steps the first value in the digits of steps is that does not lie below each edge, exactly."""
    steps = np.rint(edges / step) - 1
    for _ in range(2):
        steps += multiple(steps, step) < edges
    return steps


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
