"""The page about all experiments: our numbers, the published ones, the difference, the wall time. NOT private."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.score import BANNER
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import JsonDict
from mechanisms.public.text_table import markdown
from pipeline.experiments.gallery.published import shown
from pipeline.experiments.written import write_rows
from pipeline.folders import RunFolder

#: Column of a table → its key; those without a number in any row are left out, but for ours.
NUMBERS = {"we get": "ours", "±": "error", "floor": "floor", "published": "published", "difference": "difference"}
COLUMNS = ("experiment", "what", "ours", "error", "runs", "floor", "published", "difference", "place")


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
        cpu_seconds: processor time on all cores together, which other work on the machine lengthens less.
    """

    name: str
    folder: str
    arguments: tuple[str, ...]
    data: str
    status: str
    seconds: float
    error: str = ""
    cpu_seconds: float = 0.0

    @property
    def command(self) -> str:
        """What makes this one alone."""
        return " ".join(["python -m pipeline run", *self.arguments])


def numbers_of(folder: Path) -> list[JsonDict]:
    """What a finished experiment left beside what is published (`gallery.published.Beside`)."""
    facts = json.loads((folder / "internal" / "experiment.json").read_text(encoding="utf-8"))
    numbers: list[JsonDict] = facts["beside"]
    return numbers


def table_of(numbers: Sequence[JsonDict]) -> list[str]:
    """The numbers as lines of Markdown; those that the source prints stand first."""
    ordered = sorted(numbers, key=lambda n: n["published"] is None)
    used = {head: key for head, key in NUMBERS.items() if key == "ours" or any(n[key] is not None for n in numbers)}
    where = ["where it is published"] if "published" in used else []
    rows = [[n["what"], *(_cell(k, n[k]) for k in used.values()), *[n["place"] or "–" for _ in where]] for n in ordered]
    return markdown(["what", *used, *where], rows)


def _cell(key: str, value: float | None) -> str:
    """A number; of an error two digits."""
    return shown(float(f"{value:.2g}")) if key == "error" and value is not None else shown(value)


def write_summary(folder: RunFolder, outcomes: Sequence[ExperimentOutcome]) -> Path:
    """summary.md and summary.csv under internal/; returns the page."""
    done = {o.name: numbers_of(folder.root / o.folder) for o in outcomes if o.status == "done"}
    lines = ["# All experiments", "", f"**{BANNER}**", ""]
    overview = [
        [
            o.name,
            o.status,
            f"{o.seconds:.1f}",
            f"{o.cpu_seconds:.1f}",
            o.data,
            str(len(done.get(o.name, []))),
            str(_published(done.get(o.name, []))),
        ]
        for o in outcomes
    ]
    heads = ("experiment", "ended", "wall time in s", "processor time", "table", "our numbers", "of these published")
    lines += markdown(heads, overview)
    for o in outcomes:
        lines += ["", f"## {o.name}", "", f"`{o.command}`", ""]
        lines += table_of(done[o.name]) if o.name in done else [f"It failed: {o.error}"]
    page = folder.internal / "summary.md"
    write_whole(page, "\n".join(lines) + "\n", mode=0o600)
    lined = ({"experiment": name} | number for name, numbers in done.items() for number in numbers)
    write_rows(folder.internal / "summary.csv", COLUMNS, ([row[c] for c in COLUMNS] for row in lined))
    return page


def _published(numbers: Sequence[JsonDict]) -> int:
    return sum(n["published"] is not None for n in numbers)
