"""AEMC of one marginal: split into independent parts, each solved exactly.

Source: Li et al. 2021a, section 2.2 (Equation 1) and Appendix A.1 (the cost α of adding and removing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.counts import Cells
from evaluation.mgd.aemc_flow import flow_cost, simplex_cost
from evaluation.mgd.aemc_graph import MOST_ARCS, Axis, FlowParts, graph_size, split
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError

#: The axes along which our network simplex solves; others are OR-Tools'.
BY_SIMPLEX = ("path", "tree")
#: Cells: parts that need a general solver are laid out densely in chunks of this size.
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True)
class Aemc:
    """A marginal's score.

    Attributes:
        value: cost per true record; None where the truth is empty.
        solver: which solvers ran: closed, simplex, flow; closed alone where no part exceeds Δ.
        error: the most by which `value` may be wrong beside float rounding; 0 where the solver is exact.
        reason: why there is no value.
        note: what the user should know about the settings.
    """

    value: float | None
    solver: str
    error: float = 0.0
    reason: str = ""
    note: str = ""


def aemc(
    p: ArrayLike,
    q: ArrayLike,
    distance: ArrayLike | Axis | Sequence[Axis],
    delta: float = 2.0,
    alpha: float = 1.0,
) -> Aemc:
    """The Approximate Earth Mover Cost of Equation 1 for two whole tables.

    Args:
        p, q: synthetic and true records (counts or weights), of the same shape.
        distance: T × T for the T cells in C order, from row to column, np.inf where no mass may move; or one Axis for
            each dimension of p.
        delta: tolerance Δ ≥ 0, in records.
        alpha: cost of adding or removing one record.
    Raises:
        UserError: negative or NaN counts, shapes that do not fit, a problem beyond the solver.
    """
    if isinstance(distance, Axis):
        axes: tuple[Axis, ...] = (distance,)
    elif isinstance(distance, Sequence) and all(isinstance(a, Axis) for a in distance):
        axes = tuple(a for a in distance if isinstance(a, Axis))
    else:
        p, q = np.ravel(np.asarray(p)), np.ravel(np.asarray(q))
        axes = (Axis.matrix(p.size, np.asarray(distance, np.float64)),)
    return marginal_cost(Cells.dense(p, q), axes, delta=delta, alpha=alpha)


def marginal_cost(cells: Cells, axes: Sequence[Axis], *, delta: float = 2.0, alpha: float = 1.0) -> Aemc:
    """Equation 1 for one marginal: min Σ X_ij M_ij + α Σ_j max(|Σ_i X_ij − Q_j| − Δ, 0), per true record.

    Unequal totals are allowed. Δ tolerates, it never creates: a cell's mass stays at or above 0, so that its free
    shortage is at most min(Δ, Q_j). Cells that no mass connects are independent parts; parts within tolerance cost
    nothing; paths and trees are solved by a network simplex, matrices by OR-Tools.

    Args:
        axes: how mass moves along each attribute.
        delta: tolerance Δ ≥ 0, in records.
        alpha: cost of adding or removing one record, above 0.
    Raises:
        UserError: settings that make no sense, a problem beyond the solver.
    """
    check_settings(cells, axes, delta, alpha)
    truth = float(cells.q.sum())
    if truth <= 0:
        return Aemc(None, "none", reason="the true table is empty, and the cost is per true record")
    if not any(a.moves for a in axes):
        alone = float(np.maximum(np.abs(cells.p - cells.q) - delta, 0.0).sum())
        return Aemc(alpha * alone / truth, "closed", note=_note(axes, alpha))
    check_graph(axes)
    parts = split(cells, axes, delta)
    cost, error, solvers = alpha * parts.alone, 0.0, {"closed"} if parts.alone else set()
    for moving, chosen in parts.groups():
        some = _solve(cells, parts, chosen, [axes[i] for i in moving], delta, alpha)
        cost, error = cost + some[0], error + some[1]
        solvers.add(some[2])
    return Aemc(cost / truth, "+".join(sorted(solvers)) or "closed", error / truth, note=_note(axes, alpha))


def check_settings(cells: Cells, axes: Sequence[Axis], delta: float, alpha: float) -> None:
    """Raises UserError for a tolerance, a cost or axes that make no sense."""
    if not (math.isfinite(delta) and delta >= 0):
        raise UserError(f"got Δ = {delta}", where="delta", fix="a finite number of records of at least 0")
    if not (math.isfinite(alpha) and alpha > 0):
        raise UserError(f"got α = {alpha}", where="alpha", fix="a finite cost above 0; 1 in the paper")
    if cells.shape != tuple(a.size for a in axes):
        raise UserError(
            f"distances for {tuple(a.size for a in axes)} codes, but a table of {cells.shape}", where="AEMC"
        )


def check_graph(axes: Sequence[Axis]) -> None:
    """Raises UserError for moving axes whose flow graph is too large."""
    nodes, arcs = graph_size([a for a in axes if a.moves])
    if nodes + arcs > MOST_ARCS:
        fix = "fewer finite weights, or values at a coarser level"
        raise UserError(f"a flow graph of {nodes:,} nodes and {arcs:,} arcs is too large", where="AEMC", fix=fix)


def _note(axes: Sequence[Axis], alpha: float) -> str:
    widest = sum(a.widest for a in axes)
    if widest <= 2 * alpha:
        return ""
    return (
        f"removing and adding a record costs {2 * alpha:.4g}, less than moving it over the widest distance"
        f" ({widest:.4g}): such movements are never used"
    )


def _solve(
    cells: Cells, parts: FlowParts, chosen: Ints, used: Sequence[Axis], delta: float, alpha: float
) -> tuple[float, float, str]:
    """Cost, error bound and solver of the parts whose mass moves along the same axes."""
    width = math.prod(a.length for a in used)
    simplex = all(a.kind in BY_SIMPLEX for a in used)
    cost, error = 0.0, 0.0
    for piece in np.array_split(chosen, min(chosen.size, -(-chosen.size * width // CHUNK_CELLS))):
        p, q = dense_parts(cells, parts, piece, used)
        if simplex:
            some = simplex_cost(p, q, used, delta, alpha)
        else:
            flow = flow_cost(p, q, used, delta, alpha)
            some = flow.cost, flow.error
        cost, error = cost + some[0], error + some[1]
    return cost, error, "simplex" if simplex else "flow"


def dense_parts(cells: Cells, parts: FlowParts, chosen: Ints, used: Sequence[Axis]) -> tuple[Floats, Floats]:
    """Synthetic and true counts of some parts with the same moving axes, parts × cells."""
    width = math.prod(a.length for a in used)
    p, q = np.zeros((2, chosen.size, width))
    sizes = np.diff(parts.starts)[chosen]
    row = np.repeat(np.arange(chosen.size), sizes)
    at = np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(parts.starts[chosen], sizes)
    cell = parts.order[at]
    p[row, parts.place[cell]], q[row, parts.place[cell]] = cells.p[cell], cells.q[cell]
    return p, q
