"""Some columns of a schema, with the rules that name no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mechanisms.public.errors import require_columns
from mechanisms.public.rules.calendar_parts import named_parts
from mechanisms.public.schema.fields import FieldDict, texts_in
from mechanisms.public.schema.table_schema import Schema, parse_schema


def part_of(schema: Schema, names: Sequence[str], *, where: str) -> Schema:
    """The schema of some of the columns, in the schema's order; a rule is kept where all columns that it names are.

    Args:
        where: which setting names them, for messages.
    Raises:
        UserError: a column that the schema does not have.
    """
    require_columns(names, schema.domain.names, where=where)
    fields = schema.to_fields()
    gone = set(schema.domain.names) - set(names)
    sources = {step.target: [n for n in step.reads if not schema[n].between] for step in schema.rules.computed}
    rules: FieldDict = {}
    for rule, content in schema.rules.declared.items():
        if rule == "unit_id":
            rules[rule] = None if gone & set(texts_in(content)) else content
        elif rule == "unit":
            rules[rule] = {k: [n for n in v if n not in gone] if isinstance(v, list) else v for k, v in content.items()}
        elif rule == "calendar":
            left = {n: _left(n, e, gone) for n, e in content.items() if n not in gone}
            rules[rule] = {n: e for n, e in left.items() if e}
        elif isinstance(content, Mapping):
            rules[rule] = {n: e for n, e in content.items() if not gone & {n, *_columns_of(e), *sources.get(n, ())}}
        else:
            rules[rule] = [e for e in content if not gone & set(_columns_of(e))]
    columns = {n: column for n, column in fields["columns"].items() if n not in gone}
    plain = {k: v for k, v in fields.items() if k not in (*rules, "leave_out")}
    own = {"name": f"{schema.name}_part", "columns": columns}
    return parse_schema(plain | own | {k: v for k, v in rules.items() if v}, where=where)


def _left(time: str, own: Any, gone: set[str]) -> Any:
    """What is left of a rule about parts of a time: all or nothing of columns, each part for itself of none."""
    if isinstance(own, Mapping):
        return None if gone & {*own.values()} else own
    return [part for part, name in named_parts(time, own).items() if name not in gone]


def _columns_of(entry: Any) -> Iterable[str]:
    """The columns that one entry of a rule names, beside the one that it stands under."""
    if not isinstance(entry, Mapping):
        return texts_in(entry)
    if entry.keys() & {"from", "columns", "expression"}:
        return texts_in([entry.get("from", ()), entry.get("columns", ())])
    return [str(name) for name in entry]
