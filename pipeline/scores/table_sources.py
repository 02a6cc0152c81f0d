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
from mechanisms.public.tables.scan import Source, open_table, private_folder
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
    """A table's file, within the limits of the settings; of a release of two tables both, joined by the id.

    Raises:
        UserError: no such table; two tables of a release that do not share one column.
    """
    source = _opened_file(path.expanduser(), delimiter, limits, workdir, setting)
    second = source.path.with_name(persons_of(source.path.name) or source.path.name)
    if second == source.path or not second.is_file():
        return source
    persons, inner = _opened_file(second, delimiter, limits, workdir, setting), workdir / "persons"
    shared = [n for n in persons.names if n in source.names]
    if len(shared) != 1:
        problem, fix = f"it shares {len(shared)} columns with {source.path.name}", "both tables as a release has them"
        raise UserError(problem, where=str(second), fix=fix)
    private_folder(inner)
    return with_units(source, persons, PrivacyUnit(shared[0]), ids=shared[0], where="release.tables", workdir=inner)


def _opened_file(path: Path, delimiter: str, limits: LimitsConfig, workdir: Path, setting: str) -> Source:
    return open_table(
        path,
        delimiter=delimiter,
        workdir=workdir,
        memory_limit_bytes=machine_limits.memory_limit_bytes(limits.memory_gb) // 2,
        threads=machine_limits.threads(limits.threads),
        setting=setting,
    )
