"""Small charts of which a page has many: clouds of points, rows of marks; few bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.report.charts import Drawing, add, svg, titled
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


def marks(
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    styles: Sequence[tuple[str, str]],
    *,
    label: str,
    ends: tuple[float, float],
    intervals: Sequence[tuple[float | None, float | None]] = (),
    level: float | None = None,
    form: str = ".1%",
) -> Drawing:
    """A row per name: a mark of each style on one scale, and the first value as a text.

    Args:
        styles: (class, what it is), one for each of a name's values.
        ends: of the scale.
        intervals: of the first values, drawn as lines; with them the names stand above their marks.
        level: a dotted line for what all are read against.
        form: of the values.
    """
    above = bool(intervals)
    width, left, right, row, letters = (340, 8, 62, 32, 44) if above else (520, 150, 56, 19, 23)
    scale, bottom = Scale(*ends, left, width - right), row * len(names)
    root = svg(width, bottom + 18, label)
    if level is not None:
        add(root, "path", class_="level", d=f"M{scale.at(level):.1f} 0V{bottom}")
    for j, (name, own) in enumerate(zip(names, values, strict=True)):
        y = j * row + (24 if above else 9)
        first, last = intervals[j] if above else (None, None)
        figures = [f"{what} {v:{form}}".strip() for (_, what), v in zip(styles, own, strict=True) if v is not None]
        figures += [] if first is None else [f"{first:{form}} to {last:{form}}"]
        group = titled(root, f"{name}: {', '.join(figures)}")
        place: dict[str, Any] = {"x": 4, "y": y - 9} if above else {"x": left - 8, "y": y + 4, "text_anchor": "end"}
        add(group, "text", short(name, letters), **place)
        add(group, "path", class_="axis", d=f"M{left} {y}H{width - right}")
        for (style, _), value in zip(styles, own, strict=True):
            if value is not None:
                drawn = add(group, "g", class_=style)
                if first is not None and last is not None:
                    add(drawn, "path", class_="line", d=f"M{scale.at(first):.1f} {y}H{scale.at(last):.1f}")
                add(drawn, "circle", class_="mark", cx=scale.at(value), cy=y, r=4)
        if own[0] is not None:
            add(group, "text", f"{own[0]:{form}}", class_="s", x=width - right + 8, y=y + 4)
    for at, anchor in zip(ends, ("start", "end"), strict=True):
        add(
            root,
            "text",
            f"{at:.3g}" if above else f"{at:.0%}",
            class_="s",
            x=scale.at(at),
            y=bottom + 14,
            text_anchor=anchor,
        )
    return Drawing(root)
