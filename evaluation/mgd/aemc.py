"""AEMC of one marginal: split into independent parts, each solved exactly.

Source: Li et al. 2021a, section 2.2 (Equation 1) and Appendix A.1 (the cost α of adding and removing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.counts import Cells
from evaluation.mgd.aemc_flow import flow_cost, simplex_cost
from evaluation.mgd.aemc_graph import MOST_ARCS, FlowParts, graph_size, split
from evaluation.mgd.geometry import Axis
from evaluation.mgd.mgd_metric import SOLVERS
from mechanisms.public.errors import UserError, check_names
from mechanisms.public.jit import compiled

Solver = Literal["auto", "flow"]
#: Cells: parts that need a general solver are laid out densely in chunks of this size.
CHUNK_CELLS = 4_000_000

#: Steps of work per node after which `auto` leaves the network simplex for OR-Tools, where more or fewer than the share
#: BUSY of all cells are beyond tolerance: noise all over is mended nearby, tables of another kind by long chains.
WORK_DENSE, WORK_SPARSE, BUSY = 4_000.0, 200.0, 0.25


@dataclass(frozen=True)
class Aemc:
    """A marginal's score.

    Attributes:
        value: cost per true record; None where the truth is empty.
        solver: which solvers ran: closed, path, simplex, flow; closed alone where no part exceeds Δ.
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
    *,
    solver: Solver = "auto",
) -> Aemc:
    """The Approximate Earth Mover Cost of Equation 1 for two whole tables.

    Args:
        p, q: synthetic and true records (counts or weights), of the same shape.
        distance: T × T for the T cells in C order, from row to column, np.inf where no mass may move; or one Axis for
            each dimension of p.
        delta: tolerance Δ ≥ 0, in records.
        alpha: cost of adding or removing one record.
        solver: auto, or flow (OR-Tools alone).
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
    return marginal_cost(Cells.dense(p, q), axes, delta=delta, alpha=alpha, solver=solver)


def marginal_cost(
    cells: Cells, axes: Sequence[Axis], *, delta: float = 2.0, alpha: float = 1.0, solver: Solver = "auto"
) -> Aemc:
    """Equation 1 for one marginal: min Σ X_ij M_ij + α Σ_j max(|Σ_i X_ij − Q_j| − Δ, 0), per true record.

    Unequal totals are allowed. Δ tolerates, it never creates: a cell's mass stays at or above 0, so that its free
    shortage is at most min(Δ, Q_j). Cells that no mass connects are independent parts; parts within tolerance cost
    nothing; one ordinal axis is a path and is solved by dynamic programming, all else by a network simplex, or by
    OR-Tools where that would take long.

    Args:
        axes: how mass moves along each attribute.
        delta: tolerance Δ ≥ 0, in records.
        alpha: cost of adding or removing one record, above 0.
    Raises:
        UserError: settings that make no sense, a problem beyond the solver.
    """
    check_settings(cells, axes, delta, alpha, solver)
    truth = float(cells.q.sum())
    if truth <= 0:
        return Aemc(None, "none", reason="the true table is empty, and the cost is per true record")
    if not any(a.moves for a in axes):
        alone = float(np.maximum(np.abs(cells.p - cells.q) - delta, 0.0).sum())
        return Aemc(alpha * alone / truth, "closed", note=_note(axes, alpha))
    check_graph(axes, solver)
    parts = split(cells, axes, delta)
    cost, error, solvers = alpha * parts.alone, 0.0, {"closed"} if parts.alone else set()
    for moving, chosen in parts.groups():
        some = _solve(cells, parts, chosen, [axes[i] for i in moving], delta, alpha, solver)
        cost, error = cost + some[0], error + some[1]
        solvers.add(some[2])
    return Aemc(cost / truth, "+".join(sorted(solvers)) or "closed", error / truth, note=_note(axes, alpha))


def check_settings(cells: Cells, axes: Sequence[Axis], delta: float, alpha: float, solver: str = "auto") -> None:
    """Raises UserError for a tolerance, a cost, a solver or axes that make no sense."""
    if not (math.isfinite(delta) and delta >= 0):
        raise UserError(f"got Δ = {delta}", where="delta", fix="a finite number of records of at least 0")
    if not (math.isfinite(alpha) and alpha > 0):
        raise UserError(f"got α = {alpha}", where="alpha", fix="a finite cost above 0; 1 in the paper")
    check_names([solver], SOLVERS, "no solver", where="solver")
    if cells.shape != tuple(a.size for a in axes):
        raise UserError(
            f"distances for {tuple(a.size for a in axes)} codes, but a table of {cells.shape}", where="AEMC"
        )


def check_graph(axes: Sequence[Axis], solver: Solver) -> None:
    """Raises UserError for moving axes whose flow graph, if one is needed, is too large."""
    moving = [a for a in axes if a.moves]
    nodes, arcs = graph_size(moving)
    if nodes + arcs > MOST_ARCS and (solver == "flow" or not _is_path(moving)):
        fix = "fewer finite weights, or values at a coarser level"
        raise UserError(f"a flow graph of {nodes:,} nodes and {arcs:,} arcs is too large", where="AEMC", fix=fix)


def _is_path(moving: Sequence[Axis]) -> bool:
    return len(moving) == 1 and moving[0].kind == "path"


def _note(axes: Sequence[Axis], alpha: float) -> str:
    widest = sum(a.widest for a in axes)
    if widest <= 2 * alpha:
        return ""
    return (
        f"removing and adding a record costs {2 * alpha:.4g}, less than moving it over the widest distance"
        f" ({widest:.4g}): such movements are never used"
    )


def _solve(
    cells: Cells,
    parts: FlowParts,
    chosen: NDArray[np.int64],
    used: Sequence[Axis],
    delta: float,
    alpha: float,
    solver: Solver,
) -> tuple[float, float, str]:
    """Cost, error bound and solver of the parts whose mass moves along the same axes."""
    if solver == "auto" and _is_path(used):
        columns = (chosen, parts.starts, parts.order, parts.place)
        length, step = used[0].length, float(used[0].step)
        costs = path_costs(columns, cells.p, cells.q, length, step, float(delta), float(alpha))
        return float(costs.sum()), 0.0, "path"
    width = math.prod(a.length for a in used)
    cost, error, names = 0.0, 0.0, set()
    for piece in np.array_split(chosen, min(chosen.size, -(-chosen.size * width // CHUNK_CELLS))):
        p, q = dense_parts(cells, parts, piece, used)
        some = _by_flow(p, q, used, delta, alpha, solver)
        cost, error = cost + some[0], error + some[1]
        names.add(some[2])
    return cost, error, "+".join(sorted(names))


def _by_flow(
    p: NDArray[np.float64], q: NDArray[np.float64], used: Sequence[Axis], delta: float, alpha: float, solver: Solver
) -> tuple[float, float, str]:
    """The same for parts that need a general solver; p, q are parts × cells."""
    if solver == "auto" and all(a.kind != "matrix" for a in used):
        busy = float(np.mean(np.abs(p - q) > delta))
        solved = simplex_cost(p, q, used, delta, alpha, WORK_DENSE if busy > BUSY else WORK_SPARSE)
        if solved is not None:
            return *solved, "simplex"
    flow = flow_cost(p, q, used, delta, alpha)
    return flow.cost, flow.error, "flow"


def dense_parts(
    cells: Cells, parts: FlowParts, chosen: NDArray[np.int64], used: Sequence[Axis]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Synthetic and true counts of some parts with the same moving axes, parts × cells."""
    width = math.prod(a.length for a in used)
    p, q = np.zeros((2, chosen.size, width))
    sizes = np.diff(parts.starts)[chosen]
    row = np.repeat(np.arange(chosen.size), sizes)
    at = np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(parts.starts[chosen], sizes)
    cell = parts.order[at]
    p[row, parts.place[cell]], q[row, parts.place[cell]] = cells.p[cell], cells.q[cell]
    return p, q


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Of a row of breakpoints: the first in use, the one after the last, and how far all have moved.
Side = tuple[int, int, float]


