"""The pictures of a report that compares two tables: records over two axes, pairs, curves, accuracies of columns."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, Line, lines
from pipeline.pages.page import Card, number
from pipeline.pages.scale import ChartAxis
from pipeline.pages.small_charts import cells, cloud, marks

#: Columns whose accuracy is drawn, the worst ones.
MOST = 40
STYLES = {"real": "lreal", "synthetic": "lmade", "holdout": "lheld"}


@dataclass(frozen=True)
class AxesSection:
    """Records of the tables over the two main axes of the real ones.

    Attributes:
        rows: records that are drawn, by table. fitted: real ones behind the axes.
        columns, of: that take part, and all.
        explained: the shares of the variance on the two axes.
    """

    name: ClassVar[str] = "axes"
    title: ClassVar[str] = "Records over two axes"
    template: ClassVar[str] = "sections/axes.html.j2"
    legend: Sequence[tuple[str, str]]
    cards: Sequence[Card]
    rows: str
    fitted: int
    columns: int
    of: int
    explained: Sequence[str]


def axes_section(axes: Mapping[str, Any]) -> AxesSection:
    """From the part `axes` of figures.json."""
    points = axes["points"]
    alone = [
        Card(name.capitalize(), cloud([(STYLES[name], points[name])], label=f"Records: {name}")) for name in points
    ]
    both = [(STYLES[name], points[name]) for name in ("real", "synthetic")]
    cards = [*alone[:2], Card("Real and synthetic", cloud(both, label="Records: real and synthetic")), *alone[2:]]
    return AxesSection(
        legend=[(STYLES[name], name) for name in points],
        cards=cards,
        rows=", ".join(f"{n:,} {name}" for name, n in axes["rows"].items()),
        fitted=axes["fitted"],
        columns=axes["columns"],
        of=axes["of"],
        explained=[f"{share:.0%}" for share in axes["explained"]],
    )


@dataclass(frozen=True)
class PairMapsSection:
    """Some pairs of columns: real, synthetic and the difference."""

    name: ClassVar[str] = "pair-maps"
    title: ClassVar[str] = "Pairs of columns"
    template: ClassVar[str] = "sections/pair_maps.html.j2"
    pairs: Sequence[tuple[str, str, Sequence[Card]]]


def pair_maps_section(pairs: Sequence[Mapping[str, Any]]) -> PairMapsSection:
    """From the part `pair_maps` of figures.json."""
    drawn = []
    for pair in pairs:
        title = f"{pair['a']} × {pair['b']}"
        note = f"{pair['why']}; total variation distance {pair['tvd']:.3f}, of a second sample {pair['expected']:.3f}"
        sides = (pair["real"], pair["synthetic"])
        difference = [[b - a for a, b in zip(*both, strict=True)] for both in zip(*sides, strict=True)]
        high = max(v for side in sides for line in side for v in line)
        most = max(abs(v) for line in difference for v in line)
        cards = [
            Card(name, cells(pair["rows"], pair["columns"], values, high=top, label=f"{title}: {name}"), words)
            for name, values, top, words in (
                ("Real", sides[0], high, f"up to {high:.1%} of the records in a cell"),
                ("Synthetic", sides[1], high, "on the same scale"),
                ("Synthetic − real", difference, most, f"up to {most:.1%}, on its own scale; red: too many"),
            )
        ]
        drawn.append((title, note, cards))
    return PairMapsSection(drawn)


@dataclass(frozen=True)
class DensitiesSection:
    """Curves of the values of numbers and dates."""

    name: ClassVar[str] = "densities"
    title: ClassVar[str] = "Densities of numbers and dates"
    template: ClassVar[str] = "sections/densities.html.j2"
    legend: ClassVar[Sequence[tuple[str, str]]] = (("lreal", "real"), ("lmade", "synthetic"))
    cards: Sequence[Card]


def densities_section(columns: Sequence[Mapping[str, Any]]) -> DensitiesSection:
    """From the part `densities` of figures.json."""
    cards = []
    for column in columns:
        seconds = column.get("seconds")
        low, high = column["x"]
        step = (high - low) / (len(column["real"]) - 1)
        drawn = [
            Line(STYLES[side], side, [(low + i * step, y) for i, y in enumerate(column[side])])
            for side in ("real", "synthetic")
        ]
        note = f"distribution functions at most {column['distance']:.1%} apart"
        spikes = [
            f"{_said(s['value'], seconds)} ({s['real']:.1%} real, {s['synthetic']:.1%} synthetic)"
            for s in column["spikes"]
        ]
        note += f"; not drawn: {', '.join(spikes)}" if spikes else ""
        label = f"Density of {column['column']}"
        picture = lines(drawn, _axis(low, high, seconds), ChartAxis(0.0, 1.0, ()), label=label, width=340, height=170)
        cards.append(Card(column["column"], picture, note))
    return DensitiesSection(cards)


def _axis(low: float, high: float, seconds: float | None) -> ChartAxis:
    if seconds is None:
        whole = ChartAxis.linear((low, high), ground=False)
        inside = [v for v, _ in whole.ticks if low <= v <= high][:: 2 if high >= 100_000 else 1]
        return ChartAxis(low, high, tuple((v, f"{v:g}" if abs(v) < 10_000 else number(v)) for v in inside))
    return ChartAxis(low, high, tuple((v, _said(v, seconds)[:10]) for v in (low, (low + high) / 2, high)))


def _said(value: float, seconds: float | None) -> str:
    """A number, or a date of so many seconds a unit."""
    if seconds is None:
        return number(value)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(value * seconds))
    return moment.isoformat(sep=" ") if value * seconds % 86_400 else moment.date().isoformat()


@dataclass(frozen=True)
class AccuracySection:
    """How near each column is, alone and with every other one.

    Attributes:
        shown, columns: how many of the columns are drawn.
    """

    name: ClassVar[str] = "accuracy"
    title: ClassVar[str] = "Overlap of each column"
    template: ClassVar[str] = "sections/accuracy.html.j2"
    legend: Sequence[tuple[str, str]]
    chart: Drawing
    shown: int
    columns: int


#: What the marks of a column are.
ACCURACIES = (("lreal", "alone"), ("lmade", "mean of its pairs"), ("lsoft", "alone, of a second sample"))


def accuracy_section(columns: Sequence[Mapping[str, Any]], pairs: Mapping[str, Any] | None) -> AccuracySection | None:
    """From the parts `columns` and `pairs` of figures.json; None where no column has records in both tables."""
    rows = []
    for column in columns:
        if column["tvd"] is None:
            continue
        expected = column.get("expected")
        together = None if pairs is None else _of_pairs(column["name"], pairs)
        rows.append((column["name"], (1 - column["tvd"], together, None if expected is None else 1 - expected)))
    if not rows:
        return None
    rows.sort(key=lambda row: min(v for v in row[1][:2] if v is not None))
    shown = rows[:MOST]
    least = min(v for _, own in shown for v in own if v is not None)
    low = next(x for x in (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.25, 0.0) if x < least or x == 0.0)
    used = [i for i in range(len(ACCURACIES)) if any(own[i] is not None for _, own in shown)]
    styles = [ACCURACIES[i] for i in used]
    chart = marks([n for n, _ in shown], [[own[i] for i in used] for _, own in shown], styles,
                  label="Overlap of each column", low=low, high=1.0)  # fmt: skip
    return AccuracySection(styles, chart, len(shown), len(rows))


def _of_pairs(name: str, pairs: Mapping[str, Any]) -> float | None:
    """1 − the mean distance of the pairs that a column is in."""
    if name not in pairs["names"]:
        return None
    i = pairs["names"].index(name)
    values = [v for j, v in enumerate(pairs["tvd"][i]) if j != i and v is not None]
    return 1 - sum(values) / len(values) if values else None
