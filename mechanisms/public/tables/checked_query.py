"""A query of a database is one SELECT: the same rows whenever it is asked, each of them made of one row of a table.

Two grammars, this engine's and the database's, read a text differently: so, where something is promised, the database
gets none that a user wrote, but names of its own columns in quotes, numbers, texts, and the operators and functions
listed here, each known to read one row of one table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import Source, literal, quoted_name

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
#: A part of a query, as the engine's parser reads it.
Node: TypeAlias = Mapping[str, Any]
#: Operators of two sides, as the engine's parser calls them.
BETWEEN_SIDES = {
    **{sign: sign for sign in ("+", "-", "*", "/", "%", "||")},
    "~~": "LIKE",
    "!~~": "NOT LIKE",
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
    "CONJUNCTION_AND": "AND",
    "CONJUNCTION_OR": "OR",
}
#: What stands around parts, by the engine's parser's names; a sign of one side stands before it.
AROUND = {
    "OPERATOR_NOT": "(NOT {0})",
    "OPERATOR_IS_NULL": "({0} IS NULL)",
    "OPERATOR_IS_NOT_NULL": "({0} IS NOT NULL)",
    "OPERATOR_COALESCE": "coalesce({parts})",
    "COMPARE_IN": "({0} IN ({others}))",
    "COMPARE_NOT_IN": "({0} NOT IN ({others}))",
    "COMPARE_BETWEEN": "({0} BETWEEN {1} AND {2})",
    **{sign: f"({sign} {{0}})" for sign in "+-"},
}
#: The operators that any part may stand for: IN and nullif compare too.
SIGNS = "+ - * / % || ~~ !~~ = <> < > <= >="
#: Functions that read one row, and no clock.
OF_ONE_ROW = {
    *("lower", "upper", "trim", "ltrim", "rtrim", "replace", "substr", "substring", "length", "abs", "round"),
    *("nullif", "ifnull"),
}
#: Types of numbers and texts: a text that is cast to a time may be the word `now`.
TYPES = {
    *("integer", "int", "int4", "int8", "bigint", "smallint", "float4", "float8", "decimal", "numeric"),
    *("varchar", "text", "string", "bool", "boolean"),
}
#: Parts of a SELECT that are read here; all others are empty.
PARTS = {"select_list", "where_clause", "from_table", "aggregate_handling", "type", "query_location"}
FIX = (
    "columns of one table, and WHERE, each of its own row (comparisons, arithmetic, CASE, lower, substr, …); or "
    "data.rows_of_one_unit=true: you say, and the statement says, that each row comes from one record, or one unit, "
    "and public tables alone"
)


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

    def columns(self, query: str) -> list[tuple[str, bool]]:
        """The columns of the result, and whether equal values of each have one text."""

    def texts(self, query: str, names: Sequence[str]) -> Iterator[Any]:
        """The result as Arrow record batches of texts."""


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
        if drawn := [name for name, trait in traits if trait == DRAWN]:
            _refuse_unsteady(", ".join(sorted(set(drawn))), where)
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


@dataclass(frozen=True)
class StoredTable:
    """A table of a database's users.

    Attributes:
        place: its name in quotes, as the database reads it.
        columns: their names.
        casts: more types, as the engine's parser calls them, and as the database does.
    """

    place: str
    columns: tuple[str, ...]
    casts: Mapping[str, str]


def rewritten(select: Node, table: Callable[[str, str], StoredTable | None]) -> str:
    """The SELECT, each row of which is made of one row of one table.

    Args:
        select: as the engine's parser reads it.
        table: of a schema (empty: none is named) and a name; None for a view, and where it is not the users' own.
    Raises:
        UserError: a part that is not known to read the row that it stands in alone; names it.
    """
    if select.get("type") != "SELECT_NODE":
        raise mixes(str(select.get("setop_type") or select.get("type")))
    source = select.get("from_table") or {}
    if source.get("type") != "BASE_TABLE":
        raise mixes(f"FROM {str(source.get('type') or 'nothing').lower().replace('_', ' ')}, not one table")
    resolved = table(source.get("schema_name") or "", source["table_name"])
    if resolved is None:
        raise mixes(f"{source['table_name']}: no table, a view, the system's, one with row security, or several alike")
    grouped = select.get("group_expressions") or select.get("group_sets")
    if grouped or select["aggregate_handling"] != "STANDARD_HANDLING":
        raise mixes("GROUP BY")
    for part, given in select.items():
        if part not in PARTS and given and not (part == "cte_map" and not given.get("map")):
            raise mixes({"modifiers": "DISTINCT or ORDER BY", "cte_map": "WITH"}.get(part, part.upper()))
    if source.get("column_name_alias") or source.get("catalog_name") or source.get("at_clause"):
        raise mixes("FROM with other names, another database or a time")
    words = (source["table_name"], source.get("alias"), source.get("schema_name"))
    writer = _Writer(resolved, frozenset(str(w).lower() for w in words if w))
    cells = ", ".join(writer.cell(node) for node in select["select_list"])
    where = "" if select["where_clause"] is None else f" WHERE {writer.text(select['where_clause'])}"
    return f"SELECT {cells} FROM {resolved.place}{where}"


def mixes(reason: str) -> UserError:
    """A row of the result that is nobody's own: a promise about it would protect nobody."""
    problem = f"a row may be made of the rows of several, or one row makes several: {reason}"
    return UserError(problem, where="data.query", fix=FIX)


