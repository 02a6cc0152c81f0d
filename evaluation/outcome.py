"""A metric computed: its score and the references to read it against, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metric import Inputs, Metric, Options, unmet
from evaluation.readings.reading import Ends, Reading, figure, reading
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.members import absent_extra
from mechanisms.public.schema.table_schema import Schema

#: A score of a synthetic (second) against a real (first) table; None where it is undefined.
Score = Callable[[CodedTable, CodedTable], float | None]


@dataclass(frozen=True)
class Reference:
    """A score measured some times.

    Attributes:
        values: each repetition's score.
        note: how it was measured.
    """

    values: tuple[float | None, ...]
    note: str

    @property
    def value(self) -> float | None:
        """The mean; None where a repetition had no score."""
        scores = [v for v in self.values if v is not None]
        return math.fsum(scores) / len(scores) if scores and len(scores) == len(self.values) else None

    def to_json(self) -> JsonDict:
        """JSON values."""
        return {"value": self.value, "values": list(self.values), "note": self.note}


def floor(
    score: Score,
    real: CodedTable,
    rows: int,
    *,
    repeats: int = 3,
    seed: int = 0,
    unit: NDArray[np.integer] | None = None,
) -> Reference:
    """What a sample of `rows` real records scores against one of the real table's size, drawn with replacement.

    Both are drawn from the real records, so that the second is to the first what a perfect synthetic table is to the
    real one: a new sample of the same people. Records of one unit are alike; drawn one by one they would make the floor
    too good.

    Args:
        unit: the unit of each row: whole units are drawn, as many as the tables have rows on average.
    """
    rng = np.random.default_rng(seed)
    values = tuple(score(*two_samples(real, rows, rng, unit)) for _ in range(repeats))
    drawn = "records" if unit is None else "records, whole units of them,"
    about = "" if unit is None else "about "
    return Reference(values, f"two samples of real {drawn} with replacement, {about}{real.rows} and {rows} rows")


def independent(score: Score, real: CodedTable, rows: int, *, seed: int = 0) -> Reference:
    """What `rows` records with the real columns, drawn independently of each other, score against the real table."""
    rng = np.random.default_rng(seed)
    columns = tuple(c[rng.integers(0, max(real.rows, 1), rows if real.rows else 0)] for c in real.columns)
    return Reference((score(real, CodedTable(real.domain, columns)),), f"independent columns, {rows} rows")


def two_samples(
    real: CodedTable, rows: int, rng: np.random.Generator, unit: NDArray[np.integer] | None = None
) -> tuple[CodedTable, CodedTable]:
    """Two samples of the real records (of whole units) with replacement: of the table's size, and of `rows` rows."""
    units = np.empty(0, np.int64) if unit is None else np.asarray(unit)
    order = np.argsort(units, kind="stable")
    _, starts, counts = np.unique(units[order], return_index=True, return_counts=True)

    def drawn(size: int) -> CodedTable:
        """As many rows, or the rows of random units, about so many of them."""
        if not real.rows or not size:
            return real.at(np.empty(0, np.int64))
        if unit is None:
            return real.at(rng.integers(0, real.rows, size))
        chosen = rng.integers(0, starts.size, max(round(size * starts.size / order.size), 1))
        ends = np.cumsum(counts[chosen])
        within = np.arange(ends[-1]) - np.repeat(ends - counts[chosen], counts[chosen])
        return real.at(order[np.repeat(starts[chosen], counts[chosen]) + within])

    return drawn(real.rows), drawn(rows)


#: The note of what the formula of a metric tells.
BY_FORMULA = "a second sample of as many rows from the same people, by a formula"
#: The note of a scorer that has no formula for the score of an honest table.
NO_LABEL = "; no label: evaluation.references=true measures what two samples of the real rows score"


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """A metric's result, or why there is none.

    Attributes:
        metric: what was computed.
        score: the headline number; None with a reason.
        result: the metric's own result, with data frames; None where it failed.
        reason: why there is no score.
        references: floor and independent, where they were measured; expected, where a formula tells it.
        reading: the score in words, its interval and a label against its own references; None without a score.
    """

    metric: Metric
    score: float | None
    result: Any = None
    reason: str = ""
    references: Mapping[str, Reference] = field(default_factory=dict)
    reading: Reading | None = None

    @property
    def label(self) -> str:
        """How the score reads in a word; empty where nothing tells."""
        return "" if self.reading is None else self.reading.label

    def __repr__(self) -> str:
        return f"Outcome({self.metric.name}: {self.reason if self.score is None else figure(self.score)})"

    def read_against(self, other: Outcome, ends: Ends, *, private: bool) -> Outcome:
        """The same score read against the references of another table: its interval is still told, and labels nothing.

        Whether it is suspicious depends on its own rows, and stays as it was with the words for it.

        Args:
            ends: of the other table.
            private: as of `reading`.
        """
        if self.reading is None or self.score is None:
            return self
        own, bare = self.reading.ends, replace(ends, low=None, high=None)
        read = _read(self, self.score, bare, other.references, Options(private=private))
        words, doubt = (w.partition("; better than") for w in (read.words, self.reading.words))
        label = "suspicious" if self.label == "suspicious" else "good" if read.label == "suspicious" else read.label
        read = replace(read, label=label, words=words[0] + "".join(doubt[1:]))
        interval = replace(read.ends, low=own.low, high=own.high, interval_is=own.interval_is)
        return replace(self, references={**self.references, **other.references}, reading=replace(read, ends=interval))

    def to_json(self) -> JsonDict:
        """The documented form of scores.json: score, range, goal, references, details."""
        m = self.metric
        out: JsonDict = {"score": self.score, **({"reason": self.reason} if self.reason else {})}
        out |= {"title": m.title, "goal": m.goal, "range": [m.low, m.high], "perfect": m.perfect}
        out |= {"reference": m.reference, "source": m.source}
        for name, part in self.references.items():
            out[name] = part.to_json()
        out |= {} if self.reading is None else {"reading": self.reading.to_json()}
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


