"""One column's declaration → Column and back: a table of fields per kind, and errors that name the field."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from mechanisms.public.errors import UserError, one_of
from mechanisms.public.rules.rule_transforms import parse_joint_bins
from mechanisms.public.schema.bins import CALENDAR, DAY, MAX_CODES, Bins, IntegerGrid, default_calendar
from mechanisms.public.schema.column import DATE_KINDS, Column, Kind, Outside
from mechanisms.public.schema.discover_fields import (
    FieldDict,
    Fields,
    as_text,
    check_fields,
    parse_discover,
    parse_discovered,
    text_list,
    true_or_false,
    whole_number,
)
from mechanisms.public.schema.fine_cells import MAX_FINE, scouting_column
from mechanisms.public.schema.hierarchy_fields import parse_relations
from mechanisms.public.schema.places import parse_places
from mechanisms.public.schema.spellings import (
    moment_of,
    parse_constant,
    parse_flag,
    parse_formats,
    parse_signs,
    parse_spellings,
    parse_zip,
)

PLACES = ("coordinates", "geojson")
SPECIAL = ("kind", "other", "missing", "outside", "discovered")
COMMON = (*SPECIAL, "hierarchy", "distances", *PLACES, "joint_bins", "one_way_only", "unmeasured")
RANGE = ("min", "max", "bins", "fine", "bounds", "within")
#: The fields of each kind.
FIELDS: dict[str, tuple[str, ...]] = {
    "categorical": ("values", "size", "ordinal", "spellings", "prefix"),
    "integer": (*RANGE, "fixed", "multiple_of", "strip", "decimal"),
    "float": (*RANGE, "decimals", "fixed", "multiple_of", "strip", "decimal"),
    "date": (*RANGE, "format", "formats"),
    "datetime": (*RANGE, "multiple_of", "format", "formats"),
    "flag": ("true", "false", "spellings"),
    "zip": ("digits", "prefix"),
    "constant": ("value",),
}
EPOCH = datetime.datetime(1970, 1, 1)
#: Fields of ordered columns that are whole numbers from 0 on → the largest.
MOST = {"decimals": 15, "fixed": 15, "fine": MAX_FINE}


def parse_column(name: str, fields: Mapping[Any, Any], *, where: str, folder: Path) -> Column:
    """A checked column.

    Args:
        fields: its declaration: `kind` and the fields of that kind.
        where: the file and the column, for messages.
        folder: where the files that the declaration names lie.

    Raises:
        UserError: an unknown, absent, or contradictory field; names it.
    """
    given = {("true" if k else "false") if isinstance(k, bool) else str(k): v for k, v in fields.items()}
    kind = one_of(given.get("kind"), FIELDS, where, "kind")
    common = ("kind", "discovered") if kind == "constant" else COMMON
    check_fields(given, sorted({*common, *FIELDS[kind]}), "", where, label=f"{kind} knows")
    if kind == "constant":
        constant = Column(name, missing=False, **parse_constant(given, where))
        return replace(constant, discovered=parse_discovered(given.pop("discovered", None), where))
    given, discover = parse_discover(kind, given, where)
    parts = _parts(kind, given, where)
    texts = (*parts.get("values", ()), *(text for text, _ in parts.get("spellings", ())))
    no_code = "" in texts or "codes" in parts
    missing, gaps = _missing(given.get("missing", not no_code), texts, where)
    other = None if given.get("other") is None else as_text(given["other"], "other", where)
    _check_labels((*texts, *gaps), other, where)
    kind = parts.pop("kind", kind)
    column = Column(name, cast(Kind, kind), other=other, missing=missing, missing_texts=gaps, **parts)
    column = replace(column, outside=_outside(column, given.get("outside"), where))
    _check_column(column, where)
    alone = true_or_false(given.get("one_way_only", False), "one_way_only", where)
    joint: FieldDict = {"joint_bins": parse_joint_bins(given.get("joint_bins"), where), "one_way_only": alone}
    joint["unmeasured"] = true_or_false(given.get("unmeasured", False), "unmeasured", where)
    if joint["unmeasured"] and (alone or joint["joint_bins"] is not None or discover is not None):
        fix = "take joint_bins, one_way_only and discover out"
        raise UserError("unmeasured, and measured in part", where=where, fix=fix)
    if joint["unmeasured"] and kind != "categorical":
        raise UserError(f"unmeasured: the column is {kind}", where=where, fix="one_way_only, or leave the column out")
    joint |= {"discover": discover, "discovered": parse_discovered(given.get("discovered"), where)}
    for field, finer in (("one_way_only", alone), ("fine", column.fine)):
        if finer and joint["joint_bins"] is not None:
            raise UserError(f"both joint_bins and {field}", where=where, fix="one of the two")
    if given.keys() & set(PLACES):
        joint["places"] = parse_places(given, column.labels, where=where, folder=folder)
    column = replace(column, **joint, **parse_relations(column, given, where=where, folder=folder))
    if discover is not None:
        _check_column(scouting_column(column), where)
    return column


def _categorical(given: Fields, where: str) -> FieldDict:
    values, size = given.get("values"), given.get("size")
    parts: FieldDict = {"ordinal": true_or_false(given.get("ordinal", False), "ordinal", where)}
    if (values is None) == (size is None):
        fix = "values: [a, b, ...]; or size: n for the whole numbers 0 … n − 1"
        raise UserError("categorical needs either values or size", where=where, fix=fix)
    if values is None:
        parts["codes"] = whole_number(size, "size", where, low=1, high=MAX_CODES)
        return parts | parse_spellings(given, (), where)
    texts = text_list(values, "values", where)
    if len(texts) > MAX_CODES:
        fix = f"at most {MAX_CODES:,}; other: takes the rest"
        raise UserError(f"values: {len(texts):,} of them", where=where, fix=fix)
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    return parts | {"values": texts, "whole": whole} | parse_spellings(given, texts, where)


def _parts(kind: str, given: Fields, where: str) -> FieldDict:
    """The fields of a column that its kind alone has."""
    if kind == "categorical":
        return _categorical(given, where)
    if kind == "flag":
        return parse_flag(given, where)
    return parse_zip(given, where) if kind == "zip" else _ordered(kind, given, where)


def _ordered(kind: str, given: Fields, where: str) -> FieldDict:
    form, further = parse_formats(given, where)
    declared = given.get("bins")
    low = None if given.get("min") is None else bound(given["min"], kind, form, "min", where)
    high = None if given.get("max") is None else bound(given["max"], kind, form, "max", where)
    bins = None if declared is None else _bins(declared, kind, form, where)
    if bins is not None and bins.edges is not None:
        bins, low, high = _edges(bins.edges, low, high, kind, where)
    if low is None or high is None:
        fix = "bounds from public knowledge, generous rather than tight; or bins: {edges: [...]}"
        raise UserError(f"{kind} needs min and max", where=where, fix=fix)
    if low > high or (kind == "float" and low == high):
        raise UserError("min must lie below max", where=where, fix="exchange them, or widen the range")
    if bins is None and kind == "float":
        bins = Bins(count=20)
    if bins is None and kind in DATE_KINDS:
        bins = default_calendar(int(low), int(high), kind=kind)
    parts = {"low": low, "high": high, "bins": bins, "format": form, "more_formats": further}
    most = {name: n for name, n in MOST.items() if given.get(name) is not None}
    parts |= {name: whole_number(given[name], name, where, low=0, high=n) for name, n in most.items()}
    if given.get("multiple_of") is not None:
        parts["multiple_of"] = multiple = bound(
            given["multiple_of"], "integer" if kind == "datetime" else kind, form, "multiple_of", where
        )
        if multiple <= 0 or "decimals" in parts:
            problem = "decimals and multiple_of" if multiple > 0 else f"multiple_of: got {given['multiple_of']!r}"
            raise UserError(problem, where=where, fix="multiple_of alone, above 0, for example multiple_of: 50")
    return parts | parse_signs(given, where)


def bound(value: object, kind: str, form: str | None, field: str, where: str) -> float:
    """A bound in the column's unit: a number, or days or seconds from 1970-01-01."""
    if kind not in DATE_KINDS:
        try:
            number = float(cast(Any, value)) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        whole = kind == "integer"
        if not abs(number) <= (2**53 - 1 if whole else 1e20) or (whole and number != int(number)):
            allowed = "a whole number below 2^53" if whole else "a number up to 1e20, as of a larger unit"
            raise UserError(f"{field}: got {repr(value)[:60]}", where=where, fix=allowed)
        return int(number) if whole else number
    moment, day_only = _moment(value, form)
    if moment is None:
        raise UserError(
            f"{field}: got {value!r}, which is no date", where=where, fix=f'for example {field}: "2016-12-31"'
        )
    elapsed = moment - EPOCH
    if kind == "date":
        return elapsed.days
    # A day as the upper bound of a time means the whole day.
    return elapsed.days * DAY + elapsed.seconds + (DAY - 1 if day_only and field == "max" else 0)


