"""The settings of a challenge: its releases, its metrics, and the rows of a stand-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError, check_names
from mechanisms.public.files import Json, JsonDict, is_number, whole_file
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.settings import setting
from mechanisms.public.tables.decode import with_units
from mechanisms.public.tables.write_table import arrow_table
from pipeline.experiments.experiment_settings import ExperimentSource

T = TypeVar("T")

#: The k of anonymized tables, where nobody says others.
ANONYMOUS = (2, 5, 20, 100)


@dataclass(frozen=True)
class ReleasesSettings(ExperimentSource):
    """What all experiments have that make releases and score them.

    Attributes:
        epsilons: a release for each.
        metrics: of the scores; roles: role → column.
        rows: of the stand-in.
        floors: whether fresh real records are scored too, beside the first run.
        repeats: how often each release is made; what is shown are means with their standard errors.
    """

    epsilons: list[float] = setting([], above=0)
    metrics: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    rows: int = setting(20_000, least=1)
    floors: bool = True
    repeats: int = setting(1, least=1, noun="how often each is made: a whole number")


@dataclass(frozen=True)
class ChallengeSettings(ReleasesSettings):
    """`experiment.*` of a challenge; the comments stand in conf/experiment.

    Attributes:
        variants: releases in place of one for each of `epsilons`, with their unit and bound.
        bounds: ε, as text → C for a release of at most that ε that names neither unit nor bound; "inf" for all others.
        schemas: ε, as text → the schema of a release of at most that ε; "inf" for all others; empty: that of the data.
            Scores are counted in that of the data.
        scales: noise scales that the source prints, with what they are of; see `printed_scales`.
        rounds: name of a round → the metrics whose mean is its score, with equal weights (DPSyn, section 5.1).
        against: metric → metrics that are drawn over it, with their rank correlations over all tables.
        columns: of the table that are used; empty: all.
        methods: label → settings of a synthesizer (its kind, and what differs from `synthesis`): each makes a table of
            every release; empty: the table of the release alone.
        per_subject: records of one subject of the stand-in, and synthetic records of one.
        holdout: share of the units that each release sets aside.
        samples: shares of the real rows; a random sample of each share is scored beside the tables of `methods`.
        anonymous: k: a k-anonymous table of the rows that are not set aside is scored beside the releases; None: those
            of ANONYMOUS, where there are any set aside to judge it by.
    """

    variants: list[JsonDict] = field(default_factory=list)
    bounds: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    scales: list[JsonDict] = field(default_factory=list)
    rounds: dict[str, list[str]] = field(default_factory=dict)
    against: dict[str, list[str]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    methods: dict[str, JsonDict] = field(default_factory=dict)
    samples: list[float] = setting([], above=0, most=1, distinct=True, noun="shares")
    anonymous: list[int] | None = setting([], least=2, distinct=True, noun="k")
    per_subject: int = setting(50, least=1)
    holdout: float = setting(0.0, least=0, most=0.5, noun="a share of the units")
    query_seed: int = setting(0, least=0)
    sample_seed: int = setting(0, least=0)


def rounds(metrics_of: Mapping[str, Sequence[str]], rows: Sequence[Json], facts: Json) -> list[JsonDict]:
    """A row for each round: the mean of its metrics' scores and floors; None where one of them is undefined.

    A round of which a metric is not scored has none.
    """
    scored = {row["metric"]: row for row in rows if not row.get("part")}
    means_of_rounds = []
    for name, metrics in metrics_of.items():
        if not metrics or set(metrics) - scored.keys():
            continue
        means = {}
        for key in ("score", "floor"):
            values = [scored[metric][key] for metric in metrics]
            means[key] = None if None in values else sum(values) / len(values)
        reason = "" if means["score"] is not None else "one of its metrics is undefined"
        rest = {"goal": "high", "reason": reason, "reported": None, "place": ""}
        means_of_rounds.append({**facts, "metric": name, **means, **rest})
    return means_of_rounds


def anonymous_of(settings: ChallengeSettings) -> list[int]:
    """The k of the anonymized tables that are scored beside the releases."""
    if settings.anonymous is not None:
        return settings.anonymous
    return list(ANONYMOUS) if settings.holdout and not settings.methods else []


@dataclass(frozen=True)
class Variant:
    """One release of a challenge.

    Attributes:
        epsilon: ε.
        unit, max_records: in place of privacy.unit and privacy.max_records; None for those.
        run: which of the `repeats` it is, from 1 on.
    """

    epsilon: float
    unit: str | None = None
    max_records: int | None = None
    run: int = 1

    @property
    def name(self) -> str:
        """The name of its folder."""
        unit = "" if self.unit is None else f"-{'record' if self.unit == 'record' else 'unit'}"
        bound = "" if self.max_records is None else f"-{self.max_records}"
        return f"epsilon-{self.epsilon:g}{unit}{bound}{f'-run-{self.run}' if self.run > 1 else ''}"

    @property
    def label(self) -> str:
        """What tells it apart beside ε and the run, in words."""
        unit = [] if self.unit is None else [f"unit {self.unit}"]
        return ", ".join(unit + ([] if self.max_records is None else [f"C = {self.max_records}"]))


def variants_of(settings: ChallengeSettings) -> tuple[Variant, ...]:
    """The releases of a challenge: those of `_listed`, each as often as `repeats` says.

    Raises:
        UserError: neither or both are set, unknown fields, values out of range, or a release that is listed twice.
    """
    runs = range(1, settings.repeats + 1)
    return tuple(replace(variant, run=run) for variant in _listed(settings) for run in runs)


def _listed(settings: ChallengeSettings) -> tuple[Variant, ...]:
    """One release per ε, or those that `variants` lists.

    Raises:
        UserError: neither or both, unknown fields, values out of range, or a release that is listed twice.
    """
    if settings.variants and settings.epsilons:
        fix = "one of the two: experiment.epsilons=[] or experiment.variants=[]"
        raise UserError("both are set", where="experiment.epsilons, experiment.variants", fix=fix)
    if not settings.variants:
        if not settings.epsilons:
            fix = "'experiment.epsilons=[0.1,1,10]'"
            raise UserError(f"got {settings.epsilons}", where="experiment.epsilons", fix=fix)
        return tuple(_bounded(Variant(e), settings.bounds) for e in settings.epsilons)
    variants: list[Variant] = []
    names = [f.name for f in fields(Variant) if f.name != "run"]
    fix = "'experiment.variants=[{epsilon: 1, max_records: 150}]'"
    for entry in settings.variants:
        check_names(entry, names, "unknown field", where="experiment.variants", fix=fix)
        epsilon, unit, bound = (entry.get(n) for n in names)
        fits = is_number(epsilon) and epsilon > 0
        fits = fits and (unit is None or isinstance(unit, str))
        fits = fits and (bound is None or (isinstance(bound, int) and not isinstance(bound, bool)))
        if not fits or entry in [v for v in settings.variants if v is not entry]:
            raise UserError(f"got {entry}", where="experiment.variants", fix=f"{fix}, each once")
        variants.append(_bounded(Variant(float(epsilon), unit, bound), settings.bounds))  # type: ignore[arg-type]
    return tuple(variants)


def _bounded(variant: Variant, bounds: dict[str, int]) -> Variant:
    """With the C of the least ε listed that is no smaller, where the release names neither unit nor bound.

    Raises:
        UserError: an ε that is no number, or a C that is no whole number above 0.
    """
    fix = 'ε up to which → C: \'experiment.bounds={"1": 150, "inf": 200}\''
    for text, bound in bounds.items():
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
            raise UserError(f"got {text}: {bound}", where="experiment.bounds", fix=fix)
    chosen = _up_to(bounds, variant.epsilon, "experiment.bounds", fix)
    if variant.unit is not None or variant.max_records is not None or chosen is None:
        return variant
    return replace(variant, max_records=chosen)


def schema_at(settings: ChallengeSettings, epsilon: float) -> str | None:
    """The schema of a release at this ε; None for that of the data.

    Raises:
        UserError: an ε that is no number.
    """
    fix = 'ε up to which → a schema: \'experiment.schemas={"0.3": low.yaml, "inf": high.yaml}\''
    return _up_to(settings.schemas, epsilon, "experiment.schemas", fix)


def _up_to(values: Mapping[str, T], epsilon: float, where: str, fix: str) -> T | None:
    """The value of the least ε listed that is no smaller; None where none is.

    Raises:
        UserError: an ε that is no number above 0.
    """
    limits: dict[float, T] = {}
    for text, value in values.items():
        try:
            limit = float(text)
        except ValueError:
            limit = -1.0
        if not limit > 0:
            raise UserError(f"got {text}: {value}", where=where, fix=fix)
        limits[limit] = value
    above = [limit for limit in limits if limit >= epsilon]
    return limits[min(above)] if above else None


#: Kinds of records; each has its own distribution of every column.
CLASSES = 12
#: How far the kinds lie apart: the standard deviation of the log-odds of a value.
SPREAD = 1.5
#: Part of every column that is uniform, so that every value occurs.
UNIFORM = 0.1


def stand_in(schema: Schema, rows: int, seed: int) -> CodedTable:
    """Rows whose columns depend on each other through a hidden kind of record; the same seed, the same rows."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(CLASSES, size=rows, p=rng.dirichlet(np.full(CLASSES, 2.0)))
    columns = []
    for attribute in schema.domain.attributes:
        n = attribute.size
        base = rng.permutation(1.0 / np.arange(1, n + 1))
        weights = base * np.exp(SPREAD * rng.standard_normal((CLASSES, n)))
        shares = (1 - UNIFORM) * weights / weights.sum(axis=1, keepdims=True) + UNIFORM / n
        ladder = np.cumsum(shares, axis=1)
        codes = np.empty(rows, code_dtype(n))
        place = rng.random(rows)
        for kind in range(CLASSES):
            mine = kinds == kind
            codes[mine] = np.minimum(np.searchsorted(ladder[kind], place[mine], side="right"), n - 1)
        columns.append(codes)
    return CodedTable(schema.domain, tuple(columns))


def write_coded(table: CodedTable, schema: Schema, path: Path, seed: int, unit: str | None, most: int) -> None:
    """A table of codes as values in a Parquet file, with ids of 1 to `most` records each where a unit is named."""
    rng = np.random.default_rng(seed)
    rows = arrow_table(with_units(table, schema, rng), schema, rng)
    if unit is not None and unit not in rows.column_names:
        rows = rows.append_column(unit, pa.array(subjects(table.rows, most, rng)))
    with whole_file(path, mode=0o600) as part:
        pq.write_table(rows, part)


def subjects(rows: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """An id per row, in runs of 1 to `most` rows."""
    sizes = rng.integers(1, most + 1, size=rows)
    return np.repeat(np.arange(rows), sizes)[:rows]
