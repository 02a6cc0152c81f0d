"""What the jobs' own looks at their rows would refuse, known before a sweep books anything in a shared ledger."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.fetched import is_address
from mechanisms.public.tables.losses import ColumnLoss, losses_of, refuse_losses
from mechanisms.public.tables.scan import private_folder
from pipeline.console import tells
from pipeline.folders import RunFolder
from pipeline.load_stage import schema_print
from pipeline.scores.table_sources import declared_dialect, local, open_with
from pipeline.settings.build import build_schema
from pipeline.settings.config import Config
from pipeline.settings.inputs import generated, location
from pipeline.settings.specs import build_specs
from pipeline.sweeps.planned_jobs import Job
from pipeline.units_table import joined


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
            schema = job_schema(config)
            given = config.data
            tables = [t if is_address(t) else str(Path(t).resolve()) for t in (location(given), given.units.path or "")]
            key = (*tables, *map(str, (given.units.id, given.delimiter, given.encoding)), schema_print(schema))
            if key not in losses:
                losses[key] = _looked_at(config, schema, RunFolder(workdir))
            figures = tells(sys.stderr, config.console)
            refuse_losses(losses[key], config.data.max_unplaced, figures=figures)
        except UserError as error:
            problem = f"the job {job.name} would be refused: {error.what}. Nothing was booked"
            raise UserError(problem, where=error.where, fix=error.fix) from error


def job_schema(config: Config) -> Schema:
    """The schema of an ordinary job."""
    return build_schema(build_specs(config))


def _looked_at(config: Config, schema: Schema, folder: RunFolder) -> tuple[ColumnLoss, ...]:
    """What the columns of one table lose under one schema."""
    private_folder(folder.temporary)
    try:
        dialect = declared_dialect(config.data, schema.dialect)
        data = local(config.data, config.limits, folder.temporary)
        records = open_with(Path(str(data.path)), dialect, config.limits, folder.temporary)
        source = joined(records, data.units, build_specs(config).unit, config.limits, dialect)
        _, report = encode_columns(source, schema, workdir=folder.temporary)
        return losses_of(report, schema)
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)
