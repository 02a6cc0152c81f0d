"""The sections that set two tables beside each other: columns, pairs, correlations, distances of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, Line, bars, heat, lines
from pipeline.pages.page import Card
from pipeline.pages.scale import ChartAxis

#: Columns that a matrix shows; a wider one is cut to those with the largest values.
MOST = 36
#: Columns whose bars are drawn: the worst ones.
DRAWN = 60

Matrix = Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class ColumnsSection:
    """The distribution of the columns in both tables, the worst first.

    Attributes:
        columns: how many there are; at most DRAWN of them are drawn.
    """

    name: ClassVar[str] = "columns"
    title: ClassVar[str] = "Distributions of the columns"
    template: ClassVar[str] = "sections/columns.html.j2"
    legend: ClassVar[Sequence[tuple[str, str]]] = (("lreal", "real"), ("lmade", "synthetic"))
    cards: Sequence[Card]
    columns: int


def columns_section(columns: Sequence[Mapping[str, Any]]) -> ColumnsSection:
    """From the part `columns` of figures.json."""
    cards = []
    for column in sorted(columns, key=lambda c: -(c["tvd"] or 0.0))[:DRAWN]:
        distance = "no records" if column["tvd"] is None else f"{column['tvd']:.3f}"
        note = f"{column['kind']}, {column['values']:,} values; total variation distance {distance}"
        cards.append(Card(column["name"], bars(column["labels"], column["real"], column["synthetic"]), note))
    return ColumnsSection(cards, len(columns))


@dataclass(frozen=True)
class PairsSection:
    """The distance of every pair of columns, and of every column on the diagonal.

    Attributes:
        shown, columns: how many of the columns the chart shows.
    """

    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Errors of pairs"
    template: ClassVar[str] = "sections/pairs.html.j2"
    chart: Drawing
    shown: int
    columns: int


def pairs_section(pairs: Mapping[str, Any]) -> PairsSection:
    """From the part `pairs` of figures.json."""
    names, values = _cut(pairs["names"], pairs["tvd"])
    high = max((v for line in values for v in line if v is not None), default=1.0)
    chart = heat(names, names, values, high=high, label="Total variation distance of pairs of columns")
    return PairsSection(chart, len(names), len(pairs["names"]))


def _cut(names: Sequence[str], matrix: Matrix) -> tuple[list[str], list[list[float | None]]]:
    """The MOST columns with the largest values, in their order."""
    worst = sorted(range(len(names)), key=lambda i: -sum(v or 0.0 for v in matrix[i]))[:MOST]
    shown = sorted(worst)
    return [names[i] for i in shown], [[matrix[i][j] for j in shown] for i in shown]


@dataclass(frozen=True)
class CorrelationSection:
    """Pearson's, Spearman's and Cramér's correlations of every two columns, in both tables, and how far they differ.

    Attributes:
        kinds: what each kind is, and its three pictures.
        rows: records of the real and of the synthetic table that they are of.
    """

    name: ClassVar[str] = "correlation"
    title: ClassVar[str] = "Correlations"
    template: ClassVar[str] = "sections/correlation.html.j2"
    kinds: Sequence[tuple[str, Sequence[Card]]]
    rows: tuple[int, int]


#: What each kind of correlation is called.
CORRELATIONS = {
    "pearson": "Pearson's r of the values of numbers and dates: −1 to 1",
    "spearman": "Spearman's ρ, the same of their ranks: −1 to 1",
    "cramers_v": "Cramér's V of any two columns, over at most 20 buckets each: 0 is independent, 1 determined",
}


def correlation_section(maps: Mapping[str, Any]) -> CorrelationSection:
    """From the part `correlations` of scores.json."""
    kinds = []
    for kind in (k for k in CORRELATIONS if k in maps):
        names, cards = maps[kind]["names"], []
        for side, title in (("real", "Real"), ("synthetic", "Synthetic"), ("difference", "Synthetic − real")):
            chart = heat(names, names, maps[kind][side], high=1.0, cell=34, label=f"{CORRELATIONS[kind]}; {title}")
            cards.append(Card(title, chart))
        kinds.append((CORRELATIONS[kind], cards))
    return CorrelationSection(kinds, (maps["rows"]["real"], maps["rows"]["synthetic"]))


@dataclass(frozen=True)
class DistancesSection:
    """DCR and NNDR of synthetic and of holdout records against the training records.

    Attributes:
        passed: whether the synthetic records are no nearer than the holdout; None without a holdout.
    """

    name: ClassVar[str] = "distances"
    title: ClassVar[str] = "Distances to the training records"
    template: ClassVar[str] = "sections/distances.html.j2"
    passed: bool | None
    cards: Sequence[Card]


def distances_section(distances: Mapping[str, Any]) -> DistancesSection:
    """From the part `distances` of figures.json."""
    notes = {"dcr": f"in columns that differ, of {distances['columns']}", "nndr": "1: neither stands out"}
    rows = distances.get("rows") or {}
    among = "; ".join(["quantiles over the records", *(f"{n:,} {name} ones" for name, n in rows.items())])
    titles = {"dcr": "Distance to the closest record", "nndr": "Nearest over second nearest"}
    cards = [
        Card(title, _quantiles(distances[name], title), f"{notes[name]}; {among}")
        for name, title in titles.items()
        if name in distances
    ]
    return DistancesSection(distances.get("passed"), cards)


def _quantiles(curve: Mapping[str, Sequence[float | None]], title: str) -> Drawing:
    """The whole line is the holdout, the dashed one the synthetic table."""
    drawn = []
    for style, name in (("lreal", "holdout"), ("lmade", "synthetic")):
        pairs = zip(curve["quantile"], curve[name], strict=True)
        drawn.append(Line(style, name, [(q, v) for q, v in pairs if q is not None and v is not None]))
    y = ChartAxis.linear(v for line in drawn for _, v in line.points)
    x = ChartAxis(0.0, 1.0, ((0.0, "nearest"), (1.0, "farthest")))
    return lines(drawn, x, y, label=title, width=340, height=190)
