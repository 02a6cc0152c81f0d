"""Scores of a synthetic table against the truth, with what they should be compared to; NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import TYPE_CHECKING

import pandas as pd

from evaluation.counts import read_only
from evaluation.metrics import METRICS, ON_TOP, ScoreSpec
from evaluation.mgd.deep_dive import DeepDive, dive_worst
from evaluation.mgd.marginal_difference import MGDResult
from evaluation.outcome import Outcome, compute, plain
from evaluation.readings.reading import figure
from evaluation.tvd import Tvd
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.text_table import lined_up, notebook_table

if TYPE_CHECKING:
    from evaluation.metric import Options
    from evaluation.verdict.verdict import Verdict

BANNER = "These numbers were computed from raw rows. They are NOT private: do not publish them."


@dataclass(frozen=True, repr=False)
class Scorecard:
    """All scores of one pair of tables.

    Attributes:
        outcomes: each metric's score, result and references, or why it has none.
        rows: records of the real and of the synthetic table.
        privacy: the verdict against a holdout; None where nobody asked for it.
        dives: deep dives into the worst marginals, where they were asked for.
        unplaced: per table, how many values of which column the schema does not place.
        numbers: summaries of columns of numbers and dates in both tables.
        groups: the same for each group of the columns that `evaluation.groups` names.
        correlations: of both tables and their differences, as `correlation_maps` makes them.
        sample: how many real rows those metrics took that do not follow from counts, numbers and correlations; None for
            all of them.
        notices: what a reader must know before any score: columns that only one table has, or of different kinds.
        release: what a statement says of the synthetic table, as in scores.json; None where none is known.
    """

    outcomes: Mapping[str, Outcome]
    rows: dict[str, int]
    privacy: Verdict | None = None
    dives: tuple[DeepDive, ...] = ()
    unplaced: Json = field(default_factory=dict)
    numbers: Sequence[Json] = ()
    groups: Sequence[Json] = ()
    correlations: Json = field(default_factory=dict)
    sample: int | None = None
    notices: tuple[str, ...] = ()
    release: Json | None = None

    def __repr__(self) -> str:
        head, rows = self._table()
        return "\n".join([*self._verdict, *self.notices, self._caption, *lined_up([head, *rows], left=len(head))])

    def _repr_html_(self) -> str:
        scored = {name: outcome for name, outcome in self.outcomes.items() if outcome.score is not None}
        absent = [name for name in self.outcomes if name not in scored]
        notes = [f"Not computed: {', '.join(absent)}.", BANNER] if absent else [BANNER]
        head, rows = ("metric", "score", "95 % interval", "reads", "says"), [_words(n, o) for n, o in scored.items()]
        return notebook_table(self._caption, head, rows, notes, [*self._verdict, *self.notices])

    @property
    def _verdict(self) -> list[str]:
        return [] if self.privacy is None else self.privacy.lines

    @property
    def _caption(self) -> str:
        real = f"{self.rows['real']:,} real ones"
        real += "" if self.sample is None else f" (where rows are needed, against a sample of {self.sample:,})"
        return f"Scores of {self.rows['synthetic']:,} synthetic rows against {real} (NOT private)"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """A line per metric: name, score, label, floor where one was measured, range; or why there is no score."""
        floors = any("floor" in outcome.references for outcome in self.outcomes.values())
        rows = []
        for name, outcome in self.outcomes.items():
            m, floor = outcome.metric, getattr(outcome.references.get("floor"), "value", None)
            ends = " to ".join("∞" if end is None else f"{end:g}" for end in (m.low, m.high))
            remark = shorten(outcome.reason, 60) if outcome.score is None else f"{m.perfect:g} is perfect, {ends}"
            rows.append((name, figure(outcome.score), outcome.label, *([figure(floor)] if floors else []), remark))
        return ("metric", "score", "reads", *(["floor"] if floors else []), "range"), rows

    @property
    def mgd(self) -> MGDResult:
        """MGD and its marginals; without a score where it was not asked for."""
        outcome = self.outcomes.get("mgd")
        if outcome is not None and isinstance(outcome.result, MGDResult):
            return outcome.result
        return MGDResult(None, (), reason=_why_not(outcome))

    @property
    def tvd(self) -> JsonDict:
        """Mean and largest total variation distance per family of marginals, in [0, 1]; or a reason."""
        outcome = self.outcomes.get("tvd")
        if outcome is not None and isinstance(outcome.result, Tvd):
            return outcome.result.to_json()
        return {"reason": _why_not(outcome)}

    def frame(self) -> pd.DataFrame:
        """One row per metric: score, floor, goal, range, perfect, reason, title, label, interval and words."""
        rows = []
        for name, outcome in self.outcomes.items():
            m, reference = outcome.metric, outcome.references.get("floor")
            floor = getattr(reference, "value", None)
            read = outcome.reading
            more = ("", None, None, "") if read is None else (read.label, read.ends.low, read.ends.high, read.words)
            rows.append((name, outcome.score, floor, m.goal, m.low, m.high, m.perfect, outcome.reason, m.title, *more))
        columns = ["metric", "score", "floor", "goal", "low", "high", "perfect", "reason", "title"]
        columns += ["label", "interval_low", "interval_high", "words"]
        return pd.DataFrame(rows, columns=columns)

    def to_json(self) -> JsonDict:
        """JSON values under a banner: MGD and TVD in full, then every metric in one form."""
        out: JsonDict = {"format": "scores/1", "not_private": BANNER, "rows": self.rows}
        out |= {} if self.privacy is None else {"privacy": plain(self.privacy.to_json())}
        if self.sample is not None:
            sampled = [n for n, o in self.outcomes.items() if not o.metric.counted]
            out["sample"] = {"rows": self.sample, "of": [*sampled, "references", "numbers", "groups", "correlations"]}
        out |= {"first": list(self.notices)} if self.notices else {}
        out |= {} if self.release is None else {"release": plain(self.release)}
        out |= {"unplaced": self.unplaced} if self.unplaced else {}
        parts = {"numbers": list(self.numbers), "groups": list(self.groups), "correlations": dict(self.correlations)}
        out |= {name: plain(part) for name, part in parts.items() if part}
        if "mgd" in self.outcomes:
            out["mgd"] = self.mgd.to_json()
        if "tvd" in self.outcomes:
            out["tvd"] = self.tvd
        out["metrics"] = {
            n: replace(o, result=None).to_json() | {"details": {"see": n}} if n in ON_TOP else o.to_json()
            for n, o in self.outcomes.items()
        }
        return out | ({"deep_dive": [d.to_json() for d in self.dives]} if self.dives else {})


def _unchanged(options: Options) -> Options:
    """The same, with a holdout and values that no metric can change."""
    holdout, values = options.holdout, options.values
    if values is not None:
        values = replace(values, tables={name: read_only(table) for name, table in values.tables.items()})
    return replace(options, holdout=None if holdout is None else read_only(holdout), values=values)


def _words(name: str, outcome: Outcome) -> tuple[str, ...]:
    """A metric's name, score, interval, label and words."""
    read = outcome.reading
    if read is None:
        return (name, figure(outcome.score), "", "", outcome.metric.title)
    interval = "" if read.ends.low is None else f"{figure(read.ends.low)} to {figure(read.ends.high)}"
    return (name, figure(outcome.score), interval, read.label, read.words)


