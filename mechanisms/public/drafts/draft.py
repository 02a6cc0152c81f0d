"""A commented draft of a schema, guessed from a table; it looked at the data, so a person must confirm it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import yaml

from mechanisms.public.drafts.age_guess import guess_ages
from mechanisms.public.drafts.column_facts import Look, looks
from mechanisms.public.drafts.column_guess import guess_column, unread
from mechanisms.public.drafts.metadata.metadata_files import as_json, columns_text
from mechanisms.public.drafts.mixed_guess import guess_mixed
from mechanisms.public.drafts.never_guess import Dependent, code_batches, guess_dependent
from mechanisms.public.drafts.order_guess import (
    EVEN,
    Length,
    apart_in_words,
    guess_orders,
    in_groups,
    rows_in_words,
    twins,
)
from mechanisms.public.drafts.rule_guess import (
    Determined,
    Pair,
    guess_calendar,
    guess_derived,
    guess_parts,
    guess_spans,
)
from mechanisms.public.drafts.seen import LATE, few_units, too_late
from mechanisms.public.drafts.several_guess import several_answers
from mechanisms.public.drafts.text_guess import BELOW_ZERO, FEW_IDS, OF_OTHERS, unused
from mechanisms.public.drafts.unit_guess import (
    GUESS,
    RECORD,
    counted,
    guess_persons,
    guess_unit,
    ids_of_others,
    odd_rows,
    of_whom,
    rows_of_each,
    with_ids,
)
from mechanisms.public.rules.computed import length_name
from mechanisms.public.rules.structural_zeros import MOST_CONSTANTS
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields, texts_in
from mechanisms.public.schema.hierarchy import Hierarchy
from mechanisms.public.schema.hierarchy_fields import hierarchy_fields
from mechanisms.public.schema.places import Places, place_fields
from mechanisms.public.schema.schema_text import DRAFTED
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.encode import by_column
from mechanisms.public.tables.scan import Source

NOTICE = """\
# DRAFT, guessed by looking at the data: NOT private. Values, bounds and gaps below were read off rows of people.
# A release made with it says that it is not private, until a person has checked it and set confirmed_public: true.
# Check each column against what is publicly known (a codebook, a form, the law), never against this table:
#   - values: is this the public list? Values that only this table shows betray people; `other: Other` takes the rest.
#     A text that {few} is never listed here, signs such as NA aside: add what a public list names.
#     {counted}
#   - min and max: replace them by generous public bounds; values outside are clipped.
#   - bins: as coarse as the question allows; fewer cells, less noise.
#   - missing: may the column be empty at all? Which texts mean so?
#   - what nobody knows publicly: bounds, bins or values: discover finds it with noise, from the same budget.
#   - source: where the lists and bounds come from once you have checked them (a codebook, a form, a law). The table is
#     no source of its own: a schema that names it cannot be confirmed.
#   - leave_out: free text and ids; the column that names the unit of privacy need not be released.
"""
#: Said of a column that holds ids of other units.
KIN = "who belongs to whom is not measured, and synthetic units have other ids"
#: Said of times there whose weekdays or hours a release would not keep.
LOST_PARTS = "; `ordered` below loses its uneven {}: in place of it calendar: {}, with bins: month, keeps them"
#: Texts that every reader of YAML takes for texts without quotes, but for the words of yes, no and nothing.
BARE = re.compile(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[^\W\d_][\w -]*")


def draft_schema(
    source: Source,
    name: str,
    trees: Mapping[str, Hierarchy] | None = None,
    places: Mapping[str, Places] | None = None,
    unit: str = GUESS,
    orders_given: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A schema in YAML, with the guess for each column and what a person must check as comments.

    Guarantee: none; the text holds values of rows. It carries `confirmed_public: false`.
    Args:
        name: the schema's name.
        trees: hierarchies of columns; their leaves are the values of the column.
        places: where those leaves lie on a map, where that is known.
        unit: the column that names a person, so that texts of few persons are not listed; "record": rows are counted;
            "guess": the names of the columns tell.
        orders_given: column → its values in an order that the table's own types declare.

    Raises:
        UserError: the table lacks a column that has a hierarchy, or the unit.
    """
    trees, places = trees or {}, places or {}
    for column in trees:
        source.index(column, where="cluster")
    drafted, guesses, many = dict[str, FieldDict](), dict[str, str](), list[str]()
    source = by_column(source, source.workdir)
    named = None if unit in {GUESS, RECORD} else unit
    who = guess_unit(source) if unit == GUESS else named
    same = twins(source)
    with source.connect() as engine:
        for look, index in looks(source, engine, who):
            column = source.names[index]
            if column in same and column not in trees:
                guesses[column] = f"the same as {same[column]!r} in all rows: one of the two is enough"
                continue
            many += [column] if look.facts[index].distinct > FEW_IDS else []
            fields, guess = _listed(look, index, trees[column]) if column in trees else guess_column(look, index)
            if fields is not None and column in places:
                fields |= place_fields(places[column])
            guess += _in_order(fields, (orders_given or {}).get(column, ())) + several_answers(look, index, fields)
            asks = who is None and unit == GUESS and not any(words in guess for words in (OF_OTHERS, BELOW_ZERO))
            guesses[column] = guess + (of_whom(look, index, fields) if asks else "")
            drafted |= {} if fields is None else {column: fields}
    kin = ids_of_others(source, who, many) if who else {}
    gone = {c: f"{remark}: {KIN}" for c, remark in kin.items()} | guess_spans(source, _as_columns(drafted))
    drafted = {c: fields for c, fields in drafted.items() if c not in gone}
    guesses = {c: guess for c, guess in guesses.items() if c not in gone} | gone
    columns = _as_columns(drafted)
    persons, constant, order = guess_persons(source, named, columns)
    held, _, weekdays = guess_calendar(source, _not_in(columns, constant))
    for column, values in weekdays.items():
        drafted[column]["values"] = values
    for own in (each for each in held.values() if "hour" in each):  # a code for each hour, though an office sleeps
        drafted[own["hour"]] |= {"min": 0, "max": 23}
    columns = _as_columns(drafted)
    varied, derived = _not_in(columns, constant), _derived(source, columns, {*held, *constant, order or ""})
    computed = {c for c, _, _ in derived}  # no other rule names them
    orders, lengths, (alike, days, clocks) = guess_orders(source, varied, derived, {*held, *computed, order or ""})
    rows, free = with_ids(source, named) if named else source, _not_in(columns, computed)
    each = 1.0 if who is None else rows_of_each(rows, who)
    dependent = guess_dependent([*_not_in(free, unread(guesses)).values()], partial(code_batches, rows), constant, each)
    parts = guess_parts(source, varied, held)
    remark_of = _pair_remarks(orders, parts, alike, days, clocks | _asked(source, free))
    guesses = {c: guess + remark_of.get(c, "") for c, guess in guesses.items() if not persons or c != who}
    if all(fields["kind"] == "constant" for fields in drafted.values()):  # something has to be measured
        first = next(iter(drafted or guesses))
        values = [drafted.get(first, {}).get("value", "value")]
        drafted[first] = {"kind": "categorical", "values": values, "other": "Other"}
        guesses[first] = guesses[first].replace("not measured", "measured, as no other column is")
    rule = _calendar(held, parts, drafted, orders, {*computed, *(one.later for one in lengths)})
    head = _head(source, who, guessed=unit == GUESS)
    return head + _columns(source, name, drafted, guesses) + persons + _rules(orders, lengths, rule, derived, dependent)


