"""The files of tables that are scored or looked at, opened within the limits of the settings."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.json_values import JsonDict
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.inspect_file import shown
from mechanisms.public.tables.scan import Source, open_table
from pipeline.frames.frame_files import Table, table_files
from pipeline.settings import machine_limits
from pipeline.settings.config import LimitsConfig


@contextmanager
def opened(
    given: Mapping[str, Table], *, delimiter: str = ",", limits: LimitsConfig | None = None
) -> Iterator[dict[str, Source]]:
    """Tables by name, while the block lasts; each with a closed folder of its own to work in.

    Raises:
        UserError: a file is absent, or no table.
    """
    with tempfile.TemporaryDirectory(prefix="score-") as folder, table_files(given) as paths:  # mode 0700
        sources = {}
        for name, path in paths.items():
            work = Path(folder) / name
            work.mkdir(mode=0o700)
            sources[name] = _opened(path, delimiter, limits or LimitsConfig(), work)
        with shared_engine(Path(folder) / "engine"):
            yield sources


def _opened(path: Path, delimiter: str, limits: LimitsConfig, workdir: Path) -> Source:
    """As `open_with`; a release has commas, whatever stands between the cells of the real table."""
    try:
        return open_with(path, delimiter, limits, workdir, setting="delimiter")
    except UserError as error:
        if error.fix != f"delimiter={shown(',')}":
            raise
        return open_with(path, ",", limits, workdir, setting="delimiter")


def open_with(
    path: Path, delimiter: str, limits: LimitsConfig, workdir: Path, *, setting: str = "data.delimiter"
) -> Source:
    """A table's file, within the limits of the settings."""
    return open_table(
        path.expanduser(),
        delimiter=delimiter,
        workdir=workdir,
        memory_limit_bytes=machine_limits.memory_limit_bytes(limits.memory_gb) // 2,
        threads=machine_limits.threads(limits.threads),
        setting=setting,
    )


#: How the folders begin that hold the files of data frames while they are scored.
OF_FRAMES = "frames-"
NO_SCHEMA = "none: the kinds of the columns were read from the tables, for the scores alone"


def file_facts(sources: Mapping[str, Source], rows: Mapping[str, int], schema: str | None) -> JsonDict:
    """The facts for the top of a page; they hold a clock, and belong into no release.

    Args:
        sources: by what a table is: real, synthetic, holdout.
        rows: of each.
        schema: its path or name; None where there was none.
    """
    tables = [
        {"table": name, "file": shown_name(source.path), "rows": rows.get(name), "columns": len(source.names)}
        for name, source in sources.items()
    ]
    now = datetime.datetime.now(datetime.UTC)
    return {"scored": f"{now:%Y-%m-%d %H:%M} UTC", "schema": schema or NO_SCHEMA, "tables": tables}


def shown_name(path: Path) -> str:
    """The last part of a path; of a frame that lay in a file for a while, that it is one."""
    return "a data frame" if path.parent.name.startswith(OF_FRAMES) else path.name
