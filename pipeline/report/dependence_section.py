"""The section that names the pairs of columns whose dependence was lost, and what changed in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, heat
from pipeline.pages.page import Cell, Table


@dataclass(frozen=True)
class DependenceSection:
    """The pairs that lost most of what their columns tell about each other.

    Attributes:
        score: the share that all pairs keep together.
        dependent, pairs: how many of the pairs depend on each other in the real table.
        chart: the strength of each named pair, and what is kept of it; None where nothing is lost.
        lost: the same as a table, with a figure of each pair in both tables.
    """

    name: ClassVar[str] = "dependence"
    title: ClassVar[str] = "Lost dependences"
    template: ClassVar[str] = "sections/dependence.html.j2"
    score: float
    dependent: int
    pairs: int
    chart: Drawing | None
    lost: Table


def dependence_section(dependence: Mapping[str, Any]) -> DependenceSection:
    """From the part `dependence` of figures.json."""
    lost = dependence["lost"]
    names = [f"{pair['a']} × {pair['b']}" for pair in lost]
    strengths = [(pair["real"], pair["real"] * pair["kept"]) for pair in lost]
    chart = heat(names, ("real", "kept"), strengths, high=1.0, label="Strength of each pair, and what is kept of it")
    rows: list[tuple[Cell, ...]] = []
    for name, pair in zip(names, lost, strict=True):
        change = pair["change"] or {"what": "", "real": None, "synthetic": None}
        figures = (change["what"], change["real"], change["synthetic"])
        rows.append((name, pair["real"], f"{pair['kept']:.0%}", *figures))
    head = ("pair", "strength", "kept", "for example", "real", "synthetic")
    return DependenceSection(
        dependence["score"],
        dependence["dependent_pairs"],
        dependence["pairs"],
        chart if lost else None,
        Table(head, rows),
    )