@dataclass(frozen=True)
class _Writer:
    table: StoredTable
    prefixes: frozenset[str]

    def cell(self, node: Node) -> str:
        """A column of the result, with its name."""
        if node["class"] == "STAR":
            if any(node.get(part) for part in node if part.endswith("list") or part in ("columns", "expr")):
                raise mixes("a * with words of its own")
            return ", ".join(map(quoted_name, self.table.columns))
        name = node.get("alias") or (self._column(node) if node["class"] == "COLUMN_REF" else "")
        if not name:
            raise UserError("a column without a name", where="data.query", fix="SELECT … AS NAME gives it one")
        return f"{self.text(node)} AS {quoted_name(name)}"

    def text(self, node: Node) -> str:
        """An expression."""
        write = _WRITERS.get(node["class"])
        if write is None:
            windows = {"WINDOW": f"{node.get('function_name')}() OVER", "SUBQUERY": "a subquery"}
            raise mixes(windows.get(str(node["class"]), str(node["class"]).lower()))
        return write(self, node)

    def _column(self, node: Node) -> str:
        *before, name = (str(n) for n in node["column_names"])
        alike = [c for c in self.table.columns if c.lower() == name.lower()]
        if len(alike) != 1 or not {n.lower() for n in before} <= self.prefixes:
            raise mixes(f"{'.'.join((*before, name)).lower()}, no column of the table, or several but for capitals")
        return alike[0]

    def column(self, node: Node) -> str:
        """A column of the table."""
        return quoted_name(self._column(node))

    def constant(self, node: Node) -> str:
        """A number, a text, true, false or NULL."""
        kind, text = node["literal"]["kind"], str(node["literal"]["text"])
        if kind == "STRING":
            return literal(text)
        if kind in ("INTEGER", "NUMERIC") and re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII | re.I):
            return f"({text})"
        literal_text = {"NULL_LITERAL": "NULL", "BOOLEAN": {"true": "TRUE", "false": "FALSE"}.get(text)}.get(kind)
        if literal_text is None:
            raise mixes(f"the constant {text}")
        return literal_text

    def operation(self, node: Node) -> str:
        """A sign between parts, or what the engine's parser calls an operator: NOT, IS NULL, IN, BETWEEN, coalesce."""
        given = node.get("children") or [node[k] for k in ("left", "right", "input", "lower", "upper") if k in node]
        return self.written(str(node["type"]), given)

    def written(self, kind: str, nodes: Sequence[Node]) -> str:
        """Parts with what stands between and around them."""
        parts = [self.text(n) for n in nodes]
        if kind in BETWEEN_SIDES and len(parts) > 1:
            return f"({f' {BETWEEN_SIDES[kind]} '.join(parts)})"
        if kind not in AROUND or not parts:
            raise mixes(kind.lower().replace("_", " "))
        return AROUND[kind].format(*parts, parts=", ".join(parts), others=", ".join(parts[1:]))

    def case(self, node: Node) -> str:
        """A choice by conditions."""
        checks = (f"WHEN {self.text(c['when_expr'])} THEN {self.text(c['then_expr'])}" for c in node["case_checks"])
        return f"(CASE {' '.join(checks)} ELSE {self.text(node['else_expr'])} END)"

    def cast(self, node: Node) -> str:
        """A cast to a number or a text, of so many digits or letters."""
        kind = node.get("type_expr") or {}
        name, sizes = str(kind.get("type_name") or "").lower(), [self.text(c) for c in kind.get("children") or ()]
        written = self.table.casts.get(name, name if name in TYPES else "")
        if not written or node.get("try_cast") or kind.get("schema"):
            raise mixes(f"a cast to {name or 'a type'}" + ", not float4 or float8" * (name == "float"))
        size = f"({', '.join(s.strip('()') for s in sizes)})" if sizes else ""
        return f"CAST({self.text(node['child'])} AS {written}{size})"

    def function(self, node: Node) -> str:
        """A function of OF_ONE_ROW, or an operator."""
        name, given = str(node["function_name"]).lower(), [a["expression"] for a in node["arguments"]]
        own = node["schema"] or node["filter"] or node["distinct"] or node["order_bys"]["orders"]
        if own or any(a["name"] for a in node["arguments"]) or not (name in OF_ONE_ROW or name in BETWEEN_SIDES):
            raise mixes(f"{name}()")
        if name in OF_ONE_ROW:
            return f"{name}({', '.join(map(self.text, given))})"
        return self.written(name, given)


_WRITERS: Mapping[str, Callable[[_Writer, Node], str]] = {
    "COLUMN_REF": _Writer.column,
    "CONSTANT": _Writer.constant,
    **dict.fromkeys(("COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR"), _Writer.operation),
    "CASE": _Writer.case,
    "CAST": _Writer.cast,
    "FUNCTION": _Writer.function,
}
