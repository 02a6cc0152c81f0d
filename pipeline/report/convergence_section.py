"""The section about convergence: how the synthesizer came closer to the noisy answers, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.pages.charts import Drawing, Line, lines
from pipeline.pages.page import Card, Section, Table, number
from pipeline.pages.scale import ChartAxis

#: Lines of single marginals in the picture, those that end worst.
LINES = 60
#: Marginals in the table.
SHOWN = 12
#: Points of a line: a longer one is thinned.
POINTS = 240


@dataclass(frozen=True)
class MarginalsSection:
    """The distance of each marginal from its target in each pass.

    Attributes:
        ended_by: why the passes ended.
        cards: none where no marginal needed an update.
    """

    name: ClassVar[str] = "convergence"
    title: ClassVar[str] = "Convergence of the synthesizer"
    template: ClassVar[str] = "sections/convergence_of_marginals.html.j2"
    passes: int
    ended_by: str
    cards: Sequence[Card]


@dataclass(frozen=True)
class ModelSection:
    """The loss of a model at each step."""

    name: ClassVar[str] = "convergence"
    title: ClassVar[str] = "Convergence of the synthesizer"
    template: ClassVar[str] = "sections/convergence_of_a_model.html.j2"
    reason: str
    cards: Sequence[Card]


def convergence_section(record: Mapping[str, Any]) -> Section:
    """From the content of convergence.json: it follows from noisy answers alone."""
    return _model(record) if record["kind"] == "loss" else _marginals(record)


def _marginals(record: Mapping[str, Any]) -> MarginalsSection:
    reasons: Sequence[str] = record["reasons"]
    ended_by = ", ".join(f"{reason} ({list(reasons).count(reason)}×)" for reason in dict.fromkeys(reasons))
    passes = list(zip(*record["errors"], strict=True))
    if not record["marginals"]:
        return MarginalsSection(0, ended_by, ())
    final: Mapping[str, float] = record["final"]
    rows = [[e for e in line if e is not None] for line in passes]
    ranked = sorted(zip(record["marginals"], record["errors"], strict=True), key=lambda p: -final.get(p[0], 0.0))
    drawn = [_line("lthin", name, errors) for name, errors in ranked[:LINES]]
    drawn.append(_line("lmade", "largest", [max(e) if e else None for e in rows]))
    drawn.append(_line("lreal", "mean", [sum(e) / len(e) if e else None for e in rows]))
    picture = _over_steps(drawn, last=len(passes), label="Distance of each marginal from its target, by pass")
    worst = sorted(final.items(), key=lambda item: -item[1])[:SHOWN]
    left = Card("Distance by pass", picture, "logarithmic")
    right = Card("Left in the finished table", Table(("marginal", "distance"), worst), "the largest ones")
    return MarginalsSection(len(passes), ended_by, (left, right))


def _model(record: Mapping[str, Any]) -> ModelSection:
    losses, floor = record["losses"], record["floor"]
    last = max(len(losses) - 1, 0)
    picture = _over_steps(
        [_line("lreal", "loss", losses)], last=max(last, 1), label="Loss by step", level=floor or None
    )
    rows = [
        ("steps", number(last)),
        ("loss at the end", number(losses[-1] if losses else None)),
        ("noise floor", number(floor)),
        ("above the least loss by at most", number(record["gap"])),
    ]
    left = Card("Loss by step", picture, "logarithmic")
    return ModelSection(str(record["reason"]), (left, Card("At the end", Table(("", ""), rows))))


def _line(style: str, title: str, values: Sequence[float | None]) -> Line:
    """The values above 0 over the share of the steps that are done."""
    shown = _thinned(values)
    last = max(len(shown) - 1, 1)
    return Line(style, title, [(i / last, v) for i, v in enumerate(shown) if v is not None and v > 0])


def _over_steps(drawn: Sequence[Line], *, last: int, label: str, level: float | None = None) -> Drawing | None:
    """Lines over the steps of an iteration; None where there is nothing above 0."""
    values = [v for line in drawn for _, v in line.points] + ([level] if level else [])
    if not values:
        return None
    x = ChartAxis(0.0, 1.0, ((0.0, "first"), (1.0, f"step {last}")))
    return lines(drawn, x, ChartAxis.decades(values), label=label, level=level)


def _thinned(values: Sequence[float | None]) -> list[float | None]:
    """At most POINTS of the values, the first and the last among them."""
    if len(values) <= POINTS:
        return list(values)
    return [values[round(i * (len(values) - 1) / (POINTS - 1))] for i in range(POINTS)]
