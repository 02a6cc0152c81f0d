"""The number of records, from noisy answers or from a public fact."""

from __future__ import annotations

import numpy as np

from mechanisms.public.errors import UserError
from mechanisms.public.queries import Identity
from mechanisms.public.release import Measurements, NoisyMarginal


def whole_marginals(measurements: Measurements) -> tuple[NoisyMarginal, ...]:
    """The answers, checked: every one a whole marginal of finite values.

    Raises:
        UserError: naming the answer that is not.
    """
    for answer in measurements.answers:
        if not isinstance(answer.query, Identity):
            fix = "measure whole marginals for this synthesizer"
            raise UserError(
                f"the answers to {' × '.join(answer.clique)} are no whole marginal", where="synthesis", fix=fix
            )
        if not np.isfinite(answer.values).all():
            what = f"the answers to {' × '.join(answer.clique)} are not all finite"
            raise UserError(what, where="measurements", fix="take the release folder of a run, unchanged")
    return measurements.answers


def estimate_total(measurements: Measurements) -> float:
    """The number of records: the public total, or the inverse-variance mean of the sums of all marginals.

    The sum of a marginal of `cells` answers with standard deviation σ has variance cells · σ². Never negative; 0
    without any answer.
    """
    if measurements.public_total is not None:
        return float(measurements.public_total)
    answers = whole_marginals(measurements)
    if not answers:
        return 0.0
    precision = np.array([1 / (a.query.rows * a.stddev**2) for a in answers])
    sums = np.array([a.values.sum() for a in answers])
    return max(float(precision @ sums / precision.sum()), 0.0)


def default_rows(measurements: Measurements) -> int:
    """How many rows to make where nobody says: the estimated total, rounded."""
    return round(estimate_total(measurements))
