"""Scores of an experiment's tables against each other: a figure, its points, rank correlations. NOT private."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.metrics import find
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from pipeline.experiments.findings import save
from pipeline.experiments.gallery.published import Beside
from pipeline.experiments.table1.claim import spearman

#: What is left for readers.
FILES = ("against.csv", "against.png")


@dataclass(frozen=True)
class Pair:
    """Two metrics over the tables that have both.

    Attributes:
        across, up: the metrics.
        points: (dataset, ε, score of the one, of the other).
        rho: Spearman's rank correlation, its sign turned where one is good when high and the other when low, so that 1
            means that both put the tables in the same order of quality; None where it is undefined.
        floor: what fresh real records score in `up`, where it was measured.
    """

    across: str
    up: str
    points: tuple[tuple[str, float, float, float], ...]
    rho: float | None
    floor: float | None


def check_against(against: Mapping[str, Sequence[str]], metrics: Sequence[str]) -> None:
    """UserError where `experiment.against` names what is not scored."""
    for across, others in against.items():
        for name in (across, *others):
            if name not in metrics:
                raise UserError(
                    f"{name!r} is not scored", where="experiment.against", fix="name it in experiment.metrics"
                )


def pairs_of(rows: Sequence[Mapping[str, Any]], against: Mapping[str, Sequence[str]]) -> tuple[Pair, ...]:
    """The pairs that `against` names: metric → metrics.

    Args:
        rows: of the findings, one per table and metric.
    """
    tables: dict[tuple[str, float], dict[str, float]] = {}
    floors: dict[str, float] = {}
    for row in rows:
        if row["score"] is not None:
            tables.setdefault((row["dataset"], row["epsilon"]), {})[row["metric"]] = row["score"]
        if row.get("floor") is not None:
            floors[row["metric"]] = row["floor"]
    made = []
    for across, others in against.items():
        for up in others:
            points = tuple((*key, s[across], s[up]) for key, s in tables.items() if across in s and up in s)
            rho = spearman([p[2] for p in points], [p[3] for p in points])
            turned = -1.0 if find(across).goal != find(up).goal else 1.0
            made.append(Pair(across, up, points, None if rho is None else turned * rho, floors.get(up)))
    return tuple(made)


def beside_pairs(pairs: Sequence[Pair]) -> tuple[Beside, ...]:
    """The rank correlations; no source prints any."""
    return tuple(
        Beside(f"rank correlation of {p.across} with {p.up} over {len(p.points)} tables", p.rho) for p in pairs
    )


def in_words(pair: Pair) -> str:
    """A line for readers."""
    rho = "undefined" if pair.rho is None else f"{pair.rho:.3f}"
    return f"Rank correlation of {pair.across} and {pair.up} over {len(pair.points)} tables: {rho} (1: the same order)."


def write_against(pairs: Sequence[Pair], inside: Path, title: str) -> None:
    """The points, and a panel for each pair."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["across", "up", "dataset", "epsilon", "score_across", "score_up"])
    for pair in pairs:
        table.writerows([pair.across, pair.up, *point] for point in pair.points)
    write_whole(inside / "against.csv", text.getvalue(), mode=0o600)
    with matplotlib.rc_context({"svg.hashsalt": "against", "font.size": 9, "axes.spines.top": False}):
        figure = Figure(figsize=(4.4 * max(1, len(pairs)), 3.8), layout="constrained")
        for i, pair in enumerate(pairs):
            _panel(figure.add_subplot(1, len(pairs), i + 1), pair)
        figure.suptitle(f"{title}. NOT private.", fontsize=10)
        save(figure, inside, "against")


def _panel(axes: Axes, pair: Pair) -> None:
    for name in dict.fromkeys(p[0] for p in pair.points):
        own = sorted((p for p in pair.points if p[0] == name), key=lambda p: p[1])
        axes.plot([p[2] for p in own], [p[3] for p in own], "o-", linewidth=0.8, markersize=4, label=name)
        for _, epsilon, x, y in own:
            axes.annotate(f"ε = {epsilon:g}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    if pair.floor is not None:
        axes.axhline(pair.floor, color="#444444", linestyle=":", linewidth=1, label="fresh real records")
    for label, name in ((axes.set_xlabel, pair.across), (axes.set_ylabel, pair.up)):
        metric = find(name)
        label(f"{name} ({metric.perfect:g} is perfect)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
