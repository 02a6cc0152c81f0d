"""What noisy answers say of the fine cells of a column: those about the cells and those about its bins as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import Values
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import cells_of_bins

#: Noisy records per code, and the variance of one.
Answer = tuple[Values, float]


@dataclass(frozen=True, eq=False)
class FineEvidence:
    """What noisy answers say of the fine cells of a column.

    Attributes:
        cells: records per fine cell, from both kinds of answers; unbiased where cells that are no support hold none.
        first: (bins + 1,) the first fine cell of each bin, and their number.
        bin_variance: of the records of a bin.
        cell_variance: of a fine answer alone; 0 where none was measured: then a bin is known as a whole.
        support: cells that may hold records.
    """

    cells: Values
    first: NDArray[np.int64]
    bin_variance: Values
    cell_variance: float
    support: NDArray[np.bool_]

    def variance(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Values:
        """Of the sums of the cells from each `start` to before `stop`: whole bins, and parts of those at the ends."""
        variances = np.concatenate([[0], np.cumsum(self.bin_variance)])
        low, high = np.searchsorted(self.first, start), np.searchsorted(self.first, stop, side="right") - 1
        whole = np.where(low <= high, variances[high] - variances[np.minimum(low, high)], 0.0)
        begin, end = (np.where(low <= high, self.first[np.minimum(each, high)], stop) for each in (low, high))
        return np.asarray(whole + self._inside(start, begin) + self._inside(end, stop))

    def _inside(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Values:
        """As `variance`, where each part lies inside one bin."""
        cells = np.concatenate([[0], np.cumsum(self.support)])
        own = np.minimum(np.searchsorted(self.first, start, side="right"), self.bin_variance.size) - 1
        part = cells[stop] - cells[start]
        share = part / np.maximum(cells[self.first[own + 1]] - cells[self.first[own]], 1)
        return np.asarray(self.cell_variance * part * (1 - share) + share**2 * self.bin_variance[own])


def mean_of(answers: Sequence[NoisyMarginal]) -> Answer | None:
    """The mean of whole answers about one marginal, weighed by 1/σ², and its variance; None where there is none."""
    whole = [a for a in answers if isinstance(a.query, Identity)]
    if not whole:
        return None
    precision = sum(a.stddev**-2 for a in whole)
    return np.asarray(sum(a.values * a.stddev**-2 for a in whole)) / precision, 1 / precision


def evidence_of(
    column: Column,
    fine: Answer | None,
    bins: Answer | None,
    support: NDArray[np.bool_] | None = None,
) -> FineEvidence:
    """Both answers as one: the bins' records weighed by precision, and what is left of the fine answers inside them.

    Two levels of a tree with a consistent sum (Hay et al. 2010, section 4), for bins of any size: least squares, given
    that cells outside of the support hold nothing.

    Args:
        fine, bins: as of `mean_of`; not both None.
        support: cells that may hold records; None: all.
    """
    first = cells_of_bins(column)
    support = np.ones(first[-1], np.bool_) if support is None else support
    sizes = np.add.reduceat(support.astype(np.int64), first[:-1])
    some, least = sizes > 0, np.maximum(sizes, 1)
    values = np.where(support, 0.0 if fine is None else fine[0][: first[-1]], 0.0)
    precision, total = np.zeros(sizes.size), np.zeros(sizes.size)
    sums = np.add.reduceat(values, first[:-1])
    if fine is not None:
        precision, total = precision + 1 / (least * fine[1]), total + sums / (least * fine[1])
    if bins is not None:
        precision, total = precision + 1 / bins[1], total + bins[0][: sizes.size] / bins[1]
    counts = np.where(some, total / precision, 0.0)
    cells = values + np.where(support, np.repeat((counts - sums) / least, np.diff(first)), 0.0)
    return FineEvidence(cells, first, np.where(some, 1 / precision, 0.0), 0.0 if fine is None else fine[1], support)
