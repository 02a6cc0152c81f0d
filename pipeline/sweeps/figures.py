"""The figures of a sweep: scores over ε, and errors over time. They saw raw rows, NOT private."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from evaluation.metrics import METRICS
from pipeline.report.charts import COLOURS, Drawing, Line, add, lines, svg
from pipeline.report.page import Card
from pipeline.report.scale import ChartAxis, short

#: The stages of a job that are its method's.
METHOD_STAGES = ("measure", "synthesize")


def method_colours(frame: pd.DataFrame) -> dict[str, str]:
    """Each method → the class of its colour, the same in all figures of a page."""
    return {str(m): f"c{i % COLOURS}" for i, m in enumerate(dict.fromkeys(frame["method"]))}


def curves(frame: pd.DataFrame, colours: dict[str, str]) -> list[Card]:
    """A picture per table and metric: the score over ε, a line per method.

    Lines are medians, error bars reach from the smallest to the largest, and the dotted line is the floor. The axis of
    scores is logarithmic where all are above 0 and 0 is the goal.
    """
    several = frame["data"].nunique() > 1
    drawn = []
    for (data, metric), group in frame.groupby(["data", "metric"], sort=False):
        shown = METRICS[str(metric)].title if metric in METRICS else str(metric)
        low = group["goal"].iloc[0] == "low"
        title, better = f"{shown} ({data})" if several else shown, f"{'lower' if low else 'higher'} is better"
        drawn.append(Card(title, _curve(group, colours, f"{title} over ε, {better}", low=low), better))
    return drawn


def _curve(group: pd.DataFrame, colours: dict[str, str], label: str, *, low: bool) -> Drawing:
    floor = float(group["floor"].median()) if group["floor"].notna().any() else None
    scores = [*group["score"], *([] if floor is None else [floor])]
    x = ChartAxis.logarithmic_over((), "ε", ticks=sorted(group["epsilon"].unique()))
    y = ChartAxis.logarithmic_over(scores) if low and min(scores) > 0 else ChartAxis.linear(scores, ground=low)
    methods = group.groupby("method", sort=False)
    return lines(
        [_line(m, part, colours) for m, part in methods], x, y, label=label, level=floor, width=360, height=250
    )


def _line(method: object, part: pd.DataFrame, colours: dict[str, str]) -> Line:
    over = part.groupby("epsilon")["score"]
    low, middle, high = over.min(), over.median(), over.max()
    several = over.size() > 1
    errors = [e for e, some in zip(zip(middle.index, low, high, strict=True), several, strict=True) if some]
    points = list(zip(middle.index, middle, strict=True))
    return Line(colours[str(method)], str(method), points, errors=errors, marked=True)


def panels(parts: Sequence[Card], legend: Sequence[tuple[str, str]], *, across: int, label: str) -> Drawing:
    """Several pictures of one size in one, `across` in a row, below the (class, name) of every line."""
    drawings = [part.body for part in parts if isinstance(part.body, Drawing)]
    wide, tall = drawings[0].size
    width, head, title = wide * min(across, len(parts)), 8.0, 34.0
    root = svg(width, 0, label)
    x = width
    for style, name in legend:
        room = 30 + 6.5 * len(short(name, 40))
        if x + room > width:
            x, head = 10.0, head + 18
        add(add(root, "g", class_=style), "circle", class_="mark", cx=x + 4, cy=head - 8, r=4)
        add(root, "text", short(name, 40), x=x + 13, y=head - 4)
        x += room
    for i, (part, drawing) in enumerate(zip(parts, drawings, strict=True)):
        left, top = wide * (i % across), head + (tall + title) * (i // across)
        add(root, "text", short(part.title, int(wide / 6.6)), class_="t", x=left + 12, y=top + 18)
        add(root, "text", part.note, class_="s", x=left + 12, y=top + 32)
        add(root, "svg", x=left, y=top + title, width=wide, height=tall).extend(drawing.root)
    height = head + (tall + title) * math.ceil(len(parts) / across)
    root.attrib |= {"height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    return Drawing(root)


def tradeoff(frame: pd.DataFrame, colours: dict[str, str]) -> tuple[str, Drawing]:
    """The first metric, and its scores over the seconds of the method: a mark per job with its ε, a colour per method.

    The seconds are those that measuring and synthesizing took, where the jobs say them; else those of the whole job.
    """
    metric = str(frame["metric"].iloc[0])
    chosen = frame[frame["metric"] == metric]
    chosen = chosen.assign(seconds=method_seconds(chosen))
    scores, seconds = list(chosen["score"]), list(chosen["seconds"])
    marks = [_marks(m, part, colours) for m, part in chosen.groupby("method", sort=False)]
    y = ChartAxis.logarithmic_over(scores, metric) if min(scores) > 0 else ChartAxis.linear(scores, metric)
    x = ChartAxis.logarithmic_over(seconds, "seconds")
    return metric, lines(marks, x, y, label=f"{metric} over the seconds of each method", width=440, height=320)


def method_seconds(frame: pd.DataFrame) -> pd.Series:
    """What measuring and synthesizing took in each job: reading, scores and floors are no cost of a method."""
    stages = [f"seconds_{stage}" for stage in METHOD_STAGES if f"seconds_{stage}" in frame]
    if not stages:
        return frame["seconds"]
    own = frame[stages].sum(axis=1, min_count=1)
    return own.where(own.notna(), frame["seconds"])


def _marks(method: object, part: pd.DataFrame, colours: dict[str, str]) -> Line:
    points = list(zip(part["seconds"], part["score"], strict=True))
    notes: Sequence[str] = [f"{e:g}" for e in part["epsilon"]]
    return Line(colours[str(method)], str(method), points, joined=False, notes=notes)
