"""Marginals as tables for analysts: the noisy answers and the consistent ones, each with its standard error."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.queries.residual_query import ResidualQuery
from mechanisms.public.release import Measurements, NoisyMarginal, averaged
from synthesis.consistency.agree import ConsistentTargets, consistent, unbiased
from synthesis.consistency.residual_parts import completed
from synthesis.consistency.shrinkage import likeliest

#: Draws of the noise that tell how much of it the agreement of the marginals leaves.
DRAWS, FEW = 10, 50
#: Cells of all marginals: up to so many are drawn FEW times.
SMALL = 20_000
#: Cells: larger sets of tables are not drawn.
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
    noisy: NDArray[np.float64]
    noisy_error: float
    consistent: NDArray[np.float64]
    consistent_error: NDArray[np.float64]


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
    errors = _errors(whole, settled, np.random.default_rng(0))
    shapes = {t.clique: t for t in settled.marginals}
    tables = []
    for clique in dict.fromkeys(a.clique for a in rebuilt):
        mean, error = averaged([a for a in rebuilt if a.clique == clique])
        values = shapes[clique].values
        tables.append(MarginalTable(clique, mean.reshape(values.shape), error, values, errors[clique]))
    return tables


def _errors(
    measurements: Measurements, settled: ConsistentTargets, rng: np.random.Generator
) -> dict[Clique, NDArray[np.float64]]:
    """The root mean squared error of each cell: √(v + (m − c)² + s²/n) for a consistent cell c of n.

    A cell is what its answers and a prior of all cells of the marginal leave (mean m, variance v; `likeliest`): the
    answers after the linear step, whose noise (s), alike in all cells of a marginal, is drawn anew; by s²/n their mean
    is off, on which the prior stands. Drawing noise around c would call a cell certain that stands at 0.
    """
    centres = {t.clique: t.values for t in settled.marginals}
    cells = sum(v.size for v in centres.values())
    draws = FEW if cells <= SMALL else DRAWS
    if cells > MAX_CELLS:
        return {c: np.full(v.shape, np.nan) for c, v in centres.items()}
    variances = dict.fromkeys(centres, 0.0)
    for _ in range(draws):
        exact = [a.query.answer(centres[a.clique].ravel()) for a in measurements.answers]
        again = tuple(replace(a, values=e + _noise(a, rng)) for a, e in zip(measurements.answers, exact, strict=True))
        for target in unbiased(replace(measurements, answers=again)):
            variances[target.clique] += float(np.mean((target.values - centres[target.clique]) ** 2)) / draws
    errors = {}
    for target in unbiased(measurements):
        values, centre = target.values, centres[target.clique]
        flat = np.full(values.shape, max(float(values.mean()), 0.0))
        mean, variance = likeliest(values, float(np.sqrt(variances[target.clique])), [flat, flat / 4])
        off = variances[target.clique] / values.size
        errors[target.clique] = np.sqrt(variance + (mean - centre) ** 2 + off)
    return errors


def _noise(answer: NoisyMarginal, rng: np.random.Generator) -> NDArray[np.float64]:
    return NOISE_KINDS[answer.noise].simulate(rng, answer.scale, answer.values.size)
