"""The pictures of two tables: records over two axes, pairs, curves, places over time."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.values.value_tables import shown
from mechanisms.public.json_values import Json
from pipeline.report.charts import Drawing, Line, Place, heat, lines, place_map
from pipeline.report.page import BOTH, Card, Section, Table, number
from pipeline.report.scale import ChartAxis
from pipeline.report.small_charts import cloud

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
            f"{_said(s['value'], seconds)} ({s['real']:.1%} real, {s['synthetic']:.1%} synthetic)"
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
    return ChartAxis(low, high, tuple((v, _said(v, seconds)[:10]) for v in (low, (low + high) / 2, high)))


def _said(value: float, seconds: float | None) -> str:
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
    parts = {
        "low": low,
        "high": high,
        "all_times": None if whole is None else Card("All times", whole, note),
        "times": small,
        "worst_over_time": heat(worst_names, times, matrix, high=high, low=low, label="Worst places over time"),
        "worst": Table((figure["segment"], "records", "mean score"), rows),
        "courses": [_course(course, times) for course in figure.get("temporal", ())],
        "losses": [(style, name) for name, style in LOSSES.items()],
        "types": _types(figure["types"]) if figure.get("types") else None,
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


def _types(types: Sequence[Json]) -> Table:
    heads = ("record type", "records", "rank", "synthetic rank", "loss")
    rows = [(t["type"], round(t["real"]), t["rank"], t["synthetic_rank"], t["Total"]) for t in types]
    return Table(heads, rows)


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
