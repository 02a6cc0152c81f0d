"""The jobs of a sweep, known and checked before the first of them starts."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.fetched import is_address
from mechanisms.public.tables.losses import ColumnLoss, losses_of, refuse_losses
from mechanisms.public.tables.scan import private_folder
from pipeline import experiment_run
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.console import tells
from pipeline.folders import RunFolder, not_in_release
from pipeline.load_stage import schema_print
from pipeline.scores.table_sources import joined, local, open_records
from pipeline.settings import memory
from pipeline.settings.build import build_schema
from pipeline.settings.compose import first_of_sweep, listed, misspelt, safe_name
from pipeline.settings.config import Config, typed
from pipeline.settings.design import bound_settings, ready, whole_design
from pipeline.settings.inputs import generated, location
from pipeline.settings.specs import Specs, build_specs

#: The most runs of one sweep: each is composed and checked before the first of them starts.
MOST_JOBS = 2_000


@dataclass(frozen=True)
class Job:
    """One run of a sweep.

    Attributes:
        overrides: its settings as on the command line.
        varied: the settings that differ between the jobs → their values here.
        root: its folder.
        settings: all of its settings; None where they cannot be.
        memory: the bytes that it is predicted to need.
        releases: what it books in a shared ledger, where one is set.
        error: why it cannot run; empty where nothing is known against it.
    """

    overrides: tuple[str, ...]
    varied: dict[str, str]
    root: Path
    settings: Config | None = None
    memory: int = 0
    releases: tuple[PlannedRelease, ...] = ()
    error: str = ""

    @property
    def name(self) -> str:
        """The varied settings in one line."""
        return " ".join(f"{k}={v}" for k, v in self.varied.items()) or self.root.name


Load = Callable[[Sequence[str]], DictConfig]


#: Settings but seeds, found in order → the predicted bytes; and the schema and the plan, where a ledger is set.
Checked = dict[str, tuple[int, tuple[Schema, Plan] | None]]


def planned_jobs(overrides: Sequence[str], load: Load) -> list[Job]:
    """Every combination of the swept values, each composed and checked alone.

    Args:
        overrides: of the whole sweep, such as ``privacy.epsilon=0.1,1``.
        load: overrides of one job → its composed settings, with Hydra's own.
    Raises:
        UserError: a list of values that cannot be read.
    """
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise UserError(str(error).splitlines()[0], where="run -m", fix="key=value,value or key=range(5)") from error
    swept = [str(o.get_key_element()) for o in parsed if o.is_sweep_override()]
    checked: Checked = {}
    return [_job(line, swept, load, checked) for line in combinations(parsed)]


def combinations(overrides: Sequence[Override]) -> list[tuple[str, ...]]:
    """Every combination of the swept values, the last setting fastest; of two values for one key, the later holds.

    Raises:
        UserError: a setting whose values cannot be listed; more combinations than can be checked in minutes.
    """
    values: dict[str, list[str]] = {}
    for o in overrides:
        key = o.get_key_element()
        values[key] = listed(o, MOST_JOBS + 1) if o.is_sweep_override() else [o.get_value_element_as_str()]
    if prod(map(len, values.values())) > MOST_JOBS:
        fix = "fewer values; each run spends its own budget"
        raise UserError(f"more than {MOST_JOBS:,} runs in one sweep", where="run -m", fix=fix)
    return [tuple(f"{k}={v}" for k, v in zip(values, line, strict=True)) for line in product(*values.values())]


def _job(overrides: tuple[str, ...], swept: list[str], load: Load, checked: Checked) -> Job:
    values = dict(o.split("=", 1) for o in overrides)
    job = Job(overrides, {key: values[key].strip("'\"") for key in swept}, Path())
    try:
        for override in overrides:
            first_of_sweep(override)  # which refuses, of a group, what is the name of no choice
        composed = load(overrides)
        if composed.hydra.job.chdir:
            fix = "leave it out: files are looked for from the folder in which the sweep was started"
            raise UserError("a job would look for its files, and a ledger, elsewhere", where="hydra.job.chdir", fix=fix)
        subdir, named = composed.hydra.sweep.subdir, composed.hydra.job.override_dirname
        if subdir == safe_name(named):
            subdir = safe_name(named, ",".join(f"{key}={value}" for key, value in job.varied.items()))
        job = replace(job, root=Path(composed.hydra.sweep.dir) / subdir)
        not_in_release(job.root, "hydra.sweep.subdir")
        settings = typed(composed, Config)
        job = replace(job, settings=settings)
        needed, releases = _without_data(settings, job.root, checked)
        return replace(job, memory=needed, releases=releases)
    except UserError as error:
        return replace(job, error=str(error))
    except (HydraException, OmegaConfBaseException) as error:
        return replace(job, error=str(misspelt("config", overrides, error)))


def _without_data(config: Config, root: Path, checked: Checked) -> tuple[int, tuple[PlannedRelease, ...]]:
    """Whatever can be known without the data: the predicted bytes, and what is booked in a shared ledger.

    Raises:
        UserError: as the run would, but earlier.
    """
    if config.experiment.kind or config.smoke:
        return memory.LIBRARIES_BYTES, experiment_run.planned_releases(config, root)
    key = digest(replace(config, seed=None, privacy=replace(config.privacy, noise_seed=None)), seeds=False)
    if key not in checked:
        design = whole_design(config)
        specs, schema, plan = design.specs, design.schema, design.plan
        ready(specs, schema, plan, root)
        needed = max(memory.predicted_memory_bytes(specs, schema, plan), memory.scores_bytes(config, schema))
        checked[key] = needed, None if config.budget.ledger is None else (schema, plan)
    needed, planned = checked[key]
    return needed, () if planned is None else admission.planned_release(build_specs(config), *planned, root)


def digest(config: Config, *, seeds: bool = True) -> str:
    """What a job's settings are known by, without those that a continuation may change."""
    facts = bound_settings(config)
    if not seeds:
        facts["synthesis"]["seed"] = None
    return hashlib.blake2b(json.dumps(facts, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def side_by_side(jobs: Sequence[Job], cores: int, memory: int) -> int:
    """How many jobs run at a time: a core each, and together no more than `memory` bytes by what is predicted."""
    largest = max((job.memory for job in jobs), default=0)
    return max(1, min(cores, len(jobs), memory // max(largest, 1)))


def longest_first(jobs: Sequence[Job]) -> list[Job]:
    """The order in which jobs start: those that are predicted to be dear first, so that no core waits at the end.

    Predicted memory stands for the time: of the methods on the same table, what holds more computes more.
    """
    return sorted(jobs, key=lambda job: -job.memory)


def look_before_booking(jobs: Sequence[Job], workdir: Path) -> None:
    """Each distinct table and schema of the jobs that book is encoded once; nothing is booked where one is refused.

    Guarantee: none; it is for the operator alone, as the look of a run (see `refuse_losses`).
    Args:
        workdir: for copies of the rows, as codes; made with mode 0700, and deleted.

    Raises:
        UserError: a job whose table loses more than its data.max_unplaced allows, or cannot be read; names the job.
    """
    losses: dict[tuple[str, ...], tuple[ColumnLoss, ...]] = {}
    for job in jobs:
        config = job.settings
        if config is None or not job.releases or config.experiment.kind or config.smoke or generated(config):
            continue
        if RunFolder(job.root).manifest.exists():  # it has begun: it was looked at, and goes on or is refused
            continue
        try:
            specs = build_specs(config)
            schema, given = build_schema(specs), config.data
            tables = [t if is_address(t) else str(Path(t).resolve()) for t in (location(given), given.units.path or "")]
            read = (specs.unit.column, given.units.id, given.delimiter, given.encoding)
            key = (*tables, *map(str, read), schema_print(schema))
            if key not in losses:
                losses[key] = _looked_at(specs, schema, RunFolder(workdir))
            figures = tells(sys.stderr, config.console)
            refuse_losses(losses[key], config.data.max_unplaced, figures=figures)
        except UserError as error:
            problem = f"the job {job.name} would be refused: {error.what}. Nothing was booked"
            raise UserError(problem, where=error.where, fix=error.fix) from error


def _looked_at(specs: Specs, schema: Schema, folder: RunFolder) -> tuple[ColumnLoss, ...]:
    """What the columns of one table lose under one schema."""
    config = specs.config
    private_folder(folder.temporary)
    try:
        data = local(config.data, config.limits, folder.temporary, promised=True)
        names = specs.columns_read(schema)
        records = open_records(data, schema, config.limits, folder.temporary, expected=names)
        source = joined(records, data.units, specs.unit, config.limits)
        _, report = encode_columns(source, schema, workdir=folder.temporary)
        return losses_of(report, schema)
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)
