"""What a metric is: its entry, its own settings, and what it is handed.

Help and misspelt settings are answered from the entries: a file with an entry imports large libraries inside of its
functions alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from mechanisms.public.errors import require_columns
from mechanisms.public.files import JsonDict
from mechanisms.public.settings import BoundedSettings, column, declared

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from evaluation.attacks.promise_bounds import AttackPromise
    from evaluation.readings.reading import Ends
    from evaluation.values.value_tables import Values
    from mechanisms.public.arrays import Floats
    from mechanisms.public.coded_table import AnyTable, CodedTable, CountedTable
    from mechanisms.public.progress import Progress
    from mechanisms.public.schema.table_schema import Schema

Goal = Literal["low", "high"]

#: What a metric may need of the rows, besides the columns among its settings.
ROW_FACTS = {
    "subject": "the subject of each real and each synthetic row",
    "holdout": "real records that were set aside",
}


@dataclass(frozen=True)
class MetricSettings(BoundedSettings):
    """A metric's own settings: a frozen dataclass whose fields are made by `setting`, `column` and `columns`.

    A field `buckets` is set by `evaluation.buckets=…`. Metrics that share a setting share the class that declares it.
    """

    settings_group: ClassVar[str] = "evaluation"


Own = TypeVar("Own", bound=MetricSettings)


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: in settings and files.
        title: for readers.
        goal: whether low or high scores are good.
        perfect: the score of the truth itself.
        reference: what to compare a score with.
        source: where it is defined.
        run: what makes the result; or `module:name` of it, which is loaded when it runs. A result has `to_json()`, and
            may have `ends` (what its score may be read against, and its interval, without another table) and
            `drawn(schema, options)` (what a report draws of it: parts of figures.json by name).
        low, high: the range; None where it has no end.
        settings: the class of its own settings.
        needs: what it cannot do without: columns among its settings, or keys of ROW_FACTS.
        prepare: settings, schema and seed → what `run` finds under `Inputs.ready`, made before any row is read; or its
            `module:name`. Refuses settings that do not fit the schema with a UserError.
        says: what a score says in plain words, with `{score}` in it.
        reported: computed for a report of two tables too, where its needs are met and its library is there.
        quick: seconds on some hundred thousand rows: computed without being asked for, where its columns are known.
        referable: whether floor and independent columns can be measured: only the tables change.
        library: the optional library that it needs (a key of `EXTRAS`); empty for none.
        empty: whether it is defined for tables without records.
        counted: whether it follows from counts of marginals: it takes `Inputs.all_rows`, which may lie elsewhere.
        score: the attribute of the result that is the score.
        on_values: whether its definition speaks of values: it is handed tables of values, not of the schema's codes,
            where they are known.
    """

    name: str
    title: str
    goal: Goal
    perfect: float
    reference: str
    source: str
    run: Callable[[Inputs], Any] | str
    low: float | None = 0
    high: float | None = 1
    score: str = "score"
    settings: type[MetricSettings] = MetricSettings
    needs: tuple[str, ...] = ()
    prepare: Callable[[Any, Schema, int], Any] | str | None = None
    says: str = ""
    quick: bool = False
    reported: bool = False
    referable: bool = True
    library: str = ""
    empty: bool = False
    counted: bool = False
    on_values: bool = False

    def computed(self, inputs: Inputs) -> tuple[float | None, Any]:
        """The score and the result."""
        result = _function(self.run)(inputs)
        return getattr(result, self.score), result

    def prepared(self, options: Options, schema: Schema | None) -> Any:
        """What `prepare` makes; None where there is nothing to prepare, or no schema.

        Raises:
            UserError: settings that do not fit the schema.
        """
        if self.prepare is None or schema is None:
            return None
        return _function(self.prepare)(options.own(self.settings), schema, options.seed)

    def words(self, need: str) -> str:
        """What a need of this metric is."""
        return ROW_FACTS.get(need) or next(s.doc for s in declared(self.settings) if s.name == need)


