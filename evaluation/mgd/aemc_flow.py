"""AEMC as a min-cost flow on a sparse graph (Li et al. 2021a, sections 4.2-4.3 and Appendix A), by OR-Tools.

Counts and costs are scaled to whole numbers. Where that is not exact, the result carries an error bound: the cost
changes by at most α per record of any count, and by the mass times the arcs of a movement per unit of an arc's cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.aemc_graph import MOST_ARCS, TRIANGLE_SLACK, Axis, Graph, Weight, graph_of, rational
from evaluation.mgd.network_simplex import network_simplex
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS

#: Common denominators of costs up to this are used as they are; beyond it, costs are rounded.
MOST_COST_UNITS = 1 << 20
#: Bits of the whole numbers that a solver works with: of the mass, of a cost, of a cost times the nodes, of all costs.
MASS_BITS, COST_BITS, PRICE_BITS, TOTAL_BITS = 50, 40, 60, 61


@dataclass(frozen=True, eq=False)
class Flow:
    """A solved min-cost flow over copies of one graph.

    Attributes:
        cost: of all parts together, in records.
        error: the most by which `cost` may be wrong.
        along: mass along every arc of every part, parts × arcs, in records; empty unless asked for.
        removed, added: per part and cell, in records; empty unless asked for.
    """

    cost: float
    error: float
    along: Floats
    removed: Floats
    added: Floats


def flow_cost(p: Floats, q: Floats, axes: Sequence[Axis], delta: float, alpha: float, *, keep: bool = False) -> Flow:
    """The least cost of parts with the same moving axes.

    Args:
        p, q: synthetic and true counts, parts × cells in C order; all cells of the part, also those without records.
        axes: the moving axes; their `length` cells each.
        keep: also return the movements.
    Raises:
        UserError: a graph too large for memory, counts or costs beyond 64 bits.
    """
    graph = graph_of(axes)
    each = max(1, MOST_ARCS // (graph.nodes + graph.tail.size))
    counts, costs, error = _scaled(graph, p, q, axes, delta, alpha)
    solved = [_solve(graph, counts.rows(i, i + each), costs, keep) for i in range(0, len(p), each)]
    cost = float(sum((s[0] for s in solved), Fraction(0)) / counts.units / costs.units)
    if not keep:
        return Flow(cost, error, *np.empty((3, 0)))
    along, removed, added = (np.concatenate([s[1][i] for s in solved]) / counts.units for i in range(3))
    return Flow(cost, error, along, removed, added)


def simplex_cost(p: Floats, q: Floats, axes: Sequence[Axis], delta: float, alpha: float) -> tuple[float, float]:
    """The same as `flow_cost` by our network simplex, with its error bound; paths and trees only."""
    graph = graph_of(axes)
    counts, costs, error = _scaled(graph, p, q, axes, delta, alpha)
    once = graph.tail < graph.head
    edges = np.stack([graph.tail[once], graph.head[once], costs.costs[graph.cost[once]]]).astype(np.int64)
    ranges = np.zeros((3, len(p), graph.nodes), np.int64)
    ranges[:, :, graph.first] = (counts.have, counts.low, counts.high)
    total = network_simplex(ranges, edges, costs.alpha)
    return float(Fraction(int(total), counts.units * costs.units)), error


def _scaled(
    graph: Graph, p: Floats, q: Floats, axes: Sequence[Axis], delta: float, alpha: float
) -> tuple[_Counts, _Costs, float]:
    """Whole counts and costs, and the most by which they change the cost."""
    total = float(p.sum() + q.sum()) + delta * q.size
    exact = _exact_units(p, q, delta)
    bits = TOTAL_BITS - math.log2(max(total * alpha, 1.0))
    costs = _Costs.of(graph.costs, alpha, graph.nodes * len(p), bits - math.log2(exact) if exact else bits / 2)
    counts = _Counts.of(p, q, delta, exact, min(MASS_BITS, TOTAL_BITS - math.log2(costs.alpha)) - math.log2(total))
    # What taking a matrix for a metric may change per record.
    merged = TRIANGLE_SLACK * sum(a.length for a in axes if a.kind == "matrix" and a.is_metric)
    error = counts.error * alpha + float(p.sum()) * (graph.hops * costs.error + merged)
    return counts, costs, error + costs.alpha_error * float(p.sum() + q.sum())


def _exact_units(p: Floats, q: Floats, delta: float) -> int:
    """The least units per record in which all counts are whole; 0 where there are none."""
    fine = rational(delta).denominator
    for units in (fine, math.lcm(fine, 2**WEIGHT_BITS)):
        if units < 2.0**TOTAL_BITS and all(np.array_equal(x * units, np.rint(x * units)) for x in (p, q)):
            return units
    return 0


@dataclass(frozen=True, eq=False)
class _Counts:
    """Whole numbers of `units` per record, parts × cells, and by how many records they are off in total."""

    have: Ints
    low: Ints
    high: Ints
    units: int
    error: float

    @staticmethod
    def of(p: Floats, q: Floats, delta: float, exact: int, bits: float) -> _Counts:
        """In exact units where these fit, else in the finest power of 2 that does."""
        if bits < 0:
            fix = "fewer or coarser cells, or a larger α"
            raise UserError("counts too large for a flow of 64 bits", where="AEMC by min-cost flow", fix=fix)
        units = exact if 0 < exact <= 2.0**bits else 1 << int(bits)
        have, want, slack = np.rint(p * units), np.rint(q * units), round(rational(delta) * units)
        off = np.abs(have - p * units).sum() + np.abs(want - q * units).sum()
        off += abs(float(rational(delta) * units - slack)) * q.size
        counts = want.astype(np.int64)
        low, high = np.maximum(counts - slack, 0), counts + slack
        return _Counts(have.astype(np.int64), low, high, units, float(off) / units)

    def rows(self, start: int, stop: int) -> _Counts:
        """Some of the parts."""
        have, low, high = self.have[start:stop], self.low[start:stop], self.high[start:stop]
        return _Counts(have, low, high, self.units, self.error)


@dataclass(frozen=True, eq=False)
class _Costs:
    """Whole numbers of `units` per unit of distance, and by how much one of them may be off."""

    costs: Ints
    alpha: int
    units: int
    error: float
    alpha_error: float

    @staticmethod
    def of(costs: Sequence[Weight], alpha: float, nodes: int, bits: float) -> _Costs:
        """In their common denominator where that is small, else in a power of 2 of at most `bits`."""
        exact, top = [rational(c) for c in costs], rational(alpha)
        most = PRICE_BITS - math.log2((nodes + 1) * max(float(top), *map(float, exact)))
        units = 1
        for value in (top, *exact):
            units = math.lcm(units, value.denominator)
            if units > MOST_COST_UNITS or math.log2(units) > most:
                units = 1 << max(0, int(min(COST_BITS, most, bits)))
                break
        scaled, price = [round(c * units) for c in exact], round(top * units)
        if price == 0 or math.log2(units) > most:
            raise UserError("α or distances beyond 64 bits", where="AEMC by min-cost flow", fix="an α nearer to 1")
        off = max((abs(c - Fraction(s, units)) for c, s in zip(exact, scaled, strict=True)), default=Fraction(0))
        return _Costs(np.array(scaled, np.int64), price, units, float(off), float(abs(top - Fraction(price, units))))


def _solve(graph: Graph, counts: _Counts, costs: _Costs, keep: bool) -> tuple[Fraction, tuple[Ints, ...]]:
    """One flow over copies of the graph with one bank, which takes what is free at no cost.

    In some optimum a cell removes at most what it has beyond q + Δ, and adds at most what it lacks of q − Δ: removing
    mass that has moved, or adding mass that then moves, costs no less than doing so where it comes from or goes to.
    """
    from ortools.graph.python import min_cost_flow  # slow to import

    parts, cells = counts.have.shape
    solver = min_cost_flow.SimpleMinCostFlow()
    shift = (np.arange(parts, dtype=np.int32) * np.int32(graph.nodes))[:, None]
    bank = parts * graph.nodes
    total = int(counts.have.sum() + counts.low.sum())
    tail, head = (shift + graph.tail).ravel(), (shift + graph.head).ravel()
    price = np.broadcast_to(costs.costs[graph.cost], (parts, graph.tail.size)).ravel()
    moving = solver.add_arcs_with_capacity_and_unit_cost(tail, head, np.full(tail.size, total), price)
    last = (shift + graph.last).ravel()

    def bank_arcs(capacity: Ints, cost: int, *, out: bool) -> tuple[Ints, NDArray[np.int32]]:
        cell = np.flatnonzero(capacity > 0)
        ends = (last[cell], np.full(cell.size, bank, np.int32))
        source, target = ends if out else ends[::-1]
        return cell, solver.add_arcs_with_capacity_and_unit_cost(
            source, target, capacity[cell], np.full(cell.size, cost)
        )

    bank_arcs((counts.high - counts.low).ravel(), 0, out=True)
    removing = bank_arcs((counts.have - counts.high).ravel(), costs.alpha, out=True)
    adding = bank_arcs((counts.low - counts.have).ravel(), costs.alpha, out=False)
    supply = np.zeros(bank + 1, np.int64)
    np.add.at(supply, (shift + graph.first).ravel(), counts.have.ravel())
    np.subtract.at(supply, last, counts.low.ravel())
    supply[bank] = -supply.sum()
    solver.set_nodes_supplies(np.arange(bank + 1, dtype=np.int32), supply)
    status = solver.solve()
    if status == solver.BAD_COST_RANGE:
        raise UserError("distances too fine for 64 bits", where="AEMC by min-cost flow", fix="rounder distances")
    if status != solver.OPTIMAL:
        raise RuntimeError(f"min-cost flow ended with status {status}")
    if not keep:
        return Fraction(solver.optimal_cost()), ()
    along = solver.flows(moving).reshape(parts, -1)
    removed, added = np.zeros((2, parts * cells), np.int64)
    removed[removing[0]], added[adding[0]] = solver.flows(removing[1]), solver.flows(adding[1])
    return Fraction(solver.optimal_cost()), (along, removed.reshape(parts, cells), added.reshape(parts, cells))
