"""Dates and times whose weekday or hour is a column of its own: `calendar` of a schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.errors import UserError
from mechanisms.public.rules.structural_zeros import column_of_rule
from mechanisms.public.schema.bins import CYCLIC, DAY, Bins
from mechanisms.public.schema.column import DATE_KINDS, DAYS, Column
from mechanisms.public.schema.discover_fields import FieldDict, as_text


class TimePart(NamedTuple):
    """A part of a date or time.

    Attributes:
        values: how many it has; `first` that of 1970-01-01 at midnight.
        one, all: the seconds of one value, and the fewest that hold all of them.
        bins: of a date or time, that are its values.
    """

    values: int
    first: int
    one: int
    all: int
    bins: str


#: Monday and midnight are 0; 1970-01-01 was a Thursday.
PARTS = {"weekday": TimePart(7, 3, DAY, 7 * DAY, "day_of_week"), "hour": TimePart(24, 0, 3600, DAY, "hour_of_day")}
USAGE = "calendar: {received: {weekday: COLUMN, hour: COLUMN}}, or of no columns: calendar: {received: [weekday, hour]}"


def parts_of(seconds: Floats) -> dict[str, Floats]:
    """Part → its value of times in seconds from 1970-01-01."""
    return {name: (seconds // part.one + part.first) % part.values for name, part in PARTS.items()}


def part_name(time: str, part: str) -> str:
    """The name of the column that is made of a part."""
    return f"{time}_{part}"


def named_parts(time: str, own: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Part → its column: of the table, or made of the time's cells."""
    return {str(p): own[p] for p in own} if isinstance(own, Mapping) else {str(p): part_name(time, p) for p in own}


@dataclass(frozen=True)
class CalendarParts:
    """A column of dates or times, and the columns that hold parts of the same row's.

    Attributes:
        time: the column; every bin of it holds every value of these parts.
        unit: seconds between two values of it.
        columns: part → column; one value code for each value of the part.
        values: part → of each of the column's codes the value of the part: Monday and midnight are 0; −1: none.
    """

    time: str
    unit: int
    columns: Mapping[str, str]
    values: Mapping[str, Ints]

    def parts(self, codes: Mapping[str, NDArray[Any]]) -> dict[str, Ints]:
        """Part → its value in each row by the codes of its column."""
        return {part: self.values[part][codes[name].astype(np.intp)] for part, name in self.columns.items()}

    def differ(self, times: Floats, codes: Mapping[str, NDArray[Any]]) -> Flags:
        """The rows in which a part is another than that of the time; not where either has no value.

        Args:
            times: in the column's unit, from 1970-01-01; NaN where missing.
        """
        seconds = np.nan_to_num(times) * self.unit
        own = parts_of(seconds)
        wrong = [(value >= 0) & (value != own[part]) for part, value in self.parts(codes).items()]
        return np.asarray(np.any(wrong, axis=0) & ~np.isnan(times))

    def agreeing(self, times: Ints, bins: NDArray[Any], codes: Mapping[str, NDArray[Any]], column: Column) -> Ints:
        """The times of some rows, moved inside their bins so that their parts are those of the row.

        To the nearest day of that weekday, with minutes and seconds as they are. Where the ranges of a condition leave
        no such day near it, the day stays, and the hour alone is the row's; where not even that hour lies in them, all.

        Args:
            times: as drawn; `bins` their codes.
            codes: column of a part → the codes of the rows.
            column: of the times, with the ranges of a condition.
        """
        parts, (first, last) = self.parts(codes), column.grid.spans
        seconds = times.astype(np.int64) * self.unit
        day, rest = seconds // DAY, seconds % DAY
        if "hour" in parts:
            rest = np.where(parts["hour"] >= 0, parts["hour"] * 3600 + rest % 3600, rest)
        weekday = parts.get("weekday", np.full_like(day, -1))
        off = np.where(weekday >= 0, (weekday - day) % 7 - 3, 0)  # 1970-01-01 was a Thursday
        step = np.where(weekday >= 0, 7, 1) * np.where(off > 0, -1, 1)
        ranges = column.within or (column.bounds,)
        moved = times.astype(np.int64)
        for days in (0, off - step, off + step, off):  # the best last: it is taken where several lie in the bin
            other = ((day + days) * DAY + rest) // self.unit
            held = np.any([(other >= low) & (other <= high) for low, high in ranges], axis=0)
            moved = np.where((other >= first[bins]) & (other <= last[bins]) & held, other, moved)
        return moved


