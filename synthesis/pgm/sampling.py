"""Rows from a graphical model: node after node, whole numbers in proportion to the probabilities given the parent."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, Values, code_dtype, extend_keys
from mechanisms.public.jit import compiled
from mechanisms.public.progress import Progress
from synthesis.pgm.inference import JunctionTreeInference
from synthesis.xorshift import shuffle

#: Rows made together; each such chunk is rounded on its own.
CHUNK = 1 << 22
#: The fractional part of the golden ratio: its multiples fill the unit interval evenly.
GOLDEN = (math.sqrt(5.0) - 1) / 2


@compiled
def draw_cells(
    keys: NDArray[np.int32],
    chances: NDArray[np.float64],
    offset: float,
    state: NDArray[np.uint64],
    order: NDArray[np.int32],
    drawn: NDArray[np.int32],
    cells: NDArray[np.int32],
) -> None:
    """For each row a cell, by the chances of its group: row `keys[i]` of the matrix `chances`, which sums to 1.

    Systematic sampling in each group: every cell gets its exact share of the group's rows, rounded up or down, without
    bias. The groups' offsets are multiples of the golden ratio from one random start, so that roundings of many small
    groups cancel. Which row of the group gets which cell is random. `order` and `drawn` are room for one entry a row.
    """
    ends = np.zeros(chances.shape[0] + 1, np.int64)
    for i in range(len(keys)):
        ends[keys[i] + 1] += 1
    for group in range(chances.shape[0]):
        ends[group + 1] += ends[group]
    starts = ends[:-1].copy()
    for i in range(len(keys)):
        order[starts[keys[i]]] = i
        starts[keys[i]] += 1
    for group in range(chances.shape[0]):
        low, high = ends[group], ends[group + 1]
        if low == high:
            continue
        offset = (offset + GOLDEN) % 1.0
        total, at, last = offset, low, 0
        for cell in range(chances.shape[1]):
            chance = chances[group, cell]
            if chance <= 0.0:
                continue
            last = cell
            total += chance * (high - low)
            until = min(high, low + np.int64(total))
            while at < until:
                drawn[at] = cell
                at += 1
            if at == high:
                break
        while at < high:  # the chances sum to a little less than 1
            drawn[at] = last
            at += 1
        shuffle(drawn[low:high], state)
    for i in range(len(order)):
        cells[order[i]] = drawn[i]


def model_rows(
    engine: JunctionTreeInference,
    conditionals: Values,
    *,
    rows: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> CodedTable:
    """`rows` rows whose marginals are those of the model but for the rounding, in random order.

    Cost: time rows × columns plus cells; memory the columns and 16 bytes per row of a chunk.
    Args:
        conditionals: of every node given its separator, flat (`Engine.conditionals`).
    """
    domain = engine.tree.domain
    columns = tuple(np.empty(rows, code_dtype(a.size)) for a in domain.attributes)
    steps = [(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]
    nodes = len(engine.tree.cliques)
    room = np.empty((4, min(rows, CHUNK)), np.int32)
    state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    for number, (start, stop) in enumerate(steps):
        part = [c[start:stop] for c in columns]
        for node in range(nodes):
            _fill(engine, conditionals, node, part, room[:, : stop - start], state, rng.random())
            if progress is not None:
                progress(number * nodes + node + 1, len(steps) * nodes, "rows")
    return CodedTable(domain, columns)


def _fill(
    engine: JunctionTreeInference,
    conditionals: Values,
    node: int,
    columns: list[NDArray[np.unsignedinteger]],
    room: NDArray[np.int32],
    state: NDArray[np.uint64],
    offset: float,
) -> None:
    """The columns that a node adds to those of its parents."""
    tree, domain = engine.tree, engine.tree.domain
    keys, order, drawn, cells = room
    keys[:] = 0
    for name in tree.separators[node]:
        extend_keys(keys, columns[domain.index(name)], domain[name].size)
    chances = engine.rows(node, engine.view(conditionals, node))
    draw_cells(keys, chances, offset, state, order, drawn, cells)
    stride = chances.shape[1]
    for name in tree.cliques[node][len(tree.separators[node]) :]:
        stride //= domain[name].size
        columns[domain.index(name)][:] = cells // stride % domain[name].size
