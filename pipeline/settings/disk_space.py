"""Whether the rows that are asked for have a place on the disk, known before anything is spent."""

from __future__ import annotations

import shutil
from pathlib import Path

from mechanisms.public.coded_table import code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import FORMATS
from pipeline.settings.memory import rows_at_once
from pipeline.settings.specs import Specs


def check_disk(specs: Specs, schema: Schema, root: Path) -> None:
    """Refuse rows that a disk cannot hold, by a lower bound: codes where rows are drawn in chunks, and a sign and a
    comma for each value of a file that is not compressed.

    Args:
        root: the run's folder, which need not exist.
    Raises:
        UserError: synthesis.rows needs more than is free there.
    """
    config, columns = specs.config, schema.domain.attributes
    rows, most = config.synthesis.rows or 0, rows_at_once(specs.synthesizer, schema, config.accept)
    codes = sum(code_dtype(a.size).itemsize for a in columns) if most is not None and rows > most else 0
    needed = rows * (codes + (0 if FORMATS[config.release.format].compressed else 2 * len(columns)))
    place = next(p for p in (root.absolute(), *root.absolute().parents) if p.is_dir())
    if needed > (free := shutil.disk_usage(place).free):
        what = f"{rows:,} synthetic rows need more than {needed / 1e9:,.3g} GB of disk, and {free / 1e9:,.3g} are free"
        raise UserError(what, where="synthesis.rows", fix="fewer, or a hydra.run.dir on a larger disk")