@compiled
def path_costs(
    parts: tuple[Ints, Ints, Ints, Ints],
    p: Floats,
    q: Floats,
    length: int,
    step: float,
    delta: float,
    alpha: float,
) -> Floats:
    """The least cost of each chosen part; the parts are independent paths of `length` cells, `step` apart.

    Let f be the mass that leaves the first j cells to the right, and V_j(f) the least cost so far. Then V_j is the
    infimal convolution of V_{j−1} with the cost α · dist(x, [max(q − Δ, 0), q + Δ]) of what stays in cell j, plus
    step · |f|. V is convex and piecewise linear; it is kept as its minimum and the weighted breakpoints to its left and
    right: the convolution moves the two sides apart by the length of the interval and cuts slopes at ±α.

    Args:
        parts: those chosen; where each starts in the order of the cells; that order; the position of each cell on its
            path: part b has the cells order[starts[b]:starts[b + 1]].
        p, q: synthetic and true mass of each cell.
    Returns:
        one cost per chosen part.
    """
    chosen, starts, order, place = parts
    costs = np.empty(len(chosen))
    dense_p, dense_q = np.zeros(length), np.zeros(length)
    at, weight = np.empty((2, 8 * length + 32)), np.empty((2, 8 * length + 32))
    for number in range(len(chosen)):
        dense_p[:] = 0.0
        dense_q[:] = 0.0
        for i in range(starts[chosen[number]], starts[chosen[number] + 1]):
            cell = order[i]
            dense_p[place[cell]] = p[cell]
            dense_q[place[cell]] = q[cell]
        costs[number] = _one_path(dense_p, dense_q, step, delta, alpha, at, weight)
    return costs


