"""Small tables: lined up for a terminal, as Markdown, or as HTML in the colours of reports; no script, no network."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

STYLE = (
    ".syn{--ink:#1d2127;--soft:#5d6673;--line:#e2dfd9;color:var(--ink);font:13px/1.5 system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.syn{--ink:#e8e6e1;--soft:#a0a8b4;--line:#333a45}}"
    ".syn p{margin:.2rem 0;max-width:75ch}.syn .soft{color:var(--soft)}.syn div{overflow-x:auto;max-width:100%}"
    ".syn table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".syn th,.syn td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line)}"
    ".syn th{color:var(--soft)}"
)


def apart(names: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """The names as heads of a table, each once: in brackets where one stands there already or is taken."""
    own: dict[str, None] = {}
    for name in names:
        text = name
        while text in own or text in taken:
            text = f"({text})"
        own[text] = None
    return [*own]


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


def notebook_table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    first: Sequence[str] = (),
) -> str:
    """The table under its caption and what must be read first; notes below. Texts are texts, never tags."""
    root = Element("div", {"class": "syn"})
    SubElement(root, "style").text = STYLE
    SubElement(SubElement(root, "p"), "b").text = caption
    for line in first:
        SubElement(root, "p").text = line
    table = SubElement(SubElement(root, "div"), "table")
    for tag, cells in (("th", head), *(("td", row) for row in rows)):
        row = SubElement(table, "tr")
        for cell in cells:
            SubElement(row, tag).text = cell
    for note in notes:
        SubElement(root, "p", {"class": "soft"}).text = note
    return tostring(root, encoding="unicode", method="html")
