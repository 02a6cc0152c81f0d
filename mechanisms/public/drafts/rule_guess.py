"""Rules that a drafted schema may have, as far as the table tells: computed, ascending and determined columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from keyword import iskeyword

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mechanisms.public.drafts.column_facts import MAX_VALUES, filled
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.errors import UserError
from mechanisms.public.rules.calendar_parts import PARTS, part_name, parts_of
from mechanisms.public.rules.computed import in_unit, value_types
from mechanisms.public.rules.expressions import Expression, parse_expression
from mechanisms.public.schema.bins import DAY, Bins
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import DATE_KINDS, DAYS, Column
from mechanisms.public.schema.fields import FieldDict
from mechanisms.public.schema.table_schema import Schema, column_fields, parse_schema
from mechanisms.public.tables.encode import encoding, read_sql, text_sql
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import agree, first_rows, value_batches

#: What is tried for each whole number and each two dates; a length in days is measured, and the later date computed.
TRIED = ("days", "years")
#: A length between two dates is of days; one between two times of days, hours, minutes or seconds.
LENGTHS = {"date": ("",), "datetime": ("", " / 24", " / 1440", " / 86400")}
#: Weekdays and hours of so many rows are uneven where so large a share would have to move.
FEWEST_MOMENTS, UNEVEN = 1_000, 0.1
#: A week of a year, by ISO 8601.
WEEK = re.compile("[0-9]{4}-?[Ww][0-9]{2}")
#: More dates than that are not tried, nor more whole numbers beside so many; the fewer dates, the more numbers.
MOST = 12
#: Of so many numbers, in so many rows (fewer where the sum has gaps), sums are looked for; weights below that are none.
SUMMED, SUMMED_ROWS, SUMMED_FEW, NONE = 120, 2_000, 500, 1e-6
#: A sum of so many values, and of half as many as its largest part, has few.
FEW_TOTALS = 20
#: Scales of whole numbers are as long at most, where an answer may count the other way round.
SCALE = 10
#: An expression is proposed where at least so many rows hold a value, of at least two kinds.
FEWEST_COMPUTED = 10
#: Rows that are looked at first.
FEW = 200
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
    """The columns of dates and of times."""
    return [c for c in columns.values() if c.kind in DATE_KINDS]


def guess_derived(source: Source, columns: ByName, measured: Collection[str]) -> list[tuple[str, str, int]]:
    """Column, expression, and in how many rows it holds: all of the table's. NOT private.

    Args:
        measured: columns of which no expression is proposed, nor one that adds them.
    """
    columns = {n: c for n, c in columns.items() if n and "`" not in n}  # others no expression names
    dates = times_among(columns)[:MOST]
    whole = amounts(columns, ("integer",))[: MOST**3 // max(1, len(dates)) ** 2]
    added = [c for c in amounts(columns) if c.name not in measured][:SUMMED]
    times = [(d, t) for d, t in itertools.permutations(dates, 2) if (d.kind, t.kind) == ("date", "datetime")]
    days = [(d, t) for d, t in times if d.name not in measured]
    every = [*(dates if whole or days else ()), *(whole if dates else ()), *(added if len(added) > 2 else ())]
    asked = {c.name: c for c in every}
    types = value_types(asked)
    each = [(n, a, b) for n in whole for a, b in itertools.permutations(dates, 2)]
    lengths = [(n, a, b) for n, a, b in each if a.kind == b.kind and n.low >= 0 and b.name not in measured]
    sums = [(n, a, b, part) for n, a, b in lengths for part in LENGTHS[a.kind] if part or not _longer(n, b)]
    texts = [(d, _marked(t)) for d, t in days]  # the day of a time
    texts += [(b, f"{_marked(a)} + {_marked(n)}{part}") for n, a, b, part in sums]
    texts += [(n, f"{word}({_marked(a)}, {_marked(b)})") for n, a, b in each for word in TRIED]
    texts += _sums(source, added) if len(added) > 2 else []
    tried = [(target, parse_expression(text, types, "the draft")) for target, text in texts]
    held: dict[str, tuple[Expression, int]] = {}
    for target, expression, rows in _holding(source, [*asked.values()], tried) if tried else ():
        if target not in held and not any(target in held[n][0].sources for n in expression.sources if n in held):
            held[target] = (expression, rows)
    return [(target, expression.text, rows) for target, (expression, rows) in held.items()]


def _longer(days: Column, dates: Column) -> bool:
    """Whether so many days last longer than the dates reach: sums of theirs would be clipped, as of ages of cows.

    Then the days are computed, and both dates measured.
    """
    return days.high - days.low > (dates.high - dates.low) / (1 if dates.kind == "date" else DAY)


def _sums(source: Source, columns: Sequence[Column]) -> list[tuple[Column, str]]:
    """Columns that are sums of others in the first rows, and the sums: by non-negative least squares, parts first.

    An answer on a short scale may count the other way round: 6 - x of 1 to 5. Of a sum that has few values, or is the
    same number in all rows, the largest part is the rest: weekly hours of five days, parts of 100 per cent. Rows
    without the sum do not count.
    """
    held = first_rows(source, columns, SUMMED_ROWS)
    rows, gaps = np.nan_to_num(held), np.isnan(held)
    turned = [i for i, c in enumerate(columns) if c.kind == "integer" and c.high - c.low <= SCALE and c.low >= 0]
    ends = {i: columns[i].low + columns[i].high for i in turned}
    words = [_marked(c) for c in columns] + [f"({ends[i]:g} - {_marked(columns[i])})" for i in turned]
    owners = np.array([*range(len(columns)), *turned])
    whole = np.hstack([rows, [ends[i] for i in turned] - rows[:, turned], np.ones((len(rows), 1))])
    every = np.asarray(np.linalg.qr(whole, mode="r"))  # as many rows as columns tell as much
    sizes, sums, taken = np.abs(rows).sum(axis=0), list[tuple[Column, str]](), set[int]()
    for i in [*np.argsort(sizes, kind="stable").tolist(), -1]:
        others = np.flatnonzero(~np.isin(owners if i >= 0 else owners[: len(columns)], [i, *taken]))
        own = i >= 0 and gaps[:, i].any()
        enough = max(SUMMED_FEW, 2 * whole.shape[1])  # what holds in these is tried in all rows
        design = np.asarray(np.linalg.qr(whole[~gaps[:, i]][:enough], mode="r")) if own else every
        weights, rest = nnls(design[:, others], design[:, i])
        used = weights > NONE
        share = weights[used].mean() if i < 0 and used.any() else 1.0
        if used.sum() < 2 or np.abs(weights[used] / share - 1).max() > NONE:
            continue
        if rest > NONE * np.linalg.norm(design[:, i]):
            continue
        parts = others[used].tolist()
        largest = max(owners[parts].tolist(), key=lambda j: sizes[j])
        few = i < 0 or len(np.unique(rows[:, i])) <= min(FEW_TOTALS, len(np.unique(rows[:, largest])) / 2)
        if few and max(parts) < len(columns):
            total = words[i] if i >= 0 else f"{1 / share:.10g}"
            sums.append((columns[largest], " - ".join([total, *(words[j] for j in parts if j != largest)])))
        elif i >= 0:
            sums.append((columns[i], " + ".join(words[j] for j in parts)))
        taken |= {*owners[parts].tolist()}
    return sums


def guess_weeks(source: Source, columns: ByName) -> dict[str, str]:
    """Column of weeks, as 2024-W05 → that a column of days lies in them, in all rows of the table. NOT private."""
    weeks = [n for n, c in columns.items() if c.values and all(WEEK.fullmatch(v.strip()) for v in c.values)]
    parts_of: dict[str, str] = {}
    for week, day in itertools.product(weeks, times_among(columns)):
        text, moment = text_sql(source, columns[week]), read_sql(source, day)
        same = f"replace(upper(trim({text})), '-', '') = strftime({moment}, '%GW%V')"
        broken = f"SELECT count_if({filled(text)} AND NOT coalesce({same}, false)) FROM {source.relation}"
        if source.lines(broken) == [(0,)]:
            parts_of.setdefault(week, f"the weeks of {day.name!r} in all rows: the days tell them")
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
    parts |= {c.name: "hour" for c in amounts(columns, ("integer",)) if (c.low, c.high) == (0, 23)}
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


def _marked(column: Column) -> str:
    word = column.name.isidentifier() and column.name.isascii() and not iskeyword(column.name)
    return column.name if word else f"`{column.name}`"


def _holding(
    source: Source, asked: Sequence[Column], tried: list[tuple[Column, Expression]]
) -> list[tuple[str, Expression, int]]:
    """Those of the tried rules that no row breaks."""
    rows, filled = 0, dict.fromkeys([n.name for n, _ in tried], 0)
    kinds: dict[str, set[float]] = {}
    for values in value_batches(source, asked):
        few = {name: own[:FEW] for name, own in values.items()}
        for part in (few, values):  # nearly all that is tried fails soon
            values_of = ((n, e, e.values(part)) for n, e in tried)
            written = ((n, e, in_unit(v, e.type, n.kind) if n.kind in DATE_KINDS else v) for n, e, v in values_of)
            tried = [(n, e) for n, e, values in written if agree(part[n.name], values, n).all()]
        rows += len(values[asked[0].name])
        for name in {n.name for n, _ in tried}:
            present = values[name][~np.isnan(values[name])]
            filled[name] += present.size
            kinds.setdefault(name, set()).update(np.unique(present)[:2].tolist())
        if not tried:
            return []
    return [(n.name, e, rows) for n, e in tried if filled[n.name] >= FEWEST_COMPUTED and len(kinds.get(n.name, ())) > 1]


@dataclass(frozen=True)
class Determined:
    """A column that follows from another.

    Attributes:
        follows: how many rows show the pairs, of `rows` in which the source has a value that says something.
        possible: the pairs that can be, (source, target) by their labels; None: missing.
        complete: each code of the source has one target.
    """

    source: str
    target: str
    follows: int
    rows: int
    possible: tuple[tuple[str | None, str | None], ...]
    complete: bool


def code_batches(source: Source, columns: Sequence[Column]) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Column → codes of the rows, batch by batch. NOT private."""
    coded = encoding(source, Schema("", tuple(columns)))
    for batch in source.batches(coded.select, first=coded.types):
        yield {c.name: np.asarray(batch.column(i)).astype(np.int64) % c.size for i, c in enumerate(columns)}


