"""The synthesizer `mcf`: every marginal in turn is met by the fewest changes (Li et al. 2021b, Appendix A.1)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Ints
from synthesis.consistency.agree import Target
from synthesis.gum.gradual_update import UpdateWork, pick_rows
from synthesis.gum.gum_settings import Passes
from synthesis.rounding import systematic
from synthesis.xorshift import shuffle


@dataclass(frozen=True)
class McfSpec(Passes):
    """Settings of min-cost flow, as in `Passes`: every marginal in turn is met exactly."""

    def update(self, work: UpdateWork, target: Target, t: int) -> tuple[int, float]:
        """All the way: the marginal is met exactly by the fewest changes of codes."""
        counts = work.counts(target.clique)
        whole = systematic(target.values.ravel(), len(work.keys), work.rng)
        off = 0.5 * float(np.abs(whole - counts).sum()) / len(work.keys)
        sources, sinks, amounts = fewest_changes(counts, whole, target.values.shape)
        moved = int(amounts.sum())
        if moved:
            loss = np.bincount(sources, amounts, minlength=counts.size).astype(np.int64)
            freed, none = np.empty(moved, np.int32), np.zeros(counts.size, np.int64)
            pick_rows(work.keys, counts, (loss, none, none.copy()), freed, np.empty(0, np.int32), work.state)
            shuffle(freed, work.state)
            freed = freed[np.argsort(work.keys[freed], kind="stable")]
            order = np.argsort(sources, kind="stable")
            work.place(target.clique, freed, np.repeat(sinks[order], amounts[order]).astype(np.int32))
        return moved, off


def fewest_changes(counts: Ints, target: Ints, shape: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
    """Which rows go from which cell to which: (from, to, how many), with the least number of codes changed.

    A row that keeps the attributes S goes through the node of its codes there, at the cost of the others: the graph has
    2^attributes arcs per cell that is over or under its target, not one per pair of cells.

    Args:
        counts, target: rows per cell now and after (flat), with equal sums; `shape` the attributes' sizes.
    """
    over, under = np.flatnonzero(counts > target), np.flatnonzero(counts < target)
    none = np.zeros(0, np.int64)
    if not over.size:
        return none, none, none
    places = {k: np.stack(np.unravel_index(k_cells, shape)) for k, k_cells in (("over", over), ("under", under))}
    tails, heads, costs, hubs = [], [], [], []
    first = over.size + under.size
    for size in range(len(shape)):
        for shared in itertools.combinations(range(len(shape)), size):
            keys = [_key(places[k], shared, shape) for k in ("over", "under")]
            hub_keys, hub = np.unique(np.concatenate(keys), return_inverse=True)
            hub = hub + first
            tails += [np.arange(over.size), hub[over.size :]]
            heads += [hub[: over.size], np.arange(over.size, over.size + under.size)]
            costs += [np.full(over.size, len(shape) - size), np.zeros(under.size, np.int64)]
            hubs.append(hub_keys.size)
            first += hub_keys.size
    flows = _solved(np.concatenate(tails), np.concatenate(heads), np.concatenate(costs), counts - target, over, under)
    return _paths(np.concatenate(tails), np.concatenate(heads), flows, over, under)


def _key(places: Ints, axes: tuple[int, ...], shape: tuple[int, ...]) -> Ints:
    key = np.zeros(places.shape[1], np.int64)
    for axis in axes:
        key = key * shape[axis] + places[axis]
    return key


def _solved(tails: Ints, heads: Ints, costs: Ints, excess: Ints, over: Ints, under: Ints) -> Ints:
    from ortools.graph.python import min_cost_flow  # slow to load

    solver = min_cost_flow.SimpleMinCostFlow()
    much = np.full(tails.size, int(excess[over].sum()))
    arcs = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, much, costs)
    solver.set_nodes_supplies(np.arange(over.size + under.size), excess[np.concatenate([over, under])])
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise RuntimeError(f"min-cost flow ended with {status}")
    return np.asarray(solver.flows(arcs), np.int64)


def _paths(tails: Ints, heads: Ints, flows: Ints, over: Ints, under: Ints) -> tuple[Ints, Ints, Ints]:
    """In every hub what comes in is matched with what goes out, in any order."""
    cells = over.size + under.size
    into = np.flatnonzero((flows > 0) & (tails < over.size))
    out = np.flatnonzero((flows > 0) & (tails >= cells))
    into, out = into[np.argsort(heads[into], kind="stable")], out[np.argsort(tails[out], kind="stable")]
    ends_in, ends_out = np.cumsum(flows[into]), np.cumsum(flows[out])
    ends = np.union1d(ends_in, ends_out)
    sources = over[tails[into[np.searchsorted(ends_in, ends)]]]
    sinks = under[heads[out[np.searchsorted(ends_out, ends)]] - over.size]
    return sources, sinks, np.diff(ends, prepend=0)
