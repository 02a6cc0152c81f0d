"""What a person reads at the end of a run, and of a scoring."""

from __future__ import annotations

from evaluation.score import ON_TOP, Scorecard
from pipeline.stages import Run


def summary(card: Scorecard) -> str:
    """The scores on a few lines."""
    lines = []
    if "mgd" in card.outcomes:
        lines = [f"MGD {_shown(card.mgd.score)} (0 is perfect) over {len(card.mgd.marginals)} marginals"]
    for name, family in card.tvd.items():
        if isinstance(family, dict):
            lines.append(f"mean {name} total variation distance {_shown(family['mean'])} (0 to 1)")
    if "tvd" in card.outcomes and "reason" in card.tvd:
        lines.append(f"no total variation distance: {card.tvd['reason']}")
    if "mgd" in card.outcomes and card.mgd.reason:
        lines.append(f"no MGD: {card.mgd.reason}")
    more = {name: outcome for name, outcome in card.outcomes.items() if name not in ON_TOP}
    known = [f"{name} {_shown(outcome.score)}" for name, outcome in more.items() if outcome.score is not None]
    lines += [", ".join(known[i : i + 4]) for i in range(0, len(known), 4)]
    lines += [f"no {name}: {outcome.reason}" for name, outcome in more.items() if outcome.score is None]
    return "\n".join(lines)


def where_to_look(done: Run) -> str:
    """What was made, what it cost, how good it is, and where it lies."""
    said, folder = done.statement, done.folder
    promise = (
        f"private: ε = {said.spent['epsilon']:.6g}, δ = {said.spent['delta']:.3g} for {said.unit} ({said.neighbouring})"
        if said.private
        else "NOT PRIVATE: " + "; ".join(said.reasons_not_private)
    )
    verb = "  publish   " if said.private else "  do NOT publish "
    lines = ["", promise, f"{verb}{done.table} ({done.rows:,} rows)", f"  with it   {folder.release / 'privacy.json'}"]
    if done.scores is not None:
        lines += [f"  look at   {folder.report} (NOT private)"]
        lines += [f"  keep back {folder.scores} (NOT private):"]
        lines += [f"            {line}" for line in summary(done.scores).splitlines()]
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"
