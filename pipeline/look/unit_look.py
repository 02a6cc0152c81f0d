"""What a table says of its units: ids, records of each, what does not count. NOT private: for the operator's eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.drafts.column_facts import COMPACT_DAY, filled
from mechanisms.public.drafts.draft import KIN
from mechanisms.public.drafts.order_guess import ASCENDING
from mechanisms.public.drafts.rule_guess import FEWEST_ROWS
from mechanisms.public.drafts.seen import ColumnFacts, follow_each_other
from mechanisms.public.drafts.text_guess import FEW_IDS
from mechanisms.public.drafts.unit_guess import CODES, IN_PART, ids_of_others
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.doubts import (
    CUT_SHORT,
    LOOKED_AT,
    USUAL,
    cut_short,
    ids_of_many,
    ids_of_nobody,
    two_shapes,
)
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.persons import STAFF_COLUMN
from mechanisms.public.tables.scan import Source, literal
from mechanisms.public.tables.text_forms import GAPS, ID_NAME, PERSON_ID_COLUMN, ROW_SHARE, may_number
from mechanisms.public.tables.value_summaries import value_batches
from mechanisms.sensitive.contribution import PrivacyUnit, unit_forms, unit_id, unit_numbers
from pipeline.look.column_look import listed
from pipeline.look.step_look import sizes_look, steps_look

#: Numbers with a decimal mark, times of the day, seconds since 1970, and days or times in digits.
AMOUNT = "[-+]?[0-9]*[.,][0-9]+|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?|1[0-8][0-9]{8}([0-9]{3})?"
AMOUNT += f"|{COMPACT_DAY}([0-9]{{4}}([0-9]{{2}})?)?|((0[1-9]|[12][0-9]|3[01]){{2}}(19|20)[0-9]{{2}})"
#: From here on a float is not every whole number.
EXACT = {"FLOAT": 2**24, "DOUBLE": 2**53}
#: A person has fewer units than this in the mean: values of more are of places, or of staff.
RECORDS = 50


class LossBar(NamedTuple):
    """The share of its values that a column may lose; and whether somebody said how many records of one unit count."""

    at_most: float
    bounded: bool = True


def units_look(
    source: Source, schema: Schema, unit: PrivacyUnit, seen: Mapping[str, ColumnFacts], coded: CodedTable, bar: LossBar
) -> tuple[list[str], list[str]]:
    """What is said of units, and of the whole persons that a schema declares.

    Args:
        coded: the rows as codes of the schema's columns.
    Returns:
        Hints, and warnings.
    """
    hints, warned = _of_units(source, schema, unit, seen, coded.rows, bar)
    persons, asked = _persons_look(source, schema, unit, coded)
    if unit.column is not None:
        codes = {c.name for c in schema.held if c.kind in CODES or c.width is not None}
        apart = [n for n in source.names if ID_NAME.search(n) or n in codes or n not in schema.domain.names]
        many = [n for n in apart if seen[n].distinct > FEW_IDS]
        kin = ids_of_others(source, unit.column, many)
        hints += _entered_twice(source, unit.column)
        hints += [f"{n!r}: {remark}: {KIN}" for n, remark in kin.items() if n not in schema.domain.names]
        listed_ids = [n for n in kin if n in schema.domain.names]
        warned += [f"column {n!r}: {kin[n]}, and it would be measured: leave_out: [{n}]; {KIN}" for n in listed_ids]
    return [*hints, *persons], [*warned, *asked]


def _of_units(
    source: Source, schema: Schema, unit: PrivacyUnit, seen: Mapping[str, ColumnFacts], rows: int, bar: LossBar
) -> tuple[list[str], list[str]]:
    """Rows without an id, and how many records units have; or `_ids_among`, where a row is a unit.

    Returns:
        Hints, and warnings: of ids that look like none, and of records that do not count.
    """
    if unit.column is None:
        return _ids_among(source, schema, seen, rows), []
    query = (
        f"SELECT {unit_id(source, unit)} AS text, count(*) AS rows FROM {source.relation} GROUP BY text ORDER BY text"
    )
    read = pa.Table.from_batches(source.batches(query), pa.schema({"text": pa.string(), "rows": pa.int64()}))
    written = read.append_column("form", unit_forms(read["text"].combine_chunks(), source, unit))
    own_rows = written.filter(pc.is_valid(written["form"]))
    counted = own_rows.group_by("form", use_threads=False).aggregate([("rows", "sum")])
    sizes, ids = counted["rows_sum"].to_numpy(), counted["form"].combine_chunks()
    without = int(pc.sum(written["rows"]).as_py() or 0) - int(sizes.sum())
    largest = f", at most {int(sizes.max()):,} records each" if sizes.size else ""
    own = "are a unit each: do none belong to the id above, as of merged cells?"
    words = {"drop": "do not count", "own": own, "refuse": "refuse the run"}[unit.missing]
    hints = [f"unit {unit.column!r}: {sizes.size:,} units{largest}; {without:,} rows without an id, which {words}"]
    beyond = 0
    if bar.bounded and (over := int((sizes > unit.max_records).sum())):
        beyond = int(np.maximum(sizes - unit.max_records, 0).sum())
        share = percent(over / sizes.size)
        excess = f"{share} of the units have more than privacy.max_records={unit.max_records} records"
        hints.append(f"{excess}, and {percent(beyond / rows)} of all records lie beyond it")
    hints += _above(source, unit.column, seen)
    top = np.argsort(-sizes, kind="stable")[:LOOKED_AT]
    texts = dict(zip(ids.take(top).to_pylist(), sizes[top].tolist(), strict=True))
    some = ids[:: max(1, sizes.size // LOOKED_AT)]
    warned = [f"unit {unit.column!r}: {remark}" for remark in two_shapes(some.to_pylist())]
    usual = float(np.quantile(sizes, USUAL)) if sizes.size else 0.0
    warned += [f"unit {unit.column!r}: {remark}" for remark in ids_of_many(texts, usual)]
    if nobody := ids_of_nobody(texts, usual):
        each = ", ".join(f"{text!r} is the id of {texts[text]:,} records" for text in nobody)
        cure = f"privacy.missing_unit_values={listed([*unit.missing_values, *nobody])}"
        warned.append(f"unit {unit.column!r}: {each}, as of one person: is it none? {cure}")
    warned += _one_person(ids, unit) + _rounded(source, unit.column)
    hints += _joined(own_rows, unit)
    text = source.text(source.index(unit.column, where="privacy.unit"))
    cut = f"regexp_full_match(trim({text}), {literal(CUT_SHORT.pattern)})"
    held = source.lines(f"SELECT min({text}), count(*) FROM {source.relation} WHERE {cut} HAVING count(*) > 0")
    warned += [f"unit {unit.column!r}: {remark}" for remark in cut_short(dict(held), unit.column, names=True)]
    lost = {"have no id": without if unit.missing == "drop" else 0, "lie beyond the bound": beyond}
    if sum(lost.values()) > bar.at_most * rows:
        why = " or ".join(words for words, records in lost.items() if records)
        warned.append(f"{percent(sum(lost.values()) / rows)} of the records {why}: their weight is lost")
    return hints, warned


def _ids_among(source: Source, schema: Schema, seen: Mapping[str, ColumnFacts], rows: int) -> list[str]:
    """Questions about columns that look like ids, where a row is a unit."""
    codes = [c.name for c in schema.held if _of_codes(c, seen[c.name]) and not c.constant]
    amounts = {c.name for c in schema.columns if c.kind in {"float", "date", "datetime"}}
    amounts |= _measured(source, [n for n in source.names if n not in amounts and not ID_NAME.search(n)])
    named = [n for n in source.names if ID_NAME.search(n) and 0.02 * rows < seen[n].distinct <= 0.95 * rows]
    named = [n for n in named if n not in amounts and not STAFF_COLUMN.search(n)]
    codes = [n for n in codes if n not in amounts and seen[n].may_be_id(n)]
    rest = {n: seen[n] for n in source.names if n not in {*amounts, *named, *codes}}
    grouped = dict.fromkeys(follow_each_other(source, rest), ", which follow each other")
    ids = [n for n in source.names if n in {*named, *codes, *grouped}]
    asked = [
        f"{name!r} {'looks like' if name in named else 'may be'} an id, with {seen[name].distinct:,} values "
        f"in {rows:,} rows{grouped.get(name, '')}: a person may have several; the unit is one record now: "
        f"{quote(f'privacy.unit={name}')} privacy.max_records=C protects all of them"
        for name in ids
    ]
    persons = any(PERSON_ID_COLUMN.search(n) for n in named)
    others = [n for n in source.names if n not in {*amounts, *ids}]
    asked += _twice(source, schema, seen, rows, others)
    return asked if persons else asked + _of_whom(schema, seen, others)


def _measured(source: Source, names: Sequence[str]) -> set[str]:
    """Those of the columns whose filled cells are all measurements or times: they name nobody."""
    if not names:
        return set()
    texts = [source.text(source.names.index(n)) for n in names]
    each = [f"coalesce(bool_and(regexp_full_match(trim({t}), '{AMOUNT}')) FILTER ({filled(t)}), false)" for t in texts]
    (measured,) = source.lines(f"SELECT {', '.join(each)} FROM {source.relation}")
    return {name for name, is_so in zip(names, measured, strict=True) if is_so}


def _of_whom(schema: Schema, seen: Mapping[str, ColumnFacts], names: Sequence[str]) -> list[str]:
    """A question about columns that are not released, and have few rows for each value: a person may have several."""
    others = [n for n in names if n not in schema.domain.names]
    if not (few := [n for n in others if seen[n].may_be_id(n)]):
        return []
    these = f"not released, with few rows for each value: {', '.join(map(repr, few))}: does one of them name persons?"
    return [f"{these} A person may have several rows, and the unit is one record now: privacy.unit=COLUMN"]


def _above(source: Source, unit: str, seen: Mapping[str, ColumnFacts]) -> list[str]:
    """A question about ids of persons of whom one may have several units; units without such an id say nothing."""
    own, hints = source.text(source.names.index(unit)), []
    for n in (n for n in source.names if n != unit and ID_NAME.search(n) and PERSON_ID_COLUMN.search(n)):
        held = filled(source.text(source.names.index(n)))
        ((units,),) = source.lines(f"SELECT count(DISTINCT {own}) FROM {source.relation} WHERE {held}")
        if FEW_IDS < seen[n].distinct <= ROW_SHARE * units and units < RECORDS * seen[n].distinct:
            hints.append(
                f"{n!r} looks like an id of persons, with {seen[n].distinct:,} values for {units:,} of {unit!r}: a "
                f"person may have several, and each is protected alone: {quote(f'privacy.unit={n}')} "
                "privacy.max_records=C protects all of them"
            )
    return hints


def _twice(
    source: Source, schema: Schema, seen: Mapping[str, ColumnFacts], rows: int, names: Sequence[str]
) -> list[str]:
    """A question about columns nearly all of whose values differ, where values with digits stand in several rows."""
    hints = []
    texts = [n for n in names if n not in schema.domain.names or schema[n].kind == "categorical"]
    for name in (n for n in texts if seen[n].distinct > ROW_SHARE * rows):
        text = source.text(source.names.index(name))
        numbered = f"FROM {source.relation} WHERE regexp_matches({text}, '[0-9]')"
        each = f"SELECT 1 {numbered} GROUP BY {text} HAVING count(*) > 1"
        ((count,),) = source.lines(f"SELECT count(*) FROM ({each})")
        if count:
            unit = f"{quote(f'privacy.unit={name}')} privacy.max_records=C protects all of them"
            hints.append(f"{count:,} values of {name!r} stand in two rows or more: is it the person's? {unit}")
    return hints


def _entered_twice(source: Source, unit: str) -> list[str]:
    """A question about rows of one unit that are alike in all columns."""
    cells = ", ".join(map(source.text, range(len(source.names))))
    ((count,),) = source.lines(f"SELECT count(*) - count(DISTINCT hash({cells})) FROM {source.relation}")
    remark = (
        f"{count:,} rows are the same as another of their {unit!r} in every column: entered twice? Each is a record"
    )
    return [remark] * (count > 0)


def _of_codes(column: Column, facts: ColumnFacts) -> bool:
    """Whether a column holds codes, among which ids may be; no amounts, days or measurements."""
    if column.kind == "integer" and column.width is None:
        return may_number(facts.plain.low, facts.plain.high, facts.distinct)
    return column.kind == "categorical" or column.width is not None


def _one_person(ids: pa.Array, unit: PrivacyUnit) -> list[str]:
    """Ids that are others but for marks in them, or letters before their digits: ID-1234, 12 34 and 1234."""
    bare = pc.replace_substring_regex(ids, r"[^\pL\pN]+", "")
    digits = pc.replace_substring_regex(bare, r"^\pL+0*([0-9]+)$", r"\1")
    numbers = bare.filter(pc.match_substring_regex(bare, "^[0-9]+$"))
    person = pc.if_else(pc.is_in(digits, value_set=numbers), digits, bare)
    if pc.count_distinct(person).as_py() == len(ids):
        return []
    people = pa.table({"id": ids, "person": person, "form": pc.replace_substring_regex(ids, "[0-9]+", "")})
    each = people.group_by("person").aggregate([("form", "count_distinct"), ("id", "count"), ("id", "list")])
    split = each.filter(pc.and_(pc.greater(each["form_count_distinct"], 1), pc.not_equal(each["person"], "")))
    if not split.num_rows:
        return []
    ids_of_one = sorted(split["id_list"][0].as_py(), key=len)
    n, persons = pc.sum(split["id_count"]).as_py(), split.num_rows
    return [
        f"unit {unit.column!r}: {n:,} ids are {persons:,} but for marks in them, or letters before their digits, as "
        f"{ids_of_one[-1]!r} and {ids_of_one[0]!r} are: one person? The promise then holds for each id, not for the "
        "person: write each id in one way"
    ]


def _rounded(source: Source, unit: str) -> list[str]:
    """Ids so large that a float is not each of them, as pandas makes of whole numbers where one is missing."""
    index = source.index(unit, where="privacy.unit")
    if (least := EXACT.get(source.types[index])) is None:
        return []
    large = f"isfinite(c{index}) AND abs(c{index}) >= {least}"
    ((rows,),) = source.lines(f"SELECT count(*) FROM {source.relation} WHERE {large}")
    remark = f"the ids of {rows:,} rows are floats of {least:,} or more, where two ids may be one by now"
    return [f"unit {unit!r}: {remark}: write them as Int64, which has room for gaps, or as texts"] * (rows > 0)


def _joined(ids: pa.Table, unit: PrivacyUnit) -> list[str]:
    """Ids that are others in the table, and one unit by the rules: aZ3 and AZ3."""
    if pc.count_distinct(ids["form"]).as_py() == ids.num_rows:
        return []
    written = ids.group_by("form").aggregate([("text", "count"), ("text", "list")])
    several = written.filter(pc.greater(written["text_count"], 1))
    one, other = sorted(several["text_list"][0].as_py())[:2]
    return [
        f"unit {unit.column!r}: {pc.sum(several['text_count']).as_py():,} ids are {several.num_rows:,} by "
        f"privacy.unit_id_rules, as {one!r} and {other!r} are; where these are several persons, take the rule away: "
        "joined, each alone is protected as a group of two is (group_privacy)"
    ]


#: A constant that contradicts itself in a larger share of the persons who could is asked about.
CONSTANT = 0.5
#: What becomes of the records of a person beyond C, by privacy.clip.
BEYOND = {
    "weight": "each of their records weighs less",
    "truncate": "as many of their records count, by chance",
    "none": "the run is refused",
}


def _persons_look(source: Source, schema: Schema, unit: PrivacyUnit, coded: CodedTable) -> tuple[list[str], list[str]]:
    """Hints on persons beyond the bound, ties and gaps in their order; warnings of constants that are none."""
    declared = schema.rules.unit
    if declared is None or unit.column is None or not coded.rows:
        return [], []
    owners = unit_numbers(source, unit)
    sizes = np.bincount(owners)
    if sizes.max() == 1:
        return [], ["unit: no id repeats: one record a person, and nothing to link; leave unit out of the schema"]
    hints = []
    if beyond := int((sizes > declared.max_records).sum()):
        hints.append(
            f"unit: records: persons with more than {declared.max_records:,} records: {beyond:,}; {BEYOND[unit.clip]}, "
            "and no synthetic person has more"
        )
    contradicting, warnings = _of_constants(schema, declared, coded, owners, int((sizes > 1).sum()))
    if int((sizes > 0).sum()) == 1:
        warnings.append("unit: all rows are one person's: nothing is known of any other")
    contradicting += sizes_look(schema, declared, coded, owners)
    return [*hints, *contradicting, *_of_order(source, schema, declared, coded, owners)], warnings


def _of_constants(
    schema: Schema, declared: PersonUnit, coded: CodedTable, owners: Ints, several: int
) -> tuple[list[str], list[str]]:
    """Persons whose records say several values of a constant; hints, and warnings."""
    hints, warnings = [], []
    by_person = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[by_person], prepend=-1))
    for name in declared.constant:
        codes, values = np.asarray(coded.column(name))[by_person].astype(np.int64), schema[name].value_codes
        gaps = codes >= values  # beside a value they contradict nothing
        empty = schema[name].kind == "flag" and ("", 0) in schema[name].spelled  # where it is not true
        gaps |= (codes == 0) & empty
        held, each = np.add.reduceat((~gaps).astype(np.int64), starts), np.diff(starts, append=codes.size)
        have = (held > 0) & (each > 1)
        written = not {"", *GAPS}.issuperset(schema[name].missing_texts)  # the person has a value, which is not known
        if int((each - held)[have].sum()) > IN_PART * int(each[have].sum()) and not written:
            warnings.append(
                f"unit: constant: {name!r} is filled in {int(held[have].sum()):,} of the {int(each[have].sum()):,} "
                "records of the persons who have it and several: a release fills all of them; take it out of unit: "
                "constant where it is true of a record alone"
            )
        least, most = np.where(gaps, values, codes), np.where(gaps, -1, codes)
        count = int((np.maximum.reduceat(most, starts) > np.minimum.reduceat(least, starts)).sum())
        remark = (
            f"unit: constant: {name!r} has several values in {count:,} of the {several:,} persons with several records"
        )
        remark += "; one of them is taken, by a keyed hash"
        if count > CONSTANT * several:
            warnings.append(f"{remark}: is it constant? if not, take it out of unit: constant")
        elif count:
            hints.append(remark)
    return hints, warnings


def _of_order(source: Source, schema: Schema, declared: PersonUnit, coded: CodedTable, owners: Ints) -> list[str]:
    """What the order of a person's records leaves to the order of the file, and records that never overlap."""
    if not declared.order:
        return ["unit: no order: the records of each person stand in the order of the file"]
    columns = [schema[n] for n in declared.order]
    numbers = [c for c in columns if c.kind in ORDERED_KINDS and c.width is None]
    groups = [g.columns for g in schema.rules.ordered if declared.order[0] in g.columns]
    ends = [schema[n] for names in groups for n in names[names.index(declared.order[0]) + 1 :]]
    read: list[dict[str, Floats]] = list(value_batches(source, [*numbers, *ends])) if numbers else []
    keys: list[NDArray[Any]] = []
    hints = []
    for column in columns:
        values = np.asarray(coded.column(column.name)).astype(np.float64)
        if column in numbers:
            values = np.concatenate([batch[column.name] for batch in read])
        else:
            values[values >= column.value_codes] = np.nan
        alike = f" with the same {columns[0].name!r}" if keys else ""
        keys.append(np.where(np.isnan(values), np.inf, values))
        if gaps := int(np.isnan(values).sum()):
            hints.append(
                f"unit: order: {percent(gaps / coded.rows)} of the rows ({gaps:,}) have no value of {column.name!r}, "
                f"and stand behind the others of their person{alike}"
            )
    order = np.lexsort((*reversed(keys), owners))
    steps = np.diff(owners[order]) == 0
    for end in ends if columns[0] in numbers else ():
        last, following = np.concatenate([batch[end.name] for batch in read])[order][:-1], keys[0][order][1:]
        both = steps & ~np.isnan(last) & np.isfinite(following)
        over, rows = int((last > following)[both].sum()), int(both.sum())
        if rows >= FEWEST_ROWS and over <= (1 - ASCENDING) * rows:
            hints.append(
                f"unit: order: {columns[0].name!r} comes before {end.name!r} of the person's record before in {over:,} "
                f"of {rows:,} steps; no rule keeps that, and records of a synthetic person may overlap"
            )
    hints += steps_look(schema, declared, coded, owners, (order, steps))
    tied = steps
    for key in keys:
        tied &= key[order][1:] == key[order][:-1]
    if ties := int(tied.sum()):
        hints.append(
            f"unit: order: rows with the same place as the one before, by {', '.join(declared.order)}: {ties:,}; the "
            "order of the file decides, or a further column"
        )
    return hints
