"""Figure 3: four scores of every synthetic table, on logarithmic axes where the paper has them."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.experiments.findings import save
from pipeline.experiments.table1.claim import SCORES
from pipeline.experiments.table1.table1_report import Table1Report
from pipeline.json_types import JsonDict

#: Series → label, colour, marker.
SERIES = {
    "range_query": ("Range query error", "#0072b2", "o"),
    "mgd": ("MGD", "#d55e00", "s"),
    "aemc_3way": ("AEMC (3-way)", "#009e73", "^"),
    "inverse_pie": ("Inv Pie (linear axis, right)", "#555555", "x"),
}


def draw_figure(report: Table1Report, folder: Path) -> None:
    """Writes figure3.png and figure3.svg. They saw raw rows: NOT private."""
    with matplotlib.rc_context({"svg.hashsalt": "figure3", "font.size": 9, "axes.spines.top": False}):
        figure = Figure(figsize=(12, 7.2), layout="constrained")
        grid = figure.add_gridspec(2, 3, height_ratios=(1.35, 1))
        _curves(figure.add_subplot(grid[0, :]), report)
        for i, name in enumerate(SCORES):
            _against_queries(figure.add_subplot(grid[1, i]), report, name)
        data = report.setting["data"]
        shape = " × ".join(map(str, data["shape"]))
        small = ", smoke test" if report.setting["smoke"] else ""
        figure.suptitle(f"{data['name']} ({shape}, {data['records']:,} records{small}). NOT private.", fontsize=10)
        save(figure, folder, "figure3")


def value_of(row: JsonDict, name: str) -> float:
    """The score for the figure; NaN where it is undefined."""
    value = row["aemc"]["3-way"] if name == "aemc_3way" else row[name]
    return float("nan") if value is None else float(value)


def _curves(axes: Axes, report: Table1Report) -> None:
    """All four scores with standard errors, dataset by dataset; a gap between the methods."""
    rows = report.rows
    right = axes.twinx()
    right.set_ylim(0, 1.02)
    right.set_ylabel("Inv Pie")
    axes.set_yscale("log")
    axes.set_ylabel("RQ, MGD, AEMC (log)")
    axes.set_xticks(range(len(rows)), [r["dataset"] for r in rows], rotation=45, ha="right")
    axes.grid(axis="y", alpha=0.3)
    lines = []
    for name, (label, colour, marker) in SERIES.items():
        where = right if name == "inverse_pie" else axes
        for method in dict.fromkeys(r["method"] for r in rows):
            places = [i for i, r in enumerate(rows) if r["method"] == method]
            values = [_positive(value_of(rows[i], name), name) for i in places]
            errors = [report.errors[rows[i]["dataset"]][name] for i in places]
            how: JsonDict = {"color": colour, "marker": marker, "linewidth": 1.2, "markersize": 4, "capsize": 2}
            line = where.errorbar(places, values, errors, label=label, **how)
        lines.append(line)
    axes.legend(handles=lines, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, ncols=4)


def _against_queries(axes: Axes, report: Table1Report, name: str) -> None:
    """One score against the range-query error, a point per dataset, with their rank correlation."""
    _, colour, marker = SERIES[name]
    points = [(value_of(r, "range_query"), value_of(r, name)) for r in report.rows]
    x = [_positive(p[0], "range_query") for p in points]
    axes.plot(x, [_positive(p[1], name) for p in points], color=colour, marker=marker, markersize=4, linestyle="none")
    axes.set_xscale("log")
    if name != "inverse_pie":
        axes.set_yscale("log")
    axes.set_xlabel("range query error (log)")
    axes.set_ylabel(SCORES[name] + ("" if name == "inverse_pie" else " (log)"))
    rho = report.claim.rho[name]
    axes.set_title("Spearman undefined" if rho is None else f"Spearman {rho:.3f}", fontsize=9)
    axes.grid(alpha=0.3)


def _positive(value: float, name: str) -> float:
    """A score of 0 has no place on a logarithmic axis."""
    return value if value > 0 or name == "inverse_pie" else float("nan")
