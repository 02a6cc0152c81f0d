"""Errors of the mean and quantiles of a column by noise: of a release, and as expected before any row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.release import Measurements
from mechanisms.public.schema.column import Column, Shape
from mechanisms.public.schema.fine_cells import cells_of_bins, fine_edges, wide
from mechanisms.public.schema.table_schema import Schema
from synthesis.consistency.residual_parts import completed
from synthesis.numbers.clearing import EMPTY
from synthesis.numbers.far_cells import LITTLE, far_groups, group_middles, pair_labels
from synthesis.numbers.fine_evidence import Answer
from synthesis.numbers.value_shapes import answers_about, shape_of, shapes_of

#: Times that noise is drawn anew: the errors are known to about an eighth. Of many columns fewer times each, so that
#: all together are so many draws at most; from eight the errors are known to about a quarter.
DRAWS, ALL_DRAWS, FEWEST_DRAWS = 30, 1_800, 8


@dataclass(frozen=True)
class NoiseError:
    """Standard errors in the column's unit (days or seconds of dates).

    Attributes:
        mean: of the mean.
        quantiles: of each quantile asked for.
    """

    mean: float
    quantiles: tuple[float, ...]


def noise_errors(schema: Schema, measurements: Measurements, quantiles: Sequence[float] = ()) -> dict[str, NoiseError]:
    """Column that noise is cleared from → the errors that it gives to its mean and quantiles, by the answers alone.

    Parametric bootstrap (Efron & Tibshirani 1993, section 6.5): what the cleared answers say is taken for the table,
    noise as large as theirs is drawn again, and all is cleared and read anew. The draws have a seed of their own. What
    clearing takes from a tail each time is no part of it.

    Guarantee: post-processing; costs no privacy.
    """
    errors: dict[str, NoiseError] = {}
    draws = max(min(DRAWS, ALL_DRAWS // max(len(schema.shaped), 1)), FEWEST_DRAWS)
    for name in schema.shaped:
        fine, bins = answers_about(schema, measurements, name)
        if fine is not None or bins is not None:
            error = _bootstrapped(schema[name], fine, bins, tuple(quantiles), draws)
            errors |= {} if error is None else {name: error}
    return errors


def _bootstrapped(
    column: Column, fine: Answer | None, bins: Answer | None, quantiles: tuple[float, ...], draws: int
) -> NoiseError | None:
    edges, first = fine_edges(column), cells_of_bins(column)
    assert edges is not None
    rng, shape = np.random.default_rng(0), shape_of(column, fine, bins)
    if shape is None:
        return None
    below = np.interp(np.nextafter(edges, -np.inf), shape.places, shape.below)
    cells = np.diff(np.append(below[:-1], shape.below[-1]))
    sums = np.add.reduceat(cells, first[:-1])
    again = [shape_of(column, _with_noise(cells, fine, rng), _with_noise(sums, bins, rng)) for _ in range(draws)]
    read = np.array([_read(a, quantiles) for a in again if a is not None])
    mean, *rest = read.std(axis=0, ddof=1).tolist() if len(read) > 1 else [math.nan] * (1 + len(quantiles))
    return NoiseError(mean, tuple(rest))


def _read(shape: Shape, quantiles: tuple[float, ...]) -> Floats:
    """The mean and the quantiles."""
    mean = np.average((shape.places[1:] + shape.places[:-1]) / 2, weights=np.diff(shape.below))
    return np.array([mean, *np.interp(np.array(quantiles) * shape.below[-1], shape.below, shape.places)])


def _with_noise(counts: Floats, answer: Answer | None, rng: np.random.Generator) -> Answer | None:
    """An answer about these counts, with as much noise, of the normal distribution."""
    if answer is None:
        return None
    return counts + np.sqrt(answer[1]) * rng.standard_normal(counts.size), answer[1]


def group_errors(schema: Schema, measurements: Measurements, name: str, by: str) -> Floats | None:
    """The standard error that noise gives to the mean of a column in each group, about; None if no answer tells.

    From the most precise answer about the pair: the noise of every cell times how far its values lie from the group's
    mean, but for cells far from the column's mean that hold next to nothing, which are cleared.

    Guarantee: post-processing; costs no privacy.
    Returns:
        one per code of `by`, in the column's unit; NaN for a group without records, or if the answer tells no two bins
        of it apart.
    """
    shape = shapes_of(schema, measurements, (name,)).get(name)
    answers = [a for a in completed(measurements).answers if set(a.clique) == {name, by}]
    pairs = [(a, pair_labels(a, measurements.domain)) for a in answers]
    usable = [(a.stddev, a, labels) for a, labels in pairs if labels is not None]
    if shape is None or not usable:
        return None
    stddev, answer, labels = min(usable, key=lambda each: each[0])
    axis = answer.clique.index(name)
    values = answer.values.reshape([int(own.max()) + 1 for own in labels])
    values = values if axis else values.T  # groups × bins
    return _group_errors(shape, values, labels[axis], stddev)[labels[1 - axis]]


def _group_errors(shape: Shape, values: Floats, labels: Ints, stddev: float) -> Floats:
    """Per group of codes of the other column."""
    place, counted = group_middles(shape, labels)
    far = far_groups(shape, labels)
    left = np.where(far & (values < LITTLE * stddev), 0.0, values) * counted
    total = left.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (left @ place)[:, None] / total
        noise = ((place - mean) ** 2 * (left != 0)).sum(axis=1)
        defined = (total[:, 0] > 0) & ((left != 0).sum(axis=1) > 1)
        return np.asarray(np.where(defined, stddev * np.sqrt(noise) / total[:, 0], np.nan))


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


def _last_bin(records: Floats, variance: Floats) -> int:
    """The number of bins up to the last one that is kept: where halving goes if the upper half stands out, or not."""
    start, stop = 0, records.size
    while stop - start > 1:
        middle = (start + stop) // 2
        stands_out = records[middle:stop].sum() >= EMPTY * math.sqrt(variance[middle:stop].sum())
        start, stop = (middle, stop) if stands_out else (start, middle)
    return stop


def _lognormal(edges: Floats, rows: int) -> Floats:
    """The share of the values below each edge; the largest of so many values is expected at the upper bound."""
    normal = NormalDist()
    top = normal.inv_cdf(1 - 1 / max(rows, 2))
    fits = math.log(edges[-1] / edges[0]) / (2 * top) if edges[0] > 0 else math.inf
    stddev = min(LOG_STDDEV, fits)
    middle = math.log(edges[-1]) - stddev * top
    below = np.array([normal.cdf((math.log(e) - middle) / stddev) if e > 0 else 0.0 for e in edges])
    below[0], below[-1] = 0.0, 1.0
    return below
