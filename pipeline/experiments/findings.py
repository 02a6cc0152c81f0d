"""What an experiment found, beside what its source reports: a table, a figure, JSON. NOT private."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t

from evaluation.score import BANNER
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.text_table import lined_up, markdown
from pipeline.console import NOT_PRINTED, tells
from pipeline.experiments.experiment_settings import ExperimentSource, mean_rows, save, write_rows
from pipeline.experiments.gallery.published import (
    SMOKE,
    TOO_SMALL,
    Beside,
    as_json,
    beside_rows,
    of_smoke,
    shown,
)
from pipeline.experiments.scores_against import ScoredPair, write_against
from pipeline.settings.config import Config

HEADS = ("table", "ε", "metric", "source says", "we get", "±", "difference", "floor", "where the source says it")
#: What an experiment may leave for readers.
FILES = (
    *("table.md", "table.csv", "figure.png", "experiment.json", "against.csv", "against.png"),
    *("table2.md", "figure1.png", "figure2.png", "figure3.png"),
)
COLUMNS = (
    "dataset",
    "epsilon",
    "run",
    "metric",
    "goal",
    "score",
    "floor",
    "reported",
    "place",
    "seconds",
    "promise",
    SMOKE,
)


@dataclass(frozen=True)
class Findings:
    """The rows of one experiment.

    Attributes:
        rows: one per table made, run and metric, with the keys of COLUMNS; a score of None has a `reason`; a table that
            is no release has no ε.
        setting: the experiment's name, its data, seeds and settings.
        source: where it was published; says: what the source reports.
        notes: how ours differs.
        against: rank correlations of scores with each other.
        further: numbers that no table of ours has, such as noise scales, beside those of the source.
    """

    rows: tuple[JsonDict, ...]
    setting: Json
    source: str
    says: str
    notes: tuple[str, ...] = ()
    against: tuple[Beside, ...] = ()
    further: tuple[Beside, ...] = ()

    @property
    def means(self) -> tuple[JsonDict, ...]:
        """The rows as means over the runs; see `repeats.mean_rows`."""
        return mean_rows(self.rows)

    @property
    def smoke(self) -> bool:
        """Whether this is the small version, whose figures say nothing about the method."""
        return bool(self.setting["smoke"])

    @property
    def beside(self) -> Findings:
        """The findings as they are shown: those of a smoke run are marked, and stand beside nothing published."""
        if not self.smoke:
            return self
        rows = tuple(row | {"reported": None, "place": "", SMOKE: True} for row in self.rows)
        against, further = of_smoke(self.against), of_smoke(self.further)
        return replace(self, rows=rows, against=against, further=further, says=TOO_SMALL)

    @property
    def title(self) -> str:
        small = ", smoke test" if self.smoke else ""
        return f"{self.setting['experiment']}: {self.setting['data']['kind']}{small}"


def write_findings(findings: Findings, inside: Path, pairs: Sequence[ScoredPair] = ()) -> None:
    """table.csv, table.md, figure.svg and .png, experiment.json, the rows for a sweep's table, and scores over scores.

    Args:
        pairs: of scores that are drawn over each other.
    """
    write_rows(inside / "table.csv", COLUMNS, ([row.get(c) for c in COLUMNS] for row in findings.rows))
    write_whole(inside / "table.md", as_markdown(findings), mode=0o600)
    facts = {"format": "experiment/1", "not_private": BANNER, **findings.setting, "source": findings.source}
    facts |= {"source_says": findings.says, "notes": list(findings.notes), "rows": list(findings.rows)}
    scores = beside_rows(findings.means)
    facts |= {"beside": [*as_json(findings.against), *scores, *as_json(findings.further)]}
    write_whole(inside / "experiment.json", json.dumps(facts, indent=1, allow_nan=False), mode=0o600)
    columns = ("epsilon", "metric", "goal", "score", "floor", "seconds")  # what a sweep gathers from each of its jobs
    lines = [{**{k: row.get(k) for k in columns}, "method": row.get("dataset")} for row in findings.rows]
    write_whole(inside / "scores_of_experiment.json", json.dumps({"rows": lines}, indent=1), mode=0o600)
    draw(findings, inside)
    if pairs:
        write_against(pairs, inside, findings.title, smoke=findings.smoke)


def as_markdown(findings: Findings) -> str:
    """The table for readers: what the source says beside what we get."""
    lines = [f"# {findings.title}", "", f"**{BANNER}**", "", f"Source: {findings.source}", ""]
    lines += [_says(findings), "", runs_in_words(row["runs"] for row in findings.means), ""]
    lines += markdown(HEADS, _cells(findings))
    lines += ["", *(f"- {b.what}: {beside_in_words(b)}" for b in findings.against)] if findings.against else []
    lines += ["", "## Notes", "", *(f"- {note}" for note in findings.notes)]
    promises = dict.fromkeys(row["promise"] for row in findings.rows)
    return "\n".join([*lines, "", "## What each table promises", "", *(f"- {p}" for p in promises)]) + "\n"


def summary(findings: Findings) -> str:
    """What a person reads at the end."""
    lines = lined_up([row[:-1] for row in (HEADS, *_cells(findings))])
    lines += [f"{b.what}: {beside_in_words(b)}" for b in findings.against]
    says = ["", runs_in_words(row["runs"] for row in findings.means), _says(findings)]
    return "\n".join([findings.title, *lines, *says])


def _says(findings: Findings) -> str:
    return findings.says if findings.smoke else f"The source says: {findings.says}"


def runs_in_words(runs: Iterable[int | None]) -> str:
    """How often tables were made, and so what stands behind ±."""
    most = max((n for n in runs if n is not None), default=0)
    if most <= 1:
        return "One run: no spread is known."
    wide = f"{t.ppf(0.975, most - 1):.1f} of them wide on either side"
    return f"Means of {most} runs, ± their standard errors. With so few runs a 95 % interval is {wide}."


def beside_in_words(number: Beside) -> str:
    """Ours with its standard error."""
    return shown(number.ours) if number.error is None else f"{shown(number.ours)} ± {number.error:.2g}"


def _cells(findings: Findings) -> list[list[str]]:
    """A row of HEADS for each mean score."""
    rows = []
    for row in findings.means:
        printed_value, score = row["reported"], row["score"]
        difference = None if None in (printed_value, score) else score - printed_value
        marks = [shown(v) for v in (printed_value, score, row["error"], difference, row["floor"])]
        marks[1] = f"undefined: {row['reason']}" if score is None and row.get("reason") else marks[1]
        marks[1] += f" ({SMOKE})" * findings.smoke
        marks.append(row.get("place") or "–")
        rows.append([row["dataset"], shown(row["epsilon"]), row["metric"], *marks])
    return rows


def closing_text(findings: Findings, inside: Path, console: str) -> str:
    """What a person reads at the end, and where everything lies; the text saw rows, and goes to no log unasked."""
    files = "\n".join(f"  {inside / name}" for name in FILES if (inside / name).exists())
    text = summary(findings) if tells(sys.stdout, console) else NOT_PRINTED
    return f"\n{text}\n\nNOT private, keep back:\n{files}"


def setting_of(
    config: Config, settings: ExperimentSource, kind: str, facts: Json, records: int, **data: Any
) -> JsonDict:
    """What rows were made from: the experiment, and its data.

    Args:
        settings: of the experiment.
        kind: what the data are, in words.
        facts: of the run, with the fingerprint of the data.
        data: further facts of the data.
    """
    source = {"name": config.data.name, "kind": kind, "fingerprint": facts["data"], "records": records}
    name = config.experiment.options.get("name") or config.experiment.kind
    parts = {part: asdict(getattr(config, part)) for part in ("privacy", "synthesis", "selection")}
    return {"experiment": name, "smoke": config.smoke, "data": source | data, "settings": asdict(settings), **parts}


def draw(findings: Findings, inside: Path) -> None:
    """A panel per metric: ours over ε with standard errors, its floor, and the source's figures where it prints any."""
    means = [row for row in findings.means if row["epsilon"] is not None]
    names = list(dict.fromkeys(row["metric"] for row in means if not row.get("part")))
    with matplotlib.rc_context({"svg.hashsalt": "experiment", "font.size": 9}):
        figure = Figure(figsize=(4.4 * max(1, len(names)), 3.4), layout="constrained")
        for i, name in enumerate(names):
            _panel(figure.add_subplot(1, len(names), i + 1), name, [row for row in means if row["metric"] == name])
        figure.suptitle(f"{findings.title}. NOT private.", fontsize=10)
        save(figure, inside, "figure")


