"""What noisy answers say of the fine cells of a column: those about the cells and those about its bins as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.marginals import Values
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import cells_of_bins, plain_edges, wide


@dataclass(frozen=True, eq=False)
class FineEvidence:
    """What noisy answers say of the fine cells of a column.

    Attributes:
        cells: unbiased records per fine cell, from both kinds of answers.
        first: (bins + 1,) the first fine cell of each bin, and their number.
        bin_variance: of the records of a bin.
        cell_variance: of a fine answer alone; 0 where none was measured: then a bin is known as a whole.
    """

    cells: Values
    first: NDArray[np.int64]
    bin_variance: Values
    cell_variance: float

    def variance(self, start: int, stop: int) -> float:
        """Of the sum of the cells from `start` to before `stop`, which are whole bins or lie inside one."""
        bins = np.searchsorted(self.first, [start, stop - 1], side="right") - 1
        if bins[0] != bins[1] or (self.first[bins[0]], self.first[bins[0] + 1]) == (start, stop):
            return float(self.bin_variance[bins[0] : bins[1] + 1].sum())
        size, part = self.first[bins[0] + 1] - self.first[bins[0]], stop - start
        share = part / size
        return float(self.cell_variance * part * (1 - share) + share**2 * self.bin_variance[bins[0]])


def mean_of(answers: Sequence[NoisyMarginal]) -> tuple[Values, float] | None:
    """The mean of whole answers about one marginal, weighed by 1/σ², and its variance; None where there is none."""
    whole = [a for a in answers if isinstance(a.query, Identity)]
    if not whole:
        return None
    precision = sum(a.stddev**-2 for a in whole)
    return np.asarray(sum(a.values * a.stddev**-2 for a in whole)) / precision, 1 / precision


def mean_stddev(column: Column, variance: Values, records: float, mean: float = 0.0) -> float:
    """The standard error that noise gives to the mean of a column: of Σ value · records in the bin / all records.

    Args:
        variance: of the records of each bin, and `records` all of them.
        mean: about; 0, which is no less than what any mean gives where values have one sign, if it is not known.
    """
    edges = plain_edges(column)
    assert edges is not None
    ends = np.abs(np.stack([edges[:-1], edges[1:]]))
    middle = edges[:-1] / 2 + edges[1:] / 2
    if wide(column):  # where values lie as their ratios do
        middle = np.sign(middle) * np.sinh(np.arcsinh(ends).mean(axis=0))
    return float(np.sqrt(((middle - mean) ** 2 * variance).sum())) / max(records, 1.0)


def evidence_of(column: Column, fine: tuple[Values, float] | None, bins: tuple[Values, float] | None) -> FineEvidence:
    """Both answers as one: the bins' records weighed by precision, and what is left of the fine answers inside them.

    Two levels of a tree with a consistent sum (Hay et al. 2010, section 4), for bins of any size.

    Args:
        fine, bins: answers per code and the variance of one, as of `mean_of`; not both None.
    """
    first = cells_of_bins(column)
    sizes = np.diff(first)
    values = np.zeros(first[-1]) if fine is None else fine[0][: first[-1]]
    precision, total = np.zeros(sizes.size), np.zeros(sizes.size)
    sums = np.add.reduceat(values, first[:-1])
    if fine is not None:
        precision, total = precision + 1 / (sizes * fine[1]), total + sums / (sizes * fine[1])
    if bins is not None:
        precision, total = precision + 1 / bins[1], total + bins[0][: sizes.size] / bins[1]
    counts = total / precision
    cells = values + np.repeat((counts - sums) / sizes, sizes)
    return FineEvidence(cells, first, 1 / precision, 0.0 if fine is None else fine[1])
