"""One gradual update of one marginal (Li et al. 2021b, Appendix A.2), the rows under change, and its hot loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype, count_cliques, extend_keys
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.jit import compiled
from mechanisms.public.progress import Progress
from synthesis.consistency.agree import Target
from synthesis.impossible import Zeros
from synthesis.rounding import systematic
from synthesis.xorshift import following, shuffle


@dataclass(eq=False)
class UpdateWork:
    """The rows under change; `keys` are their cells in the marginal that was counted last."""

    domain: Domain
    columns: list[Codes]
    keys: NDArray[np.int32]
    state: NDArray[np.uint64]
    rng: np.random.Generator

    @classmethod
    def start(cls, table: CodedTable, rng: np.random.Generator) -> UpdateWork:
        state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        return cls(table.domain, [c.copy() for c in table.columns], np.empty(table.rows, np.int32), state, rng)

    def counts(self, clique: Clique) -> Ints:
        """The rows in each cell of a marginal; `keys` then holds each row's cell."""
        self.keys[:] = 0
        for axis in map(self.domain.index, clique):
            extend_keys(self.keys, self.columns[axis], self.domain.attributes[axis].size)
        return np.bincount(self.keys, minlength=self.domain.cells(clique))

    def update(self, target: Target, *, alpha: float, replace: float, as_paper: bool = False) -> tuple[int, float]:
        """One gradual update of one marginal; how many rows moved, and how far it was off before (Appendix A.2).

        A cell below its target grows by min(n_t − n_s, α n_s); an empty cell, which never grows so, by α n_t, by
        Replace. Cells above give rows in proportion to their excess, and replaced rows go to their cells in the order
        of one attribute, so that most keep its code.

        Args:
            as_paper: empty cells stay, cells above give min(n_s − n_t, β n_s) with the β that keeps the number of
                rows, and a replaced row goes to any cell.
        """
        rows, counts = len(self.keys), self.counts(target.clique)
        gap = target.values.ravel() * (rows / target.values.sum()) - counts
        off = 0.5 * float(np.abs(gap).sum()) / rows
        held = counts if as_paper else np.where(counts > 0, counts, np.maximum(gap, 0))
        growth = np.where(gap > 0, np.minimum(gap, alpha * held), 0.0)
        moved = int(growth.sum() + self.rng.random())
        if moved == 0:
            return 0, off
        gain = systematic(growth, moved, self.rng)
        excess = np.maximum(-gap, 0.0)
        if as_paper:
            excess = np.minimum(excess, shrink_factor(excess, counts, float(moved)) * counts)
        loss = np.minimum(systematic(excess, moved, self.rng), counts)
        if gain.sum() != (left := int(loss.sum())):
            gain = systematic(gain.astype(np.float64), left, self.rng)
        return self.move(target.clique, counts, gain, loss, replace, ordered=not as_paper), off

    def banish(self, clique: Clique, impossible: Flags) -> int:
        """Move the rows with an impossible combination to possible ones, in proportion to their present rows."""
        counts = self.counts(clique)
        loss = np.where(impossible.ravel(), counts, 0)
        moved = int(loss.sum())
        if moved == 0:
            return 0
        left = np.where(impossible.ravel(), 0, counts)
        weights = (left if left.any() else ~impossible.ravel()).astype(np.float64)
        return self.move(clique, counts, systematic(weights, moved, self.rng), loss, 1.0)

    def move(
        self, clique: Clique, counts: Ints, gain: Ints, loss: Ints, replace: float, *, ordered: bool = True
    ) -> int:
        """Free `loss` rows of each cell and give each cell its `gain`, by duplication and by replacement."""
        moved = int(loss.sum())
        duplicates = (gain * (1 - replace) + self.rng.random(gain.size)).astype(np.int64)
        copies = np.where(counts > 0, np.minimum(duplicates, gain), 0)
        ends = np.cumsum(copies)
        starts, distinct = ends - copies, np.minimum(copies, counts)
        freed, donors = np.empty(moved, np.int32), np.empty(int(copies.sum()), np.int32)
        pick_rows(self.keys, counts, (loss.copy(), distinct.copy(), starts.copy()), freed, donors, self.state)
        for cell in np.flatnonzero(copies > distinct):  # more copies than rows: rows serve again (only for α > 1)
            first = donors[starts[cell] : starts[cell] + distinct[cell]]
            donors[starts[cell] : ends[cell]] = np.resize(first, copies[cell])
        shuffle(freed, self.state)
        to, rest = freed[: len(donors)], freed[len(donors) :]
        cells = np.repeat(np.arange(gain.size, dtype=np.int32), gain - copies)
        for column in self.columns:
            column[to] = column[donors]
        if ordered and len(clique) > 1:
            rest, cells = self._aligned(clique, rest, cells)
        self.place(clique, rest, cells)
        return moved

    def place(self, clique: Clique, rows: NDArray[np.int32], cells: NDArray[np.int32]) -> None:
        """Replace: the rows take the codes of their cells."""
        stride = 1
        for name in reversed(clique):
            axis, size = self.domain.index(name), self.domain[name].size
            self.columns[axis][rows] = cells // stride % size
            stride *= size

    def _aligned(
        self, clique: Clique, rows: NDArray[np.int32], cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows and the cells they go to, both ordered by one attribute (drawn anew each time).

        Most rows then keep that attribute's code, so that a replacement disturbs fewer other marginals: the sense of
        min-cost flow (Appendix A.1) without its cost.
        """
        place, shape = int(self.rng.integers(len(clique))), self.domain.shape(clique)
        size, stride = shape[place], math.prod(shape[place + 1 :])
        codes = ((c // stride % size).astype(code_dtype(size)) for c in (self.keys[rows], cells))
        first, second = (np.argsort(c, kind="stable") for c in codes)
        return rows[first], cells[second]


def shrink_factor(excess: Floats, counts: Ints, moved: float) -> float:
    """β with Σ min(excess, β · counts) = moved: what keeps the number of rows (Appendix A.2)."""
    over = np.flatnonzero(excess > 0)
    ratio = excess[over] / counts[over]
    order = np.argsort(ratio)
    excess, held, ratio = excess[over][order], counts[over][order].astype(np.float64), ratio[order]
    before = np.concatenate([[0.0], np.cumsum(excess)[:-1]])
    above = held[::-1].cumsum()[::-1]
    reached = before + ratio * above
    place = int(np.searchsorted(reached, moved))
    if place == ratio.size:
        return float(ratio[-1]) if ratio.size else 0.0
    return float((moved - before[place]) / above[place])


@compiled
def pick_rows(
    keys: NDArray[np.int32],
    counts: Ints,
    quotas: tuple[Ints, Ints, Ints],
    freed: NDArray[np.int32],
    donors: NDArray[np.int32],
    state: NDArray[np.uint64],
) -> None:
    """One scan that picks, uniformly at random without repeats, `remove[c]` rows to free and `donate[c]` donors a cell.

    Selection sampling: a row of a cell with k rows left of which r are still wanted is taken with probability r / k.
    `counts` and `quotas` (`remove`, `donate`, and where a cell's donors are written) are used up.
    """
    remove, donate, starts = quotas
    seed = state[0]
    done = 0
    for i in range(len(keys)):
        cell = keys[i]
        count = remove[cell]
        giving = donate[cell]
        if count == 0 and giving == 0:
            continue
        seed = following(seed)
        draw = np.float64(seed >> np.uint64(11)) * 1.1102230246251565e-16 * counts[cell]
        counts[cell] -= 1
        if draw < count:
            freed[done] = i
            done += 1
            remove[cell] = count - 1
        elif giving > 0 and draw < giving:
            donors[starts[cell]] = i
            starts[cell] += 1
            donate[cell] = giving - 1
    state[0] = seed


#: Rows per block: copied out row by row, changed, copied back. The rows stay in a fast cache while the marginals of one
#: attribute after the other pass through it: on 305,118 rows × 31 columns and 392 marginals that is twice as fast as
#: blocks of one row.
BLOCK = 1 << 13
#: The gap of an impossible cell: no change of a count moves it, and with its weight no row gains by entering.
GUARD = 1e25
#: A sweep that lowers the squared misfit by less, in variances of the noise a cell, is the last one, once no fewer rows
#: have an impossible combination: where noise is large few sweeps do, and further ones follow it.
LEAST_GAIN = 1e-4


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
    weight: Floats
    entry: NDArray[np.uint64]
    other: NDArray[np.uint64]
    other_stride: NDArray[np.uint64]


def descend(
    table: CodedTable,
    targets: list[Target],
    *,
    sweeps: int,
    rng: np.random.Generator,
    zeros: Zeros = (),
    progress: Progress | None = None,
) -> tuple[CodedTable, list[int]]:
    """Lower Σ (n − n_t)² / σ² over all cells of all marginals, by codes taken and exchanged; how many in each sweep.

    In a sweep every code of every row, attribute by attribute in blocks of rows, is offered the code that a random row
    of the block has there, and takes it if the sum falls; else the two rows exchange their codes if that lowers it,
    which leaves the attribute's own counts as they are. The error never rises, and no row takes an impossible
    combination (`zeros`). σ is the noise of a cell (`cell_stddev`): of few answers about many cells it is less than
    that of an answer. A sweep that gains less than `LEAST_GAIN` is the last one. Cost of a sweep: rows · Σ over
    marginals of attributes². Memory: two numbers a cell.
    """
    if not (table.rows and targets and sweeps):
        return table, []
    counts = count_cliques(table, [t.clique for t in targets])
    scales = [table.rows / t.values.sum() for t in targets]
    gaps = [n - t.values.ravel() * scale for n, t, scale in zip(counts, targets, scales, strict=True)]
    gaps += [np.where(cells.ravel(), GUARD, 0.0) for _, cells in zeros]
    noise = [t.cell_stddev * scale for t, scale in zip(targets, scales, strict=True)]
    smallest = min(noise)
    laid = [(t.clique, (smallest / own) ** 2) for t, own in zip(targets, noise, strict=True)]
    ends = np.cumsum([t.values.size for t in targets])  # behind the last: cells of `zeros`, which have no noise
    laid += [(c, 1 / GUARD**0.6) for c, _ in zeros]
    gap, entries = np.concatenate(gaps), _entries(table.domain, laid)

    def misfit() -> float:  # of a cell in the mean; a row that cannot be weighs more than all
        squares = sum(float(part @ part / own**2) for part, own in zip(np.split(gap, ends), noise, strict=False))
        own = CodedTable(table.domain, tuple(columns))
        barred = zip(zeros, count_cliques(own, [clique for clique, _ in zeros]), strict=True)
        return float(squares / ends[-1] + sum(int(n[cells.ravel()].sum()) for (_, cells), n in barred))

    state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    columns = [np.array(c) for c in table.columns]
    left = misfit()
    block = np.empty((min(BLOCK, table.rows), len(columns)), np.int32)
    changed = []
    for sweep in range(sweeps):
        if progress is not None:
            progress(sweep, sweeps, "codes of single rows")
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
        before, left = left, misfit()
        if before - left < LEAST_GAIN:
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
    gap: Floats,
    start: NDArray[np.uint64],
    stride: NDArray[np.uint64],
    weight: Floats,
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