@dataclass(frozen=True, eq=False)
class Options:
    """What the metrics may use beside the two tables.

    Attributes:
        settings: values of the metrics' own settings, by name; what is absent has its default.
        ready: what each metric's `prepare` made, by the metric's name; made when it runs where it is absent.
        subject: a number per real and per synthetic row.
        unit: the privacy unit of each real row: the floor draws whole units; None for those of `subject`, or else rows.
        order: what a subject's events are sorted by, likewise: numbers (days of dates, NaN for none), or codes; None
            for the order of the rows.
        holdout: real records that were set aside, over the same domain.
        holdout_unit: the privacy unit of each of them, in the numbers of `unit`.
        values: the two tables, and the holdout, over the values that occur in them; None where only codes are known.
        promise: of the release that is scored, for the unit of `unit` (a row, where that is None); None if unknown.
        private: whether a statement says that the synthetic table is a private release.
        why: why something that a metric may need is not there, in place of its own words.
        progress: told how far a long metric is.
        pairs: of columns, which a report draws before those that it chooses.
        shared: what metrics of the same tables make in common, by what it is; None: nothing is kept.
        whole: all real records, counted where they are, where the real table is a sample of them; None where it is all.
        seed: of every draw.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    ready: Mapping[str, Any] = field(default_factory=dict)
    subject: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    unit: NDArray[np.integer] | None = None
    order: tuple[NDArray[Any], NDArray[Any]] | None = None
    holdout: CodedTable | None = None
    holdout_unit: NDArray[np.integer] | None = None
    values: Values | None = None
    promise: AttackPromise | None = None
    private: bool = False
    why: Mapping[str, str] = field(default_factory=dict)
    progress: Progress | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    shared: dict[Any, Any] | None = None
    whole: CountedTable | None = None
    seed: int = 0

    def of_values(self, real: CodedTable, synthetic: CodedTable) -> tuple[CodedTable, CodedTable, Options]:
        """The tables and the holdout as values, where these are known: rows are equal where their values are."""
        if self.values is None:
            return real, synthetic, self
        tables = self.values.tables
        return tables["real"], tables["synthetic"], dataclasses.replace(self, holdout=tables.get("holdout"))

    def own(self, kind: type[Own]) -> Own:
        """The settings that a class declares."""
        names = [f.name for f in dataclasses.fields(kind) if f.name in self.settings]
        return kind(**{name: self.settings[name] for name in names})


@dataclass(frozen=True, eq=False)
class OneScore:
    """The result of a metric that is one number.

    Attributes:
        score: None with a reason.
        details: what it was made of, as JSON values.
        frame: a row for each of its parts.
        reason: why there is no score.
    """

    score: float | None
    details: JsonDict
    frame: pd.DataFrame | None = None
    reason: str = ""

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        return {"score": self.score, **({"reason": self.reason} if self.reason else {}), **self.details}


@dataclass(frozen=True, eq=False)
class ReadScore(OneScore):
    """The same with what it may be read against; None where nothing tells.

    Attributes:
        words: one line for the console, in place of the name and the score.
    """

    ends: Ends | None = None
    words: str = ""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a metric's `run` is handed: two tables over one domain, the schema they were coded with, and the options."""

    metric: Metric
    real: CodedTable
    synthetic: CodedTable
    schema: Schema | None
    options: Options

    @property
    def all_rows(self) -> AnyTable:
        """All real rows, of which `real` may be a sample: for metrics that follow from counts."""
        return self.real if self.options.whole is None else self.options.whole

    def own(self, kind: type[Own]) -> Own:
        """The settings that a class declares."""
        return self.options.own(kind)

    def column(self, role: str) -> str:
        """The name of the column in this role; it is in the tables."""
        name = str(getattr(self.own(self.metric.settings), role))
        self.real.domain.index(name)
        return name

    def of_values(self) -> Inputs:
        """The same over values in place of the schema's codes, where the metric wants them and they are known."""
        if self.options.values is None or not self.metric.on_values:
            return self
        real, synthetic, options = self.options.of_values(self.real, self.synthetic)
        return Inputs(self.metric, real, synthetic, None, options)

    @property
    def label(self) -> Callable[[str, int], str]:
        """Column and code → what the code is called: in the schema, or as its value is written; else the code."""
        values, schema = self.options.values, self.schema
        if schema is not None:
            from mechanisms.public.schema.code_labels import code_names

            names = {name: code_names(schema[name]) for name in self.real.domain.names}
            return lambda name, code: names[name][code]
        return (lambda _, code: str(code)) if values is None else (lambda name, code: values[name].label(code))

    @property
    def numbers(self) -> Mapping[str, Floats]:
        """Column on a line → the number of each of its codes: its value, or of a schema's code its place; NaN: none."""
        import numpy as np  # settings are read without it

        values = self.options.values if self.schema is None else None
        line = [a for a in self.real.domain.attributes if a.ordered]
        if values is not None:
            return {a.name: values[a.name].numbers for a in line}
        return {a.name: np.where(np.arange(a.size) < a.ordered, np.arange(a.size), np.nan) for a in line}

    def bucketed(self, m: int) -> tuple[CodedTable, CodedTable]:
        """Both tables over at most m buckets per attribute, as of `bucket_tables`; made once for all metrics."""
        from evaluation.accuracy.anita_accuracy import bucket_tables

        shared = {} if self.options.shared is None else self.options.shared
        key = ("buckets", id(self.real), id(self.synthetic), m)
        if key not in shared:  # with the tables themselves, so that no other ones get their identity
            shared[key] = (*bucket_tables(self.real, [self.synthetic], m=m), self.real, self.synthetic)
        real, synthetic, *_ = shared[key]
        return real, synthetic

    @property
    def ready(self) -> Any:
        """What the metric's `prepare` made; None where there is no schema."""
        if self.metric.name in self.options.ready:
            return self.options.ready[self.metric.name]
        return self.metric.prepared(self.options, self.schema)


@dataclass(frozen=True)
class TimeAndPlace(MetricSettings):
    """When and where, of a temporal map."""

    time: str | None = column("the column of the time segments")
    segment: str | None = column("the column of the map segments")


@dataclass(frozen=True)
class MapColumns(TimeAndPlace):
    """When, where and what."""

    kind: str | None = column("the column of the record types")


#: What every metric of a temporal map needs.
MAP = ("time", "segment", "kind")


def _function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    function: Callable[..., Any] = resolve_name(given) if isinstance(given, str) else given
    return function


def unmet(metric: Metric, options: Options) -> list[str]:
    """The needs of a metric that are not met."""
    own = options.own(metric.settings)
    return [n for n in metric.needs if getattr(options if n in ROW_FACTS else own, n) is None]


def check_columns(own: MetricSettings, schema: Schema) -> None:
    """UserError for a column that the schema has not."""
    for each in declared(type(own)):
        value = getattr(own, each.name)
        names = value if each.listed else [value] if each.role and value is not None else []
        require_columns(names, schema.domain.names, where=f"evaluation.{each.name}")
