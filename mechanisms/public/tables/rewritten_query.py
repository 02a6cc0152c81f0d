"""A SELECT written anew, of parts that are known to read one row of one table.

Two grammars, this engine's and the database's, read a text differently: so the database gets none that a user wrote,
but names of its own columns in quotes, numbers, texts, and the operators and functions listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import literal, quoted_name

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
    found = table(source.get("schema_name") or "", source["table_name"])
    if found is None:
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
    writer = _Writer(found, frozenset(str(w).lower() for w in words if w))
    cells = ", ".join(writer.cell(node) for node in select["select_list"])
    where = "" if select["where_clause"] is None else f" WHERE {writer.text(select['where_clause'])}"
    return f"SELECT {cells} FROM {found.place}{where}"


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

    def sides(self, sign: str, nodes: Sequence[Node]) -> str:
        """Parts with a sign between them."""
        return f"({f' {sign} '.join(map(self.text, nodes))})"

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
        known = {"NULL_LITERAL": "NULL", "BOOLEAN": {"true": "TRUE", "false": "FALSE"}.get(text)}.get(kind)
        if known is None:
            raise mixes(f"the constant {text}")
        return known

    def comparison(self, node: Node) -> str:
        """Two sides."""
        return self.sides(_listed(BETWEEN_SIDES, node["type"]), [node["left"], node["right"]])

    def conjunction(self, node: Node) -> str:
        """AND, or OR."""
        return self.sides(_listed(BETWEEN_SIDES, node["type"]), node["children"])

    def between(self, node: Node) -> str:
        """A range."""
        return f"({self.text(node['input'])} BETWEEN {self.text(node['lower'])} AND {self.text(node['upper'])})"

    def case(self, node: Node) -> str:
        """A choice by conditions."""
        checks = (f"WHEN {self.text(c['when_expr'])} THEN {self.text(c['then_expr'])}" for c in node["case_checks"])
        return f"(CASE {' '.join(checks)} ELSE {self.text(node['else_expr'])} END)"

    def operator(self, node: Node) -> str:
        """What the engine's parser calls so: NOT, IS NULL, IN, coalesce."""
        first, *others = map(self.text, node["children"])
        rest = ", ".join(others)
        forms = {
            "OPERATOR_NOT": f"(NOT {first})",
            "OPERATOR_IS_NULL": f"({first} IS NULL)",
            "OPERATOR_IS_NOT_NULL": f"({first} IS NOT NULL)",
            "OPERATOR_COALESCE": f"coalesce({', '.join((first, *others))})",
            "COMPARE_IN": f"({first} IN ({rest}))",
            "COMPARE_NOT_IN": f"({first} NOT IN ({rest}))",
        }
        return _listed(forms, node["type"])

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
        return self.sides(BETWEEN_SIDES[name], given) if len(given) == 2 else f"({name} {self.text(given[0])})"


def _listed(forms: Mapping[str, str], kind: str) -> str:
    if kind not in forms:
        raise mixes(kind.lower().replace("_", " "))
    return forms[kind]


_WRITERS: Mapping[str, Callable[[_Writer, Node], str]] = {
    "COLUMN_REF": _Writer.column,
    "CONSTANT": _Writer.constant,
    "COMPARISON": _Writer.comparison,
    "CONJUNCTION": _Writer.conjunction,
    "BETWEEN": _Writer.between,
    "CASE": _Writer.case,
    "OPERATOR": _Writer.operator,
    "CAST": _Writer.cast,
    "FUNCTION": _Writer.function,
}