def _not_in(columns: Mapping[str, Column], names: Collection[str]) -> dict[str, Column]:
    return {n: c for n, c in columns.items() if n not in names}


def _asked(source: Source, free: Mapping[str, Column]) -> dict[str, str]:
    """Column → what is asked of it, since no rule keeps it: of births, and of mixed numbers."""
    late = {name: LATE for name, column in free.items() if too_late(column)}
    return guess_ages(source, free) | guess_mixed(source, free) | late


def _head(source: Source, who: str | None, *, guessed: bool) -> str:
    """What a person must check, and what is odd about the whole table."""
    notice = NOTICE.format(few=few_units(who), counted=counted(who, guessed=guessed))
    return notice + "".join(f"# {remark}\n" for remark in odd_rows(source))


def _in_order(fields: FieldDict | None, given: Sequence[str]) -> str:
    """Lists the values in an order that is given, where it holds all of them, and says so."""
    listed = {*(fields or {}).get("values", ())}
    if fields is None or not listed or not listed <= {*given}:
        return ""
    fields |= {"values": [v for v in given if v in listed], "ordinal": True}
    return "; in the order of the frame's categories"


def _calendar(
    held: Mapping[str, Mapping[str, str]],
    parts: Mapping[str, tuple[list[str], object, FieldDict]],
    drafted: Mapping[str, FieldDict],
    orders: Sequence[tuple[str, str, int, int]],
    computed: Collection[str],
) -> dict[str, object]:
    """The rule `calendar` about parts that columns hold, and about others where no other rule takes the time already.

    Args:
        drafted: column → its declaration, which gets the bins that hold all values of its parts.
    """
    taken = {n for low, high, *_ in orders for n in (low, high)} | {*computed}
    rule: dict[str, object] = {**held}
    short = Bins(calendar="day"), Bins(calendar="week")  # of weeks the first and the last are cut
    cut = [n for n, column in _as_columns(drafted).items() if column.bins in short]
    for time in (n for n, own in held.items() if "weekday" in own and n in cut):
        drafted[time]["bins"] = "month"
    for time, (_, own, bins) in parts.items():
        if time not in taken:
            drafted[time].update(bins)
            rule[time] = own
    return rule


