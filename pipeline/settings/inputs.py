"""The files and folders that settings name must be there: looked at before any large library is loaded."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from mechanisms.public.errors import UserError, require_columns
from mechanisms.public.files import as_path
from mechanisms.public.tables.fetched import SELECT, is_address, parse_address
from mechanisms.public.tables.inspect_file import table_parts
from pipeline.folders import RunFolder
from pipeline.settings.config import Config, DataConfig, ScoreConfig, schema_path
from pipeline.settings.units_config import UnitsConfig

if TYPE_CHECKING:
    from mechanisms.public.schema.table_schema import Schema  # slow to load

#: Names of data=…: the one that makes its own rows, a table of one's own; and of the rows of a rehearsal.
DEMO, OWN, REHEARSAL = "demo", "table", "rehearsal"
#: schema=… of `score`: kinds are read from the tables, also of a release.
NO_SCHEMA = "none"
#: Ends of names that say what is in a file.
ENDS = {"csv", "gz", "html", "json", "parquet", "pdf", "pq", "xlsx", "yaml", "zst"}


def generated(config: Config) -> bool:
    """Whether the table is the demo's, which the run makes itself."""
    return config.data.name == DEMO and not config.data.path


def location(data: DataConfig) -> str:
    """Where the table lies: a path, or an address with what is read there behind a #.

    Raises:
        UserError: no table is given; a table or a query of what is no database, or both; a query that is none.
    """
    if not data.path:
        fix = f"data.path=FILE for data={data.name}; or data=demo, which generates its own table"
        raise UserError("no table given", where="data.path", fix=fix)
    asked = {name: text for name, text in (("data.table", data.table), ("data.query", data.query)) if text}
    for where in asked:
        if len(asked) > 1 or not is_address(data.path) or "#" in data.path:
            fix = "one of both, with data.path=postgresql://… or data.path=sqlite:///FILE"
            raise UserError("says which rows of a database are read", where=where, fix=fix)
    if data.table and SELECT.match(data.table) and " " in data.table.strip():
        raise UserError("data.table is a query", where="data.table", fix="data.query=SELECT …; or a table's name")
    if data.query and not SELECT.match(data.query):
        raise UserError(
            "data.query is no SELECT", where="data.query", fix="SELECT … FROM …; a whole table: data.table=NAME"
        )
    return "#".join([data.path, *asked.values()])


def asked_query(data: DataConfig) -> str | None:
    """Whether a run's rows are those of a query: checked, to be of one unit each, or stated by the curator to be."""
    if data.rows_of_one_unit:
        return "stated"
    queries = [data.query or "", *(str(place).partition("#")[2] for place in (data.path, data.units.path))]
    return "checked" if any(map(SELECT.match, queries)) else None


def check_lies(place: str | Path, where: str = "data.path") -> None:
    """A table's files are there; of an address, that it can be asked.

    Raises:
        UserError: names the file and the way out.
    """
    if is_address(place):
        parse_address(str(place), where)
    else:
        table_parts(Path(place).expanduser())


def check_ending(name: str, where: str, *forms: str) -> None:
    """The name of a file does not end in another format than the file will hold.

    Args:
        forms: what it may hold; the first one is proposed.
    """
    end = name.lower().rpartition(".")[2]
    if end in ENDS and end not in forms:
        raise UserError(f"{name} would hold {forms[0]}", where=where, fix=f"a name that ends in .{forms[0]}")


def check_inputs(config: Config) -> None:
    """The schema and the table of a run are there.

    Raises:
        UserError: names the file and the way out.
    """
    schema_path(config.data.schema)
    if config.data.path or not (generated(config) or config.experiment.kind):  # an experiment may make its own rows
        check_lies(location(config.data))
    check_units(config.data.units)


def check_units(units: UnitsConfig) -> None:
    """The table of units is there, where one is named."""
    if units.path:
        check_lies(units.path, "units.path")


def check_roles(config: DataConfig, schema: Schema) -> None:
    """The columns that one's own table has in roles are columns of its schema (a ready table's schema may have fewer).

    Raises:
        UserError: names the role, and the nearest column.
    """
    roles = {r: c for r, c in (config.roles or {}).items() if config.name in {OWN, REHEARSAL} and r != "subject"}
    wrong = [f"data.roles.{role}" for role, column in roles.items() if column not in schema.domain]
    require_columns(roles.values(), schema.domain.names, where=", ".join(wrong))


def check_ready(config: Config, columns: Collection[str]) -> None:
    """A table that is read as a ready one has its unit's column: it may be one's own.

    Raises:
        UserError: says how one's own table is named.
    """
    unit = config.data.unit
    if config.data.name == OWN or config.privacy.unit != unit or unit == "record" or unit in columns:
        return
    problem = f"no column {unit!r} in {Path(str(config.data.path)).name}, which is read as data={config.data.name}"
    path = config.data.path
    fix = f"your own table: data=table data.path={path} data.schema=FILE (python -m pipeline schema {path} output=FILE)"
    raise UserError(problem, where="data", fix=fix)


def check_tables(config: ScoreConfig) -> dict[str, Path | str]:
    """The tables of a scoring by name (real, synthetic and, where it is given, holdout); they and the schema are there.

    Raises:
        UserError: names the setting or the file, and the way out.
    """
    given = {"real": config.real, "synthetic": config.synthetic, "holdout": config.holdout}
    for name, path in given.items():
        if not path and (name, path) != ("holdout", None):
            raise UserError("no table given", where=name, fix=f"{name}=TABLE")
    if config.schema not in (None, NO_SCHEMA):
        schema_path(config.schema, "schema")
    if not isinstance(config.synthetic, str | Path):
        fix = "synthetic=TABLE, or several: 'synthetic=[a.csv,b.csv]'"
        raise UserError(f"got {config.synthetic!r}", where="synthetic", fix=fix)
    tables = {n: p if is_address(p) else Path(p).expanduser() for n, p in given.items() if p}
    for name, table in tables.items():
        check_lies(table, name)
    check_units(config.units)
    return tables


def check_release(folder: Path | str | None) -> Path:
    """The folder looks like the release of a run; returns its path.

    Raises:
        UserError: none is given, or it does not; names the folder inside that does.
    """
    if not folder:
        raise UserError("no release given", where="from", fix="from=RUN/release")
    folder = as_path(folder, "from", "RUN/release")
    if not (folder / "measurements").is_dir():
        inner = folder / "release"
        fix = f"from={inner}" if (inner / "measurements").is_dir() else "from=RUN/release"
        raise UserError(f"{folder} is not the release folder of a run", where="from", fix=fix)
    return folder


def check_scored(folder: RunFolder) -> None:
    """A run left its scores in the folder.

    Raises:
        UserError: no run there, or one without scores.
    """
    if not folder.root.is_dir():
        raise UserError(
            f"no such folder: {folder.root}", where="report", fix="the folder of a run: report outputs/mine"
        )
    if not folder.scores.is_file():
        inner = folder.root.parent if folder.root.name in {"release", "internal"} else None
        fix = f"report {inner}" if inner is not None else "the folder of a run with evaluation.enabled=true"
        raise UserError(f"no scores in {folder.internal}", where="report", fix=fix)
