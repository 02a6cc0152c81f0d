"""What is measured of persons in one table, and how far two tables are apart in it; NOT private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import apart_edges
from evaluation.values.value_tables import NOBODY
from mechanisms.public.arrays import Flags, Floats, Ints

Codes = NDArray[np.integer]
#: Differences of equal steps are equal, as far as floating point goes (parts of a day).
DIGITS = 6


@dataclass(frozen=True, eq=False)
class RowColumn:
    """One column of a table.

    Attributes:
        name: as in the header.
        codes: one per row: rows with the same value have the same code.
        buckets: one per row: the same over few values.
        numbers: one per code, NaN for none; None for a column of categories.
        fixed: whether it is declared to be constant within a person.
        gap: the code of a missing value; None: there is none.
    """

    name: str
    codes: Codes
    buckets: Codes
    numbers: Floats | None = None
    fixed: bool = False
    gap: int | None = None

    def at(self, rows: Ints | Flags) -> RowColumn:
        """Some of the rows."""
        return replace(self, codes=self.codes[rows], buckets=self.buckets[rows])


@dataclass(frozen=True, eq=False)
class PersonRows:
    """A table as a metric of persons sees it; the repr shows shapes, never rows.

    Attributes:
        owner: the person of each row, NOBODY for none.
        columns: all of the same length.
        order: what a person's rows are sorted by, NaN (last) for none, ties in the order of the rows; None for that
            order alone.
    """

    owner: Ints
    columns: tuple[RowColumn, ...]
    order: Floats | None = None

    def __repr__(self) -> str:
        return f"PersonRows({len(self.owner)} rows × {len(self.columns)} columns)"

    def at(self, rows: Ints | Flags) -> PersonRows:
        """Some of the rows."""
        order = None if self.order is None else self.order[rows]
        return PersonRows(self.owner[rows], tuple(c.at(rows) for c in self.columns), order)

    def shuffled(self, rng: np.random.Generator) -> PersonRows:
        """The same rows, their owners permuted: as many records per person, and no two that belong together."""
        owner, somebody = self.owner.copy(), np.flatnonzero(self.owner != NOBODY)
        owner[somebody] = rng.permutation(owner[somebody])
        return replace(self, owner=owner)

    def halves(self, rng: np.random.Generator) -> tuple[PersonRows, PersonRows]:
        """The rows of a random half of the persons, and those of the others; nobody's are in neither."""
        people = np.unique(self.owner[self.owner != NOBODY])
        first = np.isin(self.owner, rng.permutation(people)[: len(people) // 2])
        return self.at(first), self.at(~first & (self.owner != NOBODY))

    @cached_property
    def sorted(self) -> PersonRows:
        """The rows of persons, person by person and in their order; what follows is told of these alone."""
        at = np.argsort(self.owner, kind="stable") if self.order is None else np.lexsort((self.order, self.owner))
        return self.at(at[np.count_nonzero(self.owner == NOBODY) :])

    @cached_property
    def follows(self) -> Flags:
        """Of each row but the first, whether the row before is of the same person: a step of that person."""
        return np.asarray(self.owner[1:] == self.owner[:-1])

    @cached_property
    def starts(self) -> Ints:
        """Where each person's rows begin."""
        first = np.ones(len(self.owner), bool)
        first[1:] = ~self.follows
        return np.flatnonzero(first)

    @cached_property
    def sizes(self) -> Ints:
        """How many records each person has."""
        return np.diff(self.starts, append=len(self.owner))

    @cached_property
    def person(self) -> Ints:
        """The number of each row's person, from 0."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @cached_property
    def gaps(self) -> Floats:
        """By how much the order rises in each step, where it is known at both of its ends."""
        if self.order is None:
            return np.empty(0)
        gaps = np.diff(self.order)[self.follows]
        return np.asarray(np.round(gaps[~np.isnan(gaps)], DIGITS))

    @cached_property
    def spans(self) -> Floats:
        """From the first to the last place in the order, of each person that has one."""
        order = self.order
        if order is None or not len(order):
            return np.empty(0)
        filled = np.bincount(self.person[~np.isnan(order)], minlength=len(self.starts))
        first, last = self.starts[filled > 0], (self.starts + filled - 1)[filled > 0]
        return np.asarray(np.round(order[last] - order[first], DIGITS))


#: Buckets of gaps and of spans; constants whose pairs are counted, at most.
CUTS, CONSTANTS = 10, 12
#: Persons × values that a table of marks may have; beyond it they are sorted.
MARKS = 50_000_000
#: Of the whole table, not of a column.
WHOLE = ""
#: Figures whose error is a difference of shares, and those whose error is a total variation distance.
SHARES = ("same", "likeness")
DISTANCES = ("next", "gaps", "spans", "records", "distinct", "values", "constants", "pairs")

Level = float | None


@dataclass(frozen=True, eq=False)
class Cuts:
    """Buckets [lo, hi) of numbers, with frequent ones in buckets alone.

    Attributes:
        inner: where all but the first begin.
        usual: the bucket that most of the numbers lie in, from which the cuts were made.
        label: its ends.
    """

    inner: Floats
    usual: int
    label: str

    @classmethod
    def of(cls, numbers: Floats) -> Cuts:
        """Made from the numbers of the real table."""
        values, counts = np.unique(numbers, return_counts=True)
        if not len(values):
            return cls(np.empty(0), 0, "")
        edges = apart_edges(counts, CUTS)
        starts, ends = np.append(0, edges), np.append(edges, len(values)) - 1
        usual = int(np.argmax(np.add.reduceat(counts, starts)))
        low, high = values[starts[usual]], values[ends[usual]]
        return cls(values[edges], usual, f"{low:g}" if low == high else f"{low:g} to {high:g}")

    def counts(self, numbers: Floats) -> Ints:
        """How many of them lie in each bucket."""
        return np.bincount(np.searchsorted(self.inner, numbers, side="right"), minlength=len(self.inner) + 1)


@dataclass(frozen=True, eq=False)
class PersonFigures:
    """The figures of one table.

    Attributes:
        persons, records: how many; nobody's records are not among them.
        levels: figure → column (WHOLE for none) → a share or a mean; None where it is undefined. "records": per person;
            "same": share of steps in which a column stays the same; "likeness": share of variance between persons;
            "distinct": values of a column that a person has; "gaps": share of steps with the usual gap; "spans": from
            the first to the last place in the order.
        counts: figure → column → a distribution. "next": (value, next value); "values": persons that have each value;
            "constants" and "pairs": persons by their constants, and by two of constants and number of records.
        sizes, spans: of each person.
    """

    persons: int
    records: int
    levels: Mapping[str, Mapping[str, Level]]
    counts: Mapping[str, Mapping[str, Ints]]
    sizes: Ints
    spans: Floats


def cuts_of(rows: PersonRows) -> tuple[Cuts, Cuts]:
    """The buckets of gaps and of spans, from the real table."""
    return Cuts.of(rows.sorted.gaps), Cuts.of(rows.sorted.spans)


def person_figures(rows: PersonRows, cuts: tuple[Cuts, Cuts]) -> PersonFigures:
    """The figures of one table.

    Cost: one sort of the rows, and passes over the columns; no loop over persons.

    Args:
        cuts: as of `cuts_of`.
    """
    own = rows.sorted
    columns, persons = own.columns, len(own.starts)
    steps, gaps = int(own.follows.sum()), cuts[0].counts(own.gaps)
    seen = {c.name: _distinct(own, c) for c in columns if c.numbers is None}
    places: dict[str, Mapping[str, Level]] = {}
    if rows.order is not None:
        places = {"gaps": {WHOLE: _share(gaps[cuts[0].usual], gaps.sum())}, "spans": {WHOLE: _mean(own.spans)}}
    levels: dict[str, Mapping[str, Level]] = {
        "records": {WHOLE: _mean(own.sizes)},
        **places,
        "same": {c.name: _share((c.codes[1:] == c.codes[:-1])[own.follows].sum(), steps) for c in columns},
        "likeness": {c.name: likeness(c.numbers[c.codes], own.person) for c in columns if c.numbers is not None},
        "distinct": {name: _mean(n) for name, n in seen.items()},
    }
    counts: dict[str, Mapping[str, Ints]] = {
        "records": {WHOLE: np.bincount(own.sizes)},
        "next": {c.name: _next(own, c) for c in columns},
        "distinct": {name: np.bincount(n) for name, n in seen.items()},
        "values": {c.name: _marks(own.person, c.buckets, persons).sum(axis=0) for c in columns},
        **_constants(own),
    }
    if rows.order is not None:
        counts |= {"gaps": {WHOLE: gaps}, "spans": {WHOLE: cuts[1].counts(own.spans)}}
    return PersonFigures(persons, len(own.owner), levels, counts, own.sizes, own.spans)


def likeness(numbers: Floats, person: Ints) -> Level:
    """The intraclass correlation of an analysis of variance (Fisher's ICC(1)): the share of variance between persons.

    0 for records without persons (somewhat below by chance), 1 where a person's records are all alike. None where no
    person has two numbers, where there are no two persons, or where all numbers are equal.

    Args:
        numbers: per record, NaN for none.
        person: the number of its person, from 0.
    """
    filled = ~np.isnan(numbers)
    each = np.bincount(person[filled])
    _, group = np.unique(person[filled], return_inverse=True)
    each, values = each[each > 0], numbers[filled]
    k, n = len(each), len(values)
    if k < 2 or n == k:
        return None
    values = values - values.mean()
    means = np.bincount(group, values) / each
    between = float((each * means**2).sum()) / (k - 1)
    within = float(((values - means[group]) ** 2).sum()) / (n - k)
    size = (n - float((each.astype(float) ** 2).sum()) / n) / (k - 1)
    whole = between + (size - 1) * within
    return (between - within) / whole if whole > 0 else None


def _mean(values: NDArray[np.number]) -> Level:
    return float(values.mean()) if len(values) else None


def _share(part: float, whole: float) -> Level:
    return float(part / whole) if whole else None


def _size(codes: Codes) -> int:
    """One more than the largest code."""
    return int(codes.max()) + 1 if len(codes) else 0


def _marks(person: Ints, codes: Codes, persons: int) -> Flags:
    """Whether each person (a row) has each code (a column)."""
    size = _size(codes)
    marks = np.zeros(persons * size, bool)
    marks[person * size + codes] = True
    return marks.reshape(persons, size)


def _distinct(own: PersonRows, column: RowColumn) -> Ints:
    """How many values of a column each person has."""
    persons, size = len(own.starts), _size(column.codes)
    if persons * size <= MARKS:
        return np.asarray(_marks(own.person, column.codes, persons).sum(axis=1))
    return np.bincount(np.unique(own.person * size + column.codes) // size, minlength=persons)


def _next(own: PersonRows, column: RowColumn) -> Ints:
    """How often each pair of a value and the next one occurs."""
    before, after = column.buckets[:-1][own.follows], column.buckets[1:][own.follows]
    return np.bincount(_paired(before, after))


def _paired(first: Codes, second: Codes) -> Ints:
    """A number for each pair of numbers from 0, one to one (Szudzik): no table needs to know the other's sizes."""
    a, b = first.astype(np.int64), second.astype(np.int64)
    return np.where(a < b, b * b + a, a * a + a + b)


def _constants(own: PersonRows) -> dict[str, Mapping[str, Ints]]:
    """Persons by each constant, as their first record has it, and by pairs of constants and number of records."""
    fixed = {c.name: c.buckets[own.starts] for c in own.columns if c.fixed}
    few = {**dict(list(fixed.items())[:CONSTANTS]), "records": size_buckets(own.sizes)}
    return {
        "constants": {name: np.bincount(codes) for name, codes in fixed.items()},
        "pairs": {f"{a} × {b}": np.bincount(_paired(few[a], few[b])) for a, b in combinations(few, 2)},
    }


def size_buckets(sizes: Ints) -> Ints:
    """1, 2, 3 to 4, 5 to 8, 9 to 16 records …: the number of each one's bucket, from 0."""
    return np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)


def errors(real: PersonFigures, other: PersonFigures) -> dict[str, Level]:
    """The error of each figure, the mean over its columns, 0 for the truth; None where the real one is undefined.

    Shares and intraclass correlations: the absolute difference. Distributions: the total variation distance. What is
    undefined in the other table alone is off by 1.
    """
    out: dict[str, Level] = {}
    for name in SHARES:
        both = [(v, other.levels[name][c]) for c, v in real.levels.get(name, {}).items()]
        out[name] = _mean(np.array([1.0 if b is None else abs(a - b) for a, b in both if a is not None]))
    for name in DISTANCES:
        each = [distance(n, other.counts[name][c]) for c, n in real.counts.get(name, {}).items()]
        out[name] = _mean(np.array([d for d in each if d is not None]))
    return out


def distance(a: Ints, b: Ints) -> Level:
    """The total variation distance of two distributions; 1 where the second is empty, None where the first is."""
    if not a.sum():
        return None
    if not b.sum():
        return 1.0
    size = max(len(a), len(b))
    shares = [np.pad(n, (0, size - len(n))) / n.sum() for n in (a, b)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2
