"""Cells seen through noise, brought nearer to means that the answers themselves make likeliest.

Source: empirical Bayes (Robbins 1956; Efron 2010), here with exponential cells; shares of a mixture by EM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.evidence import gathered
from synthesis.consistency.projection import norm_sub

#: Widths of the neighbourhoods that a cell's prior mean is taken from, in cells.
WIDTHS = (0.7, 1.5, 3.0)
#: Cells of an axis that are weighed all with all; beyond so many widths a weight is 0 as a float.
DENSE, FAR = 1024, 39
#: Multiples of a prior mean that a cell may have; the least prior mean, in σ, stands for none; steps of EM.
MULTIPLES, SPIKE, STEPS = (0.0, 1 / 16, 1 / 4, 1.0, 4.0, 16.0), 0.01, 40


def likeliest(values: Floats, stddev: float, means: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Posterior means and variances of cells seen through noise, under the likeliest of several priors; none below 0.

    A cell is exponential, with a multiple of its prior mean; the shares of the multiples are fitted by EM.

    Args:
        means: candidates, each with one prior mean per cell.
    """
    from scipy.special import log_ndtr  # a plan needs none of scipy

    if stddev <= 0 or not values.size:
        return np.maximum(values, 0.0), np.zeros(values.shape)
    scaled, best, shrunk_values, squares = values.ravel() / stddev, -np.inf, values.ravel(), values.ravel()
    for mean in means:
        rates = 1 / np.maximum(np.outer(MULTIPLES, mean.ravel() / stddev), SPIKE)
        tails = log_ndtr(scaled - rates)
        logs = np.log(rates) - scaled * rates + 0.5 * rates**2 + tails
        top = logs.max(axis=0)
        likelihoods, shares = np.exp(logs - top), np.full((len(MULTIPLES), 1), 1 / len(MULTIPLES))
        for _ in range(STEPS):
            parts = shares * likelihoods
            shares = np.add.reduce(parts / np.add.reduce(parts), axis=1, keepdims=True) / scaled.size
        parts = shares * likelihoods
        likelihood = float((np.log(parts.sum(axis=0)) + top).sum())
        if likelihood > best:
            moved = scaled - rates
            inside = moved + np.exp(-0.5 * moved**2 - 0.5 * math.log(2 * math.pi) - tails)
            inside = np.maximum(inside, 0.0)
            best, shrunk_values = likelihood, (parts * inside).sum(axis=0) / parts.sum(axis=0)
            squares = (parts * np.maximum(1 + moved * inside, 0.0)).sum(axis=0) / parts.sum(axis=0)
    variances = np.maximum(squares - shrunk_values**2, 0.0) * stddev**2
    return (shrunk_values * stddev).reshape(values.shape), variances.reshape(values.shape)


def smoothed(values: Floats, lines: Sequence[int], stddev: float) -> tuple[Floats, Floats]:
    """Cells free of noise and their variances: each prior mean is a mean of all cells, or of neighbours along the axes.

    Args:
        values: of any number of axes.
        lines: along each axis the first so many cells lie on a line; others have no neighbours.
    """
    flat = np.full(values.shape, max(float(values.mean()), 0.0))
    means = [flat, flat / 4]
    for width in WIDTHS:
        near = neighbours(values, lines, width)
        means += [np.maximum(near, flat / 10), np.maximum(near, flat / 100)]
    return likeliest(values, stddev, means)


def neighbours(values: Floats, lines: Sequence[int], width: float, stddev: float = 0.0) -> Floats:
    """Of each cell the mean of the others, by their distance along the axes.

    Args:
        stddev: of the noise in each cell. Means that noise alone explains are 0, larger ones lose what it adds to them:
            else those of cells where nobody is would be above 0 by it.

    Source: with a stddev, the positive part of James & Stein 1961, for each mean by itself.
    """
    total, count = values, np.ones(values.shape)
    for axis, line in enumerate(lines):
        total, count = (_weighed(x, axis, line, width) for x in (total, count))
    others = np.maximum(count - 1, 1e-9)
    means = np.maximum((total - values) / others, 0.0)
    if not stddev:
        return means
    squares = np.ones(values.shape)
    for axis, line in enumerate(lines):
        squares = _weighed(squares, axis, line, width / math.sqrt(2))  # the squared weights are as wide
    noise = stddev**2 * (squares - 1) / others**2
    return np.asarray(means * np.maximum(1 - noise / np.maximum(means**2, 1e-12), 0.0))


def _weighed(cells: Floats, axis: int, line: int, width: float) -> Floats:
    """Sums along an axis by weights of distances; of a long axis some cells at a time, with all that are near."""
    cells, reach = np.moveaxis(cells, axis, 0), math.ceil(FAR * width)
    sums, size = cells.copy(), DENSE if len(cells) <= DENSE else reach
    for start in range(0, line, size):
        mine, place = (np.arange(max(start - r, 0), min(start + size + r, len(cells))) for r in (0, reach))
        kernel = np.exp(-0.5 * ((mine[:, None] - place[None, :]) / width) ** 2)
        kernel *= (mine[:, None] < line) & (place[None, :] < line)
        kernel[mine - start, mine - place[0]] = 1.0
        sums[mine] = np.tensordot(kernel, cells[place], (1, 0))
    return np.moveaxis(sums, 0, axis)


#: Of the noise at least this share is taken to be left: priors that explain an answer whole may err.
LEFT = 0.05


def with_likely_columns(measurements: Measurements) -> Measurements:
    """Whole answers about one column, replaced by the records that are likely, and by the noise that is left in them.

    Answers get the known total, their cells the means that all cells, or neighbours of an ordered column, make
    likeliest (`smoothed`). These lose a constant until they sum to the total (`norm_sub`): a few records that may be in
    each of many empty cells are none.

    Guarantee: post-processing; costs no privacy.
    Cost: some hundred passes over the cells of each column.
    """
    total = estimate_total(measurements)
    if not total > 0:
        return measurements
    whole = [len(a.clique) == 1 and isinstance(a.query, Identity) for a in measurements.answers]
    columns = [a for a, is_whole in zip(measurements.answers, whole, strict=True) if is_whole]
    likely = {}
    for each in gathered(measurements.domain, columns):
        (name,), (values,) = each.clique, each.values
        even = values + (total - values.sum()) / values.size
        means, variances = smoothed(even, (measurements.domain[name].ordered,), each.stddev)
        left = max(math.sqrt(float(variances.mean())) / each.stddev, LEFT)
        likely[each.clique] = norm_sub(means, total), left

    answers = []
    for answer, is_whole in zip(measurements.answers, whole, strict=True):
        if is_whole:
            values, left = likely[answer.clique]
            answer = replace(answer, values=values, scale=answer.scale * left)
        answers.append(answer)
    return replace(measurements, answers=tuple(answers))
