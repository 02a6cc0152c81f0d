"""What the settings of several experiments share, and their checks; those of one stand with it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from mechanisms.public.errors import UserError
from pipeline.experiments.gallery.published import Published, published_of
from pipeline.experiments.repeats import checked_repeats
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.own_settings import own_settings


@dataclass(frozen=True)
class ExperimentSource:
    """Where an experiment comes from, and what is reported there.

    Attributes:
        name: of the experiment.
        source, says: of the publication.
        published: what the source prints, each with its place; see `gallery.published.Published`.
        notes: for readers.
    """

    name: str | None = None
    source: str = ""
    says: str = ""
    published: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def printed(self) -> tuple[Published, ...]:
        """What the source prints.

        Raises:
            UserError: an entry that is none.
        """
        return published_of(self.published)


@dataclass(frozen=True)
class MapSettings:
    """What the experiments on temporal maps share.

    Attributes:
        columns: time, place and category; None for those that are known of the data.
        dpsyn: ε of the tables by GUM; laplace: of the noisy histograms; samples: shares of the random samples.
        max_records: records of one unit that the tables count; clip: how that is kept.
        sensitivity: of the noisy histogram.
        query_seed, sample_seed: of the queries and of the samples.
        delta: MGD's tolerance Δ, in records.
        repeats: how often each table is made; what is shown are means with their standard errors.
    """

    columns: list[str] | None = None
    dpsyn: list[float] = field(default_factory=list)
    laplace: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    max_records: int = 2
    clip: str = "truncate"
    sensitivity: int = 20
    query_seed: int = 0
    sample_seed: int = 0
    delta: float = 2.0
    repeats: int = 1


S = TypeVar("S")


def settings_of(config: ExperimentConfig, cls: type[S]) -> S:
    """The experiment's own settings, checked against their types.

    Raises:
        UserError: no such setting; a value of another type.
    """
    return own_settings(cls, config.options, "experiment", config.kind)


def map_settings(config: ExperimentConfig) -> MapSettings:
    """What an experiment on temporal maps shares with the others of its kind; its own settings are left aside.

    Raises:
        UserError: a value of another type.
    """
    shared = {f.name for f in fields(MapSettings)}
    return settings_of(replace(config, options={k: v for k, v in config.options.items() if k in shared}), MapSettings)


def stored(config: ExperimentConfig, settings: Any) -> ExperimentConfig:
    """The same experiment with other settings."""
    return replace(config, options=asdict(settings))


@dataclass(frozen=True)
class RowSpec:
    """One row of the table.

    Attributes:
        method: dpsyn, lap or sample.
        value: ε, or the share of a sample.
        run: which of the `repeats` it is, from 1 on.
    """

    method: str
    value: float
    run: int = 1

    @property
    def dataset(self) -> str:
        """Its name in the table, the same in all runs."""
        return f"{self.method}-{self.value:g}"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.dataset if self.run == 1 else f"{self.dataset}-run-{self.run}"


def rows_of(settings: MapSettings) -> list[RowSpec]:
    """The rows in the paper's order, each as often as `repeats` says.

    Raises:
        UserError: an impossible value, one that is given twice, no rows at all, or a number of runs below 1.
    """
    rows = []
    for setting, method, top, what in (
        ("dpsyn", "dpsyn", math.inf, "ε above 0"),
        ("laplace", "lap", math.inf, "ε above 0"),
        ("samples", "sample", 1.0, "shares above 0, at most 1"),
    ):
        values = [float(v) for v in getattr(settings, setting)]
        wrong = [v for v in values if not (0 < v <= top and math.isfinite(v))]
        if wrong or len({f"{v:g}" for v in values}) < len(values):
            raise UserError(f"got {values}", where=f"experiment.{setting}", fix=f"a list of {what}, each once")
        rows += [RowSpec(method, v, run) for v in values for run in checked_repeats(settings.repeats)]
    if not rows:
        raise UserError("no rows", where="experiment", fix="at least one of experiment.dpsyn, .laplace, .samples")
    for setting in ("max_records", "sensitivity"):
        if getattr(settings, setting) < 1:
            fix = "a whole number of at least 1"
            raise UserError(f"got {getattr(settings, setting)}", where=f"experiment.{setting}", fix=fix)
    if settings.sample_seed < 0:
        raise UserError(f"got {settings.sample_seed}", where="experiment.sample_seed", fix="a number of at least 0")
    if not 0 <= settings.delta < math.inf:
        raise UserError(f"got {settings.delta}", where="experiment.delta", fix="a number of records of at least 0")
    return rows
