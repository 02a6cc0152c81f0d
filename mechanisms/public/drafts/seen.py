"""What was seen of a column: its numbers, its days and times, and what its cells look like. NOT private."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any, TypeAlias

from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.doubts import POSTAL_NAME
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.text_forms import ROW_SHARE

#: A text that fewer units hold, or rows where no unit is known, is never listed, nor quoted, nor taken for a gap or a
#: bound far from all others: it may be one person's.
FEWEST_UNITS = 10
#: Bounds of numbers, and of days, which have no long tails, are driven far out where they span so many times what is
#: left without the FEWEST_UNITS values at either end.
FAR_OUT, DAYS_OUT = 3, 2
#: Rows that follow each other are those of ids where there are so many values at least, of so many rows each.
FEWEST_GROUPS, EACH = 40, (1.5, 100)
#: So many columns are asked about at once; whole numbers between these may be years.
GROUPED_TOGETHER, YEARS = 100, (1800, 2200)
#: Bounds do not follow values that would make them span so many times as much, where there are so many cells.
NUMBERS_CUT, DAYS_CUT, CUT_CELLS = 10, 4, 200
#: The least and the largest number, or day; None: there is none.
Ends: TypeAlias = tuple[Any, Any]
#: Of at least so many numbers this share are multiples of one of these steps, where amounts are rounded to it.
ROUNDED, FEWEST_ROUNDED = 0.98, 50
CLOCK_STEPS = (60, 300, 900, 1800, 3600)
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 2, 5, 10, 15, 20, 25, 50, 100, 200, 250, 500, 1000)
#: Numbers have a long tail where so large a share lies below a tenth of the largest, about; so few lie below the second
#: edge of growing ones.
SKEWED, FEW_BELOW = 0.8, 0.05
#: Where so large a share of the numbers is 0, as of fines and of months in prison, it is a bin of its own: what goes
#: with 0 alone is lost in a bin that holds other numbers too. So is another number of so large a share, a spike.
ZEROS_APART, SPIKE = 0.05, 0.2
#: More values than the first, of fewer rows each in the mean than the second, may be the ids of persons; but free text,
#: of which at least so large a share of the cells has four words or more, is none.
FEWEST_IDS, ROWS_OF_AN_ID, WORDY = 100, 10, 0.5
#: A number with NOISY digits or more is one of fewer, computed or stored in binary, where the first so many round to at
#: most so few: doubles, and single precision.
NOISY, PRECISE = 14, ((10, 8), (7, 6))
#: Of more rows than the first nearly every one has a value of its own where this share of them does.
FEW_VALUES, OWN = 50, 0.9


@dataclass(frozen=True)
class Spread:
    """Between which ends the numbers of a column lie, or its days.

    Attributes:
        low, high: the least and the largest one, but for codes of gaps; None: there is none.
        inner: the same of those which enough units hold, or go beyond; None: all have few.
        codes: those that often stand for gaps → how many units hold each, at least.
    """

    low: Any = None
    high: Any = None
    inner: Ends = (None, None)
    codes: Mapping[Any, int] = field(default_factory=dict)

    @cached_property
    def apart(self) -> tuple[Any, ...]:
        """Codes that lie apart from all others: days half the range of the others away."""
        low, high, codes = self.low, self.high, self.codes
        if low is None or high is None:
            return ()
        if isinstance(low, date):
            return tuple(d for d in codes if 2 * max(low - d, d - high) >= max(high - low, timedelta(1)))
        # Beside −1, −2 is the end of a scale, unless it is the more frequent one, as of a question that is skipped.
        if -2 in codes and -1 in codes and (high <= 2 or (low <= 0 and codes[-2] <= codes[-1])):
            low = min(low, -2)
        answers = low == high == 0  # 0 and -1: no and yes, as databases of offices write them
        far = (c for c in codes if c < min(0, 1.5 * low) or c > max(1.5 * high, high + 1))
        return tuple(sorted(c for c in far if not (answers and c == -1)))

    @property
    def gaps(self) -> tuple[Any, ...]:
        """Those of them that enough units hold."""
        return tuple(c for c in self.apart if self.codes[c] >= FEWEST_UNITS)

    @property
    def ends(self) -> Ends | None:
        """The least and the largest one that is no gap, whoever holds it."""
        values = [x for x in (self.low, self.high, *self.codes) if x is not None and x not in self.apart]
        return (min(values), max(values)) if values else None

    def bounds(self) -> Ends | None:
        """The same, but an end that few units of many drive absurdly far lies no farther than `_reach`."""
        ends = self.ends
        return tuple(self._reach[e] if e in self.cut else ends[e] for e in (0, 1)) if ends is not None else None

    def few_beyond(self) -> str:
        """That few units hold what bounds leave out, or what drives them far out, to be told behind who few are."""
        if len(self.apart) > len(self.gaps):
            return "values far from all others, which the bounds leave out: do they mean a gap?"
        if self.cut:
            return "values far beyond these bounds, and a run clips them: are they errors? Take public bounds"
        return "what drives the bounds far out: take public ones" if self.driven else ""

    @property
    def cells(self) -> int:
        """How many cells the ends are those of."""
        return 0

    @property
    def _reach(self) -> Ends:
        """How far bounds reach where few drive them farther: as far as enough units do."""
        return self.inner

    @cached_property
    def cut(self) -> tuple[int, ...]:
        """The ends (0: the least) that bounds do not follow: few units of many drive them absurdly far."""
        return self._driven(DAYS_CUT, NUMBERS_CUT) if self.cells >= CUT_CELLS else ()

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """Which ends (0: the least) few units drive far out."""
        return self._driven(DAYS_OUT, FAR_OUT)

    def _driven(self, days: float, numbers: float) -> tuple[int, ...]:
        (low, high), ends, driven = self.inner, self.ends, set[int]()
        if ends is None or None in (low, high, self.low, self.high) or low >= high:
            return ()
        most, (least, largest) = (days if isinstance(low, date) else numbers) * (high - low), (self.low, self.high)
        while largest - least > most:
            farther = int(low - least <= largest - high)
            driven.add(farther)
            least, largest = (least, high) if farther else (low, largest)
        return tuple(e for e in sorted(driven) if ends[e] == (self.low, self.high)[e])


@dataclass(frozen=True)
class Numbers(Spread):
    """The numbers of a column, as one reading sees them.

    Attributes:
        count, wholes: cells that are numbers, and whole numbers.
        decimals: the most decimals.
        fixed: whether all are written with as many, zeros too, as prices are: 60.00.
        zeros: cells that are 0.
        often: the most frequent number but codes of gaps that enough units hold → its cells.
        multiples: of some steps how many numbers that are neither 0 nor codes of gaps are multiples; 0: of all of them.
        steps: numbers but 0 that are no codes of gaps, by the largest of 1, 2, 5, 10, … that their size reaches: its
            rank (of 1 it is 0, of 10 it is 3) → how many.
    """

    count: int = 0
    wholes: int = 0
    decimals: int = 0
    fixed: bool = False
    zeros: int = 0
    steps: Mapping[int, int] = field(default_factory=dict)
    multiples: Mapping[float, int] = field(default_factory=dict)
    often: Mapping[float, int] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        return self.count

    @property
    def _reach(self) -> Ends:
        """As of any spread; of amounts of which few are large so many times as far, as they have long tails."""
        low, high = self.inner
        more = (FAR_OUT - 1) * (high - low) if self.growing_edges(low, high) else 0
        return low - more, high + more

    @property
    def frequent(self) -> list[float]:
        """Numbers that need bins of their own."""
        zero = [0.0] if self.zeros >= ZEROS_APART * self.count else []
        return zero + [x for x, n in self.often.items() if x and n >= SPIKE * self.count]

    @property
    def multiple_of(self) -> float | None:
        """The largest step of which nearly all numbers are multiples; None where there is none, or few numbers."""
        count, written = self.multiples.get(0, 0), 1 if self.wholes == self.count else 10.0**-self.decimals
        fit = [s for s, n in self.multiples.items() if s > written and n >= ROUNDED * max(count, FEWEST_ROUNDED)]
        return max(fit, default=None)

    def growing_edges(self, low: float, high: float) -> list[float]:
        """Edges at 0 and 1, 2, 5, 10, … to `high` or further, the same below 0; none where numbers fill their range."""
        steps = {k: n for k, n in self.steps.items() if step(k) <= max(high, -low)}
        ranks, whole = sorted(steps), sum(steps.values())
        if not ranks or sum(n for k, n in steps.items() if k < ranks[-1] - 2) < SKEWED * whole:
            return []
        below = dict(zip(ranks, itertools.accumulate(steps[k] for k in ranks), strict=True))
        first = next(k for k in ranks if below[k] > FEW_BELOW * whole)
        above, under = ([step(k) for k in _ranks_to(end, first)] for end in (high, -low))
        return [*(-x for x in reversed(under)), 0.0, *above]


def _ranks_to(end: float, first: int) -> range:
    """The ranks from the first one to the one that reaches so far; none for an end that is not above 0."""
    return range(first, next(k for k in itertools.count(first) if step(k) >= end) + 1) if end > 0 else range(0)


def step(rank: int) -> float:
    """1, 2, 5, 10, … by rank; 0.5 before 1."""
    return float(f"{(1, 2, 5)[rank % 3]}e{rank // 3}")


def outermost(value: str, which: str) -> str:
    """SQL for the least and the largest values, each with how many units hold it: see `reached`."""
    each = f"{{'value': {value}, 'units': units}}, {FEWEST_UNITS}) FILTER ({which} AND {value} IS NOT NULL)"
    return f"min({each}, max({each}"


def reached(outermost: Iterable[Mapping[str, Any]] | None) -> Any:
    """The outermost value that enough units hold, or go beyond; None: all have few.

    Args:
        outermost: values, the outermost first, each with its units.
    """
    units = 0
    for own in outermost or ():
        units += own["units"]
        if units >= FEWEST_UNITS:
            return own["value"]
    return None


def without_noise(text: str, number: str, decimal: str) -> str:
    """SQL for the text of a number without the noise of binary arithmetic: 3.04999995231628 is 3.05."""
    digits, cases = "length(ltrim(regexp_replace({}, '[^0-9]', '', 'g'), '0'))", ""
    for precise, few in PRECISE:
        short = f"format('{{:.{precise}g}}', {number})"
        noisy = f"{digits.format(text)} >= {NOISY} AND {digits.format(short)} <= {few}"
        cases += f" WHEN {noisy} THEN replace({short}, '.', '{decimal}')"
    return f"CASE{cases} ELSE {text} END"


@dataclass(frozen=True)
class Moments(Spread):
    """The days and times of a column, as some forms read them.

    Attributes:
        read: cells that the first form reads, the first two, and so on.
        days: whether all are whole days.
        clocks: times that are multiples of each of CLOCK_STEPS.
    """

    read: tuple[int, ...] = ()
    days: bool = True
    clocks: tuple[int, ...] = ()

    @property
    def cells(self) -> int:
        return self.read[-1] if self.read else 0

    @property
    def multiple_of(self) -> int | None:
        """The most seconds of which nearly all times are multiples; None: there are none."""
        steps = zip(CLOCK_STEPS, self.clocks, strict=True)
        return max((s for s, n in steps if n >= ROUNDED * self.read[-1]), default=None)


@dataclass(frozen=True)
class ColumnFacts:
    """What one scan saw of a column.

    Attributes:
        rows, filled: cells, and cells with a value.
        gaps: listed texts of missing values that occur.
        empty: whether empty cells occur.
        distinct: how many distinct values.
        padded, dated: cells that are numbers with leading zeros, or begin like dates.
        shortest, longest: characters of values that are digits alone; `digits` is how many of these there are.
        worded: cells of four words or more, not all of which begin with a capital, as those of names do.
        plain: its numbers, read as they are.
    """

    rows: int = 0
    filled: int = 0
    gaps: tuple[str, ...] = ()
    empty: bool = False
    distinct: int = 0
    padded: int = 0
    dated: int = 0
    digits: int = 0
    shortest: int = 0
    longest: int = 0
    worded: int = 0
    plain: Numbers = field(default_factory=Numbers)

    @property
    def of_their_own(self) -> list[str]:
        """The question whether values number rows or persons, where nearly every row has another one."""
        whole = self.plain.wholes == self.plain.count  # far beyond 2⁵² these are drafted as floats
        asked = whole and self.rows > FEW_VALUES and self.distinct > OWN * self.rows
        return ["nearly every row has a value of its own: an id? leave_out lists what is not released"] if asked else []

    @property
    def wordy(self) -> bool:
        """Whether most values are of several words, as remarks are."""
        return self.worded > WORDY * self.filled

    @property
    def of_years(self) -> bool:
        """Whether its numbers may be years."""
        low, high = self.plain.low, self.plain.high
        return low is not None and high is not None and YEARS[0] <= low and high <= YEARS[1]

    def may_be_id(self, name: str) -> bool:
        """Whether values of so few rows each may name persons: a guess, whatever the column is called."""
        few = FEWEST_IDS < self.distinct <= ROW_SHARE * self.filled and self.filled < ROWS_OF_AN_ID * self.distinct
        return few and not self.wordy and not POSTAL_NAME.search(name)

    @property
    def missing(self) -> list[str] | bool:
        """What the column's `missing` says, if nothing else means so."""
        return list(self.gaps) if self.gaps else self.empty


