"""Drawings as inline SVG: bars, heat maps, curves, histograms and dots on a map; colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

Value = float | None

#: The most powers of ten of a logarithmic axis; what is lower lies on its ground.
DECADES = 4


def bars(labels: Sequence[str], real: Sequence[float], made: Sequence[float], *, width: int = 320) -> str:
    """Two bars per value, one below the other: shares of records."""
    left, row = 118, 21
    shown = slice(0, -1) if labels and labels[-1].endswith(" others") else slice(None)
    most = max([*real[shown], *made[shown], 1e-12])
    room = width - left - 44
    out = []
    for i, (label, *shares) in enumerate(zip(labels, real, made, strict=True)):
        y = i * row
        said = f"{label}: real {shares[0]:.2%}, synthetic {shares[1]:.2%}"
        a, b = (max(min(s / most, 1.0) * room, 0.5) for s in shares)
        out.append(
            f"<g><title>{escape(said)}</title>"
            f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(_short(label, 18))}</text>'
            f'<rect class="real" x="{left}" y="{y + 2}" width="{a:.1f}" height="7" rx="1"/>'
            f'<rect class="made" x="{left}" y="{y + 10}" width="{b:.1f}" height="7" rx="1"/>'
            f'<text class="s" x="{left + max(a, b) + 4:.1f}" y="{y + 13}">{max(shares):.1%}</text></g>'
        )
    return _svg(width, row * len(labels) + 2, "".join(out), "Shares of records per value")


def heat(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[Value]],
    *,
    high: float,
    low: float = 0.0,
    digits: int = 2,
    cell: int = 40,
    said: str = "",
) -> str:
    """A matrix of cells, the stronger the higher; numbers inside where there is room."""
    left, top, tall = 128, 96, 24
    wide = cell if len(columns) <= 26 else 18
    out = [
        f'<text transform="translate({left + i * wide + wide / 2 + 4},{top - 6}) rotate(-50)">'
        f"{escape(_short(c, 18))}</text>"
        for i, c in enumerate(columns)
    ]
    for j, (name, line) in enumerate(zip(rows, values, strict=True)):
        y = top + j * tall
        out.append(f'<text x="{left - 6}" y="{y + 16}" text-anchor="end">{escape(_short(name, 18))}</text>')
        for i, value in enumerate(line):
            out.append(_cell(left + i * wide, y, wide, tall, value, low, high, digits, f"{name}, {columns[i]}"))
    return _svg(left + wide * len(columns) + 70, top + tall * len(rows) + 4, "".join(out), said)


def _cell(
    x: float, y: float, wide: int, tall: int, value: Value, low: float, high: float, digits: int, said: str
) -> str:
    if value is None:
        return f'<rect class="track" x="{x}" y="{y}" width="{wide - 1}" height="{tall - 1}" fill-opacity=".4"/>'
    strength = min(max((value - low) / ((high - low) or 1), 0.0), 1.0)
    text = ""
    if wide >= 30:
        text = f'<text x="{x + wide / 2}" y="{y + 16}" text-anchor="middle">{_digits(value, digits)}</text>'
    return (
        f'<g><title>{escape(said)}: {value:.4g}</title><rect class="heat" x="{x}" y="{y}" width="{wide - 1}" '
        f'height="{tall - 1}" fill-opacity="{0.04 + 0.66 * strength:.2f}"/>{text}</g>'
    )


def _digits(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def curves(
    x: Sequence[float], real: Sequence[Value], made: Sequence[Value], *, label: str, width: int = 320, height: int = 190
) -> str:
    """Two curves over quantiles: the real one whole, the synthetic one dashed."""
    known = [v for v in (*real, *made) if v is not None]
    most = max([*known, 1e-12])
    left, bottom = 40, height - 30

    def path(values: Sequence[Value], name: str) -> str:
        points = [
            f"{left + q * (width - left - 12):.1f},{bottom - v / most * (bottom - 12):.1f}"
            for q, v in zip(x, values, strict=True)
            if v is not None
        ]
        return f'<polyline class="{name}" points="{" ".join(points)}"/>' if points else ""

    axis = f'<path class="axis" d="M{left} 8V{bottom}H{width - 8}"/>'
    marks = (
        f'<text class="s" x="{left - 5}" y="{bottom}" text-anchor="end">0</text>'
        f'<text class="s" x="{left - 5}" y="16" text-anchor="end">{most:.3g}</text>'
        f'<text class="s" x="{left}" y="{height - 12}">nearest</text>'
        f'<text class="s" x="{width - 10}" y="{height - 12}" text-anchor="end">farthest</text>'
    )
    return _svg(width, height, axis + path(real, "lreal") + path(made, "lmade") + marks, label)


def steps(
    lines: Sequence[tuple[str, str, Sequence[Value]]],
    *,
    label: str,
    last: int,
    level: float | None = None,
    width: int = 460,
    height: int = 240,
) -> str:
    """Lines over the steps of an iteration, logarithmic: (class, title, as many values each); `level` lies across."""
    known = [v for _, _, values in lines for v in values if v is not None and v > 0]
    known += [level] if level else []
    if not known:
        return ""
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high, low = max(high, low + 1), max(low, high - DECADES)
    count = max(len(values) for _, _, values in lines)
    left, bottom, room = 52, height - 34, width - 66

    def height_of(value: float) -> float:
        return bottom - max(math.log10(value) - low, 0.0) / (high - low) * (bottom - 12)

    out = [f'<path class="axis" d="M{left} 8V{bottom}H{width - 8}"/>']
    for power in range(low, high + 1, max(1, (high - low) // 5)):
        y = height_of(10.0**power)
        out.append(f'<path class="axis" d="M{left} {y:.1f}H{width - 8}"/>')
        out.append(f'<text class="s" x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    for name, title, values in lines:
        points = " ".join(
            f"{left + i / max(count - 1, 1) * room:.1f},{height_of(v):.1f}"
            for i, v in enumerate(values)
            if v is not None and v > 0
        )
        out.append(f'<g><title>{escape(title)}</title><polyline class="{name}" points="{points}"/></g>')
    if level:
        out.append(f'<path class="lmade" d="M{left} {height_of(level):.1f}H{width - 8}"/>')
    out.append(f'<text class="s" x="{left}" y="{height - 16}">first</text>')
    out.append(f'<text class="s" x="{width - 10}" y="{height - 16}" text-anchor="end">step {last}</text>')
    return _svg(width, height, "".join(out), label)


def _power(exponent: int) -> str:
    return f"{10.0**exponent:g}" if exponent < 6 else f"1e{exponent}"


def histogram(
    labels: Sequence[str], values: Sequence[float], *, label: str, width: int = 340, height: int = 200
) -> str:
    """Upright bars with their numbers below."""
    left, bottom, most = 8, height - 24, max([*values, 1e-12])
    step = (width - left - 8) / max(len(values), 1)
    out = [f'<path class="axis" d="M{left} {bottom}H{width - 4}"/>']
    every = max(1, math.ceil(len(values) / 12))
    for i, (name, value) in enumerate(zip(labels, values, strict=True)):
        tall = value / most * (bottom - 20)
        x = left + i * step
        out.append(
            f'<g><title>{escape(name)}: {value:,.6g}</title><rect class="real" x="{x + 1:.1f}" '
            f'y="{bottom - tall:.1f}" width="{max(step - 2, 1):.1f}" height="{tall:.1f}"/></g>'
        )
        if i % every == 0:
            out.append(
                f'<text class="s" x="{x + step / 2:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(name)}</text>'
            )
    out.append(f'<text class="s" x="{left}" y="12">{most:,.0f}</text>')
    return _svg(width, height, "".join(out), label)


def dots(
    x: Sequence[Value],
    y: Sequence[Value],
    values: Sequence[Value],
    names: Sequence[str],
    *,
    low: float,
    high: float,
    size: int = 340,
    titles: bool = True,
    label: str = "",
) -> str:
    """Places on a map, the stronger the higher their value; longitudes shrink with the latitude."""
    known = [(a, b, v, n) for a, b, v, n in zip(x, y, values, names, strict=True) if a is not None and b is not None]
    if not known:
        return ""
    xs, ys = [k[0] for k in known], [k[1] for k in known]
    squeeze = math.cos(math.radians((min(ys) + max(ys)) / 2)) if max(map(abs, ys)) <= 90 else 1.0
    wide, tall = (max(xs) - min(xs)) * squeeze or 1e-9, (max(ys) - min(ys)) or 1e-9
    radius = max(size / 70, 2.2)
    room = size - 2 * radius - 4
    scale = room / max(wide, tall)
    out = []
    for a, b, value, name in known:
        strength = 0.0 if value is None else min(max((value - low) / ((high - low) or 1), 0.0), 1.0)
        place = f'cx="{radius + 2 + (a - min(xs)) * squeeze * scale:.1f}" cy="{radius + 2 + (max(ys) - b) * scale:.1f}"'
        said = f"<title>{escape(name)}: {'' if value is None else f'{value:.3g}'}</title>" if titles else ""
        shape = f'<circle class="heat" {place} r="{radius:.1f}" fill-opacity="{0.08 + 0.92 * strength:.2f}"'
        out.append(f"{shape}>{said}</circle>" if said else f"{shape}/>")
    return _svg(round(wide * scale + 2 * radius + 4), round(tall * scale + 2 * radius + 4), "".join(out), label)


def areas(
    rings: Sequence[Sequence[Sequence[Sequence[float]]]],
    values: Sequence[Value],
    names: Sequence[str],
    *,
    low: float,
    high: float,
    size: int = 340,
    titles: bool = True,
    label: str = "",
) -> str:
    """Areas on a map, the stronger the higher their value; lines are as fine as the picture shows."""
    points = [p for area in rings for ring in area for p in ring]
    if not points:
        return ""
    west, south = (min(p[i] for p in points) for i in (0, 1))
    east, north = (max(p[i] for p in points) for i in (0, 1))
    squeeze = math.cos(math.radians((south + north) / 2)) if max(abs(south), abs(north)) <= 90 else 1.0
    scale = (size - 4) / max((east - west) * squeeze, north - south, 1e-9)
    out = []
    for area, value, name in zip(rings, values, names, strict=True):
        strength = 0.0 if value is None else min(max((value - low) / ((high - low) or 1), 0.0), 1.0)
        lines = ""
        for ring in area:
            placed = [(2 + round((x - west) * squeeze * scale, 1), 2 + round((north - y) * scale, 1)) for x, y in ring]
            kept = [p for i, p in enumerate(placed) if i == 0 or p != placed[i - 1]]
            lines += "M" + "L".join(f"{x:g} {y:g}" for x, y in kept) + "Z"
        said = f"<title>{escape(name)}: {'' if value is None else f'{value:.3g}'}</title>" if titles else ""
        shape = f'class="heat area" fill-rule="evenodd" fill-opacity="{0.06 + 0.94 * strength:.2f}" d="{lines}"'
        out.append(f"<g>{said}<path {shape}/></g>" if lines else "")
    wide, tall = (east - west) * squeeze * scale + 4, (north - south) * scale + 4
    return _svg(round(wide), round(tall), "".join(out), label)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _svg(width: float, height: float, body: str, label: str) -> str:
    said = escape(label, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{said}">{body}</svg>'
    )
