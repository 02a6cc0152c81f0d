"""Tables as files, opened within the settings' limits, units joined to records by the id; values that are scored."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evaluation.metrics import METRICS
from evaluation.values.value_kinds import declared_kind, kind_of
from evaluation.values.value_tables import Values, bucketed, value_tables
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.files import JsonDict, table_name
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.progress import Progress
from mechanisms.public.release_files import load_released_schema
from mechanisms.public.schema.dialect import PLAIN, Dialect
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import NO_RULES
from mechanisms.public.tables.encode import listed_numbers
from mechanisms.public.tables.engine_instances import shared_engine
from mechanisms.public.tables.fetched import FetchRoom, fetched
from mechanisms.public.tables.formats import persons_of
from mechanisms.public.tables.scan import Source, open_table, private_folder
from mechanisms.public.tables.sniffed_dialect import dialect_of
from mechanisms.public.tables.value_dictionaries import (
    NAMED,
    Dictionary,
    dictionaries,
    raw_expressions,
    schema_expressions,
    shared_names,
    texts_of,
)
from mechanisms.sensitive.contribution import PrivacyUnit, unit_texts
from mechanisms.sensitive.joined_units import misfits, with_units
from pipeline.frames.frame_files import Table, table_files
from pipeline.settings.config import DataConfig, DraftConfig, LimitsConfig, ScoreConfig
from pipeline.settings.inputs import location
from pipeline.settings.units_config import UnitsConfig


@contextmanager
def opened(
    given: Mapping[str, Table], *, declared: Dialect | None = None, limits: LimitsConfig | None = None
) -> Iterator[dict[str, Source]]:
    """Tables by name, while the block lasts; each with a closed folder of its own to work in.

    Args:
        declared: how tables are written where they plainly may be; that of a release is, as its schema says it.

    Raises:
        UserError: a file is absent, or no table.
    """
    limits = limits or LimitsConfig()
    with ExitStack() as inside:
        folder = inside.enter_context(tempfile.TemporaryDirectory(prefix="score-"))  # mode 0700
        room, sources = room_of(limits, Path(folder)), {}
        there = {n: fetched(t, room, where=n) if isinstance(t, str | Path) else t for n, t in given.items()}
        paths = inside.enter_context(table_files(there))
        for name, path in paths.items():
            work = Path(folder) / name
            work.mkdir(mode=0o700)
            sources[name] = open_released(Path(path), limits, work, dialect_of(Path(path), declared))
        with shared_engine(Path(folder) / "engine"):
            yield sources


def beside(table: Path) -> Dialect | None:
    """How a release's table is written, by the schema beside it; None of a table that lies in none."""
    schema = table.parent / "schema.yaml"
    if not (table.name.startswith("synthetic.") and schema.is_file() and (table.parent / "privacy.json").is_file()):
        return None
    with suppress(UserError):
        return load_released_schema(schema).dialect
    return None


def declared_dialect(given: DataConfig | ScoreConfig | DraftConfig, dialect: Dialect = PLAIN) -> Dialect:
    """How a table is written, by the settings, and where they say nothing as the schema has it."""
    mark, letters = given.delimiter, given.encoding
    own = Dialect(dialect.delimiter if mark is None else mark, dialect.encoding if letters is None else letters)
    return own.checked("data." if isinstance(given, DataConfig) else "")


