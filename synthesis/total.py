"""The number of records, from noisy answers or from a public fact."""

from __future__ import annotations

import numpy as np

from mechanisms.public.queries import Identity
from mechanisms.public.release import Measurements


def estimate_total(measurements: Measurements) -> float:
    """The number of records: the public total, or the inverse-variance mean of the sums of all whole marginals.

    The sum of a marginal of `cells` answers with standard deviation σ has variance cells · σ². Never negative; 0
    without any answer.
    """
    if measurements.public_total is not None:
        return float(measurements.public_total)
    whole = [a for a in measurements.answers if isinstance(a.query, Identity)]
    if not whole:
        return 0.0
    precision = np.array([1 / (a.query.rows * a.stddev**2) for a in whole])
    sums = np.array([a.values.sum() for a in whole])
    return max(float(precision @ sums / precision.sum()), 0.0)


def default_rows(measurements: Measurements) -> int:
    """How many rows to make where nobody says: the estimated total, rounded."""
    return round(estimate_total(measurements))
