"""How the texts of a column are read: forms of dates, signs beside numbers, postal codes, gaps by kind."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fields import FieldDict, Fields, as_text, text_list, whole_number

#: The form of dates that has no strftime format: 2016-12-31, with or without a time behind it.
ISO = "ISO"
#: What `gaps` may name: a kind, or several at once.
GROUPS = {
    "numbers": ("integer", "float"),
    "dates": ("date", "datetime"),
    "texts": ("categorical", "flag"),
    "all": ("integer", "float", "date", "datetime", "categorical", "flag", "zip"),
}
MAX_DIGITS, MAX_PREFIX = 12, 5  # 10 ** 5 codes are as many as a column may have
SAMPLE = datetime.datetime(2016, 12, 31, 13, 14, 15)

Gaps = Mapping[str, tuple[str, ...]]


def parse_formats(given: Fields, where: str) -> tuple[str | None, tuple[str, ...]]:
    """The form that dates are written in (None: ISO), and further ones that are read.

    Raises:
        UserError: both `format` and `formats`; no strftime format.
    """
    if given.get("format") is not None and given.get("formats") is not None:
        raise UserError("both format and formats", where=where, fix="formats: its first one is written")
    if given.get("formats") is None:
        form = given.get("format")
        if form is not None and (not isinstance(form, str) or "%" not in form) and form != ISO:
            fix = 'for example format: "%Y-%m-%d"; several: formats: [ISO, "%d/%m/%Y"]'
            raise UserError(f"format: got {form!r}", where=where, fix=fix)
        return (None if form == ISO else form), ()
    forms = text_list(given["formats"], "formats", where)
    for form in forms:
        if form != ISO and ("%" not in form or moment_of(SAMPLE.strftime(form), form) is None):
            fix = 'strftime formats, and ISO for 2016-12-31: formats: [ISO, "%d/%m/%Y"]'
            raise UserError(f"formats: got {form!r}", where=where, fix=fix)
    if len(set(forms)) < len(forms):
        raise UserError("formats: one is there twice", where=where, fix="each once, in the order of the attempts")
    return (None if forms[0] == ISO else forms[0]), forms[1:]


def moment_of(text: str, form: str | None) -> datetime.datetime | None:
    """The day or time that a text is in a strftime format, or in ISO without one, but for its zone; None for others."""
    try:
        moment = datetime.datetime.strptime(text, form) if form else datetime.datetime.fromisoformat(text)
    except (ValueError, re.error):  # the same part twice, as in %Y %Y
        return None
    return moment.replace(tzinfo=None)


def parse_signs(given: Fields, where: str) -> FieldDict:
    """`strip` and `decimal` of a column of numbers.

    Raises:
        UserError: a sign that numbers need; another decimal mark than a point or a comma.
    """
    decimal = given.get("decimal", ".")
    if decimal not in (".", ","):
        raise UserError(f"decimal: got {decimal!r}", where=where, fix='decimal: "," or decimal: "."')
    strip = () if given.get("strip") is None else text_list(given["strip"], "strip", where)
    for sign in strip:
        no_cents = re.fullmatch("[.,]--?", sign)  # as 470,- writes it
        if not sign or sign == decimal or (re.search(r"[0-9+-]", sign) and not no_cents) or sign in {"e", "E"}:
            fix = 'what stands beside the digits, or parts thousands: strip: ["$", ","]'
            raise UserError(f"strip: {sign!r} may be part of a number", where=where, fix=fix)
    return {"strip": strip, "decimal": decimal}


def parse_zip(given: Fields, where: str) -> FieldDict:
    """A postal code of so many digits, of which the first ones are measured.

    Raises:
        UserError: more digits than make sense.
    """
    digits = whole_number(given.get("digits", 5), "digits", where, low=1, high=MAX_DIGITS)
    prefix = whole_number(given.get("prefix", min(3, digits)), "prefix", where, low=1, high=min(digits, MAX_PREFIX))
    bins = None if prefix == digits else Bins(count=10**prefix)
    return {"kind": "integer", "low": 0, "high": 10**digits - 1, "bins": bins, "width": digits}


def zip_fields(column: Column) -> FieldDict:
    """The declaration that `parse_zip` reads back."""
    prefix = column.width if column.bins is None else len(str(column.bins.count)) - 1
    return {"kind": "zip", "digits": column.width, "prefix": prefix}


def digit_lines(fields: Fields) -> list[str]:
    """That the last digits of codes (`zip_fields`) are invented; none where all are measured."""
    drawn = int(fields["digits"]) - int(fields["prefix"])
    last = f"the last {drawn} digits are" if drawn > 1 else "the last digit is"
    return [f"{last} drawn evenly: such codes need not exist"] if drawn else []


def parse_constant(given: Fields, where: str) -> FieldDict:
    """A column that holds the same text in all rows, or nothing (no `value`): it is not measured."""
    value = "" if given.get("value") is None else as_text(given["value"], "value", where)
    whole = isinstance(given.get("value"), int) and not isinstance(given["value"], bool)
    return {"kind": "categorical", "values": (value,), "whole": whole, "constant": True}


def constant_fields(column: Column) -> FieldDict:
    """The declaration that `parse_constant` reads back."""
    value = column.values[0]
    return {"kind": "constant"} | ({} if value == "" else {"value": int(value) if column.whole else value})


def reading_fields(column: Column) -> FieldDict:
    """`strip`, `decimal` and the formats, as a column's declaration says them."""
    fields: FieldDict = {}
    if column.more_formats:
        fields["formats"] = [column.format or ISO, *column.more_formats]
    elif column.format is not None:
        fields["format"] = column.format
    fields |= {"strip": list(column.strip)} if column.strip else {}
    return fields | ({"decimal": column.decimal} if column.decimal != "." else {})


def parse_gaps(given: object, where: str) -> Gaps:
    """`gaps: {numbers: ["-999"], texts: [NA]}`: kind → texts that mean missing in all columns of it.

    Raises:
        UserError: another form, or an unknown kind.
    """
    if given is None:
        return {}
    fix = 'gaps: {numbers: ["-999"], texts: [NA], dates: [0000-00-00]}; or by kind: {integer: ["-9"]}'
    if not isinstance(given, Mapping):
        raise UserError(f"gaps: got {given!r}", where=where, fix=fix)
    gaps: dict[str, tuple[str, ...]] = {}
    for name, texts in given.items():
        kinds = GROUPS.get(str(name), (str(name),))
        if not set(kinds) <= set(GROUPS["all"]):
            raise UserError(f"gaps: no kind {str(name)!r}", where=where, fix=fix)
        for kind in kinds:
            gaps[kind] = tuple(dict.fromkeys((*gaps.get(kind, ()), *text_list(texts, f"gaps: {name}", where))))
    return gaps


def with_gaps(fields: Mapping[Any, Any], gaps: Gaps) -> Mapping[Any, Any]:
    """A column's declaration with the gaps of its kind, but for texts that it lists as values."""
    texts = gaps.get(str(fields.get("kind")), ())
    values = [v for name in ("values", "true", "false", True, False) for v in _list(fields.get(name))]
    spelled = fields.get("spellings")
    values += [t for own in spelled.values() for t in _list(own)] if isinstance(spelled, Mapping) else []
    listed = {str(v) for v in (*values, fields.get("other"))}
    missing = fields.get("missing", not ("" in listed or "size" in fields))
    more = [t for t in texts if t not in listed]
    if not more or missing is False:
        return fields
    return {**fields, "missing": list(dict.fromkeys([*map(str, _list(missing)), *more]))}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
