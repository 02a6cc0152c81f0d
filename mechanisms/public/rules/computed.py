"""Columns that follow from others: by an expression, by a mapping that is measured, or by a measured length of time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, check_names, one_of
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.rules.expressions import Expression, Type, parse_expression
from mechanisms.public.rules.structural_zeros import column_of_rule
from mechanisms.public.rules.transforms import Unread
from mechanisms.public.schema.bins import DAY, multiple
from mechanisms.public.schema.column import DATE_KINDS, ORDERED_KINDS, Between, Column
from mechanisms.public.schema.column_parse import parse_column
from mechanisms.public.schema.discover_fields import FieldDict, as_text, check_fields
from mechanisms.public.workload import Workload

FIELD = "expression"


@dataclass(frozen=True, eq=False, kw_only=True)
class Computed(Unread):
    """A column whose value in every written row is an expression of other values of that row.

    It is neither measured nor read where rows are measured; until values are drawn it has no code of its own, and all
    of its codes are 0.
    """

    expression: Expression

    def values(self, sources: Mapping[str, Floats], column: Column) -> Floats:
        """The column's values as they are written, NaN where missing: rounded to its kind, and inside its bounds.

        Args:
            sources: as of `Expression.values`.
            column: the target; a value beyond its bounds is clipped, or missing with `outside: missing`.
        """
        values, (low, high) = self.unbounded(sources, column), column.bounds
        if column.outside == "missing":
            values[(values < low) | (values > high)] = np.nan
        if (step := column.multiple_of) is not None:  # the last minute of the last day, not its last second
            low, high = (float(multiple(end(bound / step), step)) for end, bound in ((np.ceil, low), (np.floor, high)))
        values = np.clip(values, low, high)
        return values if column.missing else np.nan_to_num(values, nan=low)

    def unbounded(self, sources: Mapping[str, Floats], column: Column) -> Floats:
        """The same before they are brought inside the column's bounds; NaN where a source is missing."""
        values = self.expression.values(sources)
        if column.kind in DATE_KINDS:
            values = in_unit(values, self.expression.type, column.kind)
        elif column.kind == "integer":
            values = np.floor(values + 0.5)
        elif column.decimals is not None:
            values = np.round(values, column.decimals)
        if column.multiple_of is not None:
            values = multiple(np.rint(values / column.multiple_of), column.multiple_of)
        return values


def in_unit(moments: Floats, given: str, kind: str) -> Floats:
    """Dates in days, times in seconds."""
    if given == kind:
        return np.floor(moments)
    return np.floor(moments / 86_400) if kind == "date" else np.floor(moments * 86_400)


def value_types(columns: Mapping[str, Column]) -> dict[str, Type]:
    """Column → what its values are in an expression; columns of texts are not in it."""
    types: dict[str, Type] = {}
    for name, column in columns.items():
        if column.kind in DATE_KINDS:
            types[name] = "date" if column.kind == "date" else "datetime"
        elif column.numeric and column.width is None:
            types[name] = "number"
    return types


def parse_computed(name: str, given: Mapping[Any, Any], columns: Mapping[str, Column], where: str) -> Computed:
    """`derive: {column: {expression: "days(admitted, discharged)"}}`.

    Raises:
        UserError: a column that cannot hold the result; an expression that says what is not allowed, with the position.
    """
    rule = f"derive {name!r}"
    place = f"{where}: {rule}"
    if set(given) != {FIELD}:
        others = ", ".join(str(k) for k in given if k != FIELD)
        raise UserError(f"{others} beside {FIELD}", where=place, fix="an expression alone; or from and map")
    target = column_of_rule(name, columns, rule, where)
    _check_target(target, place)
    types = {n: t for n, t in value_types(columns).items() if n != name}
    expression = parse_expression(given[FIELD], types, place)
    dates = expression.type != "number"
    if dates != (target.kind in DATE_KINDS):
        fix = "kind: date or datetime" if dates else "kind: integer or float"
        raise UserError(f"the result is a {expression.type}, the column is of kind {target.kind}", where=place, fix=fix)
    if not target.missing:
        empty = [n for n in expression.sources if columns[n].missing or columns[n].other is not None]
        if empty or expression.divides:
            why = f"{empty[0]!r} may be" if empty else "a division by 0 is"
            raise UserError(
                f"the column is never missing, but {why}", where=place, fix=f"{name}: missing: true; or sources without"
            )
    return Computed(takes=(name,), reads=expression.sources, size=target.size, expression=expression)


