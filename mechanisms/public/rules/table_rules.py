"""Rules of a schema beyond its columns: what follows from what, what cannot be, who synthetic rows belong to.

All of them are public facts; they are part of the released schema, so that a release needs no other file. Here stand
what joins them, what cannot be (impossible), and dates whose weekday or hour has a column of its own (calendar).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import COUNTED, FOUND, PersonUnit, check_unit_apart, parse_person_unit
from mechanisms.public.rules.combinations import check_cells, known_column, possible_cells
from mechanisms.public.rules.computed import FIELD, Computed, parse_computed
from mechanisms.public.rules.mapped import Mapped, parse_mapped
from mechanisms.public.rules.ordered import Ordered, parse_ordered
from mechanisms.public.rules.rule_transforms import coarsened, parse_availability, parse_derive, parse_recode
from mechanisms.public.rules.structural_zeros import Zeros, joined, of_persons, permuted
from mechanisms.public.rules.transforms import Constant, OfUnit, Step, Unmeasured
from mechanisms.public.rules.unit_ids import UnitIds, parse_unit_ids
from mechanisms.public.schema.bins import CYCLIC, DAY, Bins, Ints
from mechanisms.public.schema.code_labels import codes_meant
from mechanisms.public.schema.column import DATE_KINDS, DAYS, Column
from mechanisms.public.schema.fields import FieldDict, Fields, as_text

#: The fields of a schema that hold rules.
RULES = ("derive", "mapped", "recode", "availability", "impossible", "ordered", "calendar", "unit", "unit_id")
#: Part of a date or time → how many values it has, and the fewest seconds that hold all of them.
PARTS = {"weekday": (7, 7 * DAY), "hour": (24, DAY)}
USAGE = "calendar: {received: {weekday: COLUMN, hour: COLUMN}}, or of no columns: calendar: {received: [weekday, hour]}"
#: Part → the bins of a date or time that are its values.
BINS = {"weekday": "day_of_week", "hour": "hour_of_day"}


@dataclass(frozen=True)
class Rules:
    """The rules, checked against the columns.

    Attributes:
        declared: the fields as `parse_rules` reads them back, with the content of every file; what the schema saves.
        steps: in the order of application: derivations, availability, recodings, coarse bins.
        zeros: structural zeros over the table's columns; `of_records` those that records alone can break.
        linked: those over constants of persons, with columns of records or without.
        ordered: groups of columns whose values ascend in every row.
        calendar: dates and times whose weekday or hour is a column of its own.
        unit_ids: how synthetic rows get the id of a unit, or None.
        mapped: columns that are filled from another by a mapping measured with noise.
        unit: whose records belong together, and what is constant in them; or None.
        arranged: what links synthetic rows into persons, by noisy answers; None until there are any.
    """

    declared: Fields = field(default_factory=dict, hash=False)
    steps: tuple[Step, ...] = field(default=(), compare=False)
    zeros: tuple[Zeros, ...] = field(default=(), compare=False)
    of_records: tuple[Zeros, ...] = field(default=(), compare=False)
    linked: tuple[Zeros, ...] = field(default=(), compare=False)
    ordered: tuple[Ordered, ...] = ()
    calendar: tuple[CalendarParts, ...] = ()
    unit_ids: UnitIds | None = None
    mapped: tuple[Mapped, ...] = ()
    unit: PersonUnit | None = None
    arranged: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    @property
    def id_column(self) -> str:
        """The column of synthetic unit ids behind all others; empty where there is none."""
        return self.unit.column if self.unit is not None else self.unit_ids.name if self.unit_ids is not None else ""

    def counting(self, records: int, *, found: bool = False) -> Rules:
        """The rules, of whose persons so many records count: at most as many as one has; found: by noisy counts."""
        if self.unit is None or (records == self.unit.bound and not found):
            return self
        said = {"max": self.unit.max_records, COUNTED: records} | ({FOUND: True} if found else {})
        unit = replace(self.unit, counted=records, found=found)
        return replace(self, declared={**self.declared, "unit": {**self.declared["unit"], "records": said}}, unit=unit)

    @property
    def computed(self) -> tuple[Computed, ...]:
        """Columns that are computed from values; one that reads another stands before it."""
        return tuple(s for s in self.steps if isinstance(s, Computed))


def parse_rules(given: Fields, columns: Sequence[Column], *, where: str, folder: Path) -> Rules:
    """The rules of a schema.

    Args:
        given: field → declaration; fields that are no rules are passed over.
        columns: of the table.
        where: the file, for messages.
        folder: where the files lie that the declarations name.

    Raises:
        UserError: a rule that cannot be; names the rule and the column.
    """
    by_name = {c.name: c for c in columns}
    domain = Domain(tuple(c.attribute for c in columns))
    declared: FieldDict = {}
    ordered, orders = parse_ordered(given.get("ordered"), by_name, where)
    calendar, parts = parse_calendar(given.get("calendar"), by_name, {n for g in ordered for n in g.columns}, where)
    impossible, patterns = parse_impossible(given.get("impossible"), domain, by_name, where, folder)
    missing = [c for c in columns if c.cell_of and c.missing]
    gaps: list[Any] = [{c.cell_of: a, c.name: b} for c in missing for a, b in ((None, {}), ({}, None))]
    impossible += parse_impossible(gaps, domain, by_name, where, folder)[0]  # a time and its parts are there together
    zeros = joined([*impossible, *(z for group in ordered for z in group.zeros(domain))])
    unit, unit_content = parse_person_unit(given.get("unit"), by_name, where=where)
    of_records, linked = of_persons(zeros, () if unit is None else unit.constant, domain, where)
    steps: list[Step] = []
    parsers: dict[str, Callable[..., tuple[Step, FieldDict]]] = {
        "derive": partial(parse_derive, folder=folder),
        "availability": parse_availability,
        "recode": partial(parse_recode, zeros=of_records, folder=folder),
    }
    for field_name, parse in parsers.items():
        entries = given.get(field_name) or {}
        if not isinstance(entries, Mapping):
            raise UserError(f"{field_name}: got {entries!r}", where=where, fix=f"{field_name}: {{name: {{…}}}}")
        for name, entry in entries.items():
            if field_name == "derive" and isinstance(entry, Mapping) and FIELD in entry:
                step: Step = parse_computed(str(name), entry, by_name, where)
                content: Any = {FIELD: entry[FIELD]}
            else:
                step, content = parse(str(name), entry, by_name, where=where)
            declared.setdefault(field_name, {})[str(name)] = content
            steps.append(step)
    ids, ids_content = parse_unit_ids(given.get("unit_id"), by_name, where=where, folder=folder)
    mapped, pairs = parse_mapped(given.get("mapped"), by_name, where)
    more = {"impossible": patterns, "ordered": orders, "unit": unit_content, "unit_id": ids_content, "mapped": pairs}
    more["calendar"] = parts
    declared |= {k: v for k, v in more.items() if v}
    others = {"calendar": [n for rule in calendar for n in (rule.time, *rule.columns.values())]}
    others |= {"ordered": [n for g in ordered for n in g.columns], "impossible": [n for c, _ in zeros for n in c]}
    others["mapped"] = [n for m in mapped for n in (m.target, m.source)]
    if unit is not None:
        if ids is not None:
            fix = "unit alone: synthetic units get their ids, and their records, by it"
            raise UserError("unit and unit_id", where=where, fix=fix)
        check_unit_apart(unit, by_name, steps, {k: others[k] for k in ("calendar", "mapped")}, where)
        steps += [OfUnit(n, by_name[n].size) for n in unit.constant if not by_name[n].constant]
    steps += [Constant(c.name, 1) for c in columns if c.constant]
    steps += [Unmeasured(c.name, c.size) for c in columns if c.unmeasured]
    steps = _sorted(steps, where)
    steps += [coarsened(c, where=f"{where}: column {c.name!r}") for c in columns if c.joint_bins is not None]
    rules = Rules(declared, tuple(steps), zeros, of_records, linked, ordered, calendar, ids, mapped, unit)
    others["unit_id"] = [] if ids is None else [*ids.same, *ids.order_by]
    others["unit"] = [] if unit is None else list(unit.order)
    _check_codes(steps, others, columns, where)
    return rules


def _check_codes(
    steps: Sequence[Step], others: Mapping[str, Sequence[str]], columns: Sequence[Column], where: str
) -> None:
    """UserError where a rule needs codes of a column that has none before values are drawn: computed, or unmeasured.

    Args:
        others: rules that make no step → the columns that they name.
    """
    computed = {s.target for s in steps if isinstance(s, Computed)}
    unmeasured = {c.name for c in columns if c.unmeasured}
    own = {s.rule: (*s.takes, *s.reads) for s in steps if not isinstance(s, Computed)}
    for rule, name in ((rule, name) for rule, names in (*own.items(), *others.items()) for name in names):
        if name in computed:
            fix = "name the columns that it is computed from, or leave it out of the rule"
            raise UserError(f"{rule}: {name!r} is computed from other columns", where=where, fix=fix)
        if name in unmeasured and rule not in own:
            fix = "take unmeasured away, or leave the column out of the rule"
            raise UserError(f"{rule}: nothing is known of {name!r}", where=where, fix=fix)


def of_codes(given: Mapping[Any, Any]) -> FieldDict:
    """The rules among a schema's fields that speak of codes: all but expressions, which speak of values."""
    rules = {k: v for k, v in given.items() if k in RULES}
    if isinstance(derive := rules.get("derive"), Mapping):
        rules["derive"] = {k: v for k, v in derive.items() if not (isinstance(v, Mapping) and FIELD in v)}
    return rules


