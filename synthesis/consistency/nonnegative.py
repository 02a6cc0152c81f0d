"""Cells that are not negative and sum to a known total: norm-sub."""

from __future__ import annotations

import numpy as np

from mechanisms.public.marginals import Values


def norm_sub(values: Values, total: float) -> Values:
    """The closest array (in L2) that is non-negative and sums to `total`: cells lose a constant, and stop at 0.

    Cost: a few passes over the cells; those that a smaller constant already stops are left out of the next pass.
    Source: Wang et al. 2020.
    """
    if total <= 0:
        return np.zeros_like(values)
    active = values.ravel()
    while True:
        constant = (active.sum() - total) / active.size
        positive = active[active > constant]
        if positive.size == active.size or not positive.size:
            break
        active = positive
    return np.asarray(np.maximum(values - constant, 0.0))
