"""The folder of an experiment that reads one table: locked and bound, its rows in codes. NOT private."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import Source
from pipeline.folders import RunFolder, bind, claimed, logged
from pipeline.load_stage import keep_settings, run_facts
from pipeline.scores.table_sources import local, open_records
from pipeline.settings.config import Config
from pipeline.stage_bars import Stages, unplaced_lines

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
