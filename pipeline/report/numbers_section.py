"""The table that people look at first: numbers and dates of both tables, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.page import Cell, Table, number

HEAD = ("column", "table", "values", "missing", "mean", "± noise", "std. dev.", "1 %", "25 %", "50 %", "75 %", "99 %")


@dataclass(frozen=True)
class NumbersSection:
    """Every column of numbers or dates: a line of the real table above one of the synthetic."""

    name: ClassVar[str] = "numbers"
    title: ClassVar[str] = "Numbers and dates"
    template: ClassVar[str] = "sections/numbers.html.j2"
    summaries: Table


def numbers_section(numbers: Sequence[Mapping[str, Any]]) -> NumbersSection:
    """From the part `numbers` of figures.json."""
    return NumbersSection(Table(HEAD, rows_of(numbers)))


def rows_of(numbers: Sequence[Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """Two rows per column, as texts."""
    rows: list[tuple[Cell, ...]] = []
    for each in numbers:
        for table in ("real", "synthetic"):
            own, error = each[table], each["mean_standard_error"] if table == "synthetic" else None
            figures = [own["mean"], error, own["stddev"], *own["quantiles"]]
            missing = "" if own["missing"] is None else f"{own['missing']:.1%}"
            rows.append((each["column"], table, f"{own['count']:,}", missing, *map(_shown, figures)))
    return rows


def _shown(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else number(value)


def as_lines(numbers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same for a terminal; empty without columns of numbers."""
    rows = [HEAD, *rows_of(numbers)] if numbers else []
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(HEAD))] if rows else []
    return ["  ".join(f"{cell!s:>{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