def _as_columns(drafted: Mapping[str, FieldDict]) -> dict[str, Column]:
    """The drafted columns by their names; none where each is a constant."""
    if all(fields["kind"] == "constant" for fields in drafted.values()):
        return {}
    return {c.name: c for c in parse_schema({"columns": drafted}, where="the draft").columns}


def _pair_remarks(
    orders: Sequence[Pair],
    parts: Mapping[str, Any],
    alike: Sequence[Pair],
    apart: Sequence[Pair],
    asked: Mapping[str, str],
) -> dict[str, str]:
    """Column → what its guess says besides, of columns that ascend with others, or are as good as the same.

    Args:
        apart: of a day and a time of which no length is measured.
        asked: of times of the day that come soon after others, of births and of mixed numbers.
    """
    ruled = {column for low, high, _, _ in orders for column in (low, high)} & parts.keys()
    remark_of = {n: LOST_PARTS.format(" and ".join(parts[n][0]), as_json({n: parts[n][1]})) for n in ruled}
    for one, other, rows, both in alike:
        same = f"; the same as {one!r} in {rows:,} of {both:,} rows: is one of the two enough?"
        remark_of[other] = remark_of.get(other, "") + same
    for pair in apart:
        remark_of[pair[1]] = f"{remark_of.get(pair[1], '')}; {apart_in_words(*pair)}"
    for column, words in asked.items():
        remark_of[column] = f"{remark_of.get(column, '')}; {words}"
    return remark_of


def _derived(source: Source, columns: Mapping[str, Column], needed: Collection[str]) -> list[tuple[str, str, str]]:
    """Computed columns; of an age also how it is measured in the place of the birth, since others follow the age."""
    derived = guess_derived(source, columns, needed)
    computed, marked = {c for c, *_ in derived}, []
    for name, text, words in derived:
        dates = re.fullmatch(r"years\((\w+), (\w+)\)", text)
        if dates is not None and dates[1] not in {*computed, *needed} and dates[2] not in computed:
            days = {"min": -int((columns[name].high + 1) * 366), "max": -int(columns[name].low * 365)}
            rule = as_json({dates[1]: {"from": dates[2], "length": {**days, "bins": {"count": EVEN}}}})[1:-1]
            words += f"; where other columns follow it, measure it and not {dates[1]!r}, beside this rule: {rule}"
        marked.append((name, text, words))
    return marked


def _columns(source: Source, name: str, drafted: Mapping[str, FieldDict], guesses: Mapping[str, str]) -> str:
    """The head of a schema, its columns, and those that are left out, with why."""
    head = yaml.safe_dump({"name": name, "source": DRAFTED, "confirmed_public": False}, sort_keys=False)
    written = f"dialect: {json.dumps(source.dialect.fields)}  # {source.dialect.remark}\n"
    head += written if source.dialect.fields else ""
    columns = [(c, fields, f"guess: {guesses[c]}") for c, fields in drafted.items()]
    return head + columns_text(columns, [e for e in guesses.items() if e[0] not in drafted], _has_doubtful_texts)


