"""A metric computed: its score with what to read it against, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evaluation.metric import Inputs, Metric, Options, unmet
from evaluation.references import Ladder, Reference, floor, independent, ladder
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """A metric's result, or why there is none.

    Attributes:
        metric: what was computed.
        score: the headline number; None with a reason.
        result: the metric's own result, with data frames; None where it failed.
        reason: why there is no score.
        references: floor, independent and ladder, where they were measured; expected, where a formula tells it.
    """

    metric: Metric
    score: float | None
    result: Any = None
    reason: str = ""
    references: Mapping[str, Reference | Ladder] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Outcome({self.metric.name}: {self.reason if self.score is None else figure(self.score)})"

    def to_json(self) -> dict[str, Any]:
        """The documented form of scores.json: score, range, goal, references, details."""
        m = self.metric
        out: dict[str, Any] = {"score": self.score, **({"reason": self.reason} if self.reason else {})}
        out |= {"title": m.title, "goal": m.goal, "range": [m.low, m.high], "perfect": m.perfect}
        out |= {"reference": m.reference, "source": m.source}
        for name, part in self.references.items():
            out[name] = part.to_json()
            if isinstance(part, Ladder):
                out["as_good_as"] = part.as_good_as(self.score)
        return dict(plain(out | {"details": None if self.result is None else self.result.to_json()}))


def figure(score: float | None) -> str:
    """A score in few digits; a dash for none."""
    if score is None:
        return "-"
    return f"{score:,.0f}" if abs(score) >= 1000 else f"{score:.4f}"


def plain(value: Any) -> Any:
    """JSON values: numbers of numpy as Python's, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def compute(
    metric: Metric,
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema | None = None,
    options: Options | None = None,
    *,
    references: bool = False,
    repeats: int = 3,
) -> Outcome:
    """One metric of two tables; whatever goes wrong becomes its reason and touches no other metric.

    Args:
        references: measure floor, independent columns and the ladder too (about fifteen times the work).
    """
    inputs = Inputs(metric, real, synthetic, schema, options or Options()).of_values()
    try:
        reason = lacking(inputs)
        if reason:
            return Outcome(metric, None, reason=reason)
        score, result = metric.run(inputs)
        outcome = Outcome(
            metric, score, result, "" if score is not None else _reason(result), _expected(metric, result)
        )
        if references and metric.referable and score is not None:
            outcome = replace(
                outcome, references={**outcome.references, **measured_references(inputs, repeats=repeats)}
            )
    except Exception as error:
        return Outcome(metric, None, reason=_said(error))
    return outcome


def _expected(metric: Metric, result: Any) -> dict[str, Reference]:
    """What a sample of the real rows would score, by the formula that the metric has for it."""
    value = None if metric.expected is None else metric.expected(result)
    note = "a second sample of as many rows from the same people, by the normal approximation"
    return {} if value is None else {"expected": Reference(value, (value,), note)}


def lacking(inputs: Inputs) -> str:
    """What keeps the metric from being computed on these inputs; empty if nothing does."""
    if inputs.real.domain != inputs.synthetic.domain:
        return "the two tables have different columns or codes"
    metric, why = inputs.metric, inputs.options.why
    if absent := unmet(metric, inputs.options):
        return "; ".join(f"needs {need}: {why.get(need, metric.words(need))}" for need in absent)
    if metric.empty:
        return ""
    if not inputs.real.rows or not inputs.synthetic.rows:
        return f"the {'synthetic' if inputs.real.rows else 'real'} table has no records"
    return ""


def measured_references(inputs: Inputs, *, repeats: int = 3) -> dict[str, Reference | Ladder]:
    """Floor, independent columns and the ladder of subsamples of a metric."""
    metric = inputs.metric
    seed, rows = inputs.options.seed, inputs.synthetic.rows
    ready = {**inputs.options.ready, metric.name: inputs.ready}
    options = replace(inputs.options, progress=None, ready=ready, whole=None)
    unit = options.unit if options.unit is not None else options.subject[0] if options.subject is not None else None

    def score(real: CodedTable, synthetic: CodedTable) -> float | None:
        return metric.run(Inputs(metric, real, synthetic, inputs.schema, options))[0]

    return {
        "floor": floor(score, inputs.real, rows, repeats=repeats, seed=seed, unit=unit),
        "independent": independent(score, inputs.real, rows, seed=seed),
        "ladder": ladder(score, inputs.real, goal=metric.goal, seed=seed),
    }


def _reason(result: Any) -> str:
    stated = result.to_json().get("reason") if hasattr(result, "to_json") else None
    return str(stated or "undefined for these tables")


def _said(error: Exception) -> str:
    if isinstance(error, UserError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"failed: {type(error).__name__}: {error}"
