"""The map: the score of every place at every time, on coordinates or areas where they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, Line, Place, heat, lines, place_map
from pipeline.pages.page import Card, Table
from pipeline.pages.scale import ChartAxis

#: Places in the matrix, and in the table: the worst ones.
WORST, LISTED = 24, 10
#: Times drawn as small maps.
TIMES = 24
#: N-CRiPT's losses, and the styles of their lines.
LOSSES = {"JSD": "c0", "BP": "c1", "JD": "c2", "HH": "c3", "HC": "c4", "VC": "c5"}


@dataclass(frozen=True)
class MapSection:
    """Temporal scores per segment.

    Attributes:
        score, segment, time: what is scored, of what, and when.
        low, high: the smallest and the largest score.
        all_times: a map of the means; None where no place is known.
        times: (time, map).
        worst_over_time: the worst places as a matrix.
        worst: the worst places as a table.
        courses: of some places, each of N-CRiPT's losses over time.
        losses: (style, name) of these lines.
        types: what the worst record types add to the loss; None where it was not computed.
    """

    name: ClassVar[str] = "map"
    title: ClassVar[str] = "Places over time"
    template: ClassVar[str] = "sections/map.html.j2"
    score: str
    segment: str
    time: str
    low: float
    high: float
    all_times: Card | None
    times: Sequence[tuple[str, Drawing | None]]
    worst_over_time: Drawing
    worst: Table
    courses: Sequence[Card] = ()
    losses: Sequence[tuple[str, str]] = ()
    types: Table | None = None


def map_section(figure: Mapping[str, Any]) -> MapSection:
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
    return MapSection(
        score=figure["score"],
        segment=figure["segment"],
        time=figure["time"],
        low=low,
        high=high,
        all_times=None if whole is None else Card("All times", whole, note),
        times=small,
        worst_over_time=heat(worst_names, times, matrix, high=high, low=low, label="Worst places over time"),
        worst=Table((figure["segment"], "records", "mean score"), rows),
        courses=[_course(course, times) for course in figure.get("temporal", ())],
        losses=[(style, name) for name, style in LOSSES.items()],
        types=_types(figure["types"]) if figure.get("types") else None,
    )


def _course(course: Mapping[str, Any], times: Sequence[str]) -> Card:
    """The temporal scores chart of one place (N-CRiPT 2021, 2.4.2)."""
    every = max(1, -(-len(times) // 6))
    ticks = tuple((float(i), times[i].split(" to ")[0]) for i in range(0, len(times), every))
    x = ChartAxis(0.0, max(len(times) - 1.0, 1.0), ticks)
    y = ChartAxis(0.0, 1.0, tuple((v / 4, f"{v / 4:g}") for v in range(5)))
    series = [Line(style, name, list(enumerate(course[name])), marked=True) for name, style in LOSSES.items()]
    name = course["segment"]
    mean = sum(course["Total"]) / max(len(times), 1)
    return Card(name, lines(series, x, y, label=f"Losses of {name} over time", width=380), f"mean loss {mean:.3g}")


def _types(types: Sequence[Mapping[str, Any]]) -> Table:
    heads = ("record type", "records", "rank", "synthetic rank", "loss")
    rows = [(t["type"], round(t["real"]), t["rank"], t["synthetic_rank"], t["Total"]) for t in types]
    return Table(heads, rows)


def _drawn(
    figure: Mapping[str, Any], values: Sequence[float], low: float, high: float, size: int, label: str, *, titles: bool
) -> Drawing | None:
    """A map of one value per place: areas where they are known, else points."""
    names = figure["segments"]
    if areas := figure.get("areas"):
        places = [Place(n, v, rings=rings) for n, v, rings in zip(names, values, areas, strict=True)]
    else:
        points = [None if None in p else p for p in zip(figure["x"], figure["y"], strict=True)]
        places = [Place(n, v, point=p) for n, v, p in zip(names, values, points, strict=True)]
    return place_map(places, low=low, high=high, size=size, titles=titles, label=label)