def guess_determined(
    given: Sequence[Column], batches_of: BatchesOf, constants: Collection[str] = ()
) -> list[Determined]:
    """Of each target its sources, that with the fewest values first; of two that say the same, the later. NOT private.

    A value of fewer than FEWEST_UNITS rows, *other* and *missing* of the source go with every value of the target.

    Args:
        constants: of persons, which no map names.
    """
    few = sorted(filter(is_listed, given), key=lambda c: c.kind == "flag")  # boxes last
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
        if (a.value_codes, -place[a.name]) > (b.value_codes, -place[b.name])
        or (b.kind == "integer" and a.kind != "integer")  # codes that nothing has count too
    }
    for codes in batches_of(columns):
        for (a, b), counts in tried.items():
            cells = codes[a] * counts.shape[1] + codes[b]
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        tried = {(a, b): n for (a, b), n in tried.items() if not _hopeless(n[: by_name[a].value_codes])}
    by_target: dict[str, list[Determined]] = {}
    above: dict[str, set[str]] = {c.name: {c.name} for c in columns}  # column → all that follows from it
    for (a, b), counts in sorted(tried.items(), key=lambda item: (item[1].shape[0], place[item[0][0]])):
        rival = a in by_target or a in above[b]  # of columns that say the same, one rule is enough
        if rival or (one := _determined(by_name[a], by_name[b], counts)) is None:
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