def _check_target(target: Column, place: str) -> None:
    """UserError where the declaration says what means nothing for a column that is not measured."""
    if target.kind not in ORDERED_KINDS or target.width is not None:
        raise UserError(f"the column is of kind {target.kind}", where=place, fix="integer, float, date or datetime")
    declared = {
        "other": target.other is not None,
        f"outside: {target.outside}": target.outside not in {"clip", "missing"},
        "discover": target.discover is not None,
        "joint_bins": target.joint_bins is not None,
        "one_way_only": target.one_way_only,
        "fine": bool(target.fine),
    }
    for field, set_so in declared.items():
        if set_so:
            fix = "leave it out; a value beyond min and max is clipped, or missing with outside: missing"
            raise UserError(f"{field}: the column is not measured, it is computed", where=place, fix=fix)


FIX = "mapped: {zip code: {from: station}}: two columns of the table"


@dataclass(frozen=True)
class Mapped:
    """A column, and the one that it follows from nearly (Li et al. 2021b, section 5.4).

    The two are measured together, in place of the target's one-way marginal, and in no other joint marginal; in the
    synthetic table the target is for each code of the source the one with the largest noisy count.
    """

    target: str
    source: str


def parse_mapped(given: object, names: Collection[str], where: str) -> tuple[tuple[Mapped, ...], FieldDict]:
    """`mapped: {column: {from: other}}`, and the fields that say it again.

    Raises:
        UserError: another form, unknown columns, or a column that follows from one that follows itself.
    """
    entries = {} if given is None else given
    if not isinstance(entries, Mapping):
        raise UserError(f"mapped: got {given!r}", where=where, fix=FIX)
    parsed = []
    for name, fields in entries.items():
        if not isinstance(fields, Mapping) or set(fields) != {"from"}:
            raise UserError(f"mapped {name!r}: got {fields!r}", where=where, fix=FIX)
        pair = Mapped(str(name), str(fields["from"]))
        check_names((pair.target, pair.source), names, f"mapped {name!r}: no column", where=where, fix=FIX)
        if pair.source in entries:
            problem = f"mapped {name!r}: {pair.source!r} is mapped itself"
            raise UserError(problem, where=where, fix="a column that is synthesized")
        parsed.append(pair)
    return tuple(parsed), {m.target: {"from": m.source} for m in parsed}


def check_mapped(mapped: Sequence[Mapped], table: Domain, measured: Domain) -> None:
    """UserError where a step of the schema takes or changes one of the columns."""
    for pair in mapped:
        for name in (pair.target, pair.source):
            if name not in measured or measured[name] != table[name]:
                fix = "columns that stand in no derive, recode, availability or joint_bins"
                raise UserError(
                    f"column {name!r} is measured in another form", where=f"mapped {pair.target!r}", fix=fix
                )


def in_pairs(domain: Domain, mapped: Sequence[Mapped], clique: Clique) -> Clique:
    """A target's one-way marginal as the marginal with its source; any other marginal as it is."""
    source = {m.target: m.source for m in mapped}
    if len(clique) == 1 and clique[0] in source:
        return domain.canonical((clique[0], source[clique[0]]))
    return clique


def with_pairs(domain: Domain, mapped: Sequence[Mapped], workload: Workload) -> Workload:
    """The workload with every target in the marginal with its source, and in no other."""
    weights = {in_pairs(domain, mapped, c): w for c, w in zip(workload.cliques, workload.weights, strict=True)}
    for pair in mapped:
        weights.setdefault(domain.canonical((pair.target, pair.source)), 1.0)
    order = sorted(weights, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(order), tuple(weights[c] for c in order), workload.left_out)


def filled(synthetic: CodedTable, mapped: Sequence[Mapped], measurements: Measurements) -> CodedTable:
    """Synthetic rows with every target as the noisy mapping says; where its marginal was lost, as it was made.

    Guarantee: post-processing; costs no privacy.
    """
    domain, columns = synthetic.domain, list(synthetic.columns)
    for pair in mapped:
        clique = domain.canonical((pair.target, pair.source))
        whole = [a for a in measurements.answers if a.clique == clique and isinstance(a.query, Identity)]
        if not whole:
            continue
        counts = sum((a.values / a.stddev**2 for a in whole), np.zeros(domain.cells(clique)))
        best = counts.reshape(domain.shape(clique)).argmax(axis=clique.index(pair.target))
        place = domain.index(pair.target)
        columns[place] = best.astype(code_dtype(domain[pair.target].size))[synthetic.column(pair.source)]
    return replace(synthetic, columns=tuple(columns))


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
            fix = f"derive: {{{name}: {{expression: …}}}}, if it holds the length; else rename it in the table"
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
