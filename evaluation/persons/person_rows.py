"""Rows with their persons: whose each row is, in which order they lie, and what a person's rows are when sorted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluation.values.value_tables import NOBODY

Codes = NDArray[np.integer]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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

    def at(self, rows: Ints | NDArray[np.bool_]) -> RowColumn:
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

    def at(self, rows: Ints | NDArray[np.bool_]) -> PersonRows:
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
    def follows(self) -> NDArray[np.bool_]:
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
