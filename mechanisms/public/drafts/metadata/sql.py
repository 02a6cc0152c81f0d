"""A table's own types and constraints, from the text of CREATE TABLE; nothing is executed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from mechanisms.public.drafts.metadata.metadata_files import Described, Metadata
from mechanisms.public.errors import UserError

#: Types → kinds; all others are left out.
KINDS = dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT", "MEDIUMINT", "INT", "UINT", "BIGINT", "UBIGINT"), "integer")
KINDS |= dict.fromkeys(("DECIMAL", "FLOAT", "DOUBLE", "MONEY", "SMALLMONEY"), "float")
KINDS |= dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "ENUM", "USERDEFINED"), "categorical")
KINDS |= dict.fromkeys(("BOOLEAN", "BIT"), "flag") | {"DATE": "date"}
TIMES = ("TIMESTAMP", "DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMPNTZ", "TIMESTAMPTZ")
KINDS |= dict.fromkeys(TIMES, "datetime")
#: Whose SQL it may be, in the order of the attempts.
DIALECTS = ("postgres", "mysql", "tsql", "sqlite", "oracle")
KEYS = [getattr(exp, f"{k}ColumnConstraint") for k in ("PrimaryKey", "Unique", "GeneratedAsIdentity", "AutoIncrement")]
#: Comparisons whose left side is the smaller one, and the others.
BELOW, ABOVE = (exp.LTE, exp.LT), (exp.GTE, exp.GT)
#: Lines for PostgreSQL's own client, such as pg_dump writes.
CLIENT = re.compile(r"^\\.*$", re.MULTILINE)

#: A domain of PostgreSQL: a type and constraints, such as a column has.
DOMAIN = re.compile(
    r"""\bCREATE\s+DOMAIN\s+((?:"[^"]*"|[^\s"])+)\s+(?:AS\s+)?((?:'[^']*'|[^';])*);""",
    re.IGNORECASE,
)


def of_sql(text: str, name: str, where: str) -> Metadata:
    """What the one CREATE TABLE in a text says: types, NOT NULL, keys, lists, ranges and orders of CHECK, ENUM.

    Raises:
        UserError: no SQL that can be read; several tables.
    """
    text = CLIENT.sub("", text)
    statements = _statements(DOMAIN.sub(r"CREATE TABLE \1 (value \2);", text))
    created = [s for s in statements if isinstance(s, exp.Create)]
    tables = [s for s in created if s.kind == "TABLE" and isinstance(s.this, exp.Schema)]
    names = [name.rpartition(".")[2].strip('"').lower() for name, _ in DOMAIN.findall(text)]
    named = [(s.this.this.name.lower(), s) for s in tables]
    domains = {own: s.this.expressions[0] for own, s in named if own in names}
    tables = [s for own, s in named if own not in domains]
    if len(tables) != 1:
        problem = f"{len(tables) or 'no'} CREATE TABLE with columns that can be read as {', '.join(DIALECTS)}"
        raise UserError(problem, where=where, fix="a file with the one of the table, and the types that it names")
    types = {s.this.name.lower(): s.expression for s in created if s.kind == "TYPE"}
    parts = [*tables[0].this.expressions, *_added(statements, tables[0].this.this.name)]
    columns = [p for p in parts if isinstance(p, exp.ColumnDef)]
    for column in columns:
        _as_its_domain(column, domains)
    described = {p.name: _column(p, types) for p in columns}
    for key in [k for p in parts for k in p.find_all(exp.PrimaryKey, exp.UniqueColumnConstraint)]:
        ids = [i.name for i in key.find_all(exp.Identifier)]
        if len(ids) == 1 and ids[0] in described:
            described[ids[0]].left_out("a key: no two rows share it")
    ordered, unused = [], [key.sql() for p in parts for key in p.find_all(exp.ForeignKey)]
    checks = [c for p in parts for c in p.find_all(exp.CheckColumnConstraint)]
    for rule in (r for check in checks for r in _conjuncts(check.this)):
        names = [c.name for c in rule.find_all(exp.Column)]
        sides = [_alone(rule.args.get(side)) for side in ("this", "expression")]
        kinds = [described[name].kind for name in sides if name in described]
        if len(kinds) == 2 and kinds[0] == kinds[1] and isinstance(rule, BELOW + ABOVE):
            ordered.append((sides[0], sides[1]) if isinstance(rule, BELOW) else (sides[1], sides[0]))
        elif len(names) != 1 or names[0] not in described or not _takes(described[names[0]], rule):
            unused.append(f"CHECK ({rule.sql()})")
    unused += [f"{p.name}: {c.sql()}" for p in parts for c in p.find_all(exp.DefaultColumnConstraint)]
    return Metadata(
        "a SQL table's declaration", tables[0].this.this.name or name, [*described.values()], ordered, unused
    )


def _statements(text: str) -> list[Any]:
    """Of the first dialect that reads a CREATE in the text."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it says on a terminal what it cannot read
    for dialect in DIALECTS:
        try:
            statements = [*sqlglot.parse(text, read=dialect)]
        except (sqlglot.errors.SqlglotError, RecursionError):
            statements = []  # another dialect may read it
        if any(isinstance(s, exp.Create) for s in statements):
            return statements
    return []


