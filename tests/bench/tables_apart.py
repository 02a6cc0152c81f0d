"""Long tables of a page of benchmarks, and its plots, as files beside it; the page keeps what is compared."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechanisms.public.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Heading → the file of its table.
APART = {"## Every cell": "cells.csv", "## Runs without a result": "troubles.csv"}
BOARD, REGRETS = "## NIST's board", "## Mean regrets at each ε"
PLOTS = {BOARD: "board.svg", REGRETS: "regrets.svg"}
#: Where the pages of the documentation have such files, beside themselves.
DATA = "data"
#: The most that a bar of regrets shows: independent columns at a large ε are off by a factor of hundreds.
CUT = 4.0
#: A legend that covers no bar.
ABOVE: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (0, 1.01),
    "ncols": 3,
    "fontsize": "small",
    "frameon": False,
}


def parted(page: str, folder: Path) -> str:
    """The page with a link in the place of each long table, whose rows are written to `folder` as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for heading, name in APART.items():
        if heading not in page or not (rows := table_under(page, heading)):
            continue
        lines = page[page.index(heading) :].split("\n")
        first = next(i for i, line in enumerate(lines) if line.startswith("|"))
        write_rows(folder / name, rows)
        page = page.replace(
            "\n".join(lines[first : first + len(rows) + 1]), f"[{len(rows) - 1:,} lines]({DATA}/{name})", 1
        )
    picture = f"![Mean 2-way regrets by method]({DATA}/{PLOTS[REGRETS]})"
    return page.replace(f"{REGRETS}\n", f"{REGRETS}\n\n{picture}\n", 1)


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Rows as CSV, their head first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def table_under(page: str, heading: str) -> list[list[str]]:
    """The first table below a heading, its head first; empty where another heading comes before."""
    start = page.index(heading) + len(heading)
    below = re.split(r"\n##", page[start:], maxsplit=1)[0]
    lines = re.search(r"(?:^\|.*\n?)+", below, flags=re.MULTILINE)
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines[0].strip().split("\n")] if lines else []
    return [row for row in rows if set("".join(row)) - set("-: ")]


def plots(page: str, folder: Path) -> None:
    """The board and the mean regrets of pairs as bars."""
    from matplotlib import pyplot  # slow to load

    for heading, draw in ((BOARD, _board), (REGRETS, _regrets)):
        name = PLOTS[heading]
        if heading not in page:
            continue
        figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
        draw(axes, table_under(page, heading))
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / name, metadata={"Date": None})
        pyplot.close(figure)
        write_whole(folder / name, (folder / name).read_text(encoding="utf-8").replace(" \n", "\n"))


def _board(axes: Axes, rows: Sequence[Sequence[str]]) -> None:
    places = range(len(rows) - 1)
    for shift, column, title in ((-0.2, 4, "ours"), (0.2, 3, "best published, private")):
        axes.bar([p + shift for p in places], [_number(row[column]) for row in rows[1:]], 0.4, label=title)
    axes.set_xticks(list(places), [f"{row[0]}\nε = {row[1]}" for row in rows[1:]])
    axes.set(ylim=(600, 1000), ylabel="k-marginal score (from 600)")
    axes.legend(**ABOVE)


def _regrets(axes: Axes, rows: Sequence[Sequence[str]]) -> None:
    head, *methods = [row for row in rows if all(row[1::2])]
    for i, row in enumerate(methods):
        heights = [min(_number(cell), CUT) for cell in row[1::2]]
        places = [j + (i - len(methods) / 2) * 0.8 / len(methods) for j in range(len(heights))]
        axes.bar(places, heights, 0.13, label=row[0])
    axes.set_xticks(range(len(head[1::2])), [name.partition(",")[0] for name in head[1::2]])
    axes.set(ylim=(0.9, CUT), ylabel=f"2-way regret (cut at {CUT:g})")
    axes.legend(**ABOVE)


def _number(cell: str) -> float:
    return float(re.match(r"[\d.]+", cell)[0])  # type: ignore[index]
