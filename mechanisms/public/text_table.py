"""Small tables as text: lined up for a terminal, or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def lined_up(rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """One line per row: the first columns stand left, the others right; what ends a line is no space.

    Args:
        left: how many columns stand left.
    """
    return ["  ".join(cells).rstrip() for cells in _padded(rows, left)]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table that reads well as plain text too."""
    first, *rest = _padded([head, *rows], 1)
    rule = ["-" * len(cell) if i == 0 else "-" * (len(cell) - 1) + ":" for i, cell in enumerate(first)]
    return [f"| {' | '.join(cells)} |" for cells in (first, rule, *rest)]


def _padded(rows: Sequence[Sequence[str]], left: int) -> list[list[str]]:
    """All cells of a column equally wide; Markdown needs two characters for the rule of a column."""
    widths = [max(2, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
    sides = [str.ljust if i < left else str.rjust for i in range(len(widths))]
    return [[side(cell, wide) for side, cell, wide in zip(sides, row, widths, strict=True)] for row in rows]
