"""The unit that a schema declares: whose records belong together, what is constant in them, and in which order.

All of it is a public fact, part of the released schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechanisms.public.errors import UserError
from mechanisms.public.rules.computed import Computed
from mechanisms.public.rules.structural_zeros import columns_of_rule
from mechanisms.public.rules.transforms import Step
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.discover_fields import FieldDict, as_text, check_fields

FIELDS = ("column", "constant", "order", "records")
FIX = "unit: {column: patient_id, constant: [sex, zip], order: admitted, records: {max: 20}}"
#: Beside `max`: how many of them count; and true, in a released schema, where noisy counts of units said so.
COUNTED, DISCOVERED = "counted", "discovered"
#: The largest number of records of one unit whose histogram is measured.
MOST_SIZES = 10_000


@dataclass(frozen=True)
class PersonUnit:
    """The unit of privacy as a schema declares it.

    Attributes:
        column: holds the unit's id in the table; no column of the schema. Synthetic ids stand under its name.
        max_records: the largest number of records that a synthetic unit has.
        constant: columns that are the same in all records of a unit; measured once per unit.
        order: what the records of a unit are sorted by, the first column first; equal ones, and all where it is empty,
            keep the order of the file.
        counted: C, the records of one unit that count in what is asked of records, where they are fewer; else None.
        discovered: whether it follows from noisy counts of units.
    """

    column: str
    max_records: int
    constant: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    counted: int | None = None
    discovered: bool = False

    @property
    def bound(self) -> int:
        """C."""
        return self.counted or self.max_records

    def times(self, columns: Mapping[str, Column]) -> Column | None:
        """The column whose differences are asked: the first of the order, where it holds numbers or dates."""
        first = columns[self.order[0]] if self.order else None
        return first if first is not None and first.kind in ORDERED_KINDS and first.width is None else None


def parse_person_unit(
    given: object, columns: Mapping[str, Column], *, where: str
) -> tuple[PersonUnit | None, FieldDict]:
    """`unit: {column, constant, order, records: {max}}` of a schema; and the same as it is saved.

    Raises:
        UserError: an unknown field or column; a constant that orders; a bound that is none.
    """
    if given is None:
        return None, {}
    if not isinstance(given, Mapping) or "column" not in given:
        raise UserError(f"unit: got {given!r}", where=where, fix=FIX)
    check_fields(given, FIELDS, "unit", where)
    name = as_text(given["column"], "unit: column", where)
    if name in columns:
        fix = f"take {name!r} out of columns: ids are written anew, not measured"
        raise UserError(f"unit: {name!r} is a column of the schema", where=where, fix=fix)
    constant, order = (_names(given.get(f), f"unit: {f}", columns, where) for f in ("constant", "order"))
    if both := sorted({*constant} & {*order}):
        fix = "a column that changes within a unit, to order its records by"
        raise UserError(f"unit: {both[0]!r} is constant and orders", where=where, fix=fix)
    for column in (n for n in constant if columns[n].cell_of):
        fix = f"leave it out, or name {columns[column].cell_of!r}"
        raise UserError(f"unit: constant: {column!r} is no column of the table", where=where, fix=fix)
    for column in order:
        if columns[column].cell_of or not (columns[column].kind in ORDERED_KINDS or columns[column].ordinal):
            fix = "a column of numbers, dates or times with bounds, or a categorical one with ordinal: true"
            raise UserError(f"unit: order: the values of {column!r} have no order that is known", where=where, fix=fix)
    content: FieldDict = {"column": name}
    content |= {k: list(v) for k, v in (("constant", constant), ("order", order)) if v}
    records = _records(given.get("records"), where)
    content |= {"records": records}
    return PersonUnit(name, records["max"], constant, order, records.get(COUNTED), DISCOVERED in records), content


def check_unit_apart(
    unit: PersonUnit,
    columns: Mapping[str, Column],
    steps: Sequence[Step],
    others: Mapping[str, Sequence[str]],
    where: str,
) -> None:
    """Refuse what is said of the constants' codes in records: they are measured once per unit, not with the records.

    An expression may read them: it is computed from the values that are written. Links of records to persons keep to
    `impossible` and `ordered`, which are not among the others.

    Args:
        steps: those that other rules make.
        others: further rules → the columns that they name.
    Raises:
        UserError: names the rule and the column; or no column is left to measure in records.
    """
    named = {s.rule: s.takes if isinstance(s, Computed) else (*s.takes, *s.reads) for s in steps}
    for name in unit.constant:
        column = columns[name]
        own = {"joint_bins": column.joint_bins, "one_way_only": column.one_way_only, "fine": column.fine}
        contradicting = [f"column {name!r}: {field}" for field, value in own.items() if value]
        if rules := contradicting + [rule for rule, names in (*named.items(), *others.items()) if name in names]:
            problem = f"{rules[0]}: {name!r} is constant in each unit, and not measured with the records"
            fix = "leave it out of the rule, or out of unit: constant"
            raise UserError(problem, where=where, fix=fix)
    if len(unit.constant) == len(columns):
        fix = "a column that changes from record to record; or one row per person, without unit"
        raise UserError("unit: constant: no column is left to measure in records", where=where, fix=fix)


def _names(given: object, rule: str, columns: Mapping[str, Column], where: str) -> tuple[str, ...]:
    """Columns of the schema, one or a list, each once; one of which no value was found stays what it is."""
    names = columns_of_rule(given, columns, rule, where)
    for name in names:
        fixed = columns[name].constant and not columns[name].discovered
        if names.count(name) > 1 or fixed or columns[name].unmeasured:
            fix = "each column once, and none that is constant in the whole table or unmeasured"
            raise UserError(f"{rule}: {name!r} cannot stand here", where=where, fix=fix)
    return names


def _records(given: object, where: str) -> FieldDict:
    """The largest number of records of a unit, and how many of them count where these are fewer; as it is saved."""
    readable = isinstance(given, Mapping) and {"max"} <= set(given) <= {"max", COUNTED, DISCOVERED}
    fields = given if isinstance(given, Mapping) and readable and given.get(DISCOVERED, True) is True else {}
    most, counted = fields.get("max"), fields.get(COUNTED)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_SIZES:
        fix = f"records: {{max: C}}, a whole number from 1 to {MOST_SIZES:,}, from what is publicly known"
        raise UserError(f"unit: records: got {given!r}", where=where, fix=fix)
    if counted is not None and (isinstance(counted, bool) or not isinstance(counted, int) or not 1 <= counted <= most):
        fix = f"{COUNTED}: a whole number from 1 to {most:,}; or without it: all of them count"
        raise UserError(f"unit: records: {COUNTED}: got {counted!r}", where=where, fix=fix)
    if DISCOVERED in fields and counted is None:
        raise UserError(f"unit: records: {DISCOVERED} without {COUNTED}", where=where, fix=f"without {DISCOVERED}")
    return {"max": most} if DISCOVERED not in fields and counted in (None, most) else dict(fields)