def _why_not(outcome: Outcome | None) -> str:
    return "not asked for" if outcome is None else outcome.reason


def score_tables(
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema,
    spec: ScoreSpec,
    *,
    progress: Progress | None = None,
) -> Scorecard:
    """Score two tables over the schema's domain; a metric that cannot be computed says why and touches no other.

    Cost: a pass over the rows of both tables per batch of marginals; see each metric.
    """
    from evaluation.verdict.verdict import judge  # settings are read without scipy

    options = _unchanged(replace(spec.options, progress=progress, shared={}))
    real, synthetic = read_only(real), read_only(synthetic)
    outcomes = {}
    if progress is not None:
        progress(0, 0, "privacy against the holdout")
    privacy = judge(*options.of_values(real, synthetic))
    for name in dict.fromkeys(spec.metrics):
        if progress is not None:
            progress(0, 0, name)
        outcomes[name] = compute(METRICS[name], real, synthetic, schema, options, references=spec.references)
    whole = real if options.whole is None else options.whole
    sample = None if options.whole is None else real.rows
    card = Scorecard(outcomes, {"real": whole.rows, "synthetic": synthetic.rows}, privacy, sample=sample)
    if not spec.dive and spec.detail in {"none", "marginals"}:
        return card
    dives = dive_worst(card.mgd, whole, synthetic, schema, worst=spec.worst, top=spec.top)
    return replace(card, dives=tuple(dives))
