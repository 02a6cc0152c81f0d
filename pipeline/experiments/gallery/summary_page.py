"""The page about all experiments: our numbers, the published ones, the difference, the wall time. NOT private."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.score import BANNER
from mechanisms.public.files import write_whole
from pipeline.folders import RunFolder
from pipeline.report.text_table import markdown

NUMBERS = ("what", "we get", "published", "difference", "where it is published")
COLUMNS = ("experiment", "what", "ours", "published", "difference", "place")


@dataclass(frozen=True)
class ExperimentOutcome:
    """How one experiment ended. NOT private.

    Attributes:
        name: of the experiment; folder: where it lies, beside the others.
        arguments: its settings, as they would be typed.
        data: the table that it read, in words.
        status: done or failed.
        seconds: wall time.
        error: the last words of one that failed.
    """

    name: str
    folder: str
    arguments: tuple[str, ...]
    data: str
    status: str
    seconds: float
    error: str = ""

    @property
    def command(self) -> str:
        """What makes this one alone."""
        return " ".join(["python -m pipeline run", *self.arguments])


def shown(value: float | None) -> str:
    """A number for readers, with four digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def numbers_of(folder: Path) -> list[dict[str, Any]]:
    """What a finished experiment left beside what is published (`gallery.published.Beside`)."""
    facts = json.loads((folder / "internal" / "experiment.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = facts["beside"]
    return found


def table_of(numbers: Sequence[dict[str, Any]]) -> list[str]:
    """The numbers as lines of Markdown; those that the source prints stand first."""
    ordered = sorted(numbers, key=lambda n: n["published"] is None)
    rows = [
        [n["what"], *(shown(n[k]) for k in ("ours", "published", "difference")), n["place"] or "–"] for n in ordered
    ]
    return markdown(NUMBERS, rows)


def write_summary(folder: RunFolder, outcomes: Sequence[ExperimentOutcome]) -> Path:
    """summary.md and summary.csv under internal/; returns the page."""
    done = {o.name: numbers_of(folder.root / o.folder) for o in outcomes if o.status == "done"}
    lines = ["# All experiments", "", f"**{BANNER}**", ""]
    overview = [
        [
            o.name,
            o.status,
            f"{o.seconds:.1f}",
            o.data,
            str(len(done.get(o.name, []))),
            str(_published(done.get(o.name, []))),
        ]
        for o in outcomes
    ]
    heads = ("experiment", "ended", "wall time in s", "table", "our numbers", "of these published")
    lines += markdown(heads, overview)
    for o in outcomes:
        lines += ["", f"## {o.name}", "", f"`{o.command}`", ""]
        lines += table_of(done[o.name]) if o.name in done else [f"It failed: {o.error}"]
    page = folder.internal / "summary.md"
    write_whole(page, "\n".join(lines) + "\n", mode=0o600)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"experiment": name} | number for name, numbers in done.items() for number in numbers)
    write_whole(folder.internal / "summary.csv", text.getvalue(), mode=0o600)
    return page


def _published(numbers: Sequence[dict[str, Any]]) -> int:
    return sum(n["published"] is not None for n in numbers)
