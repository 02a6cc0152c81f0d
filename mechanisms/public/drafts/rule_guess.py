"""Rules that a drafted schema may have, as far as the table tells: computed, ascending and determined columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.drafts.column_facts import MAX_VALUES, filled
from mechanisms.public.drafts.metadata.metadata_files import as_json
from mechanisms.public.drafts.seen import FEWEST_UNITS, too_late
from mechanisms.public.drafts.sum_guess import SUMMED, SUMMED_ROWS, guess_products, guess_sums, marked
from mechanisms.public.errors import UserError
from mechanisms.public.rules.calendar_parts import PARTS, part_name, parts_of
from mechanisms.public.rules.computed import in_unit, value_types
from mechanisms.public.rules.expressions import Expression, parse_expression
from mechanisms.public.schema.bins import DAY, Bins
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import DATE_KINDS, DAYS, Column
from mechanisms.public.schema.discover_fields import FieldDict
from mechanisms.public.schema.table_schema import column_fields, parse_schema
from mechanisms.public.tables.encode import read_sql, text_sql
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import agree, first_rows, value_batches

#: What is tried for each whole number and each two dates; a length in days is measured, and the later date computed.
TRIED = ("days", "years")
#: What a whole number may be of a date.
OF_DATES = ("year", "month", "day")
#: A length between two dates is of days; one between two times of days, hours, minutes or seconds.
LENGTHS = {"date": ("",), "datetime": ("", " * 24", " * 1440", " * 86400")}
#: Weekdays and hours of so many rows are uneven where so large a share would have to move.
FEWEST_MOMENTS, UNEVEN = 1_000, 0.1
#: Numbers that reach no further are no hours of a day.
NOON = 12
#: Parts of years: how they are written (a week by ISO 8601), and the same of a moment, without signs between.
SPANS = {
    "weeks": (re.compile("[0-9]{4}-?[Ww][0-9]{2}"), "strftime({0}, '%GW%V')"),
    "months": (re.compile("[0-9]{4}-?[0-9]{2}"), "strftime({0}, '%Y%m')"),
    "quarters": (re.compile("[0-9]{4}[- ]?[Qq][1-4]"), "strftime({0}, '%YQ') || quarter({0})"),
}
#: More dates than that are not tried, nor more whole numbers beside so many; the fewer dates, the more numbers.
MOST = 12
#: An expression is proposed where at least so many rows hold a value, of at least two kinds.
FEWEST_COMPUTED = 10
#: Rows that are looked at first, and the share of rows that may break a rule before it is given up.
FEW, HALF = 200, 0.25
#: Of the rows that could break an expression so many may hold another value, get one by it, or lose theirs.
BROKEN = (0.03, 0.01, 0.05)
#: A pair is proposed where at least so many rows hold both values.
FEWEST_ROWS = 200
#: Of the rows that the most frequent target alone would place wrong, the source places at least this share right
#: (λ of Goodman & Kruskal 1954): a target of which nearly all rows are one value follows from nothing by that.
LAMBDA = 0.99
#: More columns, or columns of more codes in all, are not tried, and a longer list of pairs is not proposed.
MOST_DETERMINED, MOST_CODES, LONGEST = 150, 5_000, 2_000
#: A pair that more rows break than the first, and so many times the share that may, is given up before the last row.
HOPELESS = (1_000, 20)

#: Columns by their names, as a draft has them, or a schema.
ByName = Mapping[str, Column]
Pair = tuple[str, str, int, int]
#: Of some columns: column → codes of the rows, batch by batch.
BatchesOf = Callable[[Sequence[Column]], Iterable[Mapping[str, NDArray[np.int64]]]]


def is_amount(column: Column, kinds: Collection[str] = ("integer", "float")) -> bool:
    """Whether it is a column of numbers that are no postal codes."""
    return column.kind in kinds and column.width is None


def amounts(columns: ByName, kinds: Collection[str] = ("integer", "float")) -> list[Column]:
    """The columns of numbers that are no postal codes."""
    return [c for c in columns.values() if is_amount(c, kinds)]


def times_among(columns: ByName) -> list[Column]:
    """The columns of dates and of times, but for those that hold times to come since years have two digits."""
    return [c for c in columns.values() if c.kind in DATE_KINDS and not too_late(c)]


def guess_derived(source: Source, columns: ByName, measured: Collection[str]) -> list[tuple[str, str, str]]:
    """Column, expression, and in how many rows it holds, in words: nearly all that could break it. NOT private.

    Args:
        measured: columns of which no expression is proposed, nor one that adds them.
    """
    columns = {n: c for n, c in columns.items() if n and "`" not in n}  # others no expression names
    dates = times_among(columns)[:MOST]
    whole = amounts(columns, ("integer",))[: MOST**3 // max(1, len(dates)) ** 2]
    added = [c for c in amounts(columns) if c.name not in measured][:SUMMED]
    times = [(d, t) for d, t in itertools.permutations(dates, 2) if (d.kind, t.kind) == ("date", "datetime")]
    days = [(d, t) for d, t in times if d.name not in measured]
    every = [*(dates if whole or days else ()), *(whole if dates else ()), *(added if len(added) > 1 else ())]
    asked = {c.name: c for c in every}
    types = value_types(asked)
    each = [(n, a, b) for n in whole for a, b in itertools.permutations(dates, 2)]
    alike = [(n, a, b, part) for n, a, b in each if a.kind == b.kind and n.low >= 0 for part in LENGTHS[a.kind]]
    sums = [one for one in alike if one[2].name not in measured and (one[3] or not _longer(one[0], one[2]))]
    texts: list[tuple[Column, str, tuple[Column, ...]]] = [(d, marked(t), ()) for d, t in days]  # the day of a time
    texts += [(b, f"{marked(a)} + {marked(n)}{part.replace('*', '/')}", (n,)) for n, a, b, part in sums]
    texts += [(n, f"{word}({marked(a)}, {marked(b)})", (n,)) for n, a, b in each for word in TRIED]
    texts += [(n, f"{part}({marked(d)})", (n,)) for n in whole for d in dates for part in OF_DATES]
    texts += [(n, f"round(({marked(b)} - {marked(a)}){part})", (n,)) for n, a, b, part in alike if part]
    if len(added) > 1:
        rows = first_rows(source, added, SUMMED_ROWS)
        texts += [(c, text, (c,)) for c, text in guess_sums(rows, added)] if len(added) > 2 else []
        texts += guess_products(rows, added)
    tried = [_Tried(target, parse_expression(text, types, "the draft"), tells) for target, text, tells in texts]
    held: dict[str, tuple[Expression, str]] = {}
    for target, expression, words in _holding(source, [*asked.values()], tried) if tried else ():
        sources = [*expression.sources]
        for n in sources:  # and what these are computed from
            sources += [more for more in held[n][0].sources if more not in sources] if n in held else []
        if target not in held and target not in sources:
            empty = expression.divides or any(columns[n].missing for n in expression.sources)
            held[target] = (expression, words + needs_gaps(columns[target], empty))
    return [(target, expression.text, words) for target, (expression, words) in held.items()]


def needs_gaps(target: Column, empty: bool) -> str:
    """What a column that is never missing must say where what it is computed from may be; empty: nothing."""
    return f"; with {as_json({target.name: {'missing': True}})[1:-1]}" if empty and not target.missing else ""


def _longer(days: Column, dates: Column) -> bool:
    """Whether so many days last longer than the dates reach: sums of theirs would be clipped, as of ages of cows.

    Then the days are computed, and both dates measured.
    """
    return days.high - days.low > (dates.high - dates.low) / (1 if dates.kind == "date" else DAY)


def guess_spans(source: Source, columns: ByName) -> dict[str, str]:
    """Column of weeks (2024-W05), months or quarters → that a column of days lies in them, in all rows. NOT private."""
    parts_of: dict[str, str] = {}
    for (name, column), (spans, (written, same_sql)) in itertools.product(columns.items(), SPANS.items()):
        if not column.values or not all(written.fullmatch(v.strip()) for v in column.values):
            continue
        for day in times_among(columns):
            text, moment = text_sql(source, column), read_sql(source, day)
            same = f"regexp_replace(upper({text}), '[- ]', '', 'g') = {same_sql.format(moment)}"
            broken = f"SELECT count_if({filled(text)} AND NOT coalesce({same}, false)) FROM {source.relation}"
            if source.lines(broken) == [(0,)]:
                parts_of.setdefault(name, f"the {spans} of {day.name!r} in all rows: the days tell them")
    return parts_of


def guess_calendar(
    source: Source, columns: ByName, least: float = 1
) -> tuple[dict[str, dict[str, str]], dict[tuple[str, str], tuple[int, int]], dict[str, list[str]]]:
    """Date or time → part → the column that holds it in at least that share of its rows. NOT private.

    Beside it in how many rows each of these columns does, of how many; and of those of weekdays their seven names, from
    Monday on, whatever their language.
    """
    names = {n: [v for v in c.values if re.search(r"[^\W\d_]", v)] for n, c in columns.items()}
    parts = {n: "weekday" for n, values in names.items() if len(values) == len(DAYS) == len(columns[n].values)}
    parts |= {c.name: "hour" for c in amounts(columns, ("integer",)) if c.low >= 0 and NOON <= c.high <= 23}
    held: dict[str, dict[str, str]] = {}
    held_rows: dict[tuple[str, str], tuple[int, int]] = {}
    weekdays: dict[str, list[str]] = {}
    for time in times_among(columns) if parts else ():
        moment = read_sql(source, time)
        for name, part in parts.items():
            if part == "hour" and time.kind == "date":
                continue
            text = text_sql(source, columns[name])
            key, own = ("trim({})", "isodow({})") if part == "weekday" else ("TRY_CAST({} AS DOUBLE)", "hour({})")
            both_sql = f"SELECT {key.format(text)} AS t, {own.format(moment)} AS x FROM {source.relation}"
            both = f"({both_sql} WHERE {filled(text)}) WHERE x IS NOT NULL"  # a date may be empty in nearly all rows
            each = source.lines(f"SELECT t, x, count(*) AS n FROM {both} GROUP BY t, x ORDER BY n, t, x")
            usual = {t: x for t, x, _ in each} if part == "weekday" else {t: t for t, _, _ in each}  # the most frequent
            right, rows = sum(n for t, x, n in each if x == usual[t]), sum(n for _, _, n in each)
            if not rows or right < least * rows:
                continue
            if part == "weekday":
                days = {t.casefold(): x for t, x in usual.items()}
                order = {days.get(v.strip().casefold(), 0): v for v in columns[name].values}
                if sorted(order) != [*range(1, len(DAYS) + 1)]:
                    continue
                weekdays[name] = [order[day] for day in sorted(order)]
            if held.setdefault(time.name, {}).setdefault(part, name) == name:
                held_rows[time.name, name] = right, rows
    return held, held_rows, weekdays


def guess_parts(
    source: Source, columns: ByName, held: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[list[str], object, FieldDict]]:
    """Date or time → weekday, hour: uneven ones that no column holds; the rule; bins that hold all. NOT private."""
    times = times_among(columns)
    counts = {(c.name, name): np.zeros(part.values) for c in times for name, part in PARTS.items()}
    for values in value_batches(source, times) if times else ():
        for column in times:
            own = values[column.name][~np.isnan(values[column.name])] * (DAY if column.kind == "date" else 1)
            for part, value in parts_of(own).items():
                counts[column.name, part] += np.bincount(value.astype(np.int64), minlength=PARTS[part].values)
    rules: dict[str, tuple[list[str], object, FieldDict]] = {}
    for (time, part), n in counts.items():
        even = np.maximum(n / max(n.sum(), FEWEST_MOMENTS) - 1 / len(n), 0).sum() < UNEVEN
        if even or part in held.get(time, ()) or part_name(time, part) in source.names:  # there is a column
            continue
        weeks = columns[time].bins == Bins(calendar="week")
        wider = FieldDict(bins="month") if weeks and part == "weekday" else FieldDict()  # the first and last are cut
        with suppress(UserError):  # bins are so narrow that they tell the part, or days have no hours
            declared = column_fields(columns[time]) | wider
            parse_schema({"columns": {time: declared}, "calendar": {time: [part]}}, where="the draft")
            parts, _, before = rules.get(time, ([], None, {}))
            names = {p: part_name(time, p) for p in (*parts, part)}
            rules[time] = [*names], names | {**held[time]} if time in held else [*names], before | wider
    return rules


@dataclass(frozen=True)
class _Tried:
    """An expression of a column; rows in which one of `tells` is 0 could not break it (of a product also 1)."""

    target: Column
    expression: Expression
    tells: tuple[Column, ...]

    def seen(self, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.int64]:
        """Rows that hold another value; that would get one; that would lose theirs; and all that could differ."""
        kind, own, given = self.target.kind, values[self.target.name], self.expression.values(values)
        result = in_unit(given, self.expression.type, kind) if kind in DATE_KINDS else given
        off, empty, lost = ~agree(own, result, self.target), np.isnan(own), np.isnan(result)
        could = ~(empty & lost)
        for column in self.tells:
            could &= (values[column.name] != 0) & (values[column.name] != (1 if len(self.tells) > 1 else 0))
        each = (off & ~empty & ~lost, off & empty, off & lost, could)
        return np.array([np.count_nonzero(rows) for rows in each])


def _holding(source: Source, asked: Sequence[Column], tried: Sequence[_Tried]) -> Iterator[tuple[str, Expression, str]]:
    """Those of the tried rules that nearly no row breaks, and in how many rows they hold; the best first."""
    rows, filled = 0, dict.fromkeys([one.target.name for one in tried], 0)
    kinds: dict[str, set[float]] = {}
    counts = {id(one): np.zeros(4, np.int64) for one in tried}
    for values in value_batches(source, asked):
        few = {name: own[:FEW] for name, own in values.items()}
        enough = {one.target.name: len(few[one.target.name]) * HALF for one in tried}
        tried = [one for one in tried if one.seen(few)[:3].sum() <= enough[one.target.name]]  # most fail soon
        for one in tried:
            counts[id(one)] += one.seen(values)
        rows += len(values[asked[0].name])
        tried = [one for one in tried if counts[id(one)][:3].sum() <= HALF * rows]
        for name in {one.target.name for one in tried}:
            present = values[name][~np.isnan(values[name])]
            filled[name] += present.size
            kinds.setdefault(name, set()).update(np.unique(present)[:2].tolist())
    off = {id(one): int(counts[id(one)][:3].sum()) for one in tried}
    for one in sorted(tried, key=lambda one: off[id(one)]):
        (*each, could), name = counts[id(one)].tolist(), one.target.name
        broken = off[id(one)] and (could < FEWEST_ROWS or any(np.array(each) > could * np.array(BROKEN)))
        if not broken and filled[name] >= FEWEST_COMPUTED and len(kinds.get(name, ())) > 1:
            words = f"in {rows - off[id(one)]:,} of the {rows:,} rows" if off[id(one)] else f"in all {rows:,} rows"
            yield name, one.expression, words


@dataclass(frozen=True)
class Determined:
    """A column that follows from another.

    Attributes:
        follows: how many rows show the pairs, of `rows` in which the source has a value that says something.
        possible: the pairs that can be, (source, target) by their labels; None: missing.
        complete: each code of the source has one target.
        twin: each of its frequent values has one that no other has, so that the two say the same.
        gaps: whether the target may be empty beside any value.
    """

    source: str
    target: str
    follows: int
    rows: int
    possible: tuple[tuple[str | None, str | None], ...]
    complete: bool
    twin: bool = False
    gaps: bool = False


def guess_determined(
    given: Sequence[Column], batches_of: BatchesOf, constants: Collection[str] = ()
) -> list[Determined]:
    """Of each target its sources, that with the fewest values first; of two that say the same, the later. NOT private.

    A value of fewer than FEWEST_UNITS rows, *other* and *missing* of the source go with every value of the target. A
    number in bins may tell a listed text: a refund is what is paid back, below 0. Of rare numbers `_beside` says more.

    Args:
        constants: of persons, which no map names.
    """
    binned = [c for c in given if c.kind in {"integer", "float"} and not is_listed(c) and c.value_codes <= MAX_VALUES]
    few = [*sorted(filter(is_listed, given), key=lambda c: c.kind == "flag"), *binned]  # boxes, then bins, last
    columns = [c for c in few if c.value_codes > 1][:MOST_DETERMINED]
    codes_in_all = itertools.accumulate(c.size for c in columns)
    columns = [c for c, codes in zip(columns, codes_in_all, strict=True) if codes <= MOST_CODES]
    if len(columns) < 2:
        return []
    place = {c.name: i for i, c in enumerate(columns)}
    by_name = {c.name: c for c in columns}
    tried = {
        (a.name, b.name): np.zeros((a.size, b.size), np.int64)
        for a, b in itertools.permutations(columns, 2)
        if is_listed(b) and (is_listed(a) or b.kind != "integer")
        if (a.value_codes, -place[a.name]) > (b.value_codes, -place[b.name])
        or (b.kind == "integer" and a.kind != "integer")  # codes that nothing has count too
    }
    for codes in batches_of(columns):
        for (a, b), counts in tried.items():
            cells = codes[a] * counts.shape[1] + codes[b]
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        tried = {(a, b): n for (a, b), n in tried.items() if not _hopeless(_filled(n, by_name[a], by_name[b]))}
    by_target: dict[str, list[Determined]] = {}
    above: dict[str, set[str]] = {c.name: {c.name} for c in columns}  # column → all that follows from it
    for (a, b), counts in sorted(tried.items(), key=lambda item: (item[1].shape[0], place[item[0][0]])):
        rival = a in by_target or a in above[b]  # of columns that say the same, one rule is enough
        if rival or (one := _determined(by_name[a], by_name[b], counts, gaps=False)) is None:
            continue
        by_target.setdefault(b, []).append(one)
        above[a] |= above[b]
    return [
        replace(one, complete=one.complete and not i and not {one.source, one.target} & {*constants})
        for c in columns
        for i, one in enumerate(_nearest(by_target.get(c.name, []), above))
    ]


def _nearest(rules: list[Determined], above: Mapping[str, set[str]]) -> list[Determined]:
    """Those that no two others imply: of street → district → city, the rule of the district is enough for the city."""
    return [one for one in rules if not any(o is not one and o.source in above[one.source] for o in rules)]


def is_listed(column: Column) -> bool:
    """Whether each value of the column has a code of its own, and these are few."""
    numbers = column.kind == "integer" and column.value_codes == column.high - column.low + 1
    return (numbers or column.kind in {"categorical", "flag"}) and column.value_codes <= MAX_VALUES


def _filled(counts: NDArray[np.int64], source: Column, target: Column) -> NDArray[np.int64]:
    """Of the counts those of rows that hold a value of the source, and of the target, whose gaps may be anywhere."""
    held: NDArray[np.int64] = counts[: source.value_codes] * (np.arange(target.size) != target.missing_code)
    return held


def _hopeless(values: NDArray[np.int64]) -> bool:
    """Whether so many rows break a rule already that the rest cannot mend it (values of the source × target codes)."""
    rows, (most, times) = int(values.sum()), HOPELESS
    wrong, breaks = rows - int(values.sum(axis=0).max()), rows - int(values.max(axis=1).sum())
    return breaks > most + times * (1 - LAMBDA) * wrong


def _beside(values: NDArray[np.int64], most: NDArray[np.int64], frequent: NDArray[np.bool_]) -> dict[int, list[int]]:
    """Rare code of a number → the targets of the frequent ones beside it, where each target has one stretch of these.

    A code with a row that has another target is none of them.
    """
    places = np.flatnonzero(frequent)
    if np.count_nonzero(np.diff(most[places])) + 1 != len({*most[places]}):
        return {}
    after = np.searchsorted(places, np.arange(frequent.size))
    ends = most[places[np.maximum(after - 1, 0)]], most[places[np.minimum(after, places.size - 1)]]
    each = {a: sorted({int(end[a]) for end in ends}) for a in np.flatnonzero(~frequent).tolist()}
    return {a: own for a, own in each.items() if values[a].sum() == values[a, own].sum()}


def _determined(source: Column, target: Column, counts: NDArray[np.int64], *, gaps: bool) -> Determined | None:
    """What the counts say of one pair (source codes × target codes); `gaps` of the target aside, or with them."""
    values = _filled(counts, source, target) if gaps else counts[: source.value_codes]
    most = values.argmax(axis=1)
    frequent = values.max(axis=1) >= FEWEST_UNITS
    seen, follows = values[frequent], int(values.max(axis=1)[frequent].sum())
    rows = int(seen.sum())
    wrong = rows - int(seen.sum(axis=0).max(initial=0))
    if rows < FEWEST_ROWS or not wrong or rows - follows > (1 - LAMBDA) * wrong:
        return None if gaps or not target.missing else _determined(source, target, counts, gaps=True)
    beside = _beside(values, most, frequent) if source.kind in {"integer", "float"} else {}
    beside |= {int(a): [int(most[a])] for a in np.flatnonzero(frequent)}
    pairs = [
        (label_of(source, a), label_of(target, b))
        for a in range(source.size)
        for b in range(target.size)
        if b in beside.get(a, [b]) or (gaps and b == target.missing_code)
    ]
    complete = bool(frequent.all()) and source.size == source.value_codes and is_listed(source) and not gaps
    if len(pairs) > LONGEST:
        return None
    twin = len({*most[frequent].tolist()}) == np.count_nonzero(frequent)
    return Determined(source.name, target.name, follows, rows, tuple(pairs), complete, twin, gaps)
