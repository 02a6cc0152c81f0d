"""The files of tables that are scored or looked at, opened within the limits of the settings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.formats import persons_of
from mechanisms.public.tables.inspect_file import shown
from mechanisms.public.tables.scan import Source, open_table
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.joined_units import with_units
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
    """As `open_released`; a release has commas, whatever stands between the cells of the real table."""
    try:
        return open_released(path, limits, workdir, delimiter)
    except UserError as error:
        if error.fix != f"delimiter={shown(',')}":
            raise
        return open_released(path, limits, workdir)


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


def open_released(path: Path, limits: LimitsConfig, workdir: Path, delimiter: str = ",") -> Source:
    """As `open_with`; of a release of two tables both, joined by the id.

    Raises:
        UserError: no such table; a second one that does not share one column with it.
    """
    source = open_with(path, delimiter, limits, workdir, setting="delimiter")
    second = source.path.with_name(persons_of(source.path.name) or source.path.name)
    if second == source.path or not second.is_file():
        return source
    persons, inner = open_with(second, delimiter, limits, workdir, setting="delimiter"), workdir / "of-persons"
    shared = [n for n in persons.names if n in source.names]
    if len(shared) != 1:
        problem, fix = f"it shares {len(shared)} columns with {source.path.name}", "both tables as a release has them"
        raise UserError(problem, where=str(second), fix=fix)
    return with_units(source, persons, PrivacyUnit(shared[0]), ids=shared[0], where="release.tables", workdir=inner)
