"""Pairs of columns that ascend or agree in nearly all rows, for a drafted schema and for `check`. NOT private."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.drafts.bin_guess import bins_of_lengths
from mechanisms.public.drafts.column_facts import BLOCK_COLUMNS
from mechanisms.public.drafts.rule_guess import (
    BROKEN,
    FEWEST_ROWS,
    MOST,
    ByName,
    Pair,
    amounts,
    needs_gaps,
    times_among,
)
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.rules.computed import UNITS, as_expression, length_name
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.discover_fields import FieldDict
from mechanisms.public.schema.spellings import ISO
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import first_rows, value_batches

#: Two columns are called the same where at least so many rows say so.
FEWEST_TWINS = 200
#: A length is proposed where half of them take at most this share of the range of times; it is read in so many rows.
SHORT, MOST_ROWS = 1 / 8, 1 << 20
#: Lengths that are mostly long, in more units than have a code each, have so many even bins.
EVEN = 20
#: Of so many numbers, in so many rows, pairs are looked for.
MOST_NUMBERS, TRIED_ROWS = 120, 2_000
#: A pair is proposed where so large a share of the rows ascends, and at most so large a one agrees.
ASCENDING, EQUAL = 0.97, 0.95
#: Numbers whose names say nothing ascend where so many rows do, of which so large a share (and so many times those that
#: do not) would not if they were unrelated, where both have the same texts beside them (marks of thousands aside), and
#: where the range of one is at most so many times that of the other: else they have other units.
NEARLY_ALL, BY_CHANCE, FAR_MORE, ALIKE_RANGES, MARKS = 0.9999, 0.02, 20, 10, {".", ",", " ", "'"}
#: Times of the day come within half a day after others in so large a share of rows as ascend, where at least such a
#: share of unrelated ones would not; so many rows are read.
UNRELATED, CLOCK_ROWS = 0.1, 1 << 16
#: A time that is another one and a length, in its unit: days where no part is said; these two, and the length's name.
LATER = re.compile(r"`?(?P<base>[^`+]+?)`? \+ `?(?P<length>[^`+]+?)`?(?P<part> / [0-9]+)?")
Span = tuple[tuple[str, str], str]
#: Words that, in the names of two numbers that are the same but for them, tell which comes first.
WORDS: tuple[tuple[str, str], ...] = (
    ("start", "end"),
    ("begin", "stop"),
    ("begin", "end"),
    ("start", "stop"),
    ("min", "max"),
    ("low", "high"),
    ("lower", "upper"),
    ("first", "last"),
    ("from", "to"),
    ("opened", "closed"),
    ("birth", "death"),
    ("admitted", "discharged"),
    ("admission", "discharge"),
)


def twins(source: Source) -> dict[str, str]:
    """Column → an earlier one that says the same in all rows, but for capitals and spaces around."""
    first: dict[tuple[Any, ...], str] = {}
    alike: dict[str, str] = {}
    for start in range(0, len(source.names), BLOCK_COLUMNS):
        names = source.names[start : start + BLOCK_COLUMNS]
        cells = [f"lower(trim({source.text(start + i)}))" for i in range(len(names))]
        each = ", ".join(f"bit_xor(hash({c}, k)), sum(hash({c}, k) >> 8), min({c}) <> max({c})" for c in cells)
        numbered = f"(SELECT *, row_number() OVER () AS k FROM {source.relation})"
        ((rows, *seen),) = source.lines(f"SELECT count(*), {each} FROM {numbered}")
        for name, *digest, several in zip(names, seen[::3], seen[1::3], seen[2::3], strict=True):
            if rows >= FEWEST_TWINS and several and first.setdefault(tuple(digest), name) != name:
                alike[name] = first[tuple(digest)]
    return alike


def guess_ordered(source: Source, columns: ByName) -> tuple[list[Pair], list[Pair]]:
    """Pairs that ascend, and that nearly always agree, once each; rows that do, and that hold both. NOT private."""
    likely = ascending_numbers(source, columns)
    if not (tried := list(dict.fromkeys([*_tried(columns), *likely]))):
        return [], []
    asked = {n: columns[n] for pair in tried for n in pair}
    seen = ascending_rows(source, asked, tried).items()
    enough = [(a, b, both, up, same) for (a, b), (both, up, same) in seen if both >= FEWEST_ROWS]
    least = dict.fromkeys(tried, ASCENDING) | dict.fromkeys(likely, NEARLY_ALL)
    ordered = [(a, b, up, n) for a, b, n, up, same in enough if up >= least[a, b] * n and same <= EQUAL * n]
    alike = {frozenset((a, b)): (a, b, same, n) for a, b, n, _, same in reversed(enough) if same > EQUAL * n}
    pairs = {(a, b) for a, b, _, _ in ordered}
    pairs |= {(a.name, d.name) for a, d in itertools.permutations(asked.values(), 2) if a.high <= d.low}
    chains = ((a, b, d) for (a, b, *_), (c, d, *_) in itertools.product(ordered, repeat=2) if b == c)
    gaps = {(b, d) for a, b, d in chains if (a, d) not in pairs}
    return [each for each in ordered if each[:2] not in gaps], [*alike.values()]


def guess_times(
    source: Source, columns: ByName, pairs: Collection[tuple[str, str]], needed: Collection[str]
) -> tuple[list[Length], list[Pair]]:
    """How long dates and times are after others; and pairs of a day and a time without a length. NOT private.

    Args:
        pairs: of columns of one kind that ascend.
        needed: what other rules compute, or need a code of: its length is not measured.
    """
    lengths = guess_lengths(source, columns, [pair for pair in pairs if pair[1] not in needed])
    apart, days = guess_apart(source, columns, {*needed, *(one.later for one in lengths)})
    return [*lengths, *days], apart


def guess_apart(source: Source, columns: ByName, needed: Collection[str]) -> tuple[list[Pair], list[Length]]:
    """Pairs of a day and a time that ascend by days, and how far the days mostly are from the times. NOT private."""
    times = {n: c for n, c in columns.items() if c.kind == "datetime" and not of_one_day(c)}
    days = {n: c for n, c in columns.items() if c.kind == "date"}
    if not times or not days:
        return [], []
    read = {n: replace(c, kind="date", low=c.low // DAY, high=c.high // DAY, bins=None) for n, c in times.items()}
    pairs = [pair for pair in guess_ordered(source, days | read)[0] if (pair[0] in times) != (pair[1] in times)]
    lengths = dict[str, Length]()
    for one in (guess_lengths(source, days | read, [pair[:2]]) for pair in pairs):
        for length in (
            each if each.later in days else each.before(days[each.earlier], read[each.later]) for each in one
        ):
            if length.later not in needed and (length.later not in lengths or length.half < lengths[length.later].half):
                lengths[length.later] = length
    return [pair for pair in pairs if not {*pair[:2]} & lengths.keys()], [*lengths.values()]


def apart_in_words(earlier: str, later: str, ascend: int, both: int) -> str:
    """What becomes of a pair of a day and a time of which no length is measured, and what keeps it."""
    rows = rows_in_words([earlier, later], ascend, both)
    why = "`ordered` takes no time beside a day, and a release will not hold to it"
    return f"{earlier!r} ≤ {later!r} by days {rows}; {why}: kind: date in both, then ordered, or derive with length"


def in_groups(orders: Sequence[Pair]) -> list[tuple[list[str], int, int]]:
    """Groups of columns of which each two are a pair, all pairs in some; rows of the pair that fewest rows keep."""
    pairs = {(a, b): (up, n) for a, b, up, n in orders}
    before = Counter(b for _, b in pairs)
    names, left, groups = sorted({*itertools.chain(*pairs)}, key=before.__getitem__), dict(pairs), []
    while left:
        group = [*next(iter(left))]
        for name in names:
            if all((name, other) in pairs or (other, name) in pairs for other in group):
                group.append(name)
        group.sort(key=before.__getitem__)
        own = list(itertools.combinations(group, 2))
        groups.append((group, *min((pairs[pair] for pair in own), key=lambda n: n[0] / n[1])))
        left = {pair: n for pair, n in left.items() if pair not in own}
    return groups


def rows_in_words(group: Sequence[str], ascend: int, both: int) -> str:
    """In how many rows the columns of a group ascend, as of `in_groups`."""
    return f"in {ascend:,} of the {both:,} rows that hold {'both' if len(group) == 2 else 'two of them'}"


@dataclass(frozen=True)
class Length:
    """A time of which it is known how long it is after another, which a draft proposes to measure in its place.

    Attributes:
        fields: of `length`, as `derive` declares it.
        half: of the rows, at most so many of its units.
        needs: what the later one must say for it.
    """

    earlier: str
    later: str
    fields: FieldDict
    half: float
    needs: str = ""

    @property
    def rule(self) -> FieldDict:
        """An entry of `derive`."""
        return {self.later: {"from": self.earlier, "length": self.fields}}

    @property
    def between(self) -> str:
        """Whose length it is."""
        return f"{self.later!r} {'before' if 'min' in self.fields else 'after'} {self.earlier!r}"

    def before(self, day: Column, time: Column) -> Length:
        """The same of a day that comes before a time: lengths at most 0, from the time."""
        most, edges = self.fields["max"], self.fields.get("bins", {}).get("edges", [])
        bins = {"bins": {"edges": [-most, *(1 - e for e in reversed(edges[:-1]))]}} if edges else {}
        fields = {"min": -most, "max": 0} | bins
        return Length(self.later, self.earlier, fields, self.half, needs_gaps(day, time.missing))

    @property
    def in_words(self) -> str:
        """How long half of them take."""
        half, unit = f"{self.half:,.0f}", self.fields.get("unit", "days")
        unit = unit.removesuffix("s") if half == "1" else unit
        return f"half take at most {half} {unit}; without it a release loses that{self.needs}"


def guess_lengths(source: Source, columns: ByName, pairs: Collection[tuple[str, str]]) -> list[Length]:
    """Of each later date or time the nearest one before it, where it mostly follows soon, or that one is such a sum.

    NOT private.

    Args:
        pairs: of columns that ascend.
    """
    times = [pair for pair in pairs if all(n in columns and columns[n].kind in DATE_KINDS for n in pair)]
    times = [pair for pair in times if length_name(pair[1]) not in source.names]  # which would be refused
    gaps: dict[tuple[str, str], list[NDArray[np.float64]]] = {pair: [] for pair in times}
    rows = 0
    for values in value_batches(source, [columns[n] for n in dict.fromkeys(itertools.chain(*times))]) if times else ():
        for (a, b), own in gaps.items():
            own.append((values[b] - values[a])[~np.isnan(values[b])])
        if (rows := rows + len(next(iter(values.values())))) >= MOST_ROWS:
            break
    nearest, far = dict[str, Length](), dict[str, Length]()
    for (a, b), own in gaps.items():
        every, later = np.concatenate(own), columns[b]
        lengths = np.sort(every[~np.isnan(every)])
        if lengths.size < max(FEWEST_ROWS, (1 - BROKEN[-1]) * every.size):  # without the earlier one rows lose both
            continue
        unit, seconds = _unit(columns[a], later)
        rare = max(FEWEST_UNITS, lengths.size // 1_000)  # longer ones count as this one
        half, high = float(np.median(lengths)) / seconds, float(lengths[-rare]) / seconds
        soon, bounds = half * seconds <= SHORT * (later.high - later.low), bins_of_lengths(lengths // seconds, high)
        each = nearest if soon else far
        if b not in each or half < each[b].half:
            even = {"bins": {"count": EVEN}} if "bins" in bounds and not soon else {}
            each[b] = Length(a, b, bounds | even | unit, half, needs_gaps(later, columns[a].missing))
    while more := {b: one for b, one in far.items() if b not in nearest and one.earlier in nearest}:
        nearest |= more  # no `ordered` takes a time that is itself a length away
    return [*nearest.values()]


def guess_orders(
    source: Source, columns: ByName, derived: Sequence[tuple[str, str, str]], needed: Collection[str]
) -> tuple[list[Pair], list[Length], tuple[list[Pair], list[Pair], dict[str, str]]]:
    """Pairs that `ordered` can keep, lengths, and pairs of which a remark says something. NOT private.

    Args:
        derived: columns that expressions compute, and these.
        needed: as of `guess_times`.
    """
    computed = {name for name, *_ in derived}
    later = spans((name, text) for name, text, _ in derived if columns[name].kind in DATE_KINDS)
    every = guess_ordered(source, {n: c for n, c in columns.items() if n in later or n not in computed})
    ordered, alike = ([pair for pair in own if not {*pair[:2]} & computed] for own in every)
    lengths, days = guess_times(source, columns, [pair[:2] for pair in ordered], needed)
    clocks = past_midnight(source, columns, [*ordered, *alike])
    return in_lengths(every[0], later | spans_of(lengths)), lengths, (alike, days, clocks)


def spans(texts: Iterable[tuple[str, str]]) -> dict[str, Span]:
    """Time that is another and a length later → that one and the unit of the length, and the column of the length.

    Args:
        texts: computed columns and their expressions.
    """
    matches = ((later, LATER.fullmatch(text)) for later, text in texts)
    return {later: ((m["base"], m["part"] or ""), m["length"]) for later, m in matches if m}


def spans_of(lengths: Iterable[Length]) -> dict[str, Span]:
    """The same of times whose lengths a draft proposes to measure."""
    return spans((n, as_expression(n, entry)["expression"]) for one in lengths for n, entry in one.rule.items())


def in_lengths(ordered: Iterable[Pair], later: Mapping[str, Span]) -> list[Pair]:
    """The pairs that `ordered` can keep: of two times that lie lengths after one other time, these lengths.

    Args:
        later: as of `spans`.
    """
    base = {name: of for name, (of, _) in later.items()}
    names = {name: length for name, (_, length) in later.items()}
    return [(names.get(a, a), names.get(b, b), up, n) for a, b, up, n in ordered if base.get(a) == base.get(b)]


def past_midnight(source: Source, columns: ByName, ruled: Collection[tuple[Any, ...]]) -> dict[str, str]:
    """Time of the day → that it comes soon after another time, in some rows on the next day. NOT private.

    Args:
        ruled: pairs that a rule keeps, the earlier one first.
    """
    times = [c for c in columns.values() if c.kind == "datetime"][:MOST]
    taken = {pair for a, b, *_ in ruled for pair in ((a, b), (b, a))}
    pairs = [(a, b) for a, b in itertools.permutations(times, 2) if of_one_day(b) and (a.name, b.name) not in taken]
    read = first_rows(source, times, CLOCK_ROWS).T if pairs else np.empty((len(times), 0))
    rows = dict(zip((c.name for c in times), read, strict=True))
    nearest = dict[str, tuple[float, str]]()
    for a, b in pairs:
        both = ~np.isnan(rows[a.name]) & ~np.isnan(rows[b.name])
        first, last = rows[a.name][both] % DAY, rows[b.name][both] % DAY
        late, unrelated = ((own - first) % DAY > DAY / 2 for own in (last, np.roll(last, len(last) // 2)))
        if len(first) < FEWEST_ROWS or late.mean() > 1 - ASCENDING or unrelated.mean() < UNRELATED:
            continue
        half, over = float(np.median((last - first) % DAY)), int((last < first).sum())
        words = f"{b.name!r} comes soon after {a.name!r}, past midnight in {over:,} of {len(first):,} rows: no rule "
        words += "keeps that of a time without its day: write day and time in both into the table"
        if (same := int(((first - last) % DAY < _step(b)).sum())) > EQUAL * len(first):  # not so many by chance
            words = f"{b.name!r} is the time of {a.name!r} in {same:,} of {len(first):,} rows: leave it out, since no "
            words += f"rule keeps both alike, and take it from {a.name!r} in a release"
        nearest[b.name] = min(nearest.get(b.name, (math.inf, "")), (half, words))
    return {name: words for name, (_, words) in nearest.items()}


def _unit(earlier: Column, later: Column) -> tuple[FieldDict, int]:
    """The unit of a length as it is declared, and in the unit of the times: the largest of which they are multiples."""
    if later.kind == "date":
        return {}, 1
    step = math.gcd(_step(earlier), _step(later))
    name, seconds = next((n, s) for n, s in UNITS.items() if step % s == 0)
    return {"unit": name}, seconds


def _step(times: Column) -> int:
    """Of how many seconds times are multiples, by what a draft says of them: of 60 where no form of theirs has any."""
    seconds = any(f == ISO or "%S" in f for f in (times.format or ISO, *times.more_formats))
    return int(times.multiple_of or (1 if seconds else 60))


def ascending_numbers(source: Source, by_name: ByName, *, mostly: bool = False) -> list[tuple[str, str]]:
    """Pairs of numbers that ascend (mostly) in the first rows, where unrelated ones would not: paid and claimed."""
    share, chance = (ASCENDING, UNRELATED) if mostly else (NEARLY_ALL, BY_CHANCE)
    columns = amounts(by_name)[:MOST_NUMBERS]
    if len(columns) < 2:
        return []
    rows = first_rows(source, columns, TRIED_ROWS)
    held = ~np.isnan(rows)
    both = held.T.astype(np.int64) @ held
    descend = np.array([(own[:, None] > rows).sum(axis=0) for own in rows.T])
    written = [(c.kind, {*c.strip} - MARKS) for c in columns]
    ascend, likely = (both > 0) & (descend <= (1 - share) * both), np.zeros_like(both, np.bool_)
    for i, j in np.argwhere(ascend & ~np.eye(len(columns), dtype=np.bool_)).tolist():
        ranges = sorted(columns[k].high - columns[k].low for k in (i, j))
        low, high = rows[held[:, i] & held[:, j]][:, [i, j]].T
        by_chance = np.searchsorted(np.sort(high), low).mean() / low.size
        alike = written[i] == written[j] and ranges[1] <= ALIKE_RANGES * ranges[0]
        likely[i, j] = alike and by_chance >= max(chance, FAR_MORE * descend[i, j] / both[i, j])
    for k in range(len(columns)):  # of a ≤ b ≤ c also a ≤ c, which may hold by chance
        likely |= likely[:, [k]] & likely[k]
    return [(columns[i].name, columns[j].name) for i, j in np.argwhere(likely & ascend).tolist() if i != j]


def ascending_rows(
    source: Source, columns: ByName, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Pair of columns → rows that hold both values; of these those that ascend or agree, and those that agree."""
    counts = {pair: np.zeros(3, np.int64) for pair in pairs}
    asked = [columns[n] for n in dict.fromkeys(n for pair in pairs for n in pair)]
    for values in value_batches(source, asked) if asked else ():
        for (a, b), seen in counts.items():
            gap = (values[b] - values[a])[~np.isnan(values[a]) & ~np.isnan(values[b])]
            seen += (gap.size, *(int(np.count_nonzero(which)) for which in (gap >= 0, gap == 0)))
    return {pair: (int(both), int(up), int(same)) for pair, (both, up, same) in counts.items()}


def _tried(columns: ByName) -> list[tuple[str, str]]:
    """Pairs of dates, of times, or of the day's clock, whose ranges overlap, and of numbers whose names say so."""
    pairs: list[tuple[str, str]] = []
    for kind in DATE_KINDS:
        own = [c for c in times_among(columns) if c.kind == kind][:MOST]
        pairs += [
            (a.name, b.name)
            for a, b in itertools.permutations(own, 2)
            if a.low <= b.high and b.low <= a.high and of_one_day(a) == of_one_day(b)
        ]
    for kind in ("integer", "float"):
        numbers = {c.name.lower(): c.name for c in amounts(columns, (kind,))}
        pairs += dict.fromkeys(
            (numbers[n], numbers[other])
            for n in sorted(numbers)
            for low, high in WORDS
            if low in n and (other := n.replace(low, high)) in numbers
        )
    return pairs


def of_one_day(column: Column) -> bool:
    """Whether the bounds of dates or times are one day, as those of a clock are."""
    return column.high - column.low < (1 if column.kind == "date" else DAY)
