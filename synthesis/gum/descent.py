"""The close of GUM: single codes are changed where that lowers the squared error of all marginals together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

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


Words = NDArray[np.uint64]
Layout = tuple[Words, Words, Words, Words, Words, Words, Words]


@dataclass(frozen=True, eq=False)
class _Places:
    """Where each attribute sits in the flat array of all marginals' cells.

    Attributes:
        weight: of the marginal of each entry, as of `layout`.
        layout: offset, members_first, members, member_stride, first, marginal, stride. Marginal m starts at `offset`,
            and has the `members` from members_first[m] on, each with its `member_stride`. Attribute a has the entries
            first[a] … first[a + 1] − 1, one per marginal that contains it: `marginal`, and a's own `stride` there.
            Places are unsigned, as a loop need not ask of these if they count from the end.
    """

    weight: NDArray[np.float64]
    layout: Layout


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
            moves += _sweep(part, gap, places.layout, places.weight, state)
            for axis, column in enumerate(columns):
                column[start : start + len(part)] = part[:, axis]
        changed.append(int(moves))
        if moves == 0:
            break
    return CodedTable(table.domain, tuple(columns)), changed


def _places(domain: Domain, laid: Sequence[tuple[Clique, float]]) -> _Places:
    """The layout of marginals one behind the other, each with its weight."""
    members_first, members, member_stride = [0], [], []
    of: list[list[tuple[int, int, float]]] = [[] for _ in domain.names]
    for marginal, (clique, own) in enumerate(laid):
        shape = domain.shape(clique)
        for i, name in enumerate(clique):
            members.append(domain.index(name))
            member_stride.append(math.prod(shape[i + 1 :]))
            of[members[-1]].append((marginal, member_stride[-1], own))
        members_first.append(len(members))
    entries = [e for each in of for e in each]
    offset, first = np.cumsum([0, *(domain.cells(c) for c, _ in laid)]), np.cumsum([0, *map(len, of)])
    marginal_of, stride, weight = ([e[i] for e in entries] for i in range(3))
    whole = (offset, members_first, members, member_stride, first, marginal_of, stride)
    places = tuple(np.array(v, np.uint64) for v in whole)
    return _Places(np.array(weight, np.float64), cast("Layout", places))


@compiled
def _sweep(
    rows: NDArray[np.int32],
    gap: NDArray[np.float64],
    layout: Layout,
    weight: NDArray[np.float64],
    state: NDArray[np.uint64],
) -> int:
    """One pass over a block of rows; a code that changes lowers its old cells' gaps and raises its new ones' by 1.

    The weighted squared error then changes by 2 Σ w (gap_new − gap_old + 1).
    """
    offset, members_first, members, member_stride, first, marginal, stride = layout
    seed = state[0]
    moves = 0
    cells = np.empty(len(offset), np.uint64)  # where the row lies in each marginal
    for r in range(rows.shape[0]):
        for m in range(len(offset) - 1):
            cell = offset[m]
            for j in range(members_first[m], members_first[m + 1]):
                cell += member_stride[j] * np.uint64(rows[r, members[j]])
            cells[m] = cell
        for a in range(rows.shape[1]):
            seed = following(seed)
            old = rows[r, a]
            new = rows[np.int64((seed >> np.uint64(11)) % np.uint64(rows.shape[0])), a]
            if new == old:
                continue
            step = np.uint64(np.int64(new) - np.int64(old))  # downwards it wraps around, and so does the sum
            change = 0.0
            for k in range(first[a], first[a + 1]):
                cell = cells[marginal[k]]
                change += weight[k] * (gap[cell + stride[k] * step] - gap[cell] + 1.0)
            if change < -1e-9:
                for k in range(first[a], first[a + 1]):
                    cell = cells[marginal[k]]
                    gap[cell] -= 1.0
                    gap[cell + stride[k] * step] += 1.0
                    cells[marginal[k]] = cell + stride[k] * step
                rows[r, a] = new
                moves += 1
    state[0] = seed
    return moves
