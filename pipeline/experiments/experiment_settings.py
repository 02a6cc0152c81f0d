"""What the settings of several experiments share, and their checks; those of one stand with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.settings import BoundedSettings, setting
from pipeline.experiments.gallery.published import Published, published_of
from pipeline.experiments.repeats import own_seed
from pipeline.settings.config import Config
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
class MapSettings(ExperimentSource):
    """`experiment.*` of noisy maps that are scored; the comments stand in conf/experiment; `maps` has the metrics."""

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
    deltas: list[float] = setting([], least=0, noun="numbers of records")
    repeats: int = setting(1, least=1, noun="how often each is made: a whole number")
    queries: int = setting(300, least=1)
    share: float = setting(0.3, above=0, most=1)
    metrics: list[str] = field(default_factory=list)
    against: dict[str, list[str]] = field(default_factory=dict)
    table1: str = ""
    table2: list[JsonDict] = field(default_factory=list)


S = TypeVar("S")


def settings_of(config: Config, cls: type[S]) -> S:
    """The experiment's own settings, checked.

    Raises:
        UserError: no such setting; a value that a setting may not have.
    """
    return own_settings(cls, config.experiment.options, "experiment", config.experiment.kind)


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

    def seed(self, seed: int | None) -> int | None:
        """A seed of its own, so that no two rows share their randomness."""
        return own_seed(seed, self.name)


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
