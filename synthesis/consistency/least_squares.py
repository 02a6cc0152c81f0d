"""Least squares by matrix products alone; scipy is loaded by the first that is solved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.queries.query_matrices import QueryMatrix

#: The condition number at which an ill-posed system ends, of the library.
CONDITION = 1e8


def least_squares(
    forward: Callable[[Values], Values],
    backward: Callable[[Values], Values],
    goal: Values,
    size: int,
    *,
    tolerance: float,
    steps: int,
    condition: float = CONDITION,
) -> Values:
    """The `size` numbers x that bring Ax closest to the goal, of least norm among them (Fong & Saunders 2011, LSMR).

    Args:
        forward, backward: x → Ax and y → Aᵀy.
        tolerance, steps, condition: when to stop; a condition of 0: never for that.
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    operator = LinearOperator((goal.size, size), matvec=forward, rmatvec=backward, dtype=np.float64)
    solved = lsmr(operator, goal, atol=tolerance, btol=tolerance, conlim=condition, maxiter=steps)
    return np.asarray(solved[0], np.float64)


def least_weights(query: QueryMatrix, target: Values) -> Values | None:
    """The least weights w of the answers with Qᵀw = the wanted cells (so Private-PGM estimates a total); None: none."""
    weights = least_squares(query.transpose, query.answer, target, query.rows, tolerance=1e-10, steps=300)
    if not weights.any() or np.abs(query.transpose(weights) - target).max(initial=0.0) > 1e-4:
        return None
    return weights
