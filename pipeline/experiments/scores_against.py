"""Scores of an experiment's tables against each other: a figure, its points, rank correlations. NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.metrics import METRICS
from mechanisms.public.files import Json
from pipeline.experiments.experiment_settings import mean_of, mean_rows, save, write_rows
from pipeline.experiments.gallery.published import SMOKE, Beside
from pipeline.experiments.table1 import spearman

#: (dataset, ε) → metric → a row of the findings.
Tables = dict[tuple[str, float | None], dict[str, Json]]
#: Among fewer tables of one kind an exchange of two, which noise makes, moves a rank correlation by 0.2 and more.
FEWEST = 5
#: Where a published rank correlation is from.
FROM_PRINTED = "from the 20 rows of Table 1; no correlation is printed"


@dataclass(frozen=True)
class ScoredPair:
    """Two metrics over the tables that have both.

    Attributes:
        across, up: the metrics.
        points: (dataset, ε, None for what is no release, score of the one, of the other), means over the runs.
        errors: their standard errors; 0 for one run.
        rho: Spearman's rank correlation of the points, its sign turned where one is good when high and the other when
            low, so that 1 means that both put the tables in the same order of quality; None where it is undefined.
        alone: the same of the tables of each run alone; within: of the tables of one kind, with their number.
        floor: what fresh real records score in `up`, where it was measured.
    """

    across: str
    up: str
    points: tuple[tuple[str, float | None, float, float], ...]
    errors: tuple[tuple[float, float], ...]
    rho: float | None
    alone: tuple[float | None, ...]
    within: Mapping[str, tuple[int, float | None]]
    floor: float | None


def pairs_of(rows: Sequence[Json], against: Mapping[str, Sequence[str]]) -> tuple[ScoredPair, ...]:
    """The pairs that `against` names (metric → metrics), as far as tables have both scores.

    Args:
        rows: of the findings, one per table, run and metric.
    """
    means = _by_table(mean_rows(rows))
    runs = [_by_table([r for r in rows if r.get("run", 1) == run]) for run in sorted({r.get("run", 1) for r in rows})]
    floors = {row["metric"]: row["floor"] for row in rows if row.get("floor") is not None}
    scored = []
    for across, others in against.items():
        for up in others:
            both = {key: (s[across], s[up]) for key, s in means.items() if across in s and up in s}
            if not both:
                continue
            points = tuple((*key, a["score"], b["score"]) for key, (a, b) in both.items())
            errors = tuple((a["error"] or 0.0, b["error"] or 0.0) for a, b in both.values())
            alone = tuple(_order(run, across, up) for run in runs)
            kinds = dict.fromkeys(kind_of(*key) for key in both)
            parts = {k: {key: s for key, s in means.items() if key in both and kind_of(*key) == k} for k in kinds}
            within = {k: (len(part), _order(part, across, up)) for k, part in parts.items() if len(kinds) > 1}
            scored.append(
                ScoredPair(across, up, points, errors, _order(means, across, up), alone, within, floors.get(up))
            )
    return tuple(scored)


def kind_of(dataset: str, epsilon: float | None) -> str:
    """What a table is one of: its method, the samples, or the k-anonymous ones."""
    if epsilon is not None:
        return dataset
    head = dataset.rpartition(" ")[0]
    return "samples" if head == "sample" else head


def _by_table(rows: Sequence[Json]) -> Tables:
    """(dataset, ε) → metric → its row, where it has a score."""
    tables: Tables = {}
    for row in rows:
        if row["score"] is not None:
            tables.setdefault((row["dataset"], row["epsilon"]), {})[row["metric"]] = row
    return tables


def _order(tables: Tables, across: str, up: str) -> float | None:
    """The rank correlation over tables that have both; 1 is the same order of quality."""
    both = [(s[across]["score"], s[up]["score"]) for s in tables.values() if across in s and up in s]
    rho = spearman([a for a, _ in both], [b for _, b in both])
    goals = {s[m]["goal"] for s in tables.values() for m in (across, up) if m in s}
    return None if rho is None else rho if len(goals) < 2 else -rho


def beside_pairs(
    pairs: Sequence[ScoredPair], printed: Mapping[str, float | None] = MappingProxyType({})
) -> tuple[Beside, ...]:
    """The rank correlations of the means, and of the runs alone.

    Args:
        printed: score → the rank correlation of what a source prints of it; no source prints a correlation itself.
    """
    pairs_beside = []
    for pair in pairs:
        label = f"rank correlation of {pair.across} with {pair.up} over {len(pair.points)} tables"
        source = printed.get(pair.up), FROM_PRINTED if pair.up in printed else ""
        pairs_beside.append(Beside(label, pair.rho, *source))
        if len(pair.alone) > 1:
            mean, error, count = mean_of(pair.alone)
            pairs_beside.append(Beside(f"{label}, of a run alone", mean, *source, error, count))
        for kind, (count, rho) in pair.within.items():
            if count < FEWEST:
                continue
            pairs_beside.append(
                Beside(f"rank correlation of {pair.across} with {pair.up} over {count} tables, {kind}", rho)
            )
    return tuple(pairs_beside)


def write_against(pairs: Sequence[ScoredPair], inside: Path, title: str, *, smoke: bool) -> None:
    """The points, and a panel for each pair; `smoke`: whether they are of the small version, which each line says."""
    heads = ("across", "up", "dataset", "epsilon", "score_across", "score_up", "error_across", "error_up", SMOKE)
    mark = True if smoke else None
    rows = [[p.across, p.up, *at, *errors, mark] for p in pairs for at, errors in zip(p.points, p.errors, strict=True)]
    write_rows(inside / "against.csv", heads, rows)
    with matplotlib.rc_context({"svg.hashsalt": "against", "font.size": 9, "axes.spines.top": False}):
        figure = Figure(figsize=(4.4 * max(1, len(pairs)), 3.8), layout="constrained")
        for i, pair in enumerate(pairs):
            _panel(figure.add_subplot(1, len(pairs), i + 1), pair)
        figure.suptitle(f"{title}. NOT private.", fontsize=10)
        save(figure, inside, "against")


def _panel(axes: Axes, pair: ScoredPair) -> None:
    both = list(zip(pair.points, pair.errors, strict=True))
    for kind in dict.fromkeys(kind_of(*p[:2]) for p, _ in both):
        own = [(p, e) for p, e in both if kind_of(*p[:2]) == kind]
        across, up = [p[2] for p, _ in own], [p[3] for p, _ in own]
        wide, high = [e[0] for _, e in own], [e[1] for _, e in own]
        axes.errorbar(across, up, high, wide, fmt="o-", linewidth=0.8, markersize=4, capsize=2, label=kind)
        for (dataset, epsilon, x, y), _ in own:
            text = dataset.rpartition(" ")[2] if epsilon is None else f"ε = {epsilon:g}"
            axes.annotate(text, (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    if pair.floor is not None:
        axes.axhline(pair.floor, color="#444444", linestyle=":", linewidth=1, label="fresh real records")
    for label, name in ((axes.set_xlabel, pair.across), (axes.set_ylabel, pair.up)):
        label(f"{name} ({METRICS[name].perfect:g} is perfect)" if name in METRICS else name)
    rho = "undefined" if pair.rho is None else f"{pair.rho:.3f}"
    axes.set_title(f"rank correlation {rho} (1: the same order)", fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