def _moment(value: object, form: str | None) -> tuple[datetime.datetime | None, bool]:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None), False
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day), True
    text = str(value).strip()
    iso = moment_of(text, None)
    if iso is not None or form is None:
        return iso, len(text) <= 10
    return moment_of(text, form), "%H" not in form


def _bins(declared: object, kind: str, form: str | None, where: str) -> Bins:
    allowed = ("count", "edges", "calendar") if kind in DATE_KINDS else ("count", "edges")
    if kind in DATE_KINDS and isinstance(declared, str):
        declared = {"calendar": declared}  # bins: month
    if not isinstance(declared, Mapping) or len(declared) != 1:
        raise UserError(f"bins: got {declared!r}", where=where, fix=f"one of {', '.join(allowed)}: bins: {{count: 20}}")
    name, value = next(iter(declared.items()))
    one_of(name, allowed, where, "bins")
    if name == "count":
        return Bins(count=whole_number(value, "bins: count", where, low=1, high=MAX_CODES))
    if name == "calendar":
        return Bins(calendar=one_of(value, CALENDAR, where, "bins: calendar"))
    edges = value if isinstance(value, list | tuple) else []
    if not 2 <= len(edges) <= MAX_CODES + 1:
        fix = f"at least two ascending edges, at most {MAX_CODES + 1:,}"
        got = repr(value) if len(edges) < 2 else f"{len(edges):,} edges"
        raise UserError(f"bins: edges: got {got}", where=where, fix=fix)
    return Bins(edges=tuple(bound(e, kind, form, "bins: edges", where) for e in edges))