def _has_doubtful_texts(fields: Fields) -> bool:
    """Whether some reader of YAML takes a text in lists for another thing."""
    lists = texts_in([value for value in fields.values() if not isinstance(value, str)])
    return not all(map(BARE.fullmatch, lists))


def _rules(
    orders: Sequence[tuple[str, str, int, int]],
    lengths: Sequence[Length],
    calendar: Mapping[str, object],
    computed: Sequence[tuple[str, str, str]],
    dependent: Dependent,
) -> str:
    """Rules as comments, each field behind its words: a person must know that it holds everywhere."""
    follows = dependent.follows
    expressions = [f"{as_json(c)}: {{expression: {json.dumps(e)}}}  # {words}" for c, e, words in computed]
    expressions += [f"{as_json(one.rule)[1:-1]}  # {one.in_words}" for one in lengths]
    expressions += [
        f"{as_json(m.target)}: {{from: {as_json(m.source)}, map: {as_json(dict(m.possible))}}}  # {_share(m)}"
        for m in follows
        if m.complete
    ]
    pairs = [
        f"- {{columns: {as_json([f.source, f.target])}, possible: {as_json(f.possible)}}}  # {_share(f)}"
        for f in follows
        if not f.complete
    ]
    listed = [{f.source, f.target} for f in follows if not f.complete]  # a list says more
    measured = {one.later: length_name(one.later) for one in lengths}  # in its place
    pairs += [
        f"- {as_json({measured.get(n, n): own for n, own in one.rule.items()})}"
        f"  # {one.word} in {one.empty:,} of {one.rows:,} such rows: "
        f"is it {'not asked' if one.above is None else 'always 0'} there?"
        f"{'; a length stands for its date by the rule `derive` above' * bool(one.rule.keys() & measured.keys())}"
        for one in dependent.skipped
        if {one.source, one.target} not in listed
    ]
    pairs += [
        f"- {as_json({measured.get(n, n): own for n, own in one.rule.items()})}  # {one.in_words}: can it not be?"
        for one in dependent.never
    ]
    if dependent.left:
        left = ", ".join(as_json(sorted(pair)) for pair in dependent.left)
        pairs.append(
            f"# left out, as together they speak of more than {MOST_CONSTANTS:,} combinations of constants: {left}"
        )
    ascending = [f"- {as_json(group)}  # {rows_in_words(group, up, both)}" for group, up, both in in_groups(orders)]
    public = "is there a public list that says the same?"
    parts = (
        (f"with these rules the column is computed within its bounds, not measured; {public}", "derive:", expressions),
        (f"with these rules no synthetic row shows another combination; {public}", "impossible:", pairs),
        ("with these rules no synthetic row descends:", "ordered:", ascending),
    )
    text = [
        line
        for head, field, lines in parts
        if lines
        for line in (f"# {head}", f"# {field}", *map("#   {}".format, lines))
    ]
    if calendar:
        text += [
            "# with it weekdays and hours are as measured; without, days and times are spread evenly inside bins;",
            "# it needs bins of at least a week, and no `ordered`:",
            f"# calendar: {as_json(calendar)}",
        ]
    return "".join(f"{line}\n" for line in text)


def _share(rule: Determined) -> str:
    return f"in {rule.follows:,} of the {rule.rows:,} rows that tell"


def _listed(look: Look, index: int, tree: Hierarchy) -> tuple[FieldDict, str]:
    """The declaration of a column whose values are the leaves of a hierarchy."""
    facts = look.facts[index]
    gaps = [t for t in facts.gaps if t not in tree.leaves]
    beyond = look.beyond(index, [*tree.leaves, *gaps])
    fields: FieldDict = {"kind": "categorical", "values": list(tree.leaves), "missing": gaps or facts.empty}
    if "" in tree.leaves:
        fields["missing"] = gaps or False
    fields["hierarchy"] = hierarchy_fields(tree)
    if not beyond:
        return fields, f"the {len(tree.leaves)} values of the file with the hierarchy; is the list complete?"
    guess = f"the {len(tree.leaves)} values of the file with the hierarchy; {beyond} more texts of the table are Other"
    return fields | {"other": unused(tree.leaves)}, guess
