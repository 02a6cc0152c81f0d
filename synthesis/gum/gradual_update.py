"""One gradual update of one marginal (Li et al. 2021b, Appendix A.2), the rows under change, and its hot loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype, extend_keys
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.jit import compiled
from synthesis.consistency.agree import Target
from synthesis.rounding import systematic
from synthesis.xorshift import following, shuffle


@dataclass(eq=False)
class UpdateWork:
    """The rows under change; `keys` are their cells in the marginal that was counted last."""

    domain: Domain
    columns: list[NDArray[np.unsignedinteger]]
    keys: NDArray[np.int32]
    state: NDArray[np.uint64]
    rng: np.random.Generator

    @classmethod
    def start(cls, table: CodedTable, rng: np.random.Generator) -> UpdateWork:
        state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        return cls(table.domain, [c.copy() for c in table.columns], np.empty(table.rows, np.int32), state, rng)

    def counts(self, clique: Clique) -> NDArray[np.int64]:
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

    def banish(self, clique: Clique, impossible: NDArray[np.bool_]) -> int:
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
        self,
        clique: Clique,
        counts: NDArray[np.int64],
        gain: NDArray[np.int64],
        loss: NDArray[np.int64],
        replace: float,
        *,
        ordered: bool = True,
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


def shrink_factor(excess: NDArray[np.float64], counts: NDArray[np.int64], moved: float) -> float:
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
    counts: NDArray[np.int64],
    quotas: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
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
