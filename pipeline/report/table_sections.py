"""The sections that set two tables beside each other: columns, pairs, dependences, distances of records, validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mechanisms.public.json_values import Json
from pipeline.report.charts import Drawing, Line, bars, heat, lines
from pipeline.report.page import BOTH, Card, Cell, Gauge, Section, Table
from pipeline.report.scale import ChartAxis
from pipeline.report.small_charts import marks

#: Columns that a matrix shows; a wider one is cut to those with the largest values.
MOST = 36
#: Columns whose bars are drawn: the worst ones.
DRAWN = 60
#: Columns whose overlap is marked: the worst ones.
MARKED = 40
#: What the marks of a column are.
ACCURACIES = (("lreal", "alone"), ("lmade", "mean of its pairs"), ("lsoft", "alone, of a second sample"))
#: Shares of missing values that differ by less are alike.
GAP = 0.005

Matrix = Sequence[Sequence[float | None]]


def columns_section(columns: Sequence[Json]) -> Section:
    """From the part `columns` of figures.json."""
    cards = []
    for column in sorted(columns, key=lambda c: -(c["tvd"] or 0.0))[:DRAWN]:
        distance = "no records" if column["tvd"] is None else f"{column['tvd']:.3f}"
        note = f"{column['kind']}, {column['values']:,} values; total variation distance {distance}"
        cards.append(Card(column["name"], bars(column["labels"], column["real"], column["synthetic"]), note))
    shown = {"legend": BOTH, "cards": cards, "columns": len(columns)}
    return Section("columns", "Distributions of the columns", shown)


def pairs_section(pairs: Json) -> Section:
    """From the part `pairs` of figures.json."""
    names, values = _cut(pairs["names"], pairs["tvd"])
    high = max((v for line in values for v in line if v is not None), default=1.0)
    chart = heat(names, names, values, high=high, label="Total variation distance of pairs of columns")
    shown = {"chart": chart, "shown": len(names), "columns": len(pairs["names"])}
    return Section("pairs", "Errors of pairs", shown)


def _cut(names: Sequence[str], matrix: Matrix) -> tuple[list[str], list[list[float | None]]]:
    """The MOST columns with the largest values, in their order."""
    worst = sorted(range(len(names)), key=lambda i: -sum(v or 0.0 for v in matrix[i]))[:MOST]
    shown = sorted(worst)
    return [names[i] for i in shown], [[matrix[i][j] for j in shown] for i in shown]


#: What each kind of correlation is called.
CORRELATIONS = {
    "pearson": "Pearson's r of the values of numbers and dates: −1 to 1",
    "spearman": "Spearman's ρ, the same of their ranks: −1 to 1",
    "cramers_v": "Cramér's V of any two columns, over at most 20 buckets each: 0 is independent, 1 determined",
}


def correlation_section(maps: Json) -> Section:
    """From the part `correlations` of scores.json."""
    kinds = []
    for kind in (k for k in CORRELATIONS if k in maps):
        names, cards = maps[kind]["names"], []
        for side, title in (("real", "Real"), ("synthetic", "Synthetic"), ("difference", "Synthetic − real")):
            chart = heat(
                names, names, maps[kind][side], high=1.0, cell=(34, 24), label=f"{CORRELATIONS[kind]}; {title}"
            )
            cards.append(Card(title, chart))
        kinds.append((CORRELATIONS[kind], cards))
    rows = (maps["rows"]["real"], maps["rows"]["synthetic"])
    return Section("correlation", "Correlations", {"kinds": kinds, "rows": rows})


def distances_section(distances: Json) -> Section:
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
    shown = {"passed": distances.get("passed"), "cards": cards}
    return Section("distances", "Distances to the training records", shown)


def _quantiles(curve: Mapping[str, Sequence[float | None]], title: str) -> Drawing:
    """The whole line is the holdout, the dashed one the synthetic table."""
    drawn = []
    for style, name in (("lreal", "holdout"), ("lmade", "synthetic")):
        pairs = zip(curve["quantile"], curve[name], strict=True)
        drawn.append(Line(style, name, [(q, v) for q, v in pairs if q is not None and v is not None]))
    y = ChartAxis.linear(v for line in drawn for _, v in line.points)
    x = ChartAxis(0.0, 1.0, ((0.0, "nearest"), (1.0, "farthest")))
    return lines(drawn, x, y, label=title, width=340, height=190)


def dependence_section(dependence: Json) -> Section:
    """From the part `dependence` of figures.json."""
    lost = dependence["lost"]
    names = [f"{pair['a']} × {pair['b']}" for pair in lost]
    rows: list[tuple[Cell, ...]] = []
    for name, pair in zip(names, lost, strict=True):
        change = pair["change"] or {"what": "", "real": None, "synthetic": None}
        figures = (change["what"], change["real"], change["synthetic"])
        rows.append((name, pair["real"], f"{pair['kept']:.0%}", Gauge(pair["kept"]), *figures))
    head = ("pair", "strength", "kept", "", "for example", "real", "synthetic")
    shown = {
        "score": dependence["score"],
        "dependent": dependence["dependent_pairs"],
        "pairs": dependence["pairs"],
        "lost": Table(head, rows),
    }
    return Section("dependence", "Lost dependences", shown)


def accuracy_section(columns: Sequence[Json], pairs: Json | None) -> Section | None:
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
    shown = rows[:MARKED]
    least = min(v for _, own in shown for v in own if v is not None)
    low = next(x for x in (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.25, 0.0) if x < least or x == 0.0)
    used = [i for i in range(len(ACCURACIES)) if any(own[i] is not None for _, own in shown)]
    styles = [ACCURACIES[i] for i in used]
    chart = marks([n for n, _ in shown], [[own[i] for i in used] for _, own in shown], styles,
                  label="Overlap of each column", ends=(low, 1.0))  # fmt: skip
    parts = {"legend": styles, "chart": chart, "shown": len(shown), "columns": len(rows)}
    return Section("accuracy", "Overlap of each column", parts)


def _of_pairs(name: str, pairs: Json) -> float | None:
    """1 − the mean distance of the pairs that a column is in."""
    if name not in pairs["names"]:
        return None
    i = pairs["names"].index(name)
    values = [v for j, v in enumerate(pairs["tvd"][i]) if j != i and v is not None]
    return 1 - sum(values) / len(values) if values else None


def validity_section(drawn: Json) -> Section | None:
    """From the parts `rules`, `keys` and `valid` of figures.json; None where there is none of them."""
    rules = [(r["rule"], _percent(r["real"]), _percent(r["synthetic"])) for r in drawn.get("rules", ())]
    keys = [
        (k["column"], _percent(k["real"]), _percent(k["synthetic"]), _percent(k["real_ones"]))
        for k in drawn.get("keys", ())
    ]
    every: Sequence[Json] = drawn.get("valid", ())
    listed = [c for c in every if not _sound(c)]
    columns: list[tuple[Cell, ...]] = [
        (c["column"], c["kind"], *map(_percent, c["missing"]), _percent(c["allowed"]), c["how"]) for c in listed
    ]
    if not (rules or keys or every):
        return None
    tables = {
        "Rules of the schema": Table(
            ("rule", "real rows that break it (by their bins)", "synthetic rows that break it"), rules
        ),
        "Ids": Table(("id", "distinct real ones", "distinct synthetic ones", "synthetic ones that are real"), keys),
        "Columns": Table(("column", "kind", "missing, real", "missing, synthetic", "valid", "what is valid"), columns),
    }
    shown = [(title, table) for title, table in tables.items() if table.rows]
    return Section("validity", "Validity", {"tables": shown, "listed": len(listed), "sound": len(every) - len(listed)})


def _sound(column: Json) -> bool:
    """Whether all values are valid and as many are missing as in the real table, to half a per cent of the records."""
    real, synthetic = column["missing"]
    return column["allowed"] in (None, 1.0) and abs(real - synthetic) <= GAP


def _percent(share: float | None) -> str:
    """Two digits; a share below 1 never reads as all of it, nor one above 0 as nothing."""
    if share is None:
        return ""
    text = f"{share:.2%}"
    return {("100.00%", True): "> 99.99%", ("0.00%", True): "< 0.01%"}.get((text, share not in (0.0, 1.0)), text)
