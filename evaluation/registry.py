"""Every metric under one name: what it needs, what it means, and a result or a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.mgd.aemc import Solver
from evaluation.mgd.targets import Targets
from evaluation.ncript.combined_loss import NcriptSpec
from evaluation.references import Goal, Ladder, Reference, floor, independent, ladder
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema

#: What a metric may need beside the two tables, and how to give it.
NEEDS = {
    "time": "the column of the time segments",
    "segment": "the column of the map segments",
    "kind": "the column of the record types",
    "to": "the column of the destinations",
    "group": "the column of the groups",
    "sex": "the column of the sexes",
    "income": "the column of the incomes",
    "subject": "the subject of each real and each synthetic row",
    "holdout": "real records that were set aside",
}


@dataclass(frozen=True, eq=False)
class Options:
    """What the metrics may use beside the two tables.

    Attributes:
        time, segment, kind, to, group, sex, income: names of columns.
        subject: a number per real and per synthetic row.
        unit: the privacy unit of each real row: the floor draws whole units; None for those of `subject`, or else rows.
        order: what a subject's events are sorted by, likewise; None for the order of the rows.
        fixed: columns that belong to the subject.
        holdout: real records that were set aside, over the same domain.
        frames: the two tables as values, where a metric reads values; None to decode the codes.
        targets: columns to predict.
        columns: columns to measure distances on; None for all.
        regions: the region of each segment by its label (N-CRiPT 2021, 3.5); None for the segments themselves.
        ncript: parameters of N-CRiPT; None for the paper's.
        buckets: m of ANITA.
        max_rows: rows of each table that distances are measured on; None for all.
        marginals, alpha, solver: of MGD; None for all 1-, 2- and 3-way marginals, or a sample.
        why: why something that a metric may need is not there, in place of the words of NEEDS.
        progress: told how far a long metric is.
        seed: of every draw.
    """

    time: str | None = None
    segment: str | None = None
    kind: str | None = None
    to: str | None = None
    group: str | None = None
    sex: str | None = None
    income: str | None = None
    subject: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    unit: NDArray[np.integer] | None = None
    order: tuple[NDArray[Any], NDArray[Any]] | None = None
    fixed: tuple[str, ...] = ()
    holdout: CodedTable | None = None
    frames: tuple[pd.DataFrame, pd.DataFrame] | None = None
    targets: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    regions: Mapping[str, str] | None = None
    ncript: NcriptSpec | None = None
    buckets: int = 10
    max_rows: int | None = None
    marginals: Targets | None = None
    alpha: float = 1.0
    solver: Solver = "auto"
    why: Mapping[str, str] = field(default_factory=dict)
    progress: Progress | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Inputs:
    """Two tables over one domain, the schema they were coded with, and the options."""

    real: CodedTable
    synthetic: CodedTable
    schema: Schema | None
    options: Options

    def column(self, role: str) -> str:
        """The name of the column in this role; it is in the tables."""
        name = str(getattr(self.options, role))
        self.real.domain.index(name)
        return name


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: in settings and files.
        title: for readers.
        goal: whether low or high scores are good.
        low, high: the range; None where it has no end.
        perfect: the score of the truth itself.
        reference: what to compare a score with.
        source: where it is defined.
        run: the score and the details, which have `to_json()`.
        needs: keys of NEEDS.
        referable: whether floor, independent columns and the ladder can be measured: only the tables change.
        library: the optional library that it needs (a key of `EXTRAS`); empty for none.
        empty: whether it has a say about tables without records itself.
    """

    name: str
    title: str
    goal: Goal
    low: float | None
    high: float | None
    perfect: float
    reference: str
    source: str
    run: Callable[[Inputs], tuple[float | None, Any]]
    needs: tuple[str, ...] = ()
    referable: bool = True
    library: str = ""
    empty: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """A metric's result, or why there is none.

    Attributes:
        metric: what was computed.
        score: the headline number; None with a reason.
        result: the metric's own result, with data frames; None where it failed.
        reason: why there is no score.
        references: floor, independent and ladder, where they were measured.
    """

    metric: Metric
    score: float | None
    result: Any = None
    reason: str = ""
    references: Mapping[str, Reference | Ladder] = field(default_factory=dict)

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


def find(name: str, metrics: Mapping[str, Metric]) -> Metric:
    """The metric of this name; raises UserError with a suggestion for an unknown one."""
    if name not in metrics:
        fix = f"{did_you_mean(name, metrics)} known metrics: {', '.join(metrics)}".strip()
        raise UserError(f"no metric {name!r}", where="metrics", fix=fix)
    return metrics[name]


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
    inputs = Inputs(real, synthetic, schema, options or Options())
    try:
        reason = lacking(metric, inputs)
        if reason:
            return Outcome(metric, None, reason=reason)
        score, result = metric.run(inputs)
        outcome = Outcome(metric, score, result, "" if score is not None else _reason(result))
        if references and metric.referable and score is not None:
            outcome = replace(outcome, references=measured_references(metric, inputs, repeats=repeats))
    except Exception as error:
        return Outcome(metric, None, reason=_said(error))
    return outcome


def lacking(metric: Metric, inputs: Inputs) -> str:
    """What keeps this metric from being computed on these inputs; empty if nothing does."""
    if inputs.real.domain != inputs.synthetic.domain:
        return "the two tables have different columns or codes"
    absent = [need for need in metric.needs if getattr(inputs.options, need) is None]
    if absent:
        return "; ".join(f"needs {need}: {inputs.options.why.get(need, NEEDS[need])}" for need in absent)
    if metric.empty:
        return ""
    if not inputs.real.rows or not inputs.synthetic.rows:
        return f"the {'synthetic' if inputs.real.rows else 'real'} table has no records"
    return ""


def measured_references(metric: Metric, inputs: Inputs, *, repeats: int = 3) -> dict[str, Reference | Ladder]:
    """Floor, independent columns and the ladder of subsamples of a metric."""
    seed, rows = inputs.options.seed, inputs.synthetic.rows
    options = replace(inputs.options, frames=None, progress=None)
    unit = options.unit if options.unit is not None else options.subject[0] if options.subject is not None else None

    def score(real: CodedTable, synthetic: CodedTable) -> float | None:
        return metric.run(Inputs(real, synthetic, inputs.schema, options))[0]

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
