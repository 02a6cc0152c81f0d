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
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from mechanisms.public.errors import UserError
from mechanisms.public.tables.fetched import SELECT, Address, FetchRoom, is_address
from mechanisms.public.tables.scan import COPIED, Source, literal

#: Rows that a database hands over at a time.
ROWS = 1 << 15
#: What depends on the day on which it is asked: names without brackets, and texts that databases take for times.
CLOCKS = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
NOW = {"now", "today", "tomorrow", "yesterday"}
#: Words that stand beside these in such a text.
OF_TIMES = {"allballs", "z", "utc", "gmt", "am", "pm", "t"}
#: Functions that ask the clock or the server's state, with fewer arguments than this.
ASK_CLOCK = {
    **dict.fromkeys(("now", "transaction_timestamp", "statement_timestamp", "get_current_timestamp", *CLOCKS), 99),
    **dict.fromkeys(("txid_current", "txid_current_snapshot", "pg_current_xact_id", "pg_current_snapshot"), 99),
    **dict.fromkeys(("pg_backend_pid", "pg_postmaster_start_time", "pg_conf_load_time"), 99),
    **dict.fromkeys(("date", "time", "datetime", "julianday", "unixepoch"), 1),
    **dict.fromkeys(("age", "strftime"), 2),
}
#: SQLite's word for now, with parts of seconds, where a time is to stand.
SUBSECOND = {"subsec", "subsecond"}
#: SQLite's mark of a function that gives the same for the same.
STEADY = 0x800
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
    with _told(sqlite3.Error, address, _sqlite_words):
        opened = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, isolation_level=None)
        with closing(opened) as connection:
            connection.text_factory = lambda cell: cell.decode(errors="replace")  # a cell stops nobody's run
            connection.execute("BEGIN")
            _write(_Sqlite(connection), address, path, room)


def fetch_postgresql(address: Address, path: Path, room: FetchRoom) -> None:
    """A table, or a query's result, of PostgreSQL, as of one moment."""
    from adbc_driver_manager import Error
    from adbc_driver_postgresql import dbapi

    url = "postgresql" + address.url[len(address.scheme) :]
    with _told(Error, address, _state_words), dbapi.connect(url, autocommit=False) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL TimeZone = 'UTC'")
            cursor.execute("SET LOCAL DateStyle = 'ISO'")
        _write(_Postgres(connection), address, path, room)


