"""Tables of databases: read in one transaction that may only read, as texts, in the order of their values.

Every cell is cast to a text by the database, as a CSV file would hold it: no cell decides how others are read. Rows
have no order of their own: the same rows make the same file, whatever order they come in.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mechanisms.public.errors import UserError
from mechanisms.public.tables.checked_query import DRAWN, OWN, Database, StoredTable, checked_query
from mechanisms.public.tables.fetched import SELECT, Address, FetchRoom
from mechanisms.public.tables.inspect_file import SEVERAL_TEXTS
from mechanisms.public.tables.scan import COPIED, Source, literal, quoted_name
from mechanisms.public.tables.unseen import text_of_bytes

#: Rows that a database hands over at a time.
ROWS = 1 << 15
#: SQLite's mark of a function that gives the same for the same.
STEADY = 0x800
#: What PostgreSQL itself says of functions, and of operators and casts that it did not bring: these may do anything,
#: where they are written in a language of rows. Its own that only look up the server's state are as good as drawn.
NOTEWORTHY = f"""
WITH known AS (
    SELECT p.oid, proname::text AS name,
        provolatile = 'v' OR (brought AND provolatile = 's'
            AND proname ~ '^(pg|current|session|inet|txid|has)_|_to_xml') AS drawn,
        NOT brought AND lanname NOT IN ('internal', 'c') AS own
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
        CROSS JOIN LATERAL (SELECT pronamespace = 'pg_catalog'::regnamespace AS brought) AS b
), used AS (
    SELECT name, drawn, own FROM known WHERE name IN ({{listed}})
    UNION ALL
    SELECT 'the operator ' || oprname, drawn, own FROM pg_operator JOIN known ON known.oid = oprcode
    WHERE oprnamespace <> 'pg_catalog'::regnamespace AND position(oprname IN {{text}}) > 0
    UNION ALL
    SELECT 'a cast by ' || name, drawn, own FROM pg_cast JOIN known ON known.oid = castfunc
)
SELECT name, CASE WHEN drawn THEN '{DRAWN}' ELSE '{OWN}' END FROM used WHERE drawn OR own
"""
#: What roles and servers may set, and cells' texts depend on.
ONE_FORM = {"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres", "extra_float_digits": "1"}
ONE_FORM |= {"bytea_output": "hex", "standard_conforming_strings": "on"}
#: Types of PostgreSQL that Arrow has no own type for, of which equal values have one text, as ids are read.
ONE_TEXT = {"numeric", "citext", "uuid", "inet", "cidr", "macaddr", "macaddr8"}
#: What SQLSTATE says, by how it begins.
STATES = {
    "28": ("the database does not let this role in", "the role and its password: PGUSER, PGPASSWORD, ~/.pgpass"),
    "42501": ("this role may not read that", "GRANT SELECT ON … TO its role"),
    "42P01": ("no such table in the database", "its name as the database has it: data.table=SCHEMA.TABLE"),
    "42703": ("the query names a column that is not there", "the names as the database has them"),
    "42": ("the database does not take the query", "try it in the database's own console first"),
    "57014": ("the server stopped the query: it took too long", "a longer statement_timeout for this role"),
    "": ("the connection failed or broke", "check the address, and that the server runs; nothing was spent"),
}


def fetch_sqlite(address: Address, path: Path, room: FetchRoom) -> None:
    """A table, or a query's result, of a SQLite file, as of one moment."""
    given = unquote(address.url.partition("://")[2])
    file = Path(given.removeprefix("/")).expanduser()
    if not given.startswith("/") or not file.is_file():
        fix = "sqlite:///data/clinic.db is a path from here, sqlite:////home/me/clinic.db one from the root"
        raise UserError(f"no such file: {file}", where="data.path", fix=fix)
    with _in_users_words(sqlite3.Error, address, _sqlite_words):
        opened = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, isolation_level=None)
        with closing(opened) as connection:
            connection.text_factory = lambda cell: cell.decode(errors="backslashreplace")  # no cell stops a run
            connection.execute("BEGIN")
            _write(_Sqlite(connection), address, path, room)


def fetch_postgresql(address: Address, path: Path, room: FetchRoom) -> None:
    """A table, or a query's result, of PostgreSQL, as of one moment."""
    from adbc_driver_manager import Error
    from adbc_driver_postgresql import dbapi

    url = "postgresql" + address.url[len(address.scheme) :]
    with _in_users_words(Error, address, _state_words), dbapi.connect(url, autocommit=False) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for name, value in ONE_FORM.items():
                cursor.execute(f"SET LOCAL {name} = {value}")
        _write(_Postgres(connection), address, path, room)


