"""Features of persons, of their records, and of a record and the next one: whole numbers below a public size."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.schema.column import ORDERED_KINDS, Column

#: Values of one column stand in at most so many groups where a record is set beside the next one.
GROUPS = 10
#: And so many, least and most, where a person's mean stands beside the number of records, three for two codes between:
#: a mean that lies anywhere inside a wide cell makes persons less alike, and noise in narrow ones is smoothed away.
MEANS = (15, 30)
#: Distinct values of a person are counted up to so many.
DISTINCT = 7
#: Sizes of persons are cut at these, where they stand beside something else.
SIZES = (1, 2, 3, 5, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257)
#: A difference of times has at most so many cells.
DIFFERENCES = 20
HOUR = 3600


class Trait(enum.IntEnum):
    """What a feature is; `tally` computes each by its number."""

    RECORDS = 0  # how many records the person has
    CONSTANT = 1  # a value that all of them share
    FIRST = 2  # the value in the first record
    SPAN = 3  # the time from the first record to the last
    DISTINCT = 4  # how many distinct codes there are, 1 to DISTINCT, more under the last
    MEAN = 5  # the mean code of the values
    VALUE = 6  # the value in a record
    NEXT = 7  # the value in the next record
    SAME = 8  # whether both are equal: 0 no, 1 yes
    GAP = 9  # the time between both


@dataclass(frozen=True)
class Feature:
    """A whole number below `size`, of a person, a record, or a record and the next one.

    Attributes:
        kind: which.
        column: of the schema; "" for the number of records.
        groups: for VALUE, NEXT, FIRST, CONSTANT: code → cell; for RECORDS: number of records − 1 → cell, more under the
            last; for SPAN and GAP: the least difference of each cell, ascending from 0, a missing time behind them; for
            MEAN: the number of value codes alone; for DISTINCT and SAME empty.
        size: how many cells.
    """

    kind: Trait
    column: str
    groups: tuple[int, ...]
    size: int

    @property
    def label(self) -> str:
        """How plans and statements name it."""
        word = {Trait.RECORDS: "records", Trait.CONSTANT: "", Trait.VALUE: ""}.get(self.kind, self.kind.name.lower())
        return f"{word} {self.column}".strip()


def sizes(most: int, *, every: bool = False, few: bool = False) -> Feature:
    """The number of records of a person, up to `most`: each number for itself, or in groups that grow; half as many."""
    if every:
        return Feature(Trait.RECORDS, "", tuple(range(most)), most)
    starts = [s for s in SIZES[:: 1 + few] if s <= most]
    cells = np.searchsorted(starts, np.arange(1, most + 1), side="right") - 1
    return Feature(Trait.RECORDS, "", tuple(map(int, cells)), len(starts))


def of_values(kind: Trait, column: Column, most: int | None = None) -> Feature:
    """The value of a column in at most `most` groups, None: each for itself; *other* and *missing* for themselves.

    Neighbours share a group: of an ordered column, or one of few values (`in_groups`).
    """
    values, special = column.value_codes, column.size - column.value_codes
    groups = min(values, most or values)
    cells = [i * groups // values for i in range(values)] + [groups + i for i in range(special)]
    return Feature(kind, column.name, tuple(cells), groups + special)


def in_groups(column: Column) -> bool:
    """Whether GROUPS groups say what a column's values are: those of an unordered one stand alone."""
    return column.value_codes <= GROUPS or is_ordered(column)


def is_ordered(column: Column) -> bool:
    """Whether neighbouring value codes lie near each other."""
    return (column.kind in ORDERED_KINDS and column.width is None) or column.ordinal


def mean_of(column: Column) -> Feature:
    """The mean code of a person's values, in cells of equal width; the last cell: no record has a value."""
    codes, (least, most) = column.value_codes, MEANS
    return Feature(Trait.MEAN, column.name, (codes,), min(2 * codes, max(least, min(3 * codes // 2, most))) + 1)


def difference(kind: Trait, column: Column) -> Feature:
    """A difference of times in cells that grow; the last cell: a time is missing."""
    starts = difference_starts(column)
    return Feature(kind, column.name, starts, len(starts) + 1)


def resolution(column: Column) -> float:
    """The unit in which times of an order's column are counted: a number, a day, an hour, or a part of the range."""
    if column.kind == "float":
        return (column.high - column.low) / 1000 or 1.0
    return float(HOUR) if column.kind == "datetime" else 1.0


def difference_starts(column: Column) -> tuple[int, ...]:
    """The least difference of each cell: 0 to 4 each, then growing by halves, or doubling where the range is long."""
    longest = int((column.high - column.low) / resolution(column)) + 1
    slow, fast = [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]
    while slow[-1] < longest:
        slow += [slow[-1] * 3 // 2, slow[-1] * 2]
    while fast[-1] < longest:
        fast.append(fast[-1] * 2)
    starts = [s for s in slow if s <= longest]
    return tuple(starts if len(starts) <= DIFFERENCES else [s for s in fast if s <= longest])


def times_of(values: NDArray[np.float64], column: Column) -> NDArray[np.int64]:
    """Values of an order's column as whole multiples of its resolution from the lower bound; −1 for none."""
    counted = np.floor((values - column.low) / resolution(column))
    return np.where(np.isnan(values), -1.0, np.clip(counted, 0, 2.0**53)).astype(np.int64)
