"""The number of records, from noisy answers or from a public fact."""

from __future__ import annotations

import numpy as np

from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.least_squares import least_weights

#: Cells: queries over larger marginals give the total only if no smaller marginal does.
FEW_CELLS = 5_000


def estimate_total(measurements: Measurements) -> float:
    """The number of records: the public total, or the inverse-variance mean of the best estimate of each marginal.

    The sum of a whole marginal of `cells` answers with standard deviation σ has variance cells · σ². Other queries
    tell the total where some weights of their answers sum every cell once; they are asked where no whole marginal
    was measured. Never negative; 0 without any answer.

    Raises:
        UserError: answers that are not finite.
    """
    if measurements.public_total is not None:
        return float(measurements.public_total)
    for answer in measurements.answers:
        if not np.isfinite(answer.values).all():
            problem = f"the answers to {' × '.join(answer.clique)} are not all finite"
            raise UserError(problem, where="measurements", fix="take the release folder of a run, unchanged")
    whole = [a for a in measurements.answers if isinstance(a.query, Identity)]
    pairs = [(float(a.values.sum()), a.query.rows * a.stddev**2) for a in whole]
    if not pairs:
        for answer in sorted(measurements.answers, key=lambda a: a.query.columns):
            if answer.query.columns > FEW_CELLS and pairs:
                break  # sums over more cells have more noise, and take long
            weights = least_weights(answer.query, np.ones(answer.query.columns))
            if weights is not None:
                pairs.append((float(weights @ answer.values), float(weights @ weights) * answer.stddev**2))
    if not pairs:
        return max(max((_uniform(a) for a in measurements.answers), default=0.0), 0.0)
    precision = np.array([1 / variance for _, variance in pairs])
    sums = np.array([value for value, _ in pairs])
    return max(float(precision @ sums / precision.sum()), 0.0)


def _uniform(answer: NoisyMarginal) -> float:
    """The total with which a uniform marginal comes closest to the answers."""
    even = answer.query.answer(np.ones(answer.query.columns))  # of 1 / n rows that sum to 0 would say 1e-17
    return answer.query.columns * float(even @ answer.values) / max(float(even @ even), 1e-300)


def default_rows(measurements: Measurements) -> int:
    """How many rows to make where nobody says: the estimated total, rounded, unless more rows stand for it."""
    return round(estimate_total(measurements)) if measurements.rows is None else measurements.rows
