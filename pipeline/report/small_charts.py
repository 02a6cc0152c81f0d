"""Small charts of which a page has many: clouds of points, maps of cells, rows of marks; few bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.report.charts import CELL, Drawing, add, svg, titled
from pipeline.report.scale import Scale, short


def cloud(series: Sequence[tuple[str, str]], *, label: str) -> Drawing:
    """Points over two axes without ticks, each series as one path.

    Args:
        series: (class, points as "x,y x,y …" in thousandths of the picture).
    """
    size, edge, wide = 250, 6.0, 238.0
    root = svg(size, size, label)
    add(root, "rect", class_="frame", x=0.5, y=0.5, width=size - 1, height=size - 1, rx=4)
    for style, points in series:
        places = (point.split(",") for point in points.split())
        d = "".join(f"M{edge + int(x) * wide / 1000:.3g} {edge + int(y) * wide / 1000:.3g}h0" for x, y in places)
        add(add(root, "g", class_=style), "path", class_="dots", d=d)
    return Drawing(root)


def cells(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    high: float,
    label: str,
) -> Drawing:
    """A matrix of shares, the stronger the farther from 0, of another colour below.

    Args:
        high: the value of the strongest colour.
    """
    left, top, wide, tall = 112, 4, 22, 17
    below = 16 + 5.2 * max((len(short(name, 15)) for name in columns), default=0)
    strength = Scale(0.0, high or 1.0, *CELL)
    root = svg(left + wide * len(columns) + 2, top + tall * len(rows) + below, label)
    for j, (name, line) in enumerate(zip(rows, values, strict=True)):
        add(root, "text", short(name, 16), class_="s", x=left - 5, y=top + j * tall + 12, text_anchor="end")
        for i, value in enumerate(line):
            place: dict[str, Any] = {"x": left + i * wide, "y": top + j * tall, "width": wide - 1, "height": tall - 1}
            box = add(
                root, "rect", class_="cold" if value < 0 else "heat", fill_opacity=strength.at(abs(value)), **place
            )
            add(box, "title", f"{name}, {columns[i]}: {value:.2%}")
    for i, name in enumerate(columns):
        turned = f"translate({left + i * wide + wide / 2 + 3:g},{top + tall * len(rows) + 8}) rotate(-55)"
        add(root, "text", short(name, 15), class_="s", transform=turned, text_anchor="end")
    return Drawing(root)


def marks(
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    styles: Sequence[tuple[str, str]],
    *,
    label: str,
    low: float,
    high: float,
) -> Drawing:
    """A row per name: a mark of each style on one scale, and the first value as a text.

    Args:
        styles: (class, what it is), one for each of a name's values.
        low, high: the ends of the scale, as shares.
    """
    width, left, right, row = 520, 150, 56, 19
    scale = Scale(low, high, left, width - right)
    root = svg(width, row * len(names) + 18, label)
    for j, (name, own) in enumerate(zip(names, values, strict=True)):
        y = j * row + 9
        figures = ", ".join(f"{legend} {v:.1%}" for (_, legend), v in zip(styles, own, strict=True) if v is not None)
        group = titled(root, f"{name}: {figures}")
        add(group, "text", short(name, 23), x=left - 8, y=y + 4, text_anchor="end")
        add(group, "path", class_="axis", d=f"M{left} {y}H{width - right}")
        for (style, _), value in zip(styles, own, strict=True):
            if value is not None:
                add(add(group, "g", class_=style), "circle", class_="mark", cx=scale.at(value), cy=y, r=4)
        if own[0] is not None:
            add(group, "text", f"{own[0]:.1%}", class_="s", x=width - right + 8, y=y + 4)
    for at, anchor in ((low, "start"), (high, "end")):
        add(root, "text", f"{at:.0%}", class_="s", x=scale.at(at), y=row * len(names) + 14, text_anchor=anchor)
    return Drawing(root)


def ranked(
    names: Sequence[str],
    values: Sequence[tuple[float, float | None, float | None]],
    *,
    label: str,
    level: float | None,
    low: float,
    high: float,
) -> Drawing:
    """A row per name: its value as a mark, its interval as a line, and a dotted line for what all are read against.

    Args:
        values: (value, ends of its interval).
        low, high: the ends of the scale.
    """
    width, row, top, left, right = 340, 32, 4, 4, 62
    scale = Scale(low, high, left + 4, width - right)
    bottom = top + row * len(names)
    root = svg(width, bottom + 16, label)
    if level is not None:
        add(root, "path", class_="level", d=f"M{scale.at(level):.1f} {top}V{bottom}")
    for j, (name, (value, first, last)) in enumerate(zip(names, values, strict=True)):
        y = top + j * row + 22
        group = titled(root, f"{name}: {value:.4g}" + ("" if first is None else f", {first:.4g} to {last:.4g}"))
        add(group, "text", short(name, 44), x=left, y=y - 9)
        add(group, "path", class_="axis", d=f"M{left} {y}H{width - right + 4}")
        drawn = add(group, "g", class_="lreal")
        if first is not None and last is not None:
            add(drawn, "path", class_="line", d=f"M{scale.at(first):.1f} {y}H{scale.at(last):.1f}")
        add(drawn, "circle", class_="mark", cx=scale.at(value), cy=y, r=4)
        add(group, "text", f"{value:.4g}", class_="s", x=width - 2, y=y + 4, text_anchor="end")
    for at, anchor in ((low, "start"), (high, "end")):
        add(root, "text", f"{at:.3g}", class_="s", x=scale.at(at), y=bottom + 13, text_anchor=anchor)
    return Drawing(root)