def _added(statements: Sequence[Any], table: str) -> list[Any]:
    """The constraints that ALTER TABLE adds to the table."""
    altered = [s for s in statements if isinstance(s, exp.Alter) and s.this.name == table]
    return [c for s in altered for action in s.find_all(exp.AddConstraint) for c in action.expressions]


def _type_name(part: Any) -> str:
    """The name of a column's type that somebody made, in small letters; of others nothing."""
    own = part.kind.args.get("kind") if part.kind else None
    return str(own.name).lower() if own is not None else ""


def _as_its_domain(part: Any, domains: dict[str, Any]) -> None:
    """Give a column the type and the constraints of its domain, which speak of VALUE; one may be of another one."""
    for _ in domains:
        if (domain := domains.get(_type_name(part))) is not None:
            own = domain.copy()
            for value in own.find_all(exp.Column):
                value.this.replace(exp.to_identifier(part.name))
            part.set("constraints", [*own.constraints, *part.constraints])  # of two bounds the nearer one stands
            part.set("kind", own.kind)


def _alone(side: Any) -> str:
    """The column that a side of a comparison is, brackets and casts aside; else nothing."""
    while isinstance(side, exp.Paren | exp.Cast):
        side = side.this
    return str(side.name) if isinstance(side, exp.Column) else ""


def _column(part: Any, types: dict[str, Any]) -> Described:
    """By its type and its own constraints."""
    remarks, kind = [part.kind.sql() if part.kind else "no type"], part.kind.this.name if part.kind else ""
    described = Described(part.name, KINDS.get(kind, ""), remarks=remarks)
    if part.find(*KEYS):
        described.left_out("a key: no two rows share it")
    elif refers := part.find(exp.Reference):
        described.left_out(f"{refers.sql()}: does it name persons? privacy.unit={part.name}")
    elif kind == "TIMESTAMPTZ":
        described.remarks.append("read as UTC's clock shows them")
    elif part.find(exp.ComputedColumnConstraint):
        described.remarks.append("computed by the database: derive it")
    if not described.kind:
        return described
    declared = types.get(_type_name(part), part.kind)
    described.values = [v.this for v in declared.find_all(exp.Literal)] if declared.this.name == "ENUM" else ()
    sizes = [int(p.name) for p in part.kind.find_all(exp.DataTypeParam) if p.name.isdecimal()]
    described.kind = "flag" if (kind, sizes) == ("TINYINT", [1]) else described.kind
    described.more = {"decimals": sizes[1]} if described.kind == "float" and len(sizes) == 2 else {}
    described.more |= {"spellings": "common"} if described.kind == "flag" else {}
    null = part.find(exp.NotNullColumnConstraint)
    described.missing = null is None or bool(null.args.get("allow_null"))
    return described


def _conjuncts(rule: Any) -> Iterator[Any]:
    """The conditions that AND joins, from left to right: thousands nest as deeply, so a loop walks them."""
    waiting = [rule]
    while waiting:
        rule = waiting.pop().unnest()
        if isinstance(rule, exp.And):
            waiting += [rule.right, rule.left]
        else:
            yield rule


def _takes(column: Described, rule: Any) -> bool:
    """Whether a condition on the column alone is a list or a range, which the column has then."""
    if isinstance(rule, exp.In) or (isinstance(rule, exp.EQ) and rule.find(exp.Any)):
        texts = [v.name for v in rule.find_all(exp.Literal, exp.National) if not v.find_ancestor(exp.DataTypeParam)]
        if texts and column.kind in {"categorical", "integer"}:
            column.kind, column.values, column.more = "categorical", texts, {}
        return bool(texts) and column.kind == "categorical"
    ends = [rule.args.get(k) for k in ("low", "high", "expression")]
    if column.kind not in {"integer", "float"} or not isinstance(rule, (exp.Between, *BELOW, *ABOVE)):
        return False
    try:
        bounds = [(int if column.kind == "integer" else float)(_signed(e)) for e in ends if e is not None]
    except ValueError:
        return False
    if not isinstance(rule.this.unnest(), exp.Column):
        return False
    step = 1 if column.kind == "integer" and isinstance(rule, exp.LT | exp.GT) else 0
    if isinstance(rule, (exp.Between, *ABOVE)):
        column.low = bounds[0] + step
    if isinstance(rule, (exp.Between, *BELOW)):
        column.high = bounds[-1] - step
    return True


def _signed(value: Any) -> str:
    """The text of a number, with its sign."""
    value = value.unnest()
    return f"-{value.this.name}" if isinstance(value, exp.Neg) else str(value.name)