def _hopeless(values: NDArray[np.int64]) -> bool:
    """Whether so many rows break a rule already that the rest cannot mend it (values of the source × target codes)."""
    rows, (most, times) = int(values.sum()), HOPELESS
    wrong, breaks = rows - int(values.sum(axis=0).max()), rows - int(values.max(axis=1).sum())
    return breaks > most + times * (1 - LAMBDA) * wrong


def _determined(source: Column, target: Column, counts: NDArray[np.int64]) -> Determined | None:
    """What the counts say of one pair (source codes × target codes)."""
    values = counts[: source.value_codes]
    most = values.argmax(axis=1)
    frequent = values.max(axis=1) >= FEWEST_UNITS
    seen, follows = values[frequent], int(values.max(axis=1)[frequent].sum())
    rows = int(seen.sum())
    wrong = rows - int(seen.sum(axis=0).max(initial=0))
    if rows < FEWEST_ROWS or not wrong or rows - follows > (1 - LAMBDA) * wrong:
        return None
    pairs = [
        (label_of(source, a), label_of(target, b))
        for a in range(source.size)
        for b in ([int(most[a])] if a < frequent.size and frequent[a] else range(target.size))
    ]
    complete = bool(frequent.all()) and source.size == source.value_codes
    return (
        Determined(source.name, target.name, follows, rows, tuple(pairs), complete) if len(pairs) <= LONGEST else None
    )
