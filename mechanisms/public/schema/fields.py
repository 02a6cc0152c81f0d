"""Single fields of a declaration: checked, with errors that name the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from mechanisms.public.errors import UserError, choices_fix

#: A declaration in a schema, field by field: as it is read, and as it is made.
Fields: TypeAlias = Mapping[str, Any]
FieldDict: TypeAlias = dict[str, Any]


def check_fields(
    given: Iterable[object], allowed: Iterable[str], rule: str, where: str, *, label: str = "known fields:"
) -> None:
    """UserError where a field is not among those allowed.

    Args:
        rule: what declares them, as messages begin; empty where `where` says it.
        label: how the list of those allowed begins.
    """
    allowed = tuple(allowed)
    for field in map(str, given):
        if field not in allowed:
            problem = f"{rule}: unknown field {field!r}".removeprefix(": ")
            raise UserError(problem, where=where, fix=choices_fix(field, allowed, label))


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


def true_or_false(value: object, field: str, where: str) -> bool:
    """True or false, nothing that only looks so."""
    if not isinstance(value, bool):
        raise UserError(f"{field}: got {value!r}", where=where, fix="true or false")
    return value


def texts_in(value: object, *, keys: bool = False) -> list[str]:
    """All texts in lists and in the values of mappings; in their keys too where asked for."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()] if keys else [*value.values()]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts_in(part, keys=keys)]
    return [value] if isinstance(value, str) else []
