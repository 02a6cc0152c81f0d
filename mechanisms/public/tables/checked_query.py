"""A query of a database is one SELECT: the same rows whenever it is asked, each of them of one unit alone."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Protocol

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import Source

#: One row is the unit.
RECORD = "record"
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
#: What a database says of a function: it may give another value each time; its one value is of several rows; several
#: rows are made of one; or its text is the database's own, and nobody knows what it reads.
DRAWN, SEVERAL, MORE, OWN = "drawn", "several", "more", "own"


class Database(Protocol):
    """What is asked of an open database; `hidden` are columns that say where a row lies, and since when."""

    hidden: frozenset[str]

    def traits(self, functions: Collection[tuple[str, int]], text: str) -> set[tuple[str, str]]:
        """What is noteworthy of the functions, by name and number of arguments, and of operators in the text."""

    def view(self, schema: str, name: str) -> str | None:
        """The query that a view stands for; None for a table."""


def check_query(query: str, database: Database, source: Source, own: str | None) -> None:
    """Its rows are the same whenever it is asked, none pushes another out, and each is made of one unit's rows.

    The views that it reads are held to the same.

    Args:
        own: the column that names the unit, or RECORD; None: nobody is promised anything, or the curator states it.
    Raises:
        UserError: names what may not stand in it, and the view where it does.
    """
    waiting, seen = [(query, "data.query")], {query}
    by_unit: list[bool] = []
    renamed: list[str] = []
    while waiting:
        text, where = waiting.pop()
        nodes = [*_nodes(_parsed(text, source, where))]
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
        if own is not None:
            told = {trait: {n for n, t in traits if t == trait} for trait in (SEVERAL, MORE, OWN)}
            reasons = [_mixed(node, own, told[SEVERAL]) for node in nodes]
            reasons += [f"{n}, whose text nobody here knows" for n in sorted(told[OWN])]
            reasons += [f"{n}, which makes several rows of one" for n in sorted(told[MORE]) if own == RECORD]
            _refuse_mixed(next(filter(None, reasons), ""), own, where)
            by_unit += [r is None for r in reasons]
            renamed += [f"{own} is another column's name" for node in nodes if own != RECORD and _renames(node, own)]
    if own is not None and any(by_unit):
        _refuse_mixed(next(iter(renamed), ""), own, "data.query")


def _traits(nodes: list[dict[str, Any]], database: Database, text: str) -> set[tuple[str, str]]:
    """What is noteworthy of the functions and operators of a query."""
    used = {
        (str(node["function_name"]).lower().removesuffix("_star"), len(node.get("arguments") or ()))
        for node in nodes
        if node.get("function_name")
    }
    clocks = {(name, DRAWN) for name, n in used if n < ASK_CLOCK.get(name, 0)}
    return clocks | database.traits(used, text)


def _refuse_unsteady(reason: str, where: str) -> None:
    fix = "WHERE with fixed values (day < '2026-11-01') chooses rows; what chance, the clock or the server chose: "
    raise UserError(f"not the same rows every time: {reason}", where=where, fix=f"{fix}store it in a table")


def _refuse_mixed(reason: str, own: str, where: str) -> None:
    """A row of the result that is nobody's own: a promise about it would protect nobody."""
    if not reason:
        return
    one, by = (
        ("record", "name the unit's column")
        if own == RECORD
        else (f"one {own!r}", f"GROUP BY, PARTITION BY, JOIN … USING ({own})")
    )
    fix = f"the rows as they are, or by the unit ({by}); or data.rows_of_one_unit=true: you say, and the statement "
    fix += f"says, that each row comes from one {one.removeprefix('one ')} and public tables alone"
    raise UserError(
        f"a row may be made of the rows of several, or one row makes several: {reason}", where=where, fix=fix
    )


def _mixed(node: dict[str, Any], own: str, several: Collection[str]) -> str | None:
    """What in a node may make one row of several units' rows; None: it joins or groups rows, of one unit; or empty."""
    kind = node.get("type")
    if node.get("class") == "WINDOW":
        by = any(_is_unit(p, own) for p in node.get("partitions") or ())
        return None if by else f"{node['function_name']}() OVER"
    if node.get("class") == "SUBQUERY":
        return "a subquery among expressions"
    if kind == "SELECT_NODE":
        groups, sets = node.get("group_expressions") or [], node.get("group_sets") or []
        at = {i for i, g in enumerate(groups) if _is_unit(g, own)}
        if groups or node.get("aggregate_handling") != "STANDARD_HANDLING":
            return None if at and all(at & {*s} for s in sets) else "GROUP BY"
        parts = [v for k, v in node.items() if k not in {"from_table", "cte_map"}]
        used = {
            str(n.get("function_name")).lower().removesuffix("_star")
            for n in _nodes(parts)
            if n.get("class") == "FUNCTION"
        }
        return f"{min(used & {*several})}() over all rows" if used & {*several} else ""
    if kind == "JOIN":
        using = {str(n).lower() for n in node.get("using_columns") or ()}
        return None if own.lower() in using or _joins_by(node.get("condition"), own) else "a join"
    if kind in {"SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"}:
        return str(node.get("setop_type") or "WITH RECURSIVE") if own == RECORD else ""
    return ""


def _is_unit(node: Any, own: str) -> bool:
    """Whether an expression is the column that names the unit."""
    names = (node.get("column_names") if isinstance(node, dict) and node.get("class") == "COLUMN_REF" else None) or [""]
    return own != RECORD and str(names[-1]).lower() == own.lower()


def _joins_by(condition: Any, own: str) -> bool:
    """Whether rows are joined only where both have the same unit."""
    if not isinstance(condition, dict):
        return False
    if condition.get("type") == "CONJUNCTION_AND":
        return any(_joins_by(child, own) for child in condition["children"])
    same = condition.get("type") == "COMPARE_EQUAL"
    return same and all(_is_unit(condition[side], own) for side in ("left", "right"))


def _renames(node: dict[str, Any], own: str) -> bool:
    """Whether another column may get the unit's name here."""
    given = [str(a).lower() for k in ("column_name_alias", "aliases") for a in node.get(k) or ()]
    alias = str(node.get("alias") or "").lower() == own.lower() and "class" in node and not _is_unit(node, own)
    return alias or own.lower() in given or node.get("type") in {"SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"}


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