def _edges(
    edges: tuple[float, ...], low: float | None, high: float | None, kind: str, where: str
) -> tuple[Bins, float, float]:
    """Edges and the bounds that they imply: the last edge bounds floats, and lies just behind the last whole unit."""
    if any(b <= a for a, b in itertools.pairwise(edges)):
        raise UserError("bins: edges must ascend, without repeats", where=where, fix="sort them")
    last = edges[-1] if kind == "float" else edges[-1] - 1
    if kind != "float" and high == edges[-1]:
        edges, last = (*edges[:-1], edges[-1] + 1), edges[-1]
    if (low not in {None, edges[0]}) or (high not in {None, last}):
        fix = "leave min and max out, or let the first edge be min and the last one max (left-closed bins: or max + 1)"
        raise UserError("bins: edges do not fit min and max", where=where, fix=fix)
    return Bins(edges=edges), edges[0], last


def _missing(value: object, texts: tuple[str, ...], where: str) -> tuple[bool, tuple[str, ...]]:
    """Whether missing values have a code of their own, and the texts that count as missing."""
    if isinstance(value, bool):
        if value and "" in texts:
            fix = "missing: false; or missing: [NA] for another text that means missing"
            raise UserError("the empty text is a listed value, so it cannot also mean missing", where=where, fix=fix)
        return value, ()
    if not isinstance(value, list | tuple):
        raise UserError(f"missing: got {value!r}", where=where, fix='true, false, or a list of texts: missing: ["?"]')
    return True, text_list(value, "missing", where)


def _check_labels(texts: tuple[str, ...], other: str | None, where: str) -> None:
    labels = [*texts, *([] if other is None else [other])]
    twice = sorted({label for label in labels if labels.count(label) > 1}) if len(set(labels)) < len(labels) else []
    if twice:
        fix = "each text may mean one thing only: one value, other, or missing"
        raise UserError(f"given twice: {', '.join(map(repr, twice[:5]))}", where=where, fix=fix)
    if other == "":
        raise UserError("other: the label is empty", where=where, fix="other: Other")


def _outside(column: Column, given: object, where: str) -> Outside:
    if given is None:
        if column.gridded:
            return "clip"
        return "other" if column.other is not None else "missing" if column.missing else "clip"
    name = one_of(given, ("clip", "other", "missing", "refuse"), where, "outside")
    if name == "clip" and not column.gridded:
        raise UserError("outside: clip needs numbers or dates", where=where, fix="outside: other, missing or refuse")
    if (name == "other" and column.other is None) or (name == "missing" and not column.missing):
        fix = "other: Other" if name == "other" else "missing: true"
        raise UserError(f"outside: {name}, but the column has no such code", where=where, fix=fix)
    return cast(Outside, name)


def _check_column(column: Column, where: str) -> None:
    """What only the whole column shows: its bins can be built, its labels and its format can be read back."""
    if not column.gridded:
        return
    try:
        grid = column.grid
    except UserError as error:
        raise UserError(error.what, where=where, fix=error.fix) from error
    if column.other is not None and _reads_as_value(column, column.other):
        raise UserError(f"other: {column.other!r} reads as a value", where=where, fix="other: Other")
    if column.format is not None and isinstance(grid, IntegerGrid):
        _check_format(grid, column, column.format, where)


def _reads_as_value(column: Column, label: str) -> bool:
    if column.kind in DATE_KINDS:
        return _moment(label, column.format)[0] is not None
    try:
        float(label)
    except ValueError:
        return False
    return True


def _check_format(grid: IntegerGrid, column: Column, form: str, where: str) -> None:
    """A value written in the format must be read back into its own bin; runs are checked at both ends."""
    unit = 1 if column.kind == "datetime" else DAY
    for run in np.unique(np.linspace(0, len(grid.starts) - 1, 500).astype(int)):
        start, last = int(grid.starts[run]), int(grid.ends[run]) - 1
        for value in (start, last):
            moment = EPOCH + datetime.timedelta(seconds=value * unit)
            back = moment_of(moment.strftime(form), form)
            read = (
                None if back is None else min(max(int((back - EPOCH).total_seconds()) // unit, column.low), column.high)
            )
            if read is None or not start <= read <= last:
                fix = "a format with year, month, day (and time), or bins as coarse as the format"
                if "%y" in form:
                    fix += "; %y reads years of two digits as 1969 to 2068: bounds within, or %Y"
                raise UserError(f"format: {form!r} loses what the bins need", where=where, fix=fix)
