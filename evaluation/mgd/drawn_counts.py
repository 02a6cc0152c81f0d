"""Counts of marginals had other rows been drawn: of few rows the same ones for all marginals, of many each anew."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.domain import Clique

Floats = NDArray[np.float64]

#: Of more rows the counts of each marginal are drawn by themselves: that costs the cells and not the rows.
TOGETHER = 20_000


class DrawnCounts:
    """Counts of `rows` new records like those of a table, one draw for all marginals.

    A record is a row of the table with replacement; so large a share of new records as lies in cells that no row
    occupies (Good 1953: the rows that are alone in theirs tell) has independent columns in its place. Without it the
    counts of sparse cells would vary more when they are drawn again than they did at first.
    """

    def __init__(self, table: AnyTable, rows: int, rng: np.random.Generator) -> None:
        self._rows, self._rng = rows, rng
        self._table = table if isinstance(table, CodedTable) and max(table.rows, rows) <= TOGETHER else None
        if self._table is not None:
            self._drawn = rng.integers(0, table.rows, rows)
            self._mark = rng.random(rows)
            self._alone: dict[str, NDArray[np.int64]] = {}

    def counts(self, clique: Clique, cells: Cells, records: Floats) -> Floats:
        """Of one marginal, in its shape.

        Args:
            records: records of the table in the occupied cells.
        """
        alone = float((records == 1).sum()) / max(float(records.sum()), 1.0)
        if self._table is None:
            drawn = self._rng.multinomial(self._rows, smooth(cells, records, alone).ravel())
            return np.asarray(drawn.reshape(cells.shape), np.float64)
        apart = self._mark < alone
        codes = []
        for name in clique:
            column = self._table.column(name)
            if name not in self._alone:
                self._alone[name] = self._rng.integers(0, self._table.rows, self._rows)
            codes.append(column[np.where(apart, self._alone[name], self._drawn)].astype(np.int64))
        places = np.ravel_multi_index(tuple(codes), cells.shape)
        return np.asarray(np.bincount(places, minlength=math.prod(cells.shape)).reshape(cells.shape), np.float64)


def smooth(cells: Cells, counts: Floats, alone: float) -> Floats:
    """The shares of all cells; those that no record occupies get `alone`, spread as by independent columns."""
    whole = np.zeros(math.prod(cells.shape))
    whole[cells.ids] = counts / float(counts.sum())
    return np.asarray((1 - alone) * whole.reshape(cells.shape) + alone * product(cells, counts))


def product(cells: Cells, counts: Floats) -> Floats:
    """The shares of independent columns."""
    shares = np.ones(())
    for codes, size in zip(cells.codes, cells.shape, strict=True):
        shares = np.multiply.outer(shares, np.bincount(codes, counts, size) / counts.sum())
    return shares