#: What is asked of such days.
LATE = "some lie in years to come: are they a hundred years too late, as births? Years of four digits in the table"


def too_late(column: Column) -> bool:
    """Whether years of two digits make days to come: births of 1931 are read as of 2031, and no rule holds of them."""
    short = any("%y" in form for form in (column.format or "", *column.more_formats))
    ends = (date(date.today().year + 1, 1, 1) - date(1970, 1, 1)).days
    return short and column.high >= ends * (1 if column.kind == "date" else DAY)


def few_units(unit: str | None) -> str:
    """What holds a text that is not told, in words."""
    return f"fewer than {FEWEST_UNITS} {'rows' if unit is None else f'values of {unit!r}'} hold"


def follow_each_other(source: Source, seen: Mapping[str, ColumnFacts]) -> list[str]:
    """Columns of many values, each of which stands in rows that follow each other, as of a person. NOT private.

    An amount by which the table is sorted stands so too; years are left out.

    Args:
        seen: column → what a scan saw of it.
    """
    least, most = EACH
    names = [n for n, own in seen.items() if own.distinct >= FEWEST_GROUPS and not own.of_years]
    names = [n for n in names if least <= seen[n].filled / seen[n].distinct <= most and not seen[n].wordy]
    grouped: list[str] = []
    for first in range(0, len(names), GROUPED_TOGETHER):
        block = names[first : first + GROUPED_TOGETHER]
        texts = [f"coalesce(trim({source.text(source.index(n, where='data'))}), '')" for n in block]
        before = ", ".join(f"{t} AS t{i}, lag({t}) OVER () AS b{i}" for i, t in enumerate(texts))
        counts = ", ".join(f"count_if(t{i} IS DISTINCT FROM b{i}), count(DISTINCT t{i})" for i in range(len(block)))
        (runs,) = source.lines(f"SELECT {counts} FROM (SELECT {before} FROM {source.relation})")
        grouped += [n for n, own, values in zip(block, runs[::2], runs[1::2], strict=True) if own == values]
    return grouped
