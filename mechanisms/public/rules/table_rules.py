"""Rules of a schema beyond its columns: what follows from what, what cannot be, who synthetic rows belong to.

All of them are public facts; they are part of the released schema, so that a release needs no other file. Here stand
what joins them, and what cannot be (impossible).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import COUNTED, DISCOVERED, PersonUnit, check_unit_apart, parse_person_unit
from mechanisms.public.rules.calendar_parts import CalendarParts, parse_calendar
from mechanisms.public.rules.computed import (
    FIELD,
    Computed,
    Mapped,
    as_expression,
    is_length,
    length_name,
    parse_computed,
    parse_mapped,
)
from mechanisms.public.rules.ordered import Ordered, parse_ordered
from mechanisms.public.rules.rule_transforms import coarsened, parse_availability, parse_derive, parse_recode
from mechanisms.public.rules.structural_zeros import (
    Zeros,
    check_cells,
    column_of_rule,
    joined,
    of_persons,
    permuted,
    possible_cells,
)
from mechanisms.public.rules.transforms import Step, Unmeasured, Unread
from mechanisms.public.rules.unit_ids import UnitIds, parse_unit_ids
from mechanisms.public.schema.code_labels import codes_meant
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields

#: The fields of a schema that hold rules.
RULES = ("derive", "mapped", "recode", "availability", "impossible", "ordered", "calendar", "unit", "unit_id")


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

    def counting(self, records: int, *, discovered: bool = False) -> Rules:
        """The rules, of whose persons so many records count: at most as many as one has; discovered so."""
        if self.unit is None or (records == self.unit.bound and not discovered):
            return self
        records_field = {"max": self.unit.max_records, COUNTED: records} | ({DISCOVERED: True} if discovered else {})
        unit = replace(self.unit, counted=records, discovered=discovered)
        return replace(
            self, declared={**self.declared, "unit": {**self.declared["unit"], "records": records_field}}, unit=unit
        )

    @property
    def computed(self) -> tuple[Computed, ...]:
        """Columns that are computed from values; one that reads another stands before it."""
        return tuple(s for s in self.steps if isinstance(s, Computed))

    def sources(self, name: str) -> list[str]:
        """The columns that a derived column is written from in the end, none of which is derived."""
        read = [n for s in self.steps if name in s.takes for n in s.reads]
        return list(dict.fromkeys(own for n in read for own in self.sources(n) or [n]))


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
    unit, unit_content = parse_person_unit(given.get("unit"), by_name, where=where)
    constants = () if unit is None else unit.constant
    ordered, orders = parse_ordered(given.get("ordered"), by_name, constants, where)
    calendar, parts = parse_calendar(given.get("calendar"), by_name, {n for g in ordered for n in g.columns}, where)
    impossible, patterns = parse_impossible(given.get("impossible"), domain, by_name, where, folder)
    missing = [c for c in columns if c.cell_of and c.missing and c.between is None]
    gaps: list[Any] = [{c.cell_of: a, c.name: b} for c in missing for a, b in ((None, {}), ({}, None))]
    impossible += parse_impossible(gaps, domain, by_name, where, folder)[0]  # a time and its parts are there together
    zeros = joined([*impossible, *(z for group in ordered for z in group.zeros(domain, by_name))])
    of_records, linked = of_persons(zeros, constants, domain, where)
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
            if field_name == "derive" and of_values(entry):
                sums = as_expression(str(name), entry) if is_length(entry) else entry
                step: Step = parse_computed(str(name), sums, by_name, where)
                content: Any = dict(entry)
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
        own = [by_name[n] for n in unit.constant if not by_name[n].constant]
        steps += [Unread(word="unit: constant", takes=(c.name,), size=c.size) for c in own]
    steps += [Unread(word="constant", takes=(c.name,), size=1) for c in columns if c.constant]
    steps += [Unmeasured(word="unmeasured", takes=(c.name,), size=c.size) for c in columns if c.unmeasured]
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
            if (length := length_name(name)) in {c.name for c in columns}:
                fix = f"name {length}, which derive measures in its place"
            raise UserError(f"{rule}: {name!r} is computed from other columns", where=where, fix=fix)
        if name in unmeasured and rule not in own:
            fix = "take unmeasured away, or leave the column out of the rule"
            raise UserError(f"{rule}: nothing is known of {name!r}", where=where, fix=fix)


def of_codes(given: Mapping[Any, Any]) -> FieldDict:
    """The rules among a schema's fields that speak of codes: all but expressions, which speak of values."""
    rules = {k: v for k, v in given.items() if k in RULES}
    if isinstance(derive := rules.get("derive"), Mapping):
        rules["derive"] = {k: v for k, v in derive.items() if not of_values(v)}
    return rules


def of_values(entry: object) -> bool:
    """Whether an entry of `derive` computes values: by an expression, or as a time and a length after it."""
    return is_length(entry) or (isinstance(entry, Mapping) and FIELD in entry)


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
        sizes = [column_of_rule(n, columns, rule, where).size for n in names]
        check_cells(sizes, rule, where)
        parts = [codes_meant(columns[n], v, rule=rule, where=where) for n, v in zip(names, entry.values(), strict=True)]
        zeros.append(permuted(domain, names, reduce(np.logical_and.outer, parts).ravel()))
        content.append(dict(zip(names, entry.values(), strict=True)))
    return zeros, content