class _Sqlite:
    """What is asked of an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def names(self, query: str) -> list[str]:
        """The columns of the result."""
        return [d[0] for d in self.connection.execute(query).description]

    def texts(self, query: str, names: Sequence[str]) -> Iterator[Any]:
        """The result as Arrow record batches of texts."""
        import pyarrow as pa

        cells = []
        for name in map(_named, names):
            whole = f"typeof({name}) = 'real' AND abs({name}) < 1e15 AND {name} = CAST({name} AS INTEGER)"
            cells.append(f"CAST(CASE WHEN {whole} THEN CAST({name} AS INTEGER) ELSE {name} END AS TEXT)")
        cursor = self.connection.execute(f"SELECT {', '.join(cells)} FROM (\n{query}\n)")
        while rows := cursor.fetchmany(ROWS):
            yield pa.record_batch([pa.array(c, pa.string()) for c in zip(*rows, strict=True)], names=list(names))

    def volatile(self, functions: Collection[str]) -> list[str]:
        """Those that the database itself says may give another value each time."""
        listed = ", ".join(map(literal, functions))
        asked = f"SELECT DISTINCT name FROM pragma_function_list WHERE NOT flags & {STEADY} AND type = 's'"
        return [name for (name,) in self.connection.execute(f"{asked} AND name IN ({listed})")]

    def view(self, schema: str, name: str) -> str | None:
        """The query that a view stands for; None for a table."""
        asked = "SELECT sql FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(?)"
        found = self.connection.execute(asked, (name,)).fetchone()
        return None if found is None else re.sub(r"(?is)^create\s.*?\sas\s+", "", found[0], count=1)


class _Postgres:
    """The same of PostgreSQL."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def names(self, query: str) -> list[str]:
        with self.connection.cursor() as cursor:
            return list(cursor.adbc_execute_schema(query).names)

    def texts(self, query: str, names: Sequence[str]) -> Iterator[Any]:
        cells = ", ".join(f"{name}::text AS {name}" for name in map(_named, names))
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {cells} FROM (\n{query}\n) AS asked")
            yield from cursor.fetch_record_batch()

    def volatile(self, functions: Collection[str]) -> list[str]:
        listed = ", ".join(map(literal, functions))
        return self._first(f"SELECT proname::text FROM pg_proc WHERE provolatile = 'v' AND proname IN ({listed})")

    def view(self, schema: str, name: str) -> str | None:
        for word in (name, name.lower()):  # a name without quotes is in small letters
            path = ".".join(_named(w) for w in (schema, word) if w)
            asked = (
                f"SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid = to_regclass({literal(path)})"
            )
            for view in self._first(asked):
                return view
        return None

    def _first(self, asked: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(asked)
            return [row[0] for row in cursor.fetchall()]


Database: TypeAlias = "_Sqlite | _Postgres"


def _write(database: Database, address: Address, path: Path, room: FetchRoom) -> None:
    """The rows as Parquet, in the order of their values: the same rows are the same bytes."""
    import pyarrow as pa

    query = _query(address.wanted)
    faults: list[Exception] = []
    source = Source(path, (), (), "", room.folder, room.memory_limit_bytes, threads=1)  # bytes depend on threads
    check_query(query, database, source)
    names = database.names(query)
    if len(set(names)) < len(names) or not names:
        fix = "SELECT … AS NAME gives each a name of its own"
        raise UserError("the query names columns twice, or none", where="data.query", fix=fix)

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
            engine.execute(
                f"COPY (SELECT * FROM fetched ORDER BY ALL) TO {literal(str(path))} (FORMAT parquet, {COPIED})"
            )
    except Exception:
        if faults:  # the engine's own message wraps the driver's, which may quote a row
            raise faults[0] from None
        raise


def _query(wanted: str) -> str:
    """The SELECT that is meant by a query or the name of a table."""
    if SELECT.match(wanted) and re.search(r"\s", wanted):
        return wanted.rstrip().rstrip(";")
    return f"SELECT * FROM {'.'.join(_named(w.strip(chr(34))) for w in wanted.split('.'))}"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_query(query: str, database: Database, source: Source) -> None:
    """It is one SELECT that gives the same rows whenever it is asked, and whose rows no other row pushes out.

    The views that it reads are held to the same.

    Raises:
        UserError: names what may not stand in it, and the view where it does.
    """
    waiting, seen = [(query, "data.query")], {query}
    while waiting:
        text, where = waiting.pop()
        functions: dict[str, int] = {}
        for node in _nodes(_parsed(text, source, where)):
            if reason := _unsteady(node):
                fix = "WHERE with fixed values chooses rows; what chance or the clock chose: store it in a table"
                raise UserError(f"not the same rows every time: {reason}", where=where, fix=fix)
            if isinstance(name := node.get("function_name"), str):
                functions[name.lower()] = len(node.get("arguments") or ())
            if node.get("type") == "BASE_TABLE":
                schema, table = node.get("schema_name") or "", node["table_name"]
                view = database.view(schema, table)
                if view is not None and view not in seen:
                    seen.add(view)
                    waiting.append((view.rstrip().rstrip(";"), f"the view {table}"))
        found = database.volatile(functions) if functions else []
        found += [f for f, n in functions.items() if n < ASK_CLOCK.get(f, 0)]
        if found:
            fix = "fixed values in place of what is drawn or depends on the day: day < '2026-11-01'"
            raise UserError(f"not the same rows every time: {', '.join(sorted(set(found)))}", where=where, fix=fix)


def _unsteady(node: dict[str, Any]) -> str:
    """What in a node of a query makes its rows depend on chance, on the day, or on which other rows there are."""
    kind = str(node.get("type") or "")
    if kind.startswith("LIMIT"):
        return "LIMIT (one row more pushes another out, which no guarantee covers)"
    if node.get("sample"):
        return "a sample"
    if kind.endswith("_QUERY_NODE"):
        return "it writes"
    if node.get("distinct_on_targets"):
        return "DISTINCT ON (one row more pushes another out, which no guarantee covers)"
    named = [str(n).lower() for n in node.get("column_names") or ()]
    if len(named) == 1 and named[0] in CLOCKS:
        return named[0]
    cast = str((node.get("type_expr") or {}).get("type_name") or "").lower().startswith(("date", "time"))
    name = str(node.get("function_name")).lower()
    given = [node.get("child")] if cast else [a.get("expression") for a in node.get("arguments") or ()]
    if cast or name in ASK_CLOCK:
        time = next((_text(g) for g in given[name == "strftime" :]), None)
        if set(re.findall("[a-z]+", str(time).lower())) & (NOW | SUBSECOND):
            return repr(time)
    words = set(re.findall(r"\w*[^\W\d]\w*", str(_text(node)).lower()))
    return repr(_text(node)) if words & NOW and words <= NOW | OF_TIMES else ""


def _text(node: Any) -> str | None:
    """A text that is written in the query."""
    value = node.get("literal") if isinstance(node, dict) else None
    return str(value["text"]) if isinstance(value, dict) and value.get("kind") == "STRING" else None


def mixes_rows(location: str, source: Source) -> bool:
    """Whether an address ends in a query whose rows may be made of several rows: groups, windows, joins."""
    query = location.partition("#")[2].strip()
    if not is_address(location) or not SELECT.match(query):
        return False
    return any(
        node.get("group_expressions") or node.get("class") == "WINDOW" or node.get("type") == "JOIN"
        for node in _nodes(_parsed(query.rstrip(";"), source, "data.query"))
    )


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a parsed query."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _parsed(text: str, source: Source, where: str) -> Any:
    """The query as the engine's own parser reads it; it knows one SELECT from all else."""
    with source.connect() as engine:
        tree = json.loads(engine.execute("SELECT json_serialize_sql(?)", [text]).fetchone()[0])
    if tree["error"] or len(tree["statements"]) != 1:
        unread = tree["error"] and tree["error_type"] == "parser"
        problem = tree["error_message"] if unread else "it is another statement, or several"
        fix = "one SELECT; of words that only this database knows, make a table in it, and name that: data.table="
        raise UserError(f"is no query that can be checked: {problem}", where=where, fix=fix)
    return tree


@contextmanager
def _told(kind: type[Exception], address: Address, words: Callable[[Any], tuple[str, str]]) -> Iterator[None]:
    """The driver's errors in the user's words: its own may quote a row."""
    try:
        yield
    except (kind, OSError) as error:  # of a stream, an OSError holds the driver's message
        problem, fix = words(error)
        raise UserError(problem, where=address.url.partition("?")[0], fix=fix) from None


def _state_words(error: Exception) -> tuple[str, str]:
    state = getattr(error, "sqlstate", None) or next(iter(re.findall(r"SQLSTATE: (\w{5})", str(error))), "")
    said = re.search(r"Failed to connect: (.*)", str(error))
    if not state and "ERROR:" in str(error) and "terminating connection" not in str(error):
        return "the query fails on one of its rows", "try it in the database's own console; nothing was spent"
    problem, fix = next(w for begin, w in STATES.items() if state.startswith(begin))
    if said and re.search("invalid|missing|unexpected|parse", said[1]):  # it quotes parts of the address
        return f"{problem}: the driver cannot read the address", fix
    return (f"{problem}: {said[1][:300]}" if said else problem), fix


def _sqlite_words(error: Exception) -> tuple[str, str]:
    code = getattr(error, "sqlite_errorname", "") or type(error).__name__
    absent = next(iter(re.findall(r"no such (table|column|function)", str(error))), "")
    if absent:
        return f"no such {absent} in the database", "the name as the database has it; `sqlite3 FILE .schema` shows all"
    known = {"SQLITE_NOTADB": "this is no SQLite file", "SQLITE_BUSY": "another program is writing this database"}
    return known.get(code, f"cannot be read ({code})"), "try the query in sqlite3 first; nothing was spent"
