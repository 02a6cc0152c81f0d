"""What the noise of a release's answers does to the mean and the quantiles of a column of numbers or dates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import Values
from mechanisms.public.release import Measurements
from mechanisms.public.schema.column import Column, Shape
from mechanisms.public.schema.fine_cells import cells_of_bins, fine_edges
from mechanisms.public.schema.table_schema import Schema
from synthesis.consistency.residual_parts import completed
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


def _read(shape: Shape, quantiles: tuple[float, ...]) -> Values:
    """The mean and the quantiles."""
    mean = np.average((shape.places[1:] + shape.places[:-1]) / 2, weights=np.diff(shape.below))
    return np.array([mean, *np.interp(np.array(quantiles) * shape.below[-1], shape.below, shape.places)])


def _with_noise(counts: Values, answer: Answer | None, rng: np.random.Generator) -> Answer | None:
    """An answer about these counts, with as much noise, of the normal distribution."""
    if answer is None:
        return None
    return counts + np.sqrt(answer[1]) * rng.standard_normal(counts.size), answer[1]


def group_errors(schema: Schema, measurements: Measurements, name: str, by: str) -> Values | None:
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


def _group_errors(shape: Shape, values: Values, labels: NDArray[np.int64], stddev: float) -> Values:
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
