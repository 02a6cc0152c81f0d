"""The error of a column's mean to expect before any row is read: what noise and clearing do to an assumed table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import cells_of_bins, fine_edges, wide
from synthesis.numbers.clearing import EMPTY

#: Of numbers that are not below 0 and may be as large as LONG: the standard deviation of the logarithm of the assumed
#: values. Incomes, charges and sizes of cities have from 0.8 to 2.
LOG_STDDEV = 1.5
LONG = 250.0
NUMBERS = ("integer", "float")
LONG_TAIL = f"lognormal values that just reach the bounds, of a standard deviation of the logarithm up to {LOG_STDDEV}"
EVEN = "values spread evenly over the range"


@dataclass(frozen=True)
class ExpectedError:
    """The root mean squared error that noise, and the tail that is lost in it, give to a column's mean.

    Attributes:
        value: in the column's unit.
        share: of the assumed mean; None where that may lie at 0.
        assumed: of the values, in words.
    """

    value: float
    share: float | None
    assumed: str


def expected_error(column: Column, cell_stddev: float, bin_stddev: float | None, rows: int) -> ExpectedError:
    """What to expect of the mean of a column with fine cells, at so many records, from public facts alone.

    A table of its size is assumed whose values lie as `assumed` says. The end of the range whose records do not stand
    EMPTY standard deviations out of its noise is lost (`clearing`): its values come out as large as where it begins.
    Below, the noise of each bin moves the mean by how far the bin lies from it.

    Args:
        cell_stddev, bin_stddev: of a noisy answer about a fine cell, and about a bin; None: bins are not asked.
    """
    edges = fine_edges(column)
    assert edges is not None
    first = cells_of_bins(column)
    long_tail = column.kind in NUMBERS and column.low >= 0 and column.high >= LONG
    records = max(rows, 1) * np.diff(_lognormal(edges, rows) if long_tail else (edges - edges[0]) / np.ptp(edges))
    to, back = (np.arcsinh, np.sinh) if wide(column) else (np.asarray, np.asarray)
    middle = np.asarray(back((to(edges[:-1]) + to(edges[1:])) / 2), np.float64)
    mean = float(records @ middle / records.sum())
    sizes = np.diff(first)
    variance = 1 / (1 / (sizes * cell_stddev**2) + (0.0 if bin_stddev is None else bin_stddev**-2))
    spread = np.repeat(variance / sizes, sizes)  # of a cell, as a part of its bin
    lost = int(first[_last_bin(np.add.reduceat(records, first[:-1]), variance)])
    start = middle[min(lost, middle.size - 1)]
    bias = float(records[lost:] @ (middle[lost:] - start))
    moved = float(((middle[:lost] - mean) ** 2 * spread[:lost]).sum())
    value = math.sqrt(bias**2 + moved) / max(rows, 1)
    return ExpectedError(value, value / mean if long_tail else None, LONG_TAIL if long_tail else EVEN)


def _last_bin(records: Values, variance: Values) -> int:
    """The number of bins up to the last one that is kept: where halving goes if the upper half stands out, or not."""
    start, stop = 0, records.size
    while stop - start > 1:
        middle = (start + stop) // 2
        stands_out = records[middle:stop].sum() >= EMPTY * math.sqrt(variance[middle:stop].sum())
        start, stop = (middle, stop) if stands_out else (start, middle)
    return stop


def _lognormal(edges: Values, rows: int) -> Values:
    """The share of the values below each edge; the largest of so many values is expected at the upper bound."""
    normal = NormalDist()
    top = normal.inv_cdf(1 - 1 / max(rows, 2))
    fits = math.log(edges[-1] / edges[0]) / (2 * top) if edges[0] > 0 else math.inf
    stddev = min(LOG_STDDEV, fits)
    middle = math.log(edges[-1]) - stddev * top
    below = np.array([normal.cdf((math.log(e) - middle) / stddev) if e > 0 else 0.0 for e in edges])
    below[0], below[-1] = 0.0, 1.0
    return below
