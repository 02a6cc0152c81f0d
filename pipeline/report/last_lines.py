"""What a person reads at the end of a run, and of a scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluation.metrics import ON_TOP
from evaluation.outcome import Outcome
from evaluation.references import Reference
from evaluation.score import Scorecard
from mechanisms.public.criterion import noisy_figure
from mechanisms.public.release import said_not_ours
from mechanisms.public.tables.losses import said_losses
from pipeline.report.numbers_section import as_lines
from pipeline.statement.start_words import start_named

if TYPE_CHECKING:
    from pipeline.stages import Run

#: So many columns that lose values are named at the end of a run; the report names all.
LOST_LINES = 8


def summary(card: Scorecard) -> str:
    """The scores on a few lines."""
    lines = [*([] if card.privacy is None else card.privacy.lines), *card.said]
    if "mgd" in card.outcomes:
        floor = _floor(card.outcomes["mgd"])
        lines += [f"MGD {_shown(card.mgd.score)} (0 is perfect{floor}) over {len(card.mgd.marginals)} marginals"]
    for name, family in card.tvd.items():
        if isinstance(family, dict):
            floor = _floor(card.outcomes["tvd"]) if name == "2-way" else ""  # the one that the metric's score is
            lines.append(f"mean {name} total variation distance {_shown(family['mean'])} (0 to 1{floor})")
    if "tvd" in card.outcomes and "reason" in card.tvd:
        lines.append(f"no total variation distance: {card.tvd['reason']}")
    if "mgd" in card.outcomes and card.mgd.reason:
        lines.append(f"no MGD: {card.mgd.reason}")
    more = {name: outcome for name, outcome in card.outcomes.items() if name not in ON_TOP}
    scored = {name: outcome for name, outcome in more.items() if outcome.score is not None}
    lines += [words + _label(o) for o in scored.values() if (words := getattr(o.result, "words", ""))]
    plain = {name: outcome for name, outcome in scored.items() if not getattr(outcome.result, "words", "")}
    figures = [f"{name} {_shown(o.score)}" + (f" ({f[2:]})" if (f := _floor(o)) else "") for name, o in plain.items()]
    lines += [", ".join(figures[i : i + 2]) for i in range(0, len(figures), 2)]  # a line of a narrow console
    lines += [f"no {name}: {outcome.reason}" for name, outcome in more.items() if outcome.score is None]
    lines += as_lines(card.numbers, card.groups)
    lines += [f"{name}: {warning}" for name, o in scored.items() for warning in getattr(o.result, "warnings", ())]
    return "\n".join(lines)


def _label(outcome: Outcome) -> str:
    """How the score reads, after a semicolon; empty where nothing tells."""
    return "" if outcome.reading is None or not outcome.reading.label else f"; {outcome.reading.label}"


def _floor(outcome: Outcome) -> str:
    """What two samples of the real rows score against each other, measured or by a formula, and the label."""
    label = _label(outcome)
    for name, words in (("floor", "floor"), ("expected", "a sample's is")):
        reference = outcome.references.get(name)
        if isinstance(reference, Reference):
            return f"; {words} {_shown(reference.value)}{label}"
    return label


def where_to_look(done: Run) -> str:
    """What was made, what it cost, how good it is, and where it lies."""
    from pipeline.inference.decided import decided  # a scoring needs neither
    from pipeline.report.answer_noise import coverage, said_drowned

    statement, folder = done.statement, done.folder
    epsilon, delta = statement.guarantee["epsilon"], statement.guarantee["delta"]
    promise = (
        f"private: ε = {epsilon:.6g}, δ = {delta:.3g} for {statement.unit} ({statement.neighbouring})"
        if statement.private
        else "NOT PRIVATE: " + "; ".join(statement.reasons_not_private)
    )
    verb = "  publish   " if statement.private else "  do NOT publish "
    lines = ["", promise, *(f"  warning   {w}" for w in statement.warnings)]
    lines += [f"  warning   not covered by our audit: {part}" for part in said_not_ours(statement.not_ours)]
    lines += [f"{verb}{done.table} ({done.rows:,} rows)", f"  with it   {folder.release / 'privacy.json'}"]
    lines += [f"  read      {folder.release / 'statement.html'}"]
    lines += [
        f"  measured  {(covered := coverage(done.measurements, start=start_named(statement.public_facts))).in_words}"
    ]
    lines += [f"  decided   {line}" for line in [decided(done.measurements).in_words] if line]
    lines += [f"  warning   {line}" for line in (*covered.warnings, *said_drowned(done.measurements))]
    lines += [f"  left out  {line}" for line in done.left_out]
    lines += [f"  accepted  {line}" for line in _accepted(statement.events)]
    if statement.running_total is not None:
        lines += [f"  budget    {statement.running_total['sentence']}"]
    said = said_losses(done.losses)
    lines += [f"  lost      {line} (NOT private)" for line in said[:LOST_LINES]]
    if len(said) > LOST_LINES:
        lines += [f"            {len(said) - LOST_LINES} more columns lose values: python -m pipeline check"]
    if done.scores is not None:
        lines += [f"  look at   {folder.report} (NOT private)"]
        lines += [f"  keep back {folder.scores} (NOT private):"]
        lines += [f"            {line}" for line in summary(done.scores).splitlines()]
    return "\n".join(lines)


def _accepted(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """The noisy scores that decided; they are part of the release."""
    lines = []
    for event in (e for e in events if "accept" in e and e["answered"]):
        what, limit = event["accept"], event["accept"]["at_most"]
        over = f"{what['of']} L1 distance of {what['compared']:,} {what['marginals']}-way marginals"
        lines.append(f"{over}: {noisy_figure(event['noisy'], event['standard_error'], limit)}")
    return lines


def _shown(value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