@compiled
def _one_path(p: Floats, q: Floats, step: float, delta: float, alpha: float, at: Floats, weight: Floats) -> float:
    """V_k(0) for one path.

    Row 0 of `at` holds the breakpoints left of the minimum, row 1 those right of it with their signs changed, so that
    both rows ascend towards the minimum and are handled alike; a row's true positions are at + move. Of a row, the
    entries from `begin` to before `end` are in use.
    """
    at[0, 0], at[1, 0], weight[0, 0], weight[1, 0] = 0.0, 0.0, alpha, alpha
    first, second = int(np.int64(0)), int(np.int64(1))  # typed: literals would compile what they are given to once more
    begin_0, end_0, begin_1, end_1 = first, second, first, second
    move_0, move_1, least = 0.0, 0.0, 0.0
    for j in range(len(p)):
        move_0 += p[j] - q[j] - delta
        move_1 -= p[j] - max(q[j] - delta, 0.0)
        if j == len(p) - 1:
            break
        if step > 0.0:
            left, right = (begin_0, end_0, move_0), (begin_1, end_1, move_1)
            begin_0, end_0, end_1, least = _bend(first, at, weight, left, right, step, least)
            left, right = (begin_0, end_0, move_0), (begin_1, end_1, move_1)
            begin_1, end_1, end_0, least = _bend(second, at, weight, right, left, step, least)
            begin_0 = _cut(weight[0], begin_0, end_0, step)
            begin_1 = _cut(weight[1], begin_1, end_1, step)
    value = least
    for i in range(begin_0, end_0):
        value += weight[0, i] * max(at[0, i] + move_0, 0.0)
    for i in range(begin_1, end_1):
        value += weight[1, i] * max(at[1, i] + move_1, 0.0)
    return value


@compiled
def _bend(
    row: int, at: Floats, weight: Floats, own: Side, opposite: Side, step: float, least: float
) -> tuple[int, int, int, float]:
    """Add step · max(±f, 0): a breakpoint at 0 enters one row, and as much weight next to the minimum changes rows.

    The minimum rises by what passes beyond 0.
    """
    begin, end, move = own
    other_begin, other_end, other_move = opposite
    i = end
    while i > begin and at[row, i - 1] > -move:
        at[row, i], weight[row, i] = at[row, i - 1], weight[row, i - 1]
        i -= 1
    at[row, i], weight[row, i] = -move, step
    end += 1
    left, other = step, 1 - row
    while left > 1e-300 and end > begin:
        taken = min(left, weight[row, end - 1])
        where = at[row, end - 1] + move
        least += taken * where
        i = other_end
        while i > other_begin and at[other, i - 1] > -where - other_move:
            at[other, i], weight[other, i] = at[other, i - 1], weight[other, i - 1]
            i -= 1
        at[other, i], weight[other, i] = -where - other_move, taken
        other_end += 1
        left -= taken
        weight[row, end - 1] -= taken
        if weight[row, end - 1] <= 0.0:
            end -= 1
    return begin, end, other_end, least


@compiled
def _cut(weight: Floats, begin: int, end: int, step: float) -> int:
    """Cut slopes back to α: take weight from the far end."""
    left = step
    while left > 1e-300 and begin < end:
        taken = min(left, weight[begin])
        weight[begin] -= taken
        left -= taken
        if weight[begin] <= 0.0:
            begin += 1
    return begin
