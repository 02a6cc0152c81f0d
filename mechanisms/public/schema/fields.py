"""Single fields of a declaration: checked, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mechanisms.public.errors import UserError, choices_fix

#: A declaration in a schema, field by field: as it is read, and as it is made.
Fields: TypeAlias = Mapping[str, Any]
FieldDict: TypeAlias = dict[str, Any]


def as_text(value: object, field: str, where: str) -> str:
    """A scalar as the text that the table holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float) and "\0" not in str(value):
        return str(value)
    raise UserError(f"{field}: got {value!r}", where=where, fix='a text; write "" for the empty text')


def text_list(value: object, field: str, where: str) -> tuple[str, ...]:
    """A list of distinct texts, with at least one."""
    if not isinstance(value, list | tuple) or not value:
        raise UserError(f"{field}: got {value!r}", where=where, fix=f"a list of texts: {field}: [a, b]")
    return tuple(as_text(v, field, where) for v in value)


def whole_number(value: object, field: str, where: str, *, low: int, high: int) -> int:
    """A whole number between two bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UserError(f"{field}: got {value!r}", where=where, fix=f"a whole number from {low} to {high:,}")
    return value


def one_of(value: object, allowed: tuple[str, ...], field: str, where: str) -> str:
    """One of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        got = "is absent" if value is None else f"got {value!r}"
        raise UserError(f"{field}: {got}", where=where, fix=choices_fix(str(value), allowed))
    return value


def true_or_false(value: object, field: str, where: str) -> bool:
    """True or false, nothing that only looks so."""
    if not isinstance(value, bool):
        raise UserError(f"{field}: got {value!r}", where=where, fix="true or false")
    return value
