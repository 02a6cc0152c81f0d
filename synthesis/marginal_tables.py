"""Marginals as tables for analysts: the noisy answers and the consistent ones, each with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique
from mechanisms.public.queries.cell_sums import ResidualQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, averaged
from synthesis.consistency.agree import ConsistentTargets, consistent, unbiased
from synthesis.consistency.residual_parts import completed, noise_left
from synthesis.consistency.shrinkage import likeliest

#: Cells: of a larger marginal the errors of consistent cells are not told.
MAX_CELLS = 200_000


@dataclass(frozen=True, eq=False)
class MarginalTable:
    """One marginal that was measured whole.

    Attributes:
        clique: its attributes, in domain order.
        noisy: the mean of its noisy answers, weighted by their precision, in records; unbiased, may be negative.
        noisy_error: its standard error: the same for every cell.
        consistent: non-negative, agreeing with the other marginals and adding up to the total.
        consistent_error: its root mean squared error over cells that have such answers, never 0 under noise: the
            distance from what each cell may be, by the answers that agree (see `_errors`); NaN where there are too many
            cells.
    """

    clique: Clique
    noisy: Floats
    noisy_error: float
    consistent: Floats
    consistent_error: Floats


def marginal_tables(measurements: Measurements) -> list[MarginalTable]:
    """Every marginal that was measured whole, or whose residual was, once, in the order measured.

    Guarantee: post-processing; costs no privacy.
    """
    answers = tuple(a for a in measurements.answers if isinstance(a.query, Identity | ResidualQuery))
    whole = replace(measurements, answers=answers)
    rebuilt = completed(whole).answers
    if not rebuilt:
        return []
    settled = consistent(whole)
    errors = _errors(whole, settled)
    shapes = {t.clique: t for t in settled.marginals}
    tables = []
    for clique in dict.fromkeys(a.clique for a in rebuilt):
        mean, error = averaged([a for a in rebuilt if a.clique == clique])
        values = shapes[clique].values
        tables.append(MarginalTable(clique, mean.reshape(values.shape), error, values, errors[clique]))
    return tables


def _errors(measurements: Measurements, settled: ConsistentTargets) -> dict[Clique, Floats]:
    """The root mean squared error of each cell: √(v + (m − c)² + s²/n) for a consistent cell c of n.

    A cell is what its answers and a prior of all cells of the marginal leave (mean m, variance v; `likeliest`): the
    answers after the linear step, with the noise that it leaves (s, alike in all cells of a marginal); by s²/n their
    mean is off, on which the prior stands. Noise around c would call a cell certain that stands at 0.
    """
    centres, left = {t.clique: t.values for t in settled.marginals}, noise_left(measurements)
    errors = {}
    for target in unbiased(measurements):
        values, centre, variance = target.values, centres[target.clique], left[target.clique]
        errors[target.clique] = np.full(values.shape, np.nan)
        if values.size <= MAX_CELLS:
            flat = np.full(values.shape, max(float(values.mean()), 0.0))
            mean, spread = likeliest(values, math.sqrt(variance), [flat, flat / 4])
            errors[target.clique] = np.sqrt(spread + (mean - centre) ** 2 + variance / values.size)
    return errors
