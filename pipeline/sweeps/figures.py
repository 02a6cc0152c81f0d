"""The figures of a sweep's page, as SVG text: they saw raw rows, NOT private."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.metrics import METRICS

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
MARKERS = "os^xDv*+"
#: Panels in a row of a figure.
WIDE = 3


def curves(frame: pd.DataFrame) -> str:
    """A panel per metric and table: the score over ε (log axes where all scores are above 0), a line per method."""
    panels = list(frame.groupby(["data", "metric"], sort=False))
    wide = min(WIDE, len(panels))
    rows = -(-len(panels) // wide)
    figure = Figure(figsize=(max(4.2 * wide, 5.4), 3.2 * rows + 0.4), layout="constrained")
    methods = list(dict.fromkeys(frame["method"]))
    several = frame["data"].nunique() > 1
    for i, ((data, metric), group) in enumerate(panels):
        axes = figure.add_subplot(rows, wide, i + 1)
        for method, part in group.groupby("method", sort=False):
            _curve(axes, part, str(method), methods.index(method))
        axes.set_xscale("log")
        ticks = sorted(group["epsilon"].unique())
        axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
        axes.set_xticks([], minor=True)
        if (group["score"] > 0).all() and group["goal"].iloc[0] == "low":
            axes.set_yscale("log")
        if group["floor"].notna().any():
            axes.axhline(float(group["floor"].median()), color="#999999", linestyle=":", label="floor")
        better = "lower is better" if group["goal"].iloc[0] == "low" else "higher is better"
        shown = METRICS[metric].title if metric in METRICS and wide == 1 else metric  # a narrow panel has no room
        axes.set_title(f"{shown}{f' ({data})' if several else ''}, {better}", fontsize=9)
        axes.set_xlabel("ε")
        axes.grid(alpha=0.3)
    return _svg(figure)


def _curve(axes: Axes, part: pd.DataFrame, method: str, place: int) -> None:
    over = part.groupby("epsilon")["score"]
    low, middle, high = over.min(), over.median(), over.max()
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    axes.plot(middle.index, middle.to_numpy(), color=colour, marker=marker, markersize=4, label=method)
    if (over.size() > 1).any():
        axes.fill_between(middle.index, low.to_numpy(), high.to_numpy(), color=colour, alpha=0.2, linewidth=0)


def tradeoff(frame: pd.DataFrame) -> str:
    """The first metric against the seconds of the job: a point per job, its ε beside it, a colour per method."""
    metric = frame["metric"].iloc[0]
    chosen = frame[frame["metric"] == metric]
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for place, (method, part) in enumerate(chosen.groupby("method", sort=False)):
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        axes.plot(part["seconds"], part["score"], marker, color=colour, label=str(method), markersize=5)
        for x, y, e in zip(part["seconds"], part["score"], part["epsilon"], strict=True):
            axes.annotate(f"{e:g}", (x, y), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.set_xscale("log")
    if (chosen["score"] > 0).all():
        axes.set_yscale("log")
    axes.set_xlabel("seconds")
    axes.set_ylabel(str(metric))
    axes.grid(alpha=0.3)
    return _svg(figure)


def _svg(figure: Figure) -> str:
    """The figure with one legend, as a part of an HTML page."""
    known: dict[str, Any] = {}
    for axes in figure.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, line)
    figure.legend(handles=list(known.values()), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "sweep", "font.size": 9}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
