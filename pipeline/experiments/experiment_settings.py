"""What the settings of several experiments share, and their checks; those of one stand with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from mechanisms.public.errors import UserError
from mechanisms.public.json_values import JsonDict
from mechanisms.public.settings import BoundedSettings, setting
from pipeline.experiments.gallery.published import Published, published_of
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.own_settings import own_settings


@dataclass(frozen=True)
class ExperimentSource(BoundedSettings):
    """Where an experiment comes from, and what is reported there.

    Attributes:
        name: of the experiment.
        source, says: of the publication.
        published: what the source prints, each with its place; see `gallery.published.Published`.
        notes: for readers.
    """

    settings_group: ClassVar[str] = "experiment"
    name: str | None = None
    source: str = ""
    says: str = ""
    published: list[JsonDict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def printed(self) -> tuple[Published, ...]:
        """What the source prints.

        Raises:
            UserError: an entry that is none.
        """
        return published_of(self.published)


@dataclass(frozen=True)
class MapSettings(BoundedSettings):
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

    settings_group: ClassVar[str] = "experiment"
    columns: list[str] | None = None
    dpsyn: list[float] = setting([], above=0, distinct=True, noun="a list of ε")
    laplace: list[float] = setting([], above=0, distinct=True, noun="a list of ε")
    samples: list[float] = setting([], above=0, most=1, distinct=True, noun="shares")
    max_records: int = setting(2, least=1)
    clip: str = "truncate"
    sensitivity: int = setting(20, least=1)
    query_seed: int = setting(0, least=0)
    sample_seed: int = setting(0, least=0)
    delta: float = setting(2.0, least=0, noun="a number of records")
    repeats: int = setting(1, least=1, noun="how often each is made: a whole number")


S = TypeVar("S")


def settings_of(config: ExperimentConfig, cls: type[S]) -> S:
    """The experiment's own settings, checked.

    Raises:
        UserError: no such setting; a value that a setting may not have.
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
        UserError: no rows at all.
    """
    methods = {"dpsyn": settings.dpsyn, "lap": settings.laplace, "sample": settings.samples}
    runs = range(1, settings.repeats + 1)
    rows = [RowSpec(method, float(v), run) for method, values in methods.items() for v in values for run in runs]
    if not rows:
        raise UserError("no rows", where="experiment", fix="at least one of experiment.dpsyn, .laplace, .samples")
    return rows
