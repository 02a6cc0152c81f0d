"""The close of GUM: single codes are changed where that lowers the squared error of all marginals together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.jit import compiled
from mechanisms.public.marginals import count_cliques
from synthesis.consistency.agree import Target
from synthesis.impossible import Zeros
from synthesis.xorshift import following

#: Rows per block: copied out row by row, changed, copied back, so that memory does not grow with the table.
BLOCK = 1 << 15
#: The gap of an impossible cell: no change of a count moves it, and with its weight no row gains by entering.
GUARD = 1e25


@dataclass(frozen=True, eq=False)
class _Places:
    """Where each attribute sits in the flat array of all marginals' cells.

    Attribute a has the entries first[a] … first[a + 1] − 1, one per marginal that contains it: the marginal's `offset`,
    a's own `stride`, its `weight`, and the other attributes `other` with their `other_stride` from `other_first` on.
    """

    first: NDArray[np.int64]
    offset: NDArray[np.int64]
    stride: NDArray[np.int64]
    weight: NDArray[np.float64]
    other_first: NDArray[np.int64]
    other: NDArray[np.int64]
    other_stride: NDArray[np.int64]


def descend(
    table: CodedTable, targets: list[Target], *, sweeps: int, rng: np.random.Generator, zeros: Zeros = ()
) -> tuple[CodedTable, list[int]]:
    """Lower Σ (n − n_t)² / σ² over all cells of all marginals, by single codes; the codes changed in each sweep.

    In a sweep every code of every row is offered the code that a random row nearby has there, and takes it if the sum
    falls; the error never rises, and no row takes an impossible combination
    (`zeros`). Cost of a sweep: rows · Σ over marginals of attributes². Memory: two numbers a cell.
    """
    if not (table.rows and targets and sweeps):
        return table, []
    counts = count_cliques(table, [t.clique for t in targets])
    gaps = [n - t.values.ravel() * (table.rows / t.values.sum()) for n, t in zip(counts, targets, strict=True)]
    gaps += [np.where(cells.ravel(), GUARD, 0.0) for _, cells in zeros]
    smallest = min(t.stddev for t in targets)
    laid = [(t.clique, (smallest / t.stddev) ** 2) for t in targets] + [(c, 1 / GUARD**0.6) for c, _ in zeros]
    gap, places = np.concatenate(gaps), _places(table.domain, laid)
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
            moves += _sweep(
                part,
                gap,
                places.first,
                places.offset,
                places.stride,
                places.weight,
                places.other_first,
                places.other,
                places.other_stride,
                state,
            )
            for axis, column in enumerate(columns):
                column[start : start + len(part)] = part[:, axis]
        changed.append(int(moves))
        if moves == 0:
            break
    return CodedTable(table.domain, tuple(columns)), changed


def _places(domain: Domain, laid: Sequence[tuple[Clique, float]]) -> _Places:
    """The layout of marginals one behind the other, each with its weight."""
    first, offset, stride, weight, other_first, other, other_stride = [0], [], [], [], [0], [], []
    starts = np.cumsum([0, *(domain.cells(c) for c, _ in laid)])
    for attribute in domain.names:
        for start, (clique, own) in zip(starts, laid, strict=False):
            if attribute not in clique:
                continue
            shape = domain.shape(clique)
            for i, name in enumerate(clique):
                step = math.prod(shape[i + 1 :])
                if name == attribute:
                    stride.append(step)
                else:
                    other.append(domain.index(name))
                    other_stride.append(step)
            offset.append(start)
            weight.append(own)
            other_first.append(len(other))
        first.append(len(offset))
    whole = [np.array(v, np.int64) for v in (first, offset, stride, other_first, other, other_stride)]
    return _Places(whole[0], whole[1], whole[2], np.array(weight, np.float64), *whole[3:])


@compiled
def _sweep(
    rows: NDArray[np.int32],
    gap: NDArray[np.float64],
    first: NDArray[np.int64],
    offset: NDArray[np.int64],
    stride: NDArray[np.int64],
    weight: NDArray[np.float64],
    other_first: NDArray[np.int64],
    other: NDArray[np.int64],
    other_stride: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> int:
    """One pass over a block of rows; a code that changes lowers its old cells' gaps and raises its new ones' by 1.

    The weighted squared error then changes by 2 Σ w (gap_new − gap_old + 1).
    """
    seed = state[0]
    moves = 0
    bases = np.empty(len(offset), np.int64)
    for r in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            seed = following(seed)
            old = rows[r, a]
            new = rows[np.int64((seed >> np.uint64(11)) % np.uint64(rows.shape[0])), a]
            if new == old:
                continue
            change = 0.0
            for k in range(first[a], first[a + 1]):
                base = offset[k]
                for j in range(other_first[k], other_first[k + 1]):
                    base += other_stride[j] * rows[r, other[j]]
                bases[k] = base
                change += weight[k] * (gap[base + stride[k] * new] - gap[base + stride[k] * old] + 1.0)
            if change < -1e-9:
                for k in range(first[a], first[a + 1]):
                    gap[bases[k] + stride[k] * old] -= 1.0
                    gap[bases[k] + stride[k] * new] += 1.0
                rows[r, a] = new
                moves += 1
    state[0] = seed
    return moves
