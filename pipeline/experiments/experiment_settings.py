"""Settings, repeated runs, tables and files that several experiments share; those of one stand with it."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import matplotlib
from matplotlib.figure import Figure

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, whole_file, write_whole
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.settings import BoundedSettings, setting
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import Source
from pipeline.experiments.gallery.published import Beside, Published, published_of
from pipeline.folders import RunFolder, bind, claimed
from pipeline.load_stage import keep_settings, run_facts
from pipeline.run_log import logged
from pipeline.scores.table_sources import local, open_records
from pipeline.settings.config import Config
from pipeline.settings.own_settings import own_settings
from pipeline.stage_bars import Stages, unplaced_lines

#: Differences of runs below this part of the mean are rounding, not an error.
DUST = 1e-12


def mean_of(values: Iterable[float | None]) -> tuple[float | None, float | None, int]:
    """The mean of what is defined, its standard error, and how many values there are; None where nothing is defined.

    The error is the standard deviation of the values over the square root of their number; None below two values.
    """
    defined = [float(v) for v in values if v is not None]
    if not defined:
        return None, None, 0
    mean = math.fsum(defined) / len(defined)
    if len(defined) == 1:
        return mean, None, 1
    error = statistics.stdev(defined) / math.sqrt(len(defined))
    return mean, 0.0 if error < DUST * abs(mean) else error, len(defined)


def mean_rows(rows: Iterable[Json]) -> tuple[JsonDict, ...]:
    """A row for each table, ε and metric: the mean `score`, its standard `error`, how many `runs`; else as in run 1."""
    groups: dict[tuple[str, float | None, str], list[Json]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["epsilon"], row["metric"]), []).append(row)
    means = []
    for group in groups.values():
        mean, error, count = mean_of(row["score"] for row in group)
        means.append({**group[0], "score": mean, "error": error, "runs": count})
    return tuple(means)


def mean_beside(runs: Sequence[Sequence[Beside]]) -> tuple[Beside, ...]:
    """The same numbers of several runs: the mean of ours, with its standard error."""
    groups: dict[str, list[Beside]] = {}
    for numbers in runs:
        for number in numbers:
            groups.setdefault(number.what, []).append(number)
    means = []
    for group in groups.values():
        mean, error, count = mean_of(number.ours for number in group)
        means.append(replace(group[0], ours=mean, error=error, runs=count))
    return tuple(means)


def run_seed(seed: int | None, run: int) -> int | None:
    """The seed of a run; the first one has the seed that was set."""
    return seed if run == 1 else own_seed(seed, f"run {run}")


def own_seed(seed: int | None, name: str) -> int | None:
    """A seed of its own for each name, so that no two share their randomness."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=6).digest(), "big")


def write_rows(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table as CSV, for the owner alone."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    write_whole(path, text.getvalue(), mode=0o600)


def save(figure: Figure, inside: Path, name: str) -> None:
    """PNG and SVG, for the owner alone; the words of the SVG are text."""
    for suffix, extra in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        words = matplotlib.rc_context({"svg.fonttype": "none"})
        with words, whole_file(inside / f"{name}.{suffix}", mode=0o600) as part:
            figure.savefig(part, format=suffix, **extra)


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


#: Under internal/: the table of an experiment that makes its own.
GENERATED = "stand-in.parquet"


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table that was read.

    Attributes:
        facts: of the run, as its manifest holds them.
        real: its rows, unclipped.
    """

    folder: RunFolder
    facts: Json
    source: Source
    real: CodedTable


@contextmanager
def opened_table(
    config: Config,
    schema: Schema,
    root: Path,
    hydra_files: Mapping[str, str],
    show: Stages,
    generate: Callable[..., None] | None,
) -> Iterator[OpenTable]:
    """The experiment's folder with its table in codes; nothing is booked yet.

    Args:
        generate: writes a table to a path, with its `progress`, once, where no file is given; None: one has to be.
    Raises:
        UserError: a folder that cannot be used, a table that does not fit, or one without rows.
    """
    with claimed(root, resume=config.resume) as folder, logged(folder.log):
        with show.stage("load") as report:
            path = folder.internal / GENERATED
            if config.data.path or generate is None:
                data = local(config.data, config.limits, folder.temporary, promised=True)
            else:
                data = replace(config.data, path=str(path))
                if not path.exists():
                    generate(path, progress=report)
                    path.chmod(0o600)
            facts = bind(folder, run_facts(config, schema, data))
            keep_settings(folder, config, hydra_files)
            names = [c.name for c in schema.held]
            source = open_records(data, schema, config.limits, folder.temporary, expected=names)
            real, encoding = encode_columns(source, schema, workdir=folder.temporary, progress=report)
        show.warn_privately(unplaced_lines(encoding))
        if not real.rows:
            raise UserError("the table has no rows: nothing to compare with", where="data.path", fix="another table")
        yield OpenTable(folder, facts, source, real)
