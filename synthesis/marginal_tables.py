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
from synthesis.consistency.agree import ConsistentTargets, consistent
from synthesis.consistency.residual_parts import completed

#: Draws of the noise that the error of the consistent marginals is estimated from.
DRAWS = 10
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
        consistent_error: its root mean squared error, estimated by drawing the noise anew DRAWS times around the
            consistent marginals; NaN where there are too many cells.
    """

    clique: Clique
    noisy: NDArray[np.float64]
    noisy_error: float
    consistent: NDArray[np.float64]
    consistent_error: NDArray[np.float64]


def marginal_tables(measurements: Measurements, *, draws: int = DRAWS) -> list[MarginalTable]:
    """Every marginal that was measured whole, or whose residual was, once, in the order measured.

    Guarantee: post-processing; costs no privacy.
    Args:
        draws: how often the noise is drawn anew, from a seed of its own.
    """
    whole = tuple(a for a in measurements.answers if isinstance(a.query, Identity | ResidualQuery))
    rebuilt = completed(replace(measurements, answers=whole)).answers
    if not rebuilt:
        return []
    whole_answers = replace(measurements, answers=whole)
    settled = consistent(whole_answers)
    errors = _errors(whole_answers, settled, draws, np.random.default_rng(0))
    shapes = {t.clique: t for t in settled.marginals}
    tables = []
    for clique in dict.fromkeys(a.clique for a in rebuilt):
        mean, error = averaged([a for a in rebuilt if a.clique == clique])
        values = shapes[clique].values
        tables.append(MarginalTable(clique, mean.reshape(values.shape), error, values, errors[clique]))
    return tables


def _errors(
    measurements: Measurements, settled: ConsistentTargets, draws: int, rng: np.random.Generator
) -> dict[Clique, NDArray[np.float64]]:
    """The root mean squared error of each cell if the consistent marginals were the truth."""
    centres = {t.clique: t.values for t in settled.marginals}
    if draws < 1 or sum(v.size for v in centres.values()) > MAX_CELLS:
        return {c: np.full(v.shape, np.nan) for c, v in centres.items()}
    squares = {c: np.zeros(v.shape) for c, v in centres.items()}
    for _ in range(draws):
        exact = [a.query.answer(centres[a.clique].ravel()) for a in measurements.answers]
        again = tuple(replace(a, values=e + _noise(a, rng)) for a, e in zip(measurements.answers, exact, strict=True))
        for target in consistent(replace(measurements, answers=again)).marginals:
            squares[target.clique] += (target.values - centres[target.clique]) ** 2
    return {c: np.sqrt(s / draws) for c, s in squares.items()}


def _noise(answer: NoisyMarginal, rng: np.random.Generator) -> NDArray[np.float64]:
    return NOISE_KINDS[answer.noise].simulate(rng, answer.scale, answer.values.size)
