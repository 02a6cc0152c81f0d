"""The close of GUM: codes are changed, or exchanged, where that lowers the squared error of all marginals together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.jit import compiled
from synthesis.consistency.agree import Target
from synthesis.impossible import Zeros
from synthesis.xorshift import following

#: Rows per block: copied out row by row, changed, copied back. The rows stay in a fast cache while the marginals of one
#: attribute after the other pass through it: on 305,118 rows × 31 columns and 392 marginals that is twice as fast as
#: blocks of one row.
BLOCK = 1 << 13
#: The gap of an impossible cell: no change of a count moves it, and with its weight no row gains by entering.
GUARD = 1e25


class _Entries(NamedTuple):
    """The marginals that contain one attribute, in the flat array of all marginals' cells.

    Places are unsigned, as a loop need not ask of these if they count from the end.

    Attributes:
        start, stride: where each marginal starts, and the stride of the attribute there, one per marginal.
        weight: of each marginal.
        entry, other, other_stride: the other attributes of these marginals, one behind the other: the marginal's place
            in `start`, the attribute and its stride.
    """

    start: NDArray[np.uint64]
    stride: NDArray[np.uint64]
    weight: NDArray[np.float64]
    entry: NDArray[np.uint64]
    other: NDArray[np.uint64]
    other_stride: NDArray[np.uint64]


def descend(
    table: CodedTable, targets: list[Target], *, sweeps: int, rng: np.random.Generator, zeros: Zeros = ()
) -> tuple[CodedTable, list[int]]:
    """Lower Σ (n − n_t)² / σ² over all cells of all marginals, by codes taken and exchanged; how many in each sweep.

    In a sweep every code of every row, attribute by attribute in blocks of rows, is offered the code that a random row
    of the block has there, and takes it if the sum falls; else the two rows exchange their codes if that lowers it,
    which leaves the attribute's own counts as they are. The error never rises, and no row takes an impossible
    combination (`zeros`). σ is the noise of a cell (`cell_stddev`): of few answers about many cells it is less than
    that of an answer. Cost of a sweep: rows · Σ over marginals of attributes². Memory: two numbers a cell.
    """
    if not (table.rows and targets and sweeps):
        return table, []
    counts = count_cliques(table, [t.clique for t in targets])
    gaps = [n - t.values.ravel() * (table.rows / t.values.sum()) for n, t in zip(counts, targets, strict=True)]
    gaps += [np.where(cells.ravel(), GUARD, 0.0) for _, cells in zeros]
    noise = [t.cell_stddev for t in targets]
    smallest = min(noise)
    laid = [(t.clique, (smallest / own) ** 2) for t, own in zip(targets, noise, strict=True)]
    laid += [(c, 1 / GUARD**0.6) for c, _ in zeros]
    gap, entries = np.concatenate(gaps), _entries(table.domain, laid)
    state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    columns = [np.array(c) for c in table.columns]
    block = np.empty((min(BLOCK, table.rows), len(columns)), np.int32)
    changed = []
    for _ in range(sweeps):
        moves = 0
        for start in range(0, table.rows, BLOCK):
            part = block[: min(BLOCK, table.rows - start)]
            for axis, column in enumerate(columns):
                part[:, axis] = column[start : start + len(part)]
            for axis, own in enumerate(entries):
                moves += _sweep(part, axis, gap, *own, state)
            for axis, column in enumerate(columns):
                column[start : start + len(part)] = part[:, axis]
        changed.append(int(moves))
        if moves == 0:
            break
    return CodedTable(table.domain, tuple(columns)), changed


def _entries(domain: Domain, laid: Sequence[tuple[Clique, float]]) -> list[_Entries]:
    """The layout of marginals one behind the other, each with its weight: the entries of each attribute."""
    own: list[list[tuple[int, int, float]]] = [[] for _ in domain.names]
    others: list[list[tuple[int, int, int]]] = [[] for _ in domain.names]
    start = 0
    for clique, weight in laid:
        shape = domain.shape(clique)
        strides = [(domain.index(name), math.prod(shape[i + 1 :])) for i, name in enumerate(clique)]
        for axis, stride in strides:
            others[axis] += [(len(own[axis]), *member) for member in strides if member[0] != axis]
            own[axis].append((start, stride, weight))
        start += math.prod(shape)
    entries = []
    for mine, beside in zip(own, others, strict=True):
        places = np.array([entry[:2] for entry in mine], np.uint64).reshape(-1, 2).T.copy()
        weights = np.array([entry[2] for entry in mine], np.float64)
        members = np.array(beside, np.uint64).reshape(-1, 3).T.copy()
        entries.append(_Entries(places[0], places[1], weights, members[0], members[1], members[2]))
    return entries


@compiled
def _sweep(
    rows: NDArray[np.int32],
    axis: int,
    gap: NDArray[np.float64],
    start: NDArray[np.uint64],
    stride: NDArray[np.uint64],
    weight: NDArray[np.float64],
    entry: NDArray[np.uint64],
    other: NDArray[np.uint64],
    other_stride: NDArray[np.uint64],
    state: NDArray[np.uint64],
) -> int:
    """One pass over the codes of one attribute in a block of rows; how many times one was taken or two were exchanged.

    A code that changes lowers its old cells' gaps and raises its new ones' by 1: the weighted squared error changes by
    2 Σ w (gap_new − gap_old + 1). An exchange is two such changes, but none of marginals in which both rows are alike.
    """
    seed = state[0]
    moves = 0
    whole = weight.sum()
    cells = np.empty(len(start), np.uint64)  # where the row lies in each marginal
    partners = np.empty(len(start), np.uint64)
    for r in range(rows.shape[0]):
        seed = following(seed)
        partner = np.int64((seed >> np.uint64(11)) % np.uint64(rows.shape[0]))
        old, new = rows[r, axis], rows[partner, axis]
        if new == old:
            continue
        for k in range(len(start)):
            cells[k] = start[k] + stride[k] * np.uint64(old)
        for j in range(len(other)):
            cells[entry[j]] += other_stride[j] * np.uint64(rows[r, other[j]])
        step = np.uint64(np.int64(new) - np.int64(old))  # downwards it wraps around, and so does the sum
        change = whole
        for k in range(len(start)):
            change += weight[k] * (gap[cells[k] + stride[k] * step] - gap[cells[k]])
        if change < -1e-9:
            for k in range(len(start)):
                gap[cells[k]] -= 1.0
                gap[cells[k] + stride[k] * step] += 1.0
            rows[r, axis] = new
            moves += 1
            continue
        for k in range(len(start)):
            partners[k] = start[k] + stride[k] * np.uint64(old)
        for j in range(len(other)):
            partners[entry[j]] += other_stride[j] * np.uint64(rows[partner, other[j]])
        change = 0.0
        for k in range(len(start)):
            up = stride[k] * step
            if partners[k] != cells[k]:
                risen, fallen = gap[cells[k] + up] + gap[partners[k]], gap[cells[k]] + gap[partners[k] + up]
                change += weight[k] * (risen - fallen + 2.0)
        if change < -1e-9:
            for k in range(len(start)):
                up = stride[k] * step
                gap[cells[k]] -= 1.0
                gap[cells[k] + up] += 1.0
                gap[partners[k]] += 1.0
                gap[partners[k] + up] -= 1.0
            rows[r, axis], rows[partner, axis] = new, old
            moves += 1
    state[0] = seed
    return moves