def _sorted(steps: list[Step], where: str) -> list[Step]:
    """Derivations that read a derived column before the one that derives it.

    Raises:
        UserError: columns that follow from each other.
    """
    targets = {t for s in steps if not s.gives for t in s.takes}
    left, ordered = [s for s in steps if not s.gives], []
    while left:
        free = [s for s in left if not any(s.takes[0] in other.reads for other in left)]
        if not free:
            names = ", ".join(repr(s.takes[0]) for s in left)
            raise UserError(
                f"columns follow from each other: {names}", where=f"{where}: derive", fix="drop one of them"
            )
        ordered += free
        left = [s for s in left if s not in free]
    for step in steps:
        both = [n for n in step.takes if step.gives and n in targets]
        if both:
            fix = "leave it out here: it is written from the columns that it follows from"
            raise UserError(f"{step.rule}: column {both[0]!r} is derived", where=where, fix=fix)
    return ordered + [s for s in steps if s.gives]


def parse_impossible(
    given: object, domain: Domain, columns: Mapping[str, Column], where: str, folder: Path
) -> tuple[list[Zeros], list[Any]]:
    """Structural zeros, from patterns that cannot occur or from lists of all that can."""
    if given is None:
        return [], []
    if not isinstance(given, list | tuple):
        fix = "impossible: [{age: {max: 14}, employed: [yes]}, {columns: [city, county], possible: pairs.csv}]"
        raise UserError(f"impossible: got {given!r}", where=where, fix=fix)
    zeros, content = [], []
    for number, entry in enumerate(given, start=1):
        rule = f"impossible: rule {number}"
        if not isinstance(entry, Mapping) or not entry:
            raise UserError(f"{rule}: got {entry!r}", where=where, fix="{column: value, other column: [values]}")
        if set(entry) == {"columns", "possible"}:
            names, cells, rows = possible_cells(entry["columns"], entry["possible"], columns, rule, where, folder)
            zeros.append(permuted(domain, names, ~cells))
            content.append({"columns": list(names), "possible": rows})
            continue
        names = tuple(str(n) for n in entry)
        sizes = [known_column(n, columns, rule, where).size for n in names]
        check_cells(sizes, rule, where)
        parts = [codes_meant(columns[n], v, rule=rule, where=where) for n, v in zip(names, entry.values(), strict=True)]
        zeros.append(permuted(domain, names, reduce(np.logical_and.outer, parts).ravel()))
        content.append(dict(zip(names, entry.values(), strict=True)))
    return zeros, content