def room_of(limits: LimitsConfig, folder: Path, *, promised: bool = False) -> FetchRoom:
    """Room for what is fetched, within the limits of the settings."""
    return FetchRoom(folder, limits.memory_bytes // 2, promised)


def local(data: DataConfig, limits: LimitsConfig, folder: Path, *, promised: bool) -> DataConfig:
    """The same settings with files in the place of tables that lie elsewhere; these are fetched into the folder.

    Args:
        promised: each row of a query has to be of one unit; false: that was checked before.
    """
    promised = promised and not data.rows_of_one_unit
    path = fetched(location(data), room_of(limits, folder, promised=promised))
    units = local_units(data.units, limits, folder, promised=promised)
    return replace(data, path=str(path), units=units, table=None, query=None)


def local_units(units: UnitsConfig, limits: LimitsConfig, folder: Path, *, promised: bool = False) -> UnitsConfig:
    """The same of a table of units."""
    path = units.path and str(fetched(units.path, room_of(limits, folder, promised=promised), where="units.path"))
    return replace(units, path=path)


def opened_as_written(table: str, config: DraftConfig, folder: Path) -> Source:
    """A table as it is plainly written, but for what the settings say."""
    path = fetched(table, room_of(config.limits, folder), where="table")
    return open_with(path, declared_dialect(config, dialect_of(path)), config.limits, folder, setting="delimiter")


def open_records(
    data: DataConfig, schema: Schema, limits: LimitsConfig, workdir: Path, *, expected: Collection[str] = ()
) -> Source:
    """The records of a file, as of `local`, written as the settings say, and where they say nothing as the schema."""
    return open_with(Path(str(data.path)), declared_dialect(data, schema.dialect), limits, workdir, expected=expected)


def open_with(
    path: Path,
    dialect: Dialect | None,
    limits: LimitsConfig,
    workdir: Path,
    *,
    setting: str = "data.delimiter",
    expected: Collection[str] = (),
) -> Source:
    """A table's file, within the limits of the settings; `expected` as of `open_table`."""
    return open_table(
        path.expanduser(),
        dialect=dialect or PLAIN,
        workdir=workdir,
        memory_limit_bytes=limits.memory_bytes // 2,
        threads=limits.cores,
        setting=setting,
        expected=expected,
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
    """The last part of a path; of a frame, or a table of a database, that lay in a file for a while, that it is one."""
    return "a data frame" if path.parent.name.startswith(OF_FRAMES) else table_name(path)


def open_released(path: Path, limits: LimitsConfig, workdir: Path, dialect: Dialect | None = None) -> Source:
    """As `open_with`, in the dialect of the release; of a release of two tables both, joined by the id.

    Raises:
        UserError: no such table; a second one that does not share one column with it.
    """
    own = beside(path) or dialect
    source = open_with(path, own, limits, workdir, setting="delimiter")
    second = source.path.with_name(persons_of(source.path.name) or source.path.name)
    if second == source.path or not second.is_file():
        return source
    persons, inner = open_with(second, own, limits, workdir, setting="delimiter"), workdir / "of-persons"
    shared = [n for n in persons.names if n in source.names]
    if len(shared) != 1:
        problem, fix = f"it shares {len(shared)} columns with {source.path.name}", "both tables as a release has them"
        raise UserError(problem, where=str(second), fix=fix)
    unit = PrivacyUnit(shared[0], missing="own")
    return with_units(source, persons, unit, ids=shared[0], where="release.tables", workdir=inner)


#: The folder in a working folder where both tables are joined.
FOLDER = "units"


def joined(
    records: Source, table: UnitsConfig, unit: PrivacyUnit, limits: LimitsConfig, *, where: str = "data.units"
) -> Source:
    """The records with the columns of the table of units that the settings name; as they are where they name none.

    The table of units is written as the records are.

    Args:
        unit: with a column where a table is named.
        where: the group of these settings, for messages.
    Raises:
        UserError: as of `open_table` and `with_units`.
    """
    workdir = records.workdir / FOLDER
    for path in table.files:
        private_folder(workdir)
        ids = table.id or str(unit.column)
        expected = records.expected and {*records.expected, ids}
        units = open_with(path, records.dialect, limits, workdir, setting=records.setting, expected=expected)
        return with_units(records, units, unit, ids=ids, where=where, workdir=workdir)
    return records


def scored_whole(
    tables: Mapping[str, Source], config: ScoreConfig, declared: PersonUnit | None
) -> Mapping[str, Source]:
    """Tables to score; real ones with the columns of their table of units, where the settings name one.

    Args:
        declared: the unit of their schema.
    Raises:
        UserError: no unit to join by; as of `joined`.
    """
    if not config.units.files:
        return tables
    column = config.evaluation.subject if declared is None else declared.column
    if column is None:
        fix = "evaluation.subject=COLUMN: the records' column of ids; or a schema with a unit"
        raise UserError("no column to join by", where="units", fix=fix)
    unit, real = PrivacyUnit(column), tables["real"]
    units = local_units(config.units, config.limits, real.workdir)
    return {
        name: source if name == "synthetic" else joined(source, units, unit, config.limits, where="units")
        for name, source in tables.items()
    }


def units_table_look(source: Source, table: UnitsConfig) -> list[str]:
    """What does not fit between the records and the table of units, a line each. NOT private.

    Args:
        source: as of `joined`.
    """
    if not table.files:
        return []
    lines = misfits(source, source.workdir / FOLDER)
    return [f"table of units: {line}" for line in lines]


def without_schema(
    sources: Mapping[str, Source], name: str, progress: Progress, *, subject: str | None = None
) -> tuple[Values, Schema, dict[str, CodedTable], list[JsonDict]]:
    """The tables on the columns that they share, with kinds read from the real one (from all, where it says nothing).

    Columns of ids are left out: no synthetic row shares them with a real one.

    Args:
        name: of the table.
        subject: the column that tells whose each row is; it is no id to leave out, and no column to compare.

    Returns:
        the tables as values; a schema that was made from the real table for scoring alone; the tables as its codes; and
        of each column of ids which shares of both tables' are distinct, and of the synthetic ones real.
    Raises:
        UserError: no column in common, or none but ids.
    """
    names, notices = shared_names(sources)
    read = {table: dictionaries(s, raw_expressions(s, names), progress) for table, s in sources.items()}
    kinds = {}
    for column in names:
        first = next((t[column] for t in read.values() if len(t[column].values)), read["real"][column])
        kinds[column] = kind_of(column, first)
    ids = [column for column, kind in kinds.items() if kind.kind == "id"]
    left = [column for column in ids if column != subject]
    if len(ids) == len(names):
        raise UserError("every column is an id: nothing can be compared", where="real", fix="columns with values")
    if left:
        notices.append(f"left out as ids: {first_few(map(repr, left), NAMED)}")
    compared = {column: kind for column, kind in kinds.items() if kind.kind != "id" and column != subject}
    values = value_tables(compared or kinds, read, notices)
    schema, tables = bucketed(values, name)
    keys = [_key(column, read["real"][column], read["synthetic"][column]) for column in left[:NAMED]]
    return values, schema, tables, keys


def _key(name: str, real: Dictionary, synthetic: Dictionary) -> JsonDict:
    """The shares of ids that are distinct, in both tables, and of the synthetic ones that are real."""
    texts = [d.values.cast(pa.string()) for d in (real, synthetic)]
    counts = [d.counts for d in (real, synthetic)]
    repeated = pc.is_in(texts[1], value_set=texts[0]).to_numpy(zero_copy_only=False)
    shares = [len(c) / max(int(c.sum()), 1) for c in counts]
    again = float(counts[1][repeated].sum() / max(int(counts[1].sum()), 1))
    return {"column": name, "real": shares[0], "synthetic": shares[1], "real_ones": again}


def subject_texts(
    sources: Mapping[str, Source], subject: str | None, unit: PrivacyUnit | None
) -> dict[str, NDArray[np.object_]]:
    """The text of each row's subject, of the tables that have the column; None for none.

    Args:
        unit: that of a release; real rows have the ids of its column by its rules, where that is the subject's.
    """
    texts = {}
    for name, source in sources.items() if subject is not None else ():
        if subject in source.names and name != "synthetic" and unit is not None and unit.column == subject:
            texts[name] = unit_texts(source, unit)
        elif subject in source.names:
            texts[name] = texts_of(dictionaries(source, raw_expressions(source, [subject]))[subject])
    return texts


def wants_values(metrics: Sequence[str]) -> bool:
    """Whether the definition of one of these metrics speaks of values."""
    return any(METRICS[name].on_values for name in metrics)


def with_schema(sources: Mapping[str, Source], schema: Schema, progress: Progress) -> Values:
    """The tables' values as the schema reads them; nothing is clipped, and nothing binned."""
    read = {table: dictionaries(s, schema_expressions(s, schema), progress) for table, s in sources.items()}
    for table, source in sources.items():
        for column in schema.columns:
            if column.spelled and source.typed(source.declared(column.name)):
                own, listed = read[table][column.name], listed_numbers(column)
                texts = pa.array([listed.get(t, t) for t in own.values.to_pylist()], pa.string())
                read[table][column.name] = replace(own, values=texts)
    return value_tables({c.name: declared_kind(c) for c in schema.columns}, read)


def shared_schema(sources: Mapping[str, Source], schema: Schema) -> tuple[Schema, list[str]]:
    """The schema of the columns that all tables have, and a line about each one that some lack.

    Raises:
        UserError: no column in common.
    """
    names, notices = shared_names(sources, [c.name for c in schema.held])
    if len(names) == len(schema.held):
        return schema, []
    return replace(schema, columns=tuple(c for c in schema.columns if c.cell in names), rules=NO_RULES), notices
