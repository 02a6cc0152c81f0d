"""What experiments on a temporal map share: the small version, the table, what is booked, and the open folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from mechanisms.public.files import write_whole
from mechanisms.public.json_values import JsonDict
from mechanisms.public.progress import Progress
from pipeline.budget import admission
from pipeline.budget.planned_release import PlannedRelease
from pipeline.demo import write_demo
from pipeline.experiments import table1_histograms as tables
from pipeline.experiments.experiment_settings import map_settings, rows_of
from pipeline.experiments.opened_table import opened_table
from pipeline.experiments.table1_histograms import Maker
from pipeline.experiments.temporal_map import TemporalMap, map_schema
from pipeline.settings import build, inputs
from pipeline.settings.config import Config
from pipeline.settings.specs import build_specs, settled
from pipeline.stage_bars import Stages

#: What `smoke=true` leaves: so many generated rows, and of each list of ε or shares its last values.
SMOKE_ROWS = 4_000
SMOKE_VALUES = {"dpsyn": 1, "laplace": 2, "samples": 2}
#: How many rows the demo has where data.rows is not set.
DEMO_ROWS = 290_000


@contextmanager
def opened_map(config: Config, root: Path, hydra_files: Mapping[str, str] | None, show: Stages) -> Iterator[Maker]:
    """The experiment's folder, locked, with the true histogram read and every release booked before one is made.

    Raises:
        UserError: an impossible setting, a table that does not fit, or one without rows.
    """
    rows_of(map_settings(config.experiment))
    config = settled(smaller(config) if config.smoke else config)
    schema = map_schema(config, build.build_schema(build_specs(config)))
    admission.check(booked := tables.releases(config, schema, root))
    generate = partial(_generate, config) if inputs.generated(config) else None
    with opened_table(config, schema, root, hydra_files or {}, show, generate) as table:
        schema_file = table.folder.internal / "map.yaml"
        write_whole(schema_file, schema.to_yaml(), mode=0o600)
        admission.book(booked)
        yield Maker(config, TemporalMap(schema, table.real), table, schema_file)


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment books: each of its noisy tables, all together.

    Raises:
        UserError: an impossible setting.
    """
    config = settled(smaller(config) if config.smoke else config)
    return tables.releases(config, map_schema(config, build.build_schema(build_specs(config))), root)


def smaller(config: Config) -> Config:
    """The experiment in seconds, by its own method: few generated rows, few tables, one run."""
    settings = map_settings(config.experiment)
    lists: JsonDict = {name: getattr(settings, name)[-most:] for name, most in SMOKE_VALUES.items()}
    lists["repeats"] = 1
    data = config.data
    if data.name == "demo":
        data = replace(data, rows=min(data.rows or SMOKE_ROWS, SMOKE_ROWS))
    experiment = replace(config.experiment, options=config.experiment.options | lists)
    return replace(config, experiment=experiment, data=data)


def _generate(config: Config, path: Path, report: Progress) -> None:
    """The demo's table."""
    rows = DEMO_ROWS if config.data.rows is None else config.data.rows
    write_demo(path, rows=rows, seed=config.data.seed, progress=report)