def compute(
    metric: Metric,
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema | None = None,
    options: Options | None = None,
    *,
    references: bool = False,
) -> Outcome:
    """One metric of two tables; whatever goes wrong becomes its reason and touches no other metric.

    Args:
        references: measure floor and independent columns too: four scores more.
    """
    inputs = Inputs(metric, real, synthetic, schema, options or Options()).of_values()
    try:
        reason = lacking(inputs)
        if reason:
            return Outcome(metric, None, reason=reason)
        score, result = metric.computed(inputs)
        if score is None or math.isnan(score):
            return Outcome(metric, None, result, str(result.to_json().get("reason") or "undefined for these tables"))
        measured: dict[str, Reference] = {}
        if references and metric.referable:
            measured = measured_references(inputs)
        ends = getattr(result, "ends", None) or Ends()
        expected = {} if ends.honest is None else {"expected": Reference((ends.honest,), BY_FORMULA)}
        outcome = Outcome(metric, score, result, references=expected | measured)
        outcome = replace(outcome, reading=_read(outcome, score, ends, measured, inputs.options))
    except Exception as error:
        return Outcome(metric, None, reason=_in_words(error))
    return outcome


def _read(outcome: Outcome, score: float, ends: Ends, measured: Mapping[str, Reference], options: Options) -> Reading:
    """The score beside its references: those that were measured, where the metric has no formula."""
    floor, poor = (getattr(measured.get(name), "value", None) for name in ("floor", "independent"))
    if ends.honest is None and floor is not None:
        ends = replace(ends, honest=floor, honest_is="two samples of the real rows")
    if ends.poor is None and poor is not None:
        ends = replace(ends, poor=poor)
    metric = outcome.metric
    says = (metric.says or metric.title + ": {score:.4g}").format(score=score)
    if ends.honest is None and metric.referable and not hasattr(outcome.result, "ends"):
        says += NO_LABEL
    return reading(score, ends, says, low_is_good=metric.goal == "low", private=options.private)


def lacking(inputs: Inputs) -> str:
    """What keeps the metric from being computed on these inputs; empty if nothing does."""
    if inputs.real.domain != inputs.synthetic.domain:
        return "the two tables have different columns or codes"
    metric, why = inputs.metric, inputs.options.why
    if absent := unmet(metric, inputs.options):
        return "; ".join(f"needs {need}: {why.get(need, metric.words(need))}" for need in absent)
    if absent_library := absent_extra(metric.library):
        return f"not computed: {absent_library}"
    if metric.empty or (inputs.real.rows and inputs.synthetic.rows):
        return ""
    return f"the {'synthetic' if inputs.real.rows else 'real'} table has no records"


def measured_references(inputs: Inputs) -> dict[str, Reference]:
    """Floor and independent columns of a metric."""
    metric = inputs.metric
    seed, rows = inputs.options.seed, inputs.synthetic.rows
    ready = {**inputs.options.ready, metric.name: inputs.ready}
    options = replace(inputs.options, progress=None, ready=ready, whole=None, shared=None)
    unit = options.unit if options.unit is not None else options.subject[0] if options.subject is not None else None

    def score(real: CodedTable, synthetic: CodedTable) -> float | None:
        return metric.computed(Inputs(metric, real, synthetic, inputs.schema, options))[0]

    return {
        "floor": floor(score, inputs.real, rows, seed=seed, unit=unit),
        "independent": independent(score, inputs.real, rows, seed=seed),
    }


def _in_words(error: Exception) -> str:
    if isinstance(error, UserError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"failed: {type(error).__name__}: {error}"
