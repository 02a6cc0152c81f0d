"""The section about sequences: how long they are, and three figures of their coherence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, Line, lines
from pipeline.pages.page import Table
from pipeline.pages.scale import ChartAxis

#: What each figure is.
FIGURES = {
    "next": "what follows what: pairs of a value and the subject's next one",
    "distinct": "how many distinct values a subject has in a column",
    "subjects": "how many subjects have each value",
    "lengths": "how many events a subject has",
}


@dataclass(frozen=True)
class SequenceSection:
    """Figures with what two halves of the real subjects get, and the distribution of lengths.

    Attributes:
        subjects, mean_length: of the real and of the synthetic table.
    """

    name: ClassVar[str] = "sequences"
    title: ClassVar[str] = "Sequences"
    template: ClassVar[str] = "sections/sequences.html.j2"
    legend: ClassVar[tuple[tuple[str, str], ...]] = (("lreal", "real"), ("lmade", "synthetic"))
    figures: Table
    lengths: Drawing
    subjects: tuple[int, int]
    mean_length: tuple[float, float]
    columns: int


def sequence_section(drawn: Mapping[str, Any]) -> SequenceSection:
    """From the part `sequences` of figures.json."""
    rows = [(FIGURES[n], _share(drawn["figures"][n]), _share(drawn["halves"][n])) for n in FIGURES]
    most = max([*drawn["real"], *drawn["synthetic"], 1e-9])
    series = [
        Line(style, side, list(enumerate(drawn[side])), marked=len(drawn[side]) < 40)
        for style, side in (("lreal", "real"), ("lmade", "synthetic"))
    ]
    labels = drawn["labels"]
    every = max(1, -(-len(labels) // 8))
    across = ChartAxis(
        0.0, max(len(labels) - 1, 1), tuple((i, labels[i]) for i in range(0, len(labels), every)), "events"
    )
    up = ChartAxis(0.0, most, ((0.0, "0"), (most, f"{most:.0%}")))
    return SequenceSection(
        figures=Table(("1 − total variation distance", "synthetic", "two halves of the real subjects"), rows),
        lengths=lines(series, across, up, label="Shares of subjects by their number of events", width=460, height=220),
        subjects=tuple(drawn["subjects"]),
        mean_length=tuple(drawn["mean_length"]),
        columns=drawn["columns"],
    )


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