class _Sqlite:
    hidden = frozenset({"rowid", "_rowid_", "oid"})

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def columns(self, query: str) -> list[tuple[str, bool]]:
        return [(d[0], True) for d in self.connection.execute(query).description]

    def texts(self, query: str, names: Sequence[str]) -> Iterator[Any]:
        """The cells of a query as the texts that the database itself writes, and bytes as texts, in Arrow batches."""
        import pyarrow as pa

        cells = []
        for name in map(quoted_name, names):
            # a real's own text has 15 digits, in which two may be one: the shortest that tells it, of 15 and of 17
            whole = (
                f"abs({name}) < 9e18 AND {name} = CAST({name} AS INTEGER) THEN CAST(CAST({name} AS INTEGER) AS TEXT)"
            )
            short = f"CAST(CAST({name} AS TEXT) AS REAL) = {name} THEN CAST({name} AS TEXT)"
            real = f"CASE WHEN {whole} WHEN {short} ELSE printf('%!.17g', {name}) END"
            cells.append(
                f"CASE typeof({name}) WHEN 'real' THEN {real} WHEN 'blob' THEN {name} ELSE CAST({name} AS TEXT) END"
            )
        cursor = self.connection.execute(f"SELECT {', '.join(cells)} FROM (\n{query}\n)")
        while rows := cursor.fetchmany(ROWS):
            columns = ((text_of_bytes(v) if isinstance(v, bytes) else v for v in c) for c in zip(*rows, strict=True))
            yield pa.record_batch([pa.array(c, pa.string()) for c in columns], names=list(names))

    def traits(self, functions: Collection[str], text: str) -> set[tuple[str, str]]:
        listed = ", ".join(map(literal, functions))
        asked = (
            f"SELECT name FROM pragma_function_list WHERE type = 's' AND NOT flags & {STEADY} AND name IN ({listed})"
        )
        return {(str(row[0]), DRAWN) for row in self.connection.execute(asked)}

    def view(self, schema: str, name: str) -> str | None:
        asked = "SELECT sql FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(?)"
        row = self.connection.execute(asked, (name,)).fetchone()
        return None if row is None else re.sub(r"(?is)^create\s.*?\sas\s+", "", row[0], count=1)

    def table(self, schema: str, name: str) -> StoredTable | None:
        """The table of that name, in any letters, with its columns; None where there is none."""
        asked = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        asked += " AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND lower(name) = lower(?)"
        asked = f"SELECT t.name, c.name FROM ({asked}) t"
        asked += " JOIN pragma_table_xinfo(t.name) c ON c.hidden <> 1 ORDER BY c.cid"
        rows = self.connection.execute(asked, (name,)).fetchall()
        if not rows or schema.lower() not in {"", "main"}:
            return None
        casts = {"float": "real", "double": "real"}
        return StoredTable(f"main.{quoted_name(rows[0][0])}", tuple(column for _, column in rows), casts)

    def alike(self, query: str, other: str) -> bool:
        """By the programs that SQLite makes of them: it ranks || above +, and IN beside =."""
        one, two = (self.connection.execute(f"EXPLAIN {q}").fetchall() for q in (query, other))
        return one == two


