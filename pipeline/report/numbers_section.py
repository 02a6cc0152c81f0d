"""The table that people look at first: numbers and dates of both tables, side by side, in all and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.report.page import Cell, Section, Table, number

FIGURES = ("values", "missing", "mean", "std. dev.", "1 %", "25 %", "50 %", "75 %", "99 %")
HEAD = ("column", "table", *FIGURES)
GROUP_HEAD = ("column", "group", "table", *FIGURES)
NOISE = "± noise"
#: Columns that a page lists; all are in scores.json.
LISTED = 150


def numbers_section(numbers: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]] = ()) -> Section:
    """From the parts `numbers` and `groups` of scores.json."""
    by = dict.fromkeys(each["by"] for each in groups)
    parts = [(name, Table(GROUP_HEAD, _groups([e for e in groups if e["by"] == name][: 2 * LISTED]))) for name in by]
    listed = min(len(numbers), LISTED)
    shown = {"summaries": Table(HEAD, rows_of(numbers[:LISTED])), "groups": parts, "beyond": beyond_bounds(numbers)}
    return Section("numbers", "Numbers and dates", shown | {"listed": listed, "columns": len(numbers)})


def beyond_bounds(numbers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of which columns the real table holds values beyond the bounds, which the table shows as the bounds."""
    shares = {each["column"]: (each["real"] or {}).get("beyond") or 0.0 for each in numbers}
    return [
        f"{name}: {f'{share:.1%}' if share >= 0.001 else 'less than 0.1%'} of the real values lie beyond the schema's "
        "bounds, and count here as the bounds"
        for name, share in shares.items()
        if share
    ]


def rows_of(numbers: Sequence[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """Two or three rows per column, as texts."""
    return [row for each in numbers for row in _rows(each, (each["column"],))]


def _groups(groups: Sequence[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    return [row for each in groups for row in _rows(each, (each["column"], each["group"]))]


def _rows(each: Mapping[str, Any], names: tuple[str, ...]) -> list[tuple[Cell, ...]]:
    rows = [(*names, table, *_figures(each[table])) for table in ("real", "synthetic") if each[table] is not None]
    mean = each["mean_standard_error"]
    if mean is not None:
        quantiles = each.get("quantile_standard_errors") or [None] * 5
        rows.append((*names, NOISE, "", "", _shown(mean), "", *map(_shown, quantiles)))
    return rows


def _figures(own: Mapping[str, Any]) -> tuple[Cell, ...]:
    missing = "" if own["missing"] is None else f"{own['missing']:.1%}"
    return (f"{own['count']:,}", missing, *map(_shown, [own["mean"], own["stddev"], *own["quantiles"]]))


def _shown(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else number(value)


def as_lines(numbers: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """The same for a terminal; empty without columns of numbers."""
    lines = [*_lined(HEAD, rows_of(numbers)), *beyond_bounds(numbers)] if numbers else []
    for name in dict.fromkeys(each["by"] for each in groups):
        lines += [f"by {name}:", *_lined(GROUP_HEAD, _groups([e for e in groups if e["by"] == name]))]
    return lines


def _lined(head: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> list[str]:
    every = [head, *rows]
    widths = [max(len(str(row[i])) for row in every) for i in range(len(head))]
    return ["  ".join(f"{cell!s:>{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in every]
