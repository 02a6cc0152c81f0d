"""Charts as inline SVG without a script: bars, heat maps, lines and points over two axes, maps.

Each chart is a tree of elements, so that a text is always text and never a tag. A `Scale` turns values into places (and
into strengths of a colour). Colours are classes of the stylesheet `charts.css`, which knows light and dark; the title
of an element is its tooltip.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from pipeline.report.scale import ChartAxis, Scale, short

Value = float | None
Point = tuple[float, float]

#: How strong the colour of the smallest and of the largest value is, in a cell that holds a number and on a map.
CELL, PLACE = (0.04, 0.70), (0.06, 1.0)
#: The colours of methods, `c0` and on, in the stylesheet; then they begin again.
COLOURS = 8
#: The place of the axes of a chart with lines: left, top, and what is free below and on the right.
LEFT, TOP, BELOW, RIGHT = 52, 12, 24, 14


@dataclass(frozen=True)
class Drawing:
    """An SVG picture, which a template places as it is."""

    root: Element

    def __html__(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode")

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        return float(self.root.attrib["width"]), float(self.root.attrib["height"])

    def as_file(self, style: str) -> str:
        """The text of an SVG file of its own, with the stylesheet inside."""
        alone = Element("svg", {**self.root.attrib, "class": "alone"})
        add(alone, "style", style)
        alone.extend(self.root)
        return ElementTree.tostring(alone, encoding="unicode") + "\n"


@dataclass(frozen=True)
class Line:
    """Values that belong together over two axes.

    Attributes:
        style: classes of the stylesheet.
        title: its tooltip.
        points: (x, y).
        errors: (x, lowest, highest), drawn as a bar.
        joined: whether a line joins the points.
        notes: a word beside each point; with notes or where the points are not joined, each gets a mark.
        marked: whether each point gets a mark.
    """

    style: str
    title: str
    points: Sequence[Point]
    errors: Sequence[tuple[float, float, float]] = ()
    joined: bool = True
    notes: Sequence[str] = ()
    marked: bool = False


@dataclass(frozen=True)
class Place:
    """What a map shows for one value: a point, or an area by its rings.

    Attributes:
        name: for the tooltip.
        value: None where there is none.
    """

    name: str
    value: Value
    point: Point | None = None
    rings: Sequence[Sequence[Sequence[float]]] = field(default=())

    @property
    def corners(self) -> list[Sequence[float]]:
        """Every point that the map must hold."""
        return [*([self.point] if self.point else []), *(p for ring in self.rings for p in ring)]


def bars(labels: Sequence[str], real: Sequence[float], synthetic: Sequence[float]) -> Drawing:
    """Two bars per value, one below the other, with their shares of records in their colours behind them.

    A last value of "others" is written, not drawn: on the scale of the others it would run out of the picture.
    """
    width, left, row, right = 340, 122, 21, 92
    shown = slice(0, -1) if labels and labels[-1].endswith(" others") else slice(None)
    scale = Scale(0.0, max([*real[shown], *synthetic[shown], 1e-12]), 0.0, width - left - right)
    root = svg(width, row * len(labels) + 2, "Shares of records per value")
    for i, (label, *shares) in enumerate(zip(labels, real, synthetic, strict=True)):
        y = i * row
        group = titled(root, f"{label}: real {shares[0]:.2%}, synthetic {shares[1]:.2%}")
        add(group, "text", _range_label(label), x=left - 6, y=y + 13, text_anchor="end")
        for name, share, top, end in zip(("real", "made"), shares, (2, 10), (width - 46, width - 1), strict=True):
            add(group, "text", f"{share:.1%}", class_=f"{name} f", x=end, y=y + 13, text_anchor="end")
            if i < len(real[shown]):
                add(group, "rect", class_=name, x=left, y=y + top, width=max(scale.at(share), 0.5), height=7, rx=1)
    return Drawing(root)


def _range_label(text: str) -> str:
    """A label, cut; of a range too long for the room its beginning."""
    of_range = re.match(r"(.+?) … |(\S*\d) to \S*\d", text) if len(text) > 18 else None
    return f"{short(of_range[1] or of_range[2], 16)} …" if of_range else short(text, 18)


def heat(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[Value]],
    *,
    high: float,
    low: float = 0.0,
    cell: tuple[int, int] = (40, 24),
    label: str = "",
) -> Drawing:
    """A matrix of cells, stronger the farther from 0, of another colour below; numbers where there is room.

    Args:
        cell: width and height of one in pixels; of many columns they are narrower.
    """
    (wide, tall), room = cell, [max((len(_range_label(n)) for n in names), default=0) for names in (rows, columns)]
    wide = wide if len(columns) <= 26 else 18
    left, top = 12 + 6.4 * room[0], 14 + 4.8 * room[1]
    strength = Scale(low, high or 1.0, *CELL)
    root = svg(left + wide * len(columns) + 3.6 * room[1], top + tall * len(rows) + 4, label)
    for i, column in enumerate(columns):
        turned = f"translate({left + i * wide + wide / 2 + 4:g},{top - 6:g}) rotate(-50)"
        add(root, "text", _range_label(column), transform=turned)
    for j, (name, line) in enumerate(zip(rows, values, strict=True)):
        y = top + j * tall
        add(root, "text", _range_label(name), x=left - 6, y=y + tall / 2 + 4, text_anchor="end")
        for i, value in enumerate(line):
            x = left + i * wide
            box: dict[str, Any] = {"x": x, "y": y, "width": wide - 1, "height": tall - 1}
            if value is None:
                add(root, "rect", class_="track", fill_opacity=0.4, **box)
                continue
            group = titled(root, f"{name}, {columns[i]}: {value:.4g}")
            add(group, "rect", class_="cold" if value < 0 else "heat", fill_opacity=strength.at(abs(value)), **box)
            if wide >= 30:
                text = f"{value:.2f}"
                text = text.replace("0.", ".", 1).replace("-", "−") if abs(value) < 1 else text
                add(group, "text", text, x=x + wide / 2, y=y + tall / 2 + 4, text_anchor="middle")
    return Drawing(root)


def lines(
    series: Sequence[Line],
    x: ChartAxis,
    y: ChartAxis,
    *,
    label: str,
    level: float | None = None,
    width: int = 460,
    height: int = 240,
) -> Drawing:
    """Lines, error bars and marks over two axes.

    Args:
        level: a dashed line lies across at this height.
        label: what a screen reader says.
    """
    root = svg(width, height, label)
    bottom = height - BELOW - (14 if x.title else 0)
    across, up = x.scale(LEFT, width - RIGHT), y.scale(bottom, TOP)
    _axes(root, x, y, across, up, height)
    if level is not None:
        add(root, "path", class_="level", d=f"M{LEFT} {up.at(level):.1f}H{width - RIGHT}")
    for line in series:
        group = titled(root, line.title)
        group.set("class", line.style)
        for a, low, high in line.errors:
            add(group, "path", class_="error", d=f"M{across.at(a):.1f} {up.at(low):.1f}V{up.at(high):.1f}")
        if line.joined and line.points:
            path = " ".join(f"{across.at(a):.1f},{up.at(b):.1f}" for a, b in line.points)
            add(group, "polyline", class_="line", points=path)
        if line.marked or not line.joined:
            for a, b in line.points:
                add(group, "circle", class_="mark", cx=across.at(a), cy=up.at(b), r=2.6)
        for (a, b), note in zip(line.points, line.notes, strict=False):
            add(root, "text", note, class_="s note", x=across.at(a) + 4, y=up.at(b) - 4)
    return Drawing(root)


def _axes(root: Element, x: ChartAxis, y: ChartAxis, across: Scale, up: Scale, height: int) -> None:
    left, right, top, bottom = across.start, across.end, up.end, up.start
    add(root, "path", class_="axis", d=f"M{left} {top - 4:g}V{bottom}H{right + 4:g}")
    for value, name in y.ticks:
        at = up.at(value)
        add(root, "path", class_="axis", d=f"M{left} {at:.1f}H{right + 4:g}")
        add(root, "text", name, class_="s", x=left - 5, y=at + 4, text_anchor="end")
    for value, name in x.ticks:
        at = across.at(value)
        share = (at - left) / max(right - left, 1e-9)
        anchor = "start" if share < 0.01 else "end" if share > 0.99 else "middle"
        add(root, "text", name, class_="s", x=at, y=bottom + 16, text_anchor=anchor)
    if x.title:
        add(root, "text", x.title, class_="s", x=(left + right) / 2, y=height - 6, text_anchor="middle")
    if y.title:
        turned = f"translate(11,{(top + bottom) / 2:g}) rotate(-90)"
        add(root, "text", y.title, class_="s", transform=turned, text_anchor="middle")


def place_map(
    places: Sequence[Place], *, low: float, high: float, size: int = 340, titles: bool = True, label: str = ""
) -> Drawing | None:
    """Points and areas on a map, the stronger the higher their value; None where no place is known.

    Longitudes shrink with the latitude; lines are as fine as the picture shows.

    Args:
        low, high: values of the palest and of the strongest colour.
        size: pixels of the longer side.
        titles: whether a place has a tooltip.
    """
    corners = [c for place in places for c in place.corners]
    if not corners:
        return None
    (west, south), (east, north) = ([pick(c[i] for c in corners) for i in (0, 1)] for pick in (min, max))
    squeeze = math.cos(math.radians((south + north) / 2)) if max(abs(south), abs(north)) <= 90 else 1.0
    radius = max(size / 70, 2.2) if any(place.point for place in places) else 0.0
    edge = radius + 2
    longest = max((east - west) * squeeze, north - south) or 1e-9
    scale = (size - 2 * edge) / longest
    strength = Scale(low, high, *PLACE)
    root = svg(round((east - west) * squeeze * scale + 2 * edge), round((north - south) * scale + 2 * edge), label)

    def placed(point: Sequence[float]) -> Point:
        return round(edge + (point[0] - west) * squeeze * scale, 1), round(edge + (north - point[1]) * scale, 1)

    for place in places:
        if not place.corners:
            continue
        figure = "" if place.value is None else f"{place.value:.3g}"
        group = titled(root, f"{place.name}: {figure}" if titles else "")
        opacity = PLACE[0] if place.value is None else strength.at(place.value)
        if place.rings:
            d = "".join(_ring([placed(p) for p in ring]) for ring in place.rings)
            add(group, "path", class_="heat area", fill_rule="evenodd", fill_opacity=opacity, d=d)
        if place.point:
            x, y = placed(place.point)
            add(group, "circle", class_="heat", cx=x, cy=y, r=radius, fill_opacity=opacity)
    return Drawing(root)


def _ring(points: Sequence[Point]) -> str:
    """A closed line, without the points that fall on the one before them."""
    fine = [p for i, p in enumerate(points) if i == 0 or p != points[i - 1]]
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in fine) + "Z"


def svg(width: float, height: float, label: str) -> Element:
    """A picture of this size; what a screen reader says is its label."""
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    return Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": label})


def titled(parent: Element, title: str) -> Element:
    """Elements with one tooltip."""
    group = add(parent, "g")
    if title:
        add(group, "title", title)
    return group


def add(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """A new element below `parent`; numbers are rounded to what an eye can tell apart."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    given = {k: v if isinstance(v, str) else f"{round(v, 2):g}" for k, v in names.items()}
    element = ElementTree.SubElement(parent, tag, given)
    element.text = text or None
    return element


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