class _Postgres:
    """The same of PostgreSQL."""

    hidden = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def columns(self, query: str) -> list[tuple[str, bool]]:
        from pyarrow import types

        plain = [types.is_string, types.is_integer, types.is_floating, types.is_boolean, types.is_binary]
        plain += [types.is_date, types.is_time, types.is_timestamp]
        with self.connection.cursor() as cursor:
            fields = [*cursor.adbc_execute_schema(query)]
        kinds = [(f, (f.metadata or {}).get(b"POSTGRESQL:type", b"").decode()) for f in fields]
        return [(f.name, kind in ONE_TEXT or any(is_one(f.type) for is_one in plain)) for f, kind in kinds]

    def texts(self, query: str, names: Sequence[str]) -> Iterator[Any]:
        cells = ", ".join(f"{name}::text AS {name}" for name in map(quoted_name, names))
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {cells} FROM (\n{query}\n) AS asked")
            yield from cursor.fetch_record_batch()

    def traits(self, functions: Collection[str], text: str) -> set[tuple[str, str]]:
        """The same; of an operator or a cast what is known of its function, wherever its sign stands in the text."""
        listed = ", ".join(map(literal, ("", *functions)))
        with self.connection.cursor() as cursor:
            cursor.execute(NOTEWORTHY.format(listed=listed, text=literal(text.lower())))
            return {(str(name), str(trait)) for name, trait in cursor.fetchall()}

    def view(self, schema: str, name: str) -> str | None:
        for word in (name, name.lower()):  # a name without quotes is in small letters
            path = ".".join(quoted_name(w) for w in (schema, word) if w)
            asked = "SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind IN ('v', 'm')"
            asked += f" AND oid = to_regclass({literal(path)})"
            for (view,) in self._rows(asked):
                return view
        return None

    def table(self, schema: str, name: str) -> StoredTable | None:
        """The same; a name stands for itself and, as without quotes, for its small letters."""
        own = "relkind IN ('r', 'p') AND NOT relrowsecurity"
        own += " AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')"
        paths = {".".join(quoted_name(w) for w in (schema, word) if w) for word in (name, name.lower())}
        places = ", ".join(f"to_regclass({literal(path)})" for path in sorted(paths))
        columns = self._rows(
            "SELECT format('%I.%I', relnamespace::regnamespace::text, relname), attname FROM pg_attribute"
            f" JOIN pg_class c ON c.oid = attrelid AND {own} WHERE attrelid IN ({places}) AND attnum > 0"
            " AND NOT attisdropped ORDER BY attnum"
        )
        if len({place for place, _ in columns}) != 1:
            return None
        return StoredTable(columns[0][0], tuple(column for _, column in columns), {"double": "double precision"})

    def alike(self, query: str, other: str) -> bool:
        """PostgreSQL ranks operators as the parser does that checks."""
        return True

    def _rows(self, asked: str) -> list[tuple[str, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(asked)
            return [*cursor.fetchall()]


def _write(database: Database, address: Address, path: Path, room: FetchRoom) -> None:
    """The rows as Parquet, in the order of their values: the same rows are the same bytes."""
    import pyarrow as pa

    faults: list[Exception] = []
    source = Source(path, (), room.folder, room.memory_limit_bytes, threads=1)  # bytes depend on threads
    query = _query(address.inner)
    if not _is_select(address.inner):
        database.columns(query)  # a name that is not there gets the database's own words
    query = checked_query(query, database, source, promised=room.promised)
    columns = database.columns(query)
    names, several = [name for name, _ in columns], [name for name, one in columns if not one]
    if len({name.lower() for name in names}) < len(names) or not names:
        fix = "SELECT … AS NAME gives each a name of its own"
        raise UserError("the query names columns twice, but for capitals, or none", where="data.query", fix=fix)

    def batches() -> Iterator[Any]:
        try:
            yield from database.texts(query, names)
        except Exception as error:
            faults.append(error)
            raise

    reader = pa.RecordBatchReader.from_batches(pa.schema([(n, pa.string()) for n in names]), batches())
    try:
        with source.connect() as engine:
            engine.register("fetched", reader)
            more = f", KV_METADATA {{{SEVERAL_TEXTS}: {literal(json.dumps(several))}}}" if several else ""
            rows, file = "SELECT * FROM fetched ORDER BY ALL", literal(str(path))
            engine.execute(f"COPY ({rows}) TO {file} (FORMAT parquet, {COPIED}{more})")
    except Exception:
        if faults:  # the engine's own message wraps the driver's, which may quote a row
            raise faults[0] from None
        raise


def _query(asked: str) -> str:
    """The SELECT that is meant by a query or the name of a table."""
    if _is_select(asked):
        return asked.rstrip().rstrip(";")
    return f"SELECT * FROM {'.'.join(quoted_name(w.strip(chr(34))) for w in asked.split('.'))}"


def _is_select(asked: str) -> bool:
    return bool(SELECT.match(asked) and re.search(r"\s", asked))


@contextmanager
def _in_users_words(kind: type[Exception], address: Address, words: Callable[[Any], tuple[str, str]]) -> Iterator[None]:
    """The driver's errors in the user's words: its own may quote a row."""
    try:
        yield
    except (kind, OSError) as error:  # of a stream, an OSError holds the driver's message
        problem, fix = words(error)
        raise UserError(problem, where=address.url.partition("?")[0], fix=fix) from None


def _state_words(error: Exception) -> tuple[str, str]:
    state = getattr(error, "sqlstate", None) or next(iter(re.findall(r"SQLSTATE: (\w{5})", str(error))), "")
    match = re.search(r"Failed to connect: (.*)", str(error))
    if not state and "ERROR:" in str(error) and "terminating connection" not in str(error):
        return "the query fails on one of its rows", "try it in the database's own console; nothing was spent"
    problem, fix = next(w for begin, w in STATES.items() if state.startswith(begin))
    if match and re.search("invalid|missing|unexpected|parse", match[1]):  # it quotes parts of the address
        return f"{problem}: the driver cannot read the address", fix
    return (f"{problem}: {match[1][:300]}" if match else problem), fix


def _sqlite_words(error: Exception) -> tuple[str, str]:
    code = getattr(error, "sqlite_errorname", "") or type(error).__name__
    absent = next(iter(re.findall(r"no such (table|column|function)", str(error))), "")
    if absent:
        return f"no such {absent} in the database", "the name as the database has it; `sqlite3 FILE .schema` shows all"
    causes = {"SQLITE_NOTADB": "this is no SQLite file", "SQLITE_BUSY": "another program is writing this database"}
    return causes.get(code, "SQLite does not take it"), "try the query in sqlite3; nothing was spent"
