"""AEMC as a min-cost flow on the grid of several ordinal attributes (paper 000, sections 4.2-4.3 and Appendix A)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS


def grid_cost(
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    steps: tuple[Fraction, ...],
    delta: Fraction,
    alpha: Fraction,
) -> float:
    """The least cost of one grid of cells, exact for counts in whole multiples of 2**-WEIGHT_BITS.

    The two node sets of Appendix A are one (Manhattan distances are a metric). A bank node takes what is free at no
    cost and the rest at α, and lends at α. Counts and costs are scaled to whole numbers.

    Args:
        p, q: synthetic and true counts, shaped by the grid.
        steps: cost of one step along each axis.
    Raises:
        UserError: counts that cannot be scaled to whole numbers of 62 bits.
    """
    whole = np.array_equal(p, np.rint(p)) and np.array_equal(q, np.rint(q))
    units = math.lcm(delta.denominator, 1 if whole else 2**WEIGHT_BITS)
    costs = math.lcm(alpha.denominator, *(s.denominator for s in steps))
    have, want = np.rint(p * units).astype(np.int64).ravel(), np.rint(q * units).astype(np.int64).ravel()
    if not (np.array_equal(have / units, p.ravel()) and np.array_equal(want / units, q.ravel())):
        fix = "whole counts, or weights in multiples of 2^-20"
        raise UserError("counts that cannot be scaled to whole numbers", where="AEMC by min-cost flow", fix=fix)
    slack = int(delta * units)
    total = int(have.sum() + want.sum()) + slack * have.size
    if total * costs * max(1.0, float(alpha), *map(float, steps)) * (have.size + 1) >= 2.0**62:
        raise UserError(
            "counts too large to scale exactly", where="AEMC by min-cost flow", fix="fewer or coarser cells"
        )
    low = np.maximum(want - slack, 0)
    solver = min_cost_flow.SimpleMinCostFlow()
    nodes = np.arange(have.size, dtype=np.int32)
    bank = np.full_like(nodes, have.size)
    grid = nodes.reshape(p.shape)
    for axis, step in enumerate(steps):
        a = np.moveaxis(grid, axis, 0)[:-1].ravel()
        b = np.moveaxis(grid, axis, 0)[1:].ravel()
        cost = np.full(a.size, int(step * costs))
        limit = np.full(a.size, total)
        solver.add_arcs_with_capacity_and_unit_cost(a, b, limit, cost)
        solver.add_arcs_with_capacity_and_unit_cost(b, a, limit, cost)
    dear = np.full(nodes.size, int(alpha * costs))
    most = np.full(nodes.size, total)
    solver.add_arcs_with_capacity_and_unit_cost(nodes, bank, want + slack - low, np.zeros(nodes.size, np.int64))
    solver.add_arcs_with_capacity_and_unit_cost(nodes, bank, most, dear)
    solver.add_arcs_with_capacity_and_unit_cost(bank, nodes, most, dear)
    supply = have - low
    solver.set_nodes_supplies(np.append(nodes, np.int32(have.size)), np.append(supply, -supply.sum()))
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise RuntimeError(f"min-cost flow ended with status {status}")
    return float(solver.optimal_cost() / (units * costs))