def parts_of(seconds: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Part → its value of times in seconds from 1970-01-01, a Thursday: Monday and midnight are 0."""
    return {"weekday": (seconds // DAY + 3) % 7, "hour": seconds % DAY // 3600}


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

    def differ(self, times: NDArray[np.float64], codes: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
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
    """The columns of `calendar: {received: [weekday, hour]}`: parts that no column of the table holds.

    Raises:
        UserError: a column of the table has the name of one.
    """
    by_name, parts = {c.name: c for c in columns}, list[Column]()
    for time, own in given.items() if isinstance(given, Mapping) else ():
        for part in dict.fromkeys(map(str, own)) if isinstance(own, list) and time in by_name else ():
            name, bins = f"{time}_{part}", Bins(calendar=BINS.get(part))
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
        time = known_column(str(name), columns, rule, where)
        if unknown := [str(p) for p in own if str(p) not in PARTS]:
            raise UserError(f"{rule}: {unknown[0]}", where=where, fix=f"{' or '.join(PARTS)}: {USAGE}")
        columns_of = own if isinstance(own, Mapping) else {part: f"{name}_{part}" for part in own}
        named = {str(part): as_text(column, rule, where) for part, column in columns_of.items()}
        if time.name in ordered:
            raise UserError(f"{rule}: `ordered` moves its values", where=where, fix="one of the two rules")
        _check_time(time, named, rule, where)
        whole = 3600 if "hour" in named else DAY
        if whole % (time.multiple_of or 1):
            fix = f"multiple_of: a part of {whole} seconds, as 900; or leave it out"
            raise UserError(f"{rule}: hours and days are no multiples of {time.multiple_of}", where=where, fix=fix)
        values = {p: _values(known_column(n, columns, rule, where), p, rule, where) for p, n in named.items()}
        rules.append(CalendarParts(time.name, 1 if time.kind == "datetime" else DAY, named, values))
        saved[time.name] = named if isinstance(own, Mapping) else [*named]
    return tuple(rules), saved


def _check_time(time: Column, named: Mapping[str, str], rule: str, where: str) -> None:
    """UserError where a bin of the time does not hold every value of a part."""
    kinds = DATE_KINDS if "hour" not in named else ("datetime",)
    if time.kind not in kinds:
        raise UserError(f"{rule}: the column is of kind {time.kind}", where=where, fix=f"kind: {' or '.join(kinds)}")
    if time.bins is not None and time.bins.calendar in CYCLIC:
        raise UserError(f"{rule}: bins: {time.bins.calendar} come again and again", where=where, fix="bins: month")
    first, last = time.grid.spans
    widths = (last + 1 - first) * (1 if time.kind == "datetime" else DAY)
    days = max(PARTS[part][1] for part in named) // DAY
    if widths[short := int(widths.argmin())] < days * DAY:
        fix = f"bins, and bounds, that give every bin at least {days} days, such as bins: month with whole months"
        raise UserError(f"{rule}: the bin {time.labels[short]!r} is shorter", where=where, fix=fix)


def _values(column: Column, part: str, rule: str, where: str) -> Ints:
    """The value of the part that each code stands for: by English names of days, or numbers, else in order."""
    many = PARTS[part][0]
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