def part_columns(given: object, columns: Sequence[Column], where: str) -> list[Column]:
    """The columns of `calendar: {received: [weekday, hour]}`, or beside the table's: `{…, hour: received_hour}`.

    Raises:
        UserError: a column of the table has the name of one.
    """
    by_name, parts = {c.name: c for c in columns}, list[Column]()
    for time, own in given.items() if isinstance(given, Mapping) else ():
        for part in dict.fromkeys(map(str, own)) if isinstance(own, list | Mapping) and time in by_name else ():
            name, bins = part_name(time, part), Bins(calendar=PARTS[part].bins if part in PARTS else None)
            if isinstance(own, Mapping) and (own.get(part) != name or name in by_name):
                continue
            if name in by_name:
                fix = f"calendar: {{{time}: {{{part}: {name}}}}}, if it holds the {part}"
                raise UserError(f"calendar {time!r}: there is a column {name!r}", where=where, fix=fix)
            parts.append(
                replace(by_name[time], name=name, bins=bins, fine=None, joint_bins=None, multiple_of=None, cell_of=time)
            )
    return parts


def parse_calendar(
    given: object, columns: Mapping[str, Column], ordered: Collection[str], where: str
) -> tuple[tuple[CalendarParts, ...], FieldDict]:
    """`calendar: {received: {weekday: weekday, hour: hour}}` of a schema; and the same as it is saved.

    Args:
        ordered: columns that another rule moves inside their bins.
    Raises:
        UserError: an unknown part or column, one that has not the values of the part, bins that are too narrow.
    """
    if given is None:
        return (), {}
    if not isinstance(given, Mapping) or not all(isinstance(v, Mapping | list) and v for v in given.values()):
        raise UserError(f"calendar: got {given!r}", where=where, fix=USAGE)
    rules, saved = [], FieldDict()
    for name, own in given.items():
        rule = f"calendar {str(name)!r}"
        time = column_of_rule(str(name), columns, rule, where)
        if unknown := [str(p) for p in own if str(p) not in PARTS]:
            raise UserError(f"{rule}: {unknown[0]}", where=where, fix=f"{' or '.join(PARTS)}: {USAGE}")
        named = {part: as_text(column, rule, where) for part, column in named_parts(time.name, own).items()}
        if time.name in ordered:
            raise UserError(f"{rule}: `ordered` moves its values", where=where, fix="one of the two rules")
        _check_time(time, named, rule, where)
        values = {p: _values(column_of_rule(n, columns, rule, where), p, rule, where) for p, n in named.items()}
        rules.append(CalendarParts(time.name, 1 if time.kind == "datetime" else DAY, named, values))
        saved[time.name] = named if isinstance(own, Mapping) else [*named]
    return tuple(rules), saved


def _check_time(time: Column, named: Mapping[str, str], rule: str, where: str) -> None:
    """UserError where a bin of the time does not hold every value of a part, or a part breaks the time's step."""
    kinds = DATE_KINDS if "hour" not in named else ("datetime",)
    if time.kind not in kinds:
        raise UserError(f"{rule}: the column is of kind {time.kind}", where=where, fix=f"kind: {' or '.join(kinds)}")
    if time.bins is not None and time.bins.calendar in CYCLIC:
        raise UserError(f"{rule}: bins: {time.bins.calendar} come again and again", where=where, fix="bins: month")
    first, last = time.grid.spans
    widths = (last + 1 - first) * (1 if time.kind == "datetime" else DAY)
    days = max(PARTS[part].all for part in named) // DAY
    if widths[short := int(widths.argmin())] < days * DAY:
        fix = f"bins, and bounds, that give every bin at least {days} days, such as bins: month with whole months"
        raise UserError(f"{rule}: the bin {time.labels[short]!r} is shorter", where=where, fix=fix)
    least = min(PARTS[part].one for part in named)
    if least % (time.multiple_of or 1):
        fix = f"multiple_of: a part of {least} seconds, as 900; or leave it out"
        raise UserError(f"{rule}: hours and days are no multiples of {time.multiple_of}", where=where, fix=fix)


def _values(column: Column, part: str, rule: str, where: str) -> Ints:
    """The value of the part that each code stands for: by English names of days, or numbers, else in order."""
    many = PARTS[part].values
    if column.cell_of:
        return np.array([*range(many), *[-1] * (column.size - many)], np.int64)
    ones = column.kind not in DATE_KINDS and column.kind != "float" and column.value_codes == many
    if not ones or any(" to " in label for label in column.labels):
        first = "Monday" if part == "weekday" else "midnight"
        fix = f"{many} values, from {first} on"
        raise UserError(f"{rule}: {column.name!r} has not the values of {part}", where=where, fix=fix)
    names = [label[:3].casefold() for label in column.labels]
    days = [day[:3].casefold() for day in DAYS]
    order: Sequence[int] = range(many)
    if part == "weekday" and sorted(names) == sorted(days):
        order = [days.index(n) for n in names]
    elif all(n.isdecimal() for n in names):
        numbers = [int(n) for n in names]
        order = [n - min(1, *numbers) for n in numbers] if part == "weekday" else numbers
        if sorted(order) != [*range(many)]:
            fix = "hours from 0 to 23; days from 1 or 0, Monday first"
            raise UserError(f"{rule}: {column.name!r} has not the values of {part}", where=where, fix=fix)
    return np.array([*order, *[-1] * (column.size - many)], np.int64)
