"""The sections about the scores of a table: each beside its floor, and what MGD is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.page_parts.header_cards import LABELS
from pipeline.pages.page import Cell, Gauge, Table, Words, number

#: Marginals, values and cells that cost most.
MARGINALS, VALUES, CELLS = 12, 8, 8
#: What a cell of the deep dive says besides its values.
COUNTS = ("real", "synthetic", "added", "removed", "moved_out", "moved_in")


@dataclass(frozen=True)
class ScoresSection:
    """Every metric with a score: what it says, its interval, and how it reads against its own references.

    Attributes:
        referenced: whether a floor was measured.
        labelled: whether a score is called good, fair, weak or suspicious.
        unplaced: values that the schema has no place for.
        sample: what was computed from a sample of the rows, in a sentence; empty where nothing was.
    """

    name: ClassVar[str] = "scores"
    title: ClassVar[str] = "Scores"
    template: ClassVar[str] = "sections/scores.html.j2"
    scores: Table
    referenced: bool
    labelled: bool
    unplaced: Table
    sample: str


#: Columns of the table of scores; those without a cell are left out.
HEAD = ("metric", "score", "95 % interval", "floor", "as good as", "reads as", "poor to honest", "source")


def scores_section(scores: Mapping[str, Any]) -> ScoresSection:
    """From the content of scores.json."""
    rows = [_score_row(m) for m in scores["metrics"].values() if m["score"] is not None]
    shown = [i for i in range(len(HEAD)) if i < 2 or any(row[i] not in (None, "") for row in rows)]
    return ScoresSection(
        scores=Table([HEAD[i] for i in shown], [[row[i] for i in shown] for row in rows]),
        referenced=any((m.get("floor") or {}).get("value") is not None for m in scores["metrics"].values()),
        labelled=any((m.get("reading") or {}).get("label") for m in scores["metrics"].values()),
        unplaced=_unplaced(scores.get("unplaced", {})),
        sample=_sampled(scores.get("sample")),
    )


def _score_row(m: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of a metric, under HEAD."""
    reading = m.get("reading") or {}
    perfect = f"{'0' if m['perfect'] == 0 else number(m['perfect'])} is perfect"
    words = reading.get("words") or perfect
    interval, label = reading.get("interval"), reading.get("label") or ""
    floor = (m.get("floor") or {}).get("value")
    return (
        Words(m["title"], words),
        m["score"],
        "" if interval is None else f"{number(interval['low'])} to {number(interval['high'])}",
        floor,
        m.get("as_good_as", ""),
        Words(label, style=LABELS.get(label, "")) if label else "",
        reading_gauge(reading),
        m["source"],
    )


def reading_gauge(reading: Mapping[str, Any]) -> Gauge | None:
    """Where a score lies between its own references: empty is the poor one, full the honest one; None if unknown."""
    share = reading.get("share")
    return None if share is None else Gauge(min(max(1 - share, 0.0), 1.0))


def _sampled(sample: Mapping[str, Any] | None) -> str:
    if sample is None:
        return ""
    return (
        f"From a sample of {sample['rows']:,} rows of the table: {', '.join(sample['of'])}. All else counts all rows."
    )


def _unplaced(tables: Mapping[str, Any]) -> Table:
    """The values that the schema has no place for: how many, and the most frequent ones."""
    rows = []
    for name, table in tables.items():
        for column, values in table.get("values", {}).items():
            count = table["outside"].get(column, 0) + table["no_value"].get(column, 0)
            rows.append((name, column, count, ", ".join(f"{v or '(empty)'}: {n:,}" for v, n in values.items())))
    return Table(("table", "column", "values", "the most frequent"), rows)


@dataclass(frozen=True)
class Dive:
    """What the cost of one marginal is made of.

    Attributes:
        cost: per true record; None where there are none, and the tables are empty.
    """

    marginal: str
    cost: float | None
    parts: Table
    values: Table
    cells: Table


@dataclass(frozen=True)
class MgdSection:
    """The worst marginals, and what their cost is made of."""

    name: ClassVar[str] = "mgd"
    title: ClassVar[str] = "Inside MGD"
    template: ClassVar[str] = "sections/mgd.html.j2"
    worst: Table
    dives: Sequence[Dive]


def mgd_section(scores: Mapping[str, Any]) -> MgdSection:
    """From the content of scores.json, where MGD has a score."""
    marginals = sorted(scores["mgd"]["marginals"], key=lambda m: -(m["aemc"] or 0.0))
    rows = [(" × ".join(m["attributes"]), m["cells"], m["aemc"], m["weight"]) for m in marginals[:MARGINALS]]
    dives = [_dive(dive) for dive in scores.get("deep_dive", [])]
    return MgdSection(Table(("marginal", "cells", "cost", "weight"), rows), dives)


def _dive(dive: Mapping[str, Any]) -> Dive:
    frames: Mapping[str, Any] = {} if dive["aemc"] is None else dive
    parts = [(a["part"], a["cost"], f"{a['share']:.0%}") for a in frames.get("attributes", ()) if a["cost"]]
    slices = sorted((s for s in frames.get("slices", ()) if s["cost"]), key=lambda s: -s["cost"])[:VALUES]
    values = [
        (f"{s['attribute']} = {s['value']}", *(round(s[k]) for k in COUNTS[:2]), s["cost"], f"{s['share']:.0%}")
        for s in slices
    ]
    aside = {*COUNTS, "cost", "share"}
    cells = [
        (_cell_name(b, aside), *(round(b[k]) for k in COUNTS), f"{b['share']:.1%}")
        for b in frames.get("bins", ())[:CELLS]
    ]
    return Dive(
        marginal=dive["marginal"],
        cost=dive["aemc"],
        parts=Table(("part", "cost", "share"), parts),
        values=Table(("value", "real", "synthetic", "cost", "share"), values),
        cells=Table(("cell", *(name.replace("_", " ") for name in COUNTS), "share"), cells),
    )


def _cell_name(cell: Mapping[str, Any], aside: set[str]) -> str:
    return ", ".join(str(v) for k, v in cell.items() if k not in aside)
