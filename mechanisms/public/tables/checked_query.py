"""A query of a database is one SELECT: the same rows whenever it is asked, each of them made of one row of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Protocol

from mechanisms.public.errors import UserError
from mechanisms.public.tables.rewritten_query import SIGNS, StoredTable, mixes, rewritten
from mechanisms.public.tables.scan import Source

#: What depends on the day or on who asks: names without brackets; and texts that databases take for times.
CLOCKS = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
ASKERS = {"current_user", "session_user", "current_role", "current_catalog", "current_schema"}
NOW = {"now", "today", "tomorrow", "yesterday"}
#: Words that stand beside these in such a text.
OF_TIMES = {"allballs", "z", "utc", "gmt", "am", "pm", "t"}
#: Functions that ask the clock or the server's state, with fewer arguments than this.
ASK_CLOCK = {
    **dict.fromkeys(("now", "transaction_timestamp", "statement_timestamp", "get_current_timestamp", *CLOCKS), 99),
    **dict.fromkeys(("txid_current", "txid_current_snapshot", "pg_current_xact_id", "pg_current_snapshot"), 99),
    **dict.fromkeys(("pg_backend_pid", "pg_postmaster_start_time", "pg_conf_load_time", *ASKERS), 99),
    **dict.fromkeys(("date", "time", "datetime", "julianday", "unixepoch"), 1),
    **dict.fromkeys(("age", "strftime"), 2),
}
#: SQLite's word for now, with parts of seconds, where a time is to stand.
SUBSECOND = {"subsec", "subsecond"}
#: What a database says of a function: it may give another value each time; or its users wrote it, and nobody knows
#: what it reads.
DRAWN, OWN = "drawn", "own"


class Database(Protocol):
    """What is asked of an open database; `hidden` are columns that say where a row lies, and since when."""

    hidden: frozenset[str]

    def traits(self, functions: Collection[str], text: str) -> set[tuple[str, str]]:
        """What is noteworthy of the functions, by name, and of operators in the text."""

    def view(self, schema: str, name: str) -> str | None:
        """The query that a view stands for; None for a table."""

    def table(self, schema: str, name: str) -> StoredTable | None:
        """A table of the users'; None for a view, for one of the database's own, and where several have the name."""

    def alike(self, query: str, other: str) -> bool:
        """Whether the database reads two queries alike, where its grammar ranks operators in an order of its own."""


def checked_query(query: str, database: Database, source: Source, *, promised: bool) -> str:
    """The query to ask: its rows are the same whenever it is asked, and none pushes another out.

    The views that it reads are held to this. Where something is promised, it is written anew, and each row is made of
    one row of one table.

    Args:
        promised: something is promised about its rows, and the curator does not state whose they are.
    Raises:
        UserError: names what may not stand in it, and the view where it does.
    """
    waiting, seen = [(query, "data.query")], {query}
    while waiting:
        text, where = waiting.pop()
        tree = _parsed(text, source, where)
        nodes = [*_nodes(tree)]
        for node in nodes:
            if reason := _unsteady(node, database.hidden):
                _refuse_unsteady(reason, where)
            if node.get("type") == "BASE_TABLE":
                schema, table = node.get("schema_name") or "", node["table_name"]
                view = database.view(schema, table)
                if view is not None and view not in seen:
                    seen.add(view)
                    waiting.append((view.rstrip().rstrip(";"), f"the view {table}"))
        traits = _traits(nodes, database, text)
        if found := [name for name, trait in traits if trait == DRAWN]:
            _refuse_unsteady(", ".join(sorted(set(found))), where)
        if where == "data.query" and promised:
            query = rewritten(tree["statements"][0]["node"], database.table)
            for name in sorted(name for name, trait in traits | database.traits((), SIGNS) if trait == OWN):
                raise mixes(f"{name}, whose text nobody here knows")
            if not database.alike(text, query):
                fix = "brackets around each part; CASE WHEN a = 1 for CASE a WHEN 1, a = 1 for a IS TRUE"
                problem = "the database reads it in another order than it was checked in"
                raise UserError(problem, where=where, fix=f"{fix}; as it was checked: {query}")
    return query


def _traits(nodes: list[dict[str, Any]], database: Database, text: str) -> set[tuple[str, str]]:
    """What is noteworthy of the functions and operators of a query."""
    used = {
        (str(node["function_name"]).lower().removesuffix("_star"), len(node.get("arguments") or ()))
        for node in nodes
        if node.get("function_name")
    }
    clocks = {(name, DRAWN) for name, n in used if n < ASK_CLOCK.get(name, 0)}
    return clocks | database.traits({name for name, _ in used}, text)


def _refuse_unsteady(reason: str, where: str) -> None:
    fix = "WHERE with fixed values (day < '2026-11-01') chooses rows; what chance, the clock or the server chose: "
    raise UserError(f"not the same rows every time: {reason}", where=where, fix=f"{fix}store it in a table")


def _unsteady(node: dict[str, Any], hidden: Collection[str]) -> str:
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
    if (len(named) == 1 and named[0] in CLOCKS | ASKERS) or (named and named[-1] in hidden):
        return named[-1]
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
