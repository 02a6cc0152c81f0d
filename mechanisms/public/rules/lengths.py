"""Times as the sum of one before and a length that is measured: `derive: {end: {from: start, length: …}}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError, one_of
from mechanisms.public.rules.structural_zeros import column_of_rule
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS, Between, Column
from mechanisms.public.schema.column_parse import parse_column
from mechanisms.public.schema.discover_fields import FieldDict, as_text, check_fields

LENGTH, FIELDS = "length", ("min", "max", "bins", "fine", "unit")
#: Seconds of the units of a length; one between two dates is of days.
UNITS = {"days": DAY, "hours": 3_600, "minutes": 60, "seconds": 1}
USAGE = "derive: {discharged: {from: admitted, length: {max: 60}}}; of times also unit: hours, minutes or seconds"


def is_length(entry: object) -> bool:
    """Whether an entry of `derive` names a length."""
    return isinstance(entry, Mapping) and LENGTH in entry


def length_name(later: str) -> str:
    """The name of the column that is made of a length."""
    return f"{later}_{LENGTH}"


def length_columns(derive: object, columns: Sequence[Column], where: str) -> list[Column]:
    """The columns of whole numbers that `derive` measures in the place of times: how long each is after another.

    A row of which either time is missing, or not readable, has no length; one below `min` (default 0) or above `max`
    is clipped, and counted as such.

    Raises:
        UserError: columns that are no dates or times of one kind, nor a day after a time; a length without bounds.
    """
    by_name, lengths = {c.name: c for c in columns}, list[Column]()
    entries = derive.items() if isinstance(derive, Mapping) else ()
    for name, entry in ((str(n), e) for n, e in entries if is_length(e)):
        rule = f"derive {name!r}"
        place, given = f"{where}: {rule}", entry[LENGTH]
        check_fields(entry, ("from", LENGTH), rule, where)
        if not isinstance(given, Mapping) or "from" not in entry:
            raise UserError(f"got {dict(entry)!r}", where=place, fix=USAGE)
        check_fields(given, FIELDS, f"{rule}: {LENGTH}", where)
        earlier = column_of_rule(as_text(entry["from"], f"{rule}: from", where), by_name, rule, where)
        later = column_of_rule(name, by_name, rule, where)
        kinds = earlier.kind, later.kind
        if not {*kinds} <= {*DATE_KINDS} or kinds == ("date", "datetime") or earlier is later:
            fix = "two columns of kind date, or two of kind datetime; or a day from a time, with min below 0 before it"
            raise UserError(f"{earlier.name!r} and {name!r} have no length between them", where=place, fix=fix)
        units = [*UNITS] if later.kind == "datetime" else ["days"]
        unit = one_of(given.get("unit", "days"), units, place, "length: unit")
        if length_name(name) in by_name:
            fix = f"derive: {{{name}: {{expression: …}}}}, if it holds the length"
            raise UserError(f"there is a column {length_name(name)!r}", where=place, fix=fix)
        own = {"kind": "integer", "min": 0, "missing": earlier.missing or later.missing}
        own |= {k: v for k, v in given.items() if k != "unit"}
        column = parse_column(length_name(name), own, where=f"{place}: {LENGTH}", folder=Path())
        between = Between(earlier, later, UNITS[unit])
        lengths.append(replace(column, cell_of=name, between=between, missing_texts=later.missing_texts))
    return lengths


def with_fine_lengths(declared: FieldDict, columns: Sequence[Column]) -> FieldDict:
    """The rules of a schema, in which each length says how many fine cells it came to have: a release is read by it.

    Args:
        declared: as `parse_rules` reads them back.
    """
    fine = {c.cell_of: c.fine for c in columns if c.between is not None and c.fine is not None}
    if not fine:
        return declared
    entries = declared["derive"].items()
    own = {n: {**e, LENGTH: {**e[LENGTH], "fine": fine[n]}} if n in fine else e for n, e in entries}
    return {**declared, "derive": own}


def as_expression(name: str, entry: Mapping[Any, Any]) -> dict[str, str]:
    """The sum that such a time is, as `derive` declares it: of the one before it and the length, in days."""
    seconds = UNITS[str(entry[LENGTH].get("unit", "days"))]
    part = "" if seconds == DAY else f" / {DAY // seconds}"
    return {"expression": f"`{entry['from']}` + `{length_name(name)}`{part}"}