def _panel(axes: Axes, name: str, rows: Sequence[Json]) -> None:
    """One metric; what belongs to a table has its colour, and tables of a single ε stand side by side."""
    ticks, kinds = sorted({row["epsilon"] for row in rows}), list(dict.fromkeys(row["dataset"] for row in rows))
    single = len(ticks) == 1 and len(kinds) > 1
    for place, kind in enumerate(kinds):
        own = [row for row in rows if row["dataset"] == kind]
        part = [row for row in own if row["score"] is not None]
        x, y = [place if single else r["epsilon"] for r in part], [r["score"] for r in part]
        errors = [r["error"] or 0.0 for r in part]
        line = axes.errorbar(x, y, errors, fmt="o-", capsize=3, markersize=4, label=f"{kind}")
        for key, style, suffix in (("reported", "s--", "the source"), ("floor", "v:", "floor")):
            marked = [row for row in own if row.get(key) is not None]
            if marked:
                x, y = [place if single else r["epsilon"] for r in marked], [r[key] for r in marked]
                axes.plot(x, y, style, color=line[0].get_color(), markersize=4, label=f"{kind}, {suffix}")
    if single:
        axes.set_xticks(range(len(kinds)), kinds, rotation=45, ha="right")
        axes.set_xlabel(f"ε = {ticks[0]:g}")
    else:
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
        axes.set_xlabel("ε")
        axes.legend(fontsize=7, frameon=False)
    axes.set_title(f"{name}, {'lower' if rows[0]['goal'] == 'low' else 'higher'} is better", fontsize=9)
    axes.grid(alpha=0.3)
