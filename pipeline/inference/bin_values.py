"""What is known of a value inside a bin: its least and its largest, and the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.public.errors import UserError
from mechanisms.public.marginals import Values
from mechanisms.public.schema.column import DATE_KINDS, Column


@dataclass(frozen=True, eq=False)
class BinValues:
    """The numbers that each code of a column stands for.

    Attributes:
        counted: per code 1 where it stands for a number; 0 for *other* and *missing*.
        low, high: the least and the largest number of the bin; 0 where `counted` is 0.
    """

    counted: Values
    low: Values
    high: Values

    @property
    def middle(self) -> Values:
        return (self.low + self.high) / 2

    def at_midpoints(self) -> BinValues:
        """As if every value were its bin's middle."""
        return BinValues(self.counted, self.middle, self.middle)

    @property
    def widest(self) -> float:
        """The width of the widest bin, in the column's unit."""
        return float((self.high - self.low).max(initial=0.0))


def bin_values(column: Column, what: str) -> BinValues:
    """The numbers behind the codes of a column of numbers.

    Raises:
        UserError: a column of texts, dates or times; `what` is the estimate that was asked for.
    """
    if column.kind in DATE_KINDS:
        raise UserError(f"{column.name!r} holds dates", where=what, fix="a column of numbers; or query where={…}")
    low, high = _ends(column, what)
    behind = np.zeros(column.size - column.value_codes)
    counted = np.concatenate([np.ones(column.value_codes), behind])
    return BinValues(counted, np.concatenate([low, behind]), np.concatenate([high, behind]))


def _ends(column: Column, what: str) -> tuple[Values, Values]:
    if column.texts:
        try:
            numbers = np.array([float(t) for t in column.texts])
        except ValueError as error:
            fix = "a column of numbers; of texts ask estimate=proportion value=TEXT"
            raise UserError(f"{column.name!r} holds texts, not numbers", where=what, fix=fix) from error
        return numbers, numbers
    return column.grid.spans
