"""The section about convergence: how the synthesizer came closer to the noisy answers, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pipeline.report.page import Section, card, number, table
from pipeline.report.svg import steps

#: Lines of single marginals in the picture, those that end worst.
LINES = 60
#: Marginals in the table.
SHOWN = 12
#: Points of a line: a longer one is thinned.
POINTS = 240


def convergence_section(record: Mapping[str, Any]) -> Section:
    """The errors of each marginal in each pass, or the loss of a model at each step; from noisy answers alone."""
    body = _loss(record) if record["kind"] == "loss" else _marginals(record)
    return Section("convergence", "Convergence of the synthesizer", body)


def _marginals(record: Mapping[str, Any]) -> str:
    final: Mapping[str, float] = record["final"]
    worst = sorted(final.items(), key=lambda item: -item[1])
    if not record["marginals"]:
        return "<p>No marginal needed an update: the rows were drawn from one-way marginals.</p>"
    passes = list(zip(*record["errors"], strict=True))
    known = [[e for e in line if e is not None] for line in passes]
    mean = [sum(e) / len(e) if e else None for e in known]
    most = [max(e) if e else None for e in known]
    ranked = sorted(zip(record["marginals"], record["errors"], strict=True), key=lambda p: -final.get(p[0], 0.0))
    lines = [("lthin", name, _thinned(errors)) for name, errors in ranked[:LINES]]
    lines += [("lmade", "largest", _thinned(most)), ("lreal", "mean", _thinned(mean))]
    picture = steps(lines, label="Distance of each marginal from its target, by pass", last=len(passes))
    ended = ", ".join(f"{reason} ({n}×)" for reason, n in _counted(record["reasons"]))
    text = (
        "<p>Total variation distance between the synthetic rows and the noisy target of each marginal, before its "
        f"update in each pass; {len(passes)} passes, ended by: {escape(ended)}. Whole line: the mean; dashed: the "
        "largest; thin: single marginals. Lines that still fall ask for more synthesis.iterations; lines that stay "
        "high belong to marginals that contradict each other, mostly by their noise.</p>"
    )
    left = card("Distance by pass", f'<div class="fit">{picture}</div>', "logarithmic")
    right = card("Left in the finished table", table(("marginal", "distance"), worst[:SHOWN]), "the largest ones")
    return f'{text}<div class="side">{left}{right}</div>'


def _loss(record: Mapping[str, Any]) -> str:
    losses, floor = record["losses"], record["floor"]
    picture = steps(
        [("lreal", "loss", _thinned(losses))], label="Loss by step", level=floor or None, last=max(len(losses) - 1, 1)
    )
    rows = [
        ("steps", max(len(losses) - 1, 0)),
        ("loss at the end", losses[-1] if losses else None),
        ("noise floor", floor),
        ("above the least loss by at most", record["gap"]),
    ]
    text = (
        "<p>The loss is half the squared distance of the model from the noisy answers, in standard deviations of "
        "their noise. The dashed line is the noise floor, which the truth itself is expected to have: a loss below it "
        f"fits noise. It ended because of: {escape(str(record['reason']))}.</p>"
    )
    facts = table(("", ""), [(name, number(value)) for name, value in rows])
    left = card("Loss by step", f'<div class="fit">{picture}</div>', "logarithmic")
    return f'{text}<div class="side">{left}{card("At the end", facts)}</div>'


def _thinned(values: Sequence[float | None]) -> list[float | None]:
    """At most POINTS of the values, the first and the last among them."""
    if len(values) <= POINTS:
        return list(values)
    return [values[round(i * (len(values) - 1) / (POINTS - 1))] for i in range(POINTS)]


def _counted(reasons: Sequence[str]) -> list[tuple[str, int]]:
    return [(reason, list(reasons).count(reason)) for reason in dict.fromkeys(reasons)]
