"""The sections that set two tables beside each other: columns, pairs, pictures, distances of records, validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.values.value_tables import shown
from mechanisms.public.files import Json
from pipeline.report.charts import Drawing, Line, Place, bars, cloud, heat, lines, marks, place_map
from pipeline.report.page import BOTH, Card, Cell, Gauge, Section, Table, number
from pipeline.report.scale import ChartAxis

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


#: Places in the matrix, and in the table: the worst ones.
WORST, LISTED = 24, 10
#: Times drawn as small maps.
TIMES = 24
#: N-CRiPT's losses, and the styles of their lines.
LOSSES = {"JSD": "c0", "BP": "c1", "JD": "c2", "HH": "c3", "HC": "c4", "VC": "c5"}
STYLES = {"real": "lreal", "synthetic": "lmade", "holdout": "lheld"}


def axes_section(axes: Json) -> Section:
    """From the part `axes` of figures.json."""
    points = axes["points"]
    alone = [
        Card(name.capitalize(), cloud([(STYLES[name], points[name])], label=f"Records: {name}")) for name in points
    ]
    both = [(STYLES[name], points[name]) for name in ("real", "synthetic")]
    cards = [*alone[:2], Card("Real and synthetic", cloud(both, label="Records: real and synthetic")), *alone[2:]]
    parts = {
        "legend": [(STYLES[name], name) for name in points],
        "cards": cards,
        "rows": ", ".join(f"{n:,} {name}" for name, n in axes["rows"].items()),
        "explained": [f"{share:.0%}" for share in axes["explained"]],
    }
    return Section("axes", "Records over two axes", parts | {n: axes[n] for n in ("fitted", "columns", "of")})


def pair_maps_section(pairs: Sequence[Json]) -> Section:
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
            Card(
                name,
                heat(pair["rows"], pair["columns"], values, high=top, cell=(22, 17), label=f"{title}: {name}"),
                words,
            )
            for name, values, top, words in (
                ("Real", sides[0], high, f"up to {high:.1%} of the records in a cell"),
                ("Synthetic", sides[1], high, "on the same scale"),
                ("Synthetic − real", difference, most, f"up to {most:.1%}, on its own scale; red: too many"),
            )
        ]
        drawn.append((title, note, cards))
    return Section("pair-maps", "Pairs of columns", {"pairs": drawn})


def densities_section(columns: Sequence[Json]) -> Section:
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
            f"{_value_in_words(s['value'], seconds)} ({s['real']:.1%} real, {s['synthetic']:.1%} synthetic)"
            for s in column["spikes"]
        ]
        note += f"; not drawn: {', '.join(spikes)}" if spikes else ""
        label = f"Density of {column['column']}"
        picture = lines(drawn, _axis(low, high, seconds), ChartAxis(0.0, 1.0, ()), label=label, width=340, height=170)
        cards.append(Card(column["column"], picture, note))
    return Section("densities", "Densities of numbers and dates", {"legend": BOTH, "cards": cards})


def _axis(low: float, high: float, seconds: float | None) -> ChartAxis:
    if seconds is None:
        whole = ChartAxis.linear((low, high), ground=False)
        inside = [v for v, _ in whole.ticks if low <= v <= high][:: 2 if high >= 100_000 else 1]
        return ChartAxis(low, high, tuple((v, f"{v:g}" if abs(v) < 10_000 else number(v)) for v in inside))
    return ChartAxis(low, high, tuple((v, _value_in_words(v, seconds)[:10]) for v in (low, (low + high) / 2, high)))


def _value_in_words(value: float, seconds: float | None) -> str:
    """A number, or a date of so many seconds a unit."""
    return number(value) if seconds is None else shown("date", round(value * seconds))


def map_section(figure: Json) -> Section:
    """From the part `map` of figures.json."""
    losses: Sequence[Sequence[float]] = figure["losses"]
    names, times = figure["segments"], figure["times"]
    means = [sum(line) / max(len(line), 1) for line in losses]
    values = [v for line in losses for v in line]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    order = sorted(range(len(names)), key=lambda i: -means[i])
    worst = [i for i in order if figure["records"][i] != 0][:WORST]
    rows = [(names[i], figure["records"][i], means[i]) for i in worst[:LISTED]]
    worst_names = [names[i] for i in worst]
    matrix = [[losses[i][t] for t in range(len(times))] for i in worst]
    small = [
        (time.split(" to ")[0], _drawn(figure, scores, low, high, 150, f"Scores of {time}", titles=False))
        for time, scores in zip(times[:TIMES], zip(*losses, strict=True), strict=False)
    ]
    spread = (min(means, default=0.0), max(means, default=1.0))
    whole = _drawn(figure, means, *spread, 420, "Mean score of each place", titles=True)
    note = f"from {spread[0]:.3g} (pale) to {spread[1]:.3g} (strong)"
    heads, listed = ("record type", "records", "rank", "synthetic rank", "loss"), figure.get("types") or ()
    types = [(t["type"], round(t["real"]), t["rank"], t["synthetic_rank"], t["Total"]) for t in listed]
    parts = {
        "low": low,
        "high": high,
        "all_times": None if whole is None else Card("All times", whole, note),
        "times": small,
        "worst_over_time": heat(worst_names, times, matrix, high=high, low=low, label="Worst places over time"),
        "worst": Table((figure["segment"], "records", "mean score"), rows),
        "courses": [_course(course, times) for course in figure.get("temporal", ())],
        "losses": [(style, name) for name, style in LOSSES.items()],
        "types": Table(heads, types) if types else None,
    }
    return Section("map", "Places over time", parts | {n: figure[n] for n in ("score", "segment", "time")})


def _course(course: Json, times: Sequence[str]) -> Card:
    """The temporal scores chart of one place (N-CRiPT 2021, 2.4.2)."""
    y = ChartAxis(0.0, 1.0, tuple((v / 4, f"{v / 4:g}") for v in range(5)))
    series = [Line(style, name, list(enumerate(course[name])), marked=True) for name, style in LOSSES.items()]
    name = course["segment"]
    mean = sum(course["Total"]) / max(len(times), 1)
    return Card(
        name,
        lines(series, ChartAxis.named(times), y, label=f"Losses of {name} over time", width=380),
        f"mean loss {mean:.3g}",
    )


def _drawn(
    figure: Json, values: Sequence[float], low: float, high: float, size: int, label: str, *, titles: bool
) -> Drawing | None:
    """A map of one value per place: areas where they are known, else points."""
    names = figure["segments"]
    if areas := figure.get("areas"):
        places = [Place(n, v, rings=rings) for n, v, rings in zip(names, values, areas, strict=True)]
    else:
        points = [None if None in p else p for p in zip(figure["x"], figure["y"], strict=True)]
        places = [Place(n, v, point=p) for n, v, p in zip(names, values, points, strict=True)]
    return place_map(places, low=low, high=high, size=size, titles=titles, label=label)
