"""AEMC as the linear programme of Equation 1: the oracle for small cases (Li et al. 2021a, section 4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog


def lp_cost(
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    distance: NDArray[np.float64],
    delta: float,
    alpha: float,
) -> float:
    """min Σ X_ij M_ij + α Σ_j max(|Σ_i X_ij − Q_j| − Δ, 0) subject to Σ_j X_ij = P_i, X ≥ 0.

    Args:
        p, q: synthetic and true mass of T cells.
        distance: T × T, infinite where no mass may move.
    """
    cells = p.size
    source, target = np.nonzero(np.isfinite(distance))
    moves = source.size
    each = np.arange(moves)
    ones = np.ones(moves)
    rows = sparse.csr_array((ones, (source, each)), shape=(cells, moves))
    inflow = sparse.csr_array((ones, (target, each)), shape=(cells, moves))
    none = sparse.csr_array((cells, cells))
    identity = sparse.eye_array(cells)
    above = sparse.hstack([inflow, -identity, none])
    below = sparse.hstack([-inflow, none, -identity])
    result = linprog(  # type: ignore[call-overload]  # sparse constraints are allowed
        np.concatenate([distance[source, target], np.full(2 * cells, alpha)]),
        A_ub=sparse.vstack([above, below]),
        b_ub=np.concatenate([q + delta, delta - q]),
        A_eq=sparse.hstack([rows, none, none]),
        b_eq=p,
        method="highs",
    )
    if result.status != 0:
        raise RuntimeError(f"the linear programme was not solved: {result.message}")
    return float(result.fun)
