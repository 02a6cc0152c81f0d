"""Cells that are not negative and sum to a known total: norm-sub, and what the literature compares it with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechanisms.public.marginals import Values

#: Non-negative cells of a given sum, from noisy ones: (values, total, standard deviation of a cell) → cells.
Nonnegative = Callable[[Values, float, float], Values]

#: Base-cut expects this many cells of pure noise above its threshold (Wang et al. 2020).
EXPECTED_ABOVE = 2.0


def norm_sub(values: Values, total: float, stddev: float = 0.0) -> Values:
    """The closest array (in L2) that is non-negative and sums to `total`: cells lose a constant, and stop at 0.

    Cost: a few passes over the cells; those that a smaller constant already stops are left out of the next pass.
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


def norm_mul(values: Values, total: float, stddev: float = 0.0) -> Values:
    """Negative cells become 0, the others are multiplied to the total."""
    return _scaled(np.maximum(values, 0.0), total)


def norm_cut(values: Values, total: float, stddev: float = 0.0) -> Values:
    """Negative and then the smallest positive cells become 0 until the others sum to the total.

    The last cell cut keeps what the larger ones leave; where all positive cells are too few, they are multiplied.
    """
    if total <= 0:
        return np.zeros_like(values)
    order = np.argsort(-values, axis=None, kind="stable")
    largest = np.maximum(values.ravel()[order], 0.0)
    before = np.concatenate([[0.0], np.cumsum(largest)[:-1]])
    cut = np.empty(values.size)
    cut[order] = np.minimum(largest, np.maximum(total - before, 0.0))
    return _scaled(cut.reshape(values.shape), total)


def base_cut(values: Values, total: float, stddev: float = 0.0) -> Values:
    """Cells below the threshold that two cells of pure noise are expected to pass become 0; the others are multiplied.

    (The original leaves the sum open; targets need one.) Where no cell passes, norm-sub.
    """
    from scipy.special import ndtri

    threshold = stddev * float(ndtri(1 - min(EXPECTED_ABOVE / values.size, 0.5)))
    cut = np.where(values > threshold, np.maximum(values, 0.0), 0.0)
    return _scaled(cut, total) if cut.sum() > 0 else norm_sub(values, total)


#: The ways by name (Wang et al., "Locally differentially private frequency estimation with consistency", 2020).
NONNEGATIVE: dict[str, Nonnegative] = {
    "norm_sub": norm_sub,
    "norm_mul": norm_mul,
    "norm_cut": norm_cut,
    "base_cut": base_cut,
}


def _scaled(values: Values, total: float) -> Values:
    now = float(values.sum())
    if total <= 0:
        return np.zeros_like(values)
    return values * (total / now) if now > 0 else np.full_like(values, total / values.size)
