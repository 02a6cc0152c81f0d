"""Pairs of columns that ascend in nearly all rows, for a drafted schema and for `check`. NOT private."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from mechanisms.public.drafts.rule_guess import FEWEST_ROWS, MOST, ByName, Pair, amounts
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import first_rows, value_batches

#: Said of times between which a release loses how long it was.
LOST = (
    "how long it was is lost inside bins, mostly less than half of one: {}; a column of the length (days, minutes) in "
    "the table keeps it, and the later time is the sum (derive)"
)
#: Of so many numbers, in so many rows, pairs are looked for.
MOST_NUMBERS, TRIED_ROWS = 120, 2_000
#: A pair is proposed where so large a share of the rows ascends, and at most so large a one agrees.
ASCENDING, EQUAL = 0.97, 0.95
#: Numbers whose names say nothing ascend where so many rows do, of which so large a share would not if they were
#: unrelated, and where the range of one is at most so many times that of the other: else they have other units.
NEARLY_ALL, BY_CHANCE, ALIKE_RANGES = 0.9999, 0.02, 10
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


def guess_ordered(source: Source, columns: ByName) -> tuple[list[Pair], list[Pair]]:
    """Pairs that ascend, and that nearly always agree, once each; rows that do, and that hold both. NOT private."""
    likely = _ascending_numbers(source, columns)
    if not (tried := list(dict.fromkeys([*_tried(columns), *likely]))):
        return [], []
    asked = {n: columns[n] for pair in tried for n in pair}
    seen = ascending_rows(source, asked, tried).items()
    enough = [(a, b, both, up, same) for (a, b), (both, up, same, _) in seen if both >= FEWEST_ROWS]
    least = dict.fromkeys(tried, ASCENDING) | dict.fromkeys(likely, NEARLY_ALL)
    ordered = [(a, b, up, n) for a, b, n, up, same in enough if up >= least[a, b] * n and same <= EQUAL * n]
    alike = {frozenset((a, b)): (a, b, same, n) for a, b, n, _, same in reversed(enough) if same > EQUAL * n}
    pairs = {(a, b) for a, b, _, _ in ordered}
    pairs |= {(a.name, d.name) for a, d in itertools.permutations(asked.values(), 2) if a.high <= d.low}
    chains = ((a, b, d) for (a, b, *_), (c, d, *_) in itertools.product(ordered, repeat=2) if b == c)
    gaps = {(b, d) for a, b, d in chains if (a, d) not in pairs}
    return [each for each in ordered if each[:2] not in gaps], [*alike.values()]


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


def lost_lengths(source: Source, columns: ByName, pairs: Collection[tuple[str, str]]) -> str:
    """That lengths are lost between two dates or times, none between them, mostly less than half a bin apart; or ''.

    Args:
        pairs: of columns that ascend.
    """
    times = [pair for pair in pairs if all(n in columns and columns[n].kind in DATE_KINDS for n in pair)]
    between = {(a, d) for (a, b), (c, d) in itertools.product(times, repeat=2) if b == c}
    near = ascending_rows(source, columns, [pair for pair in times if pair not in between])
    lost = [f"{a} to {b}" for (a, b), (both, *_, short) in near.items() if both >= FEWEST_ROWS and 2 * short > both]
    return LOST.format(", ".join(lost)) if lost else ""


def _ascending_numbers(source: Source, by_name: ByName) -> list[tuple[str, str]]:
    """Pairs of numbers that ascend in the first rows, where unrelated ones would not: paid and claimed."""
    columns = amounts(by_name)[:MOST_NUMBERS]
    if len(columns) < 2:
        return []
    rows = first_rows(source, columns, TRIED_ROWS)
    held = ~np.isnan(rows)
    both = held.T.astype(np.int64) @ held
    descend = np.array([(own[:, None] > rows).sum(axis=0) for own in rows.T])
    ascend, likely = (both > 0) & (descend <= (1 - NEARLY_ALL) * both), np.zeros_like(both, np.bool_)
    for i, j in np.argwhere(ascend & ~np.eye(len(columns), dtype=np.bool_)).tolist():
        ranges = sorted(columns[k].high - columns[k].low for k in (i, j))
        low, high = rows[held[:, i] & held[:, j]][:, [i, j]].T
        by_chance = np.searchsorted(np.sort(high), low).mean() / low.size
        alike = columns[i].kind == columns[j].kind and ranges[1] <= ALIKE_RANGES * ranges[0]
        likely[i, j] = alike and by_chance >= BY_CHANCE
    for k in range(len(columns)):  # of a ≤ b ≤ c also a ≤ c, which may hold by chance
        likely |= likely[:, [k]] & likely[k]
    return [(columns[i].name, columns[j].name) for i, j in np.argwhere(likely & ascend).tolist() if i != j]


def ascending_rows(
    source: Source, columns: ByName, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Pair of columns → rows that hold both values; of these those that ascend or agree, and those that agree.

    And those in which the second is less than half a bin behind the first, or before it.
    """
    counts = {pair: np.zeros(4, np.int64) for pair in pairs}
    asked = [columns[n] for n in dict.fromkeys(n for pair in pairs for n in pair)]
    half = {c.name: (c.high - c.low + 1) / c.value_codes / 2 for c in asked}
    for values in value_batches(source, asked) if asked else ():
        for (a, b), seen in counts.items():
            gap = (values[b] - values[a])[~np.isnan(values[a]) & ~np.isnan(values[b])]
            short = gap < min(half[a], half[b])
            seen += (gap.size, *(int(np.count_nonzero(which)) for which in (gap >= 0, gap == 0, short)))
    return {pair: (int(both), int(up), int(same), int(short)) for pair, (both, up, same, short) in counts.items()}


def _tried(columns: ByName) -> list[tuple[str, str]]:
    """Pairs of dates, of times, or of the day's clock, whose ranges overlap, and of numbers whose names say so."""
    pairs: list[tuple[str, str]] = []
    for kind in DATE_KINDS:
        own = [c for c in columns.values() if c.kind == kind][:MOST]
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
