"""AEMC as a linear programme (Li et al. 2021a): all pairs of cells (section 4.1), or neighbours alone (section 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.aemc_graph import Graph


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
    from scipy import sparse  # slow to import, as what follows
    from scipy.optimize import linprog

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
    return _solved(result)


def lp_cost_between_neighbours(
    p: NDArray[np.float64], q: NDArray[np.float64], graph: Graph, delta: float, alpha: float
) -> float:
    """The same with flows between neighbours in the place of moves between any two cells.

    So the variables are as many as the arcs and twice the cells, and not as the squared cells.

    Args:
        p, q: synthetic and true mass of the graph's cells in C order.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    cells, arcs = p.size, graph.tail.size
    each, at = np.arange(arcs), np.arange(cells)
    leave = sparse.csr_array((np.ones(arcs), (graph.tail, each)), shape=(graph.nodes, arcs))
    enter = sparse.csr_array((np.ones(arcs), (graph.head, each)), shape=(graph.nodes, arcs))
    end = sparse.csr_array((np.ones(cells), (graph.last, at)), shape=(graph.nodes, cells))
    start = np.zeros(graph.nodes)
    start[graph.first] += p
    identity, nothing = sparse.eye_array(cells), sparse.csr_array((cells, arcs))
    costs = np.array([float(c) for c in graph.costs])[graph.cost]
    result = linprog(  # type: ignore[call-overload]  # sparse constraints are allowed
        np.concatenate([costs, np.zeros(cells), np.full(cells, alpha)]),
        A_ub=sparse.vstack(
            [sparse.hstack([nothing, identity, -identity]), sparse.hstack([nothing, -identity, -identity])]
        ),
        b_ub=np.concatenate([q + delta, delta - q]),
        A_eq=sparse.hstack([leave - enter, end, sparse.csr_array((graph.nodes, cells))]),
        b_eq=start,
        method="highs",
    )
    return _solved(result)


def _solved(result: Any) -> float:
    if result.status != 0:
        raise RuntimeError(f"the linear programme was not solved: {result.message}")
    return float(result.fun)
