"""How far independent columns are from what their noisy one-way marginals expect: by chance, and by that noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
#: The mean absolute value of a standard normal variable.
ABSOLUTE = math.sqrt(2 / math.pi)


def by_chance(expected: Values) -> Values:
    """Per cell how far records that fall into cells by chance are from what is expected, in records, on the mean."""
    return np.minimum(ABSOLUTE * np.sqrt(expected), 2 * expected)


def side_error(expected: Values, noise: float | Values) -> float:
    """Σ |error| of a one-way marginal with this mean absolute noise: no cell errs by more than it holds."""
    return float(np.minimum(expected, noise).sum())


def of_independent(expected: Values, side_errors: float) -> float:
    """The L1 distance that independent columns are at, in records; the errors of the two sides may add up."""
    return math.hypot(float(by_chance(expected).sum()), side_errors)
