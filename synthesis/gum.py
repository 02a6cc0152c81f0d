"""GUM, the Gradually Update Method: rows are changed step by step until their marginals are the targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable
from synthesis.consistency import Target, Targets
from synthesis.descent import descend
from synthesis.gum_kernels import cell_counts, cell_keys, copy_codes, pick_rows, set_codes, shuffle, sort_by_part
from synthesis.independent import independent_rows
from synthesis.rounding import systematic

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class GumSpec:
    """Settings of GUM (paper 002, Appendix A).

    Attributes:
        iterations: passes over all marginals.
        alpha: α₀, the largest relative growth of a cell in one update.
        decay, step: step decay α = α₀ · decay^⌊t / step⌋.
        replace: share of the moved rows that are replaced (only the marginal's attributes change) in the first pass;
            the rest are duplicates of rows that are in the cell. It falls linearly to 0 in the last pass.
        tolerance: stop when a whole pass moves less than this share of the rows per marginal.
        descents: closing sweeps in which single codes change where that lowers the error of all marginals together
            (not in the paper; 0: Appendix A alone).
    """

    iterations: int = 60
    alpha: float = 0.5
    decay: float = 0.84
    step: int = 2
    replace: float = 0.5
    tolerance: float = 1e-5
    descents: int = 4

    def __post_init__(self) -> None:
        checks = [
            ("iterations", self.iterations >= 1, "a whole number of at least 1"),
            ("alpha", 0 < self.alpha < math.inf, "a number above 0"),
            ("decay", 0 < self.decay <= 1, "a number in (0, 1]"),
            ("step", self.step >= 1, "a whole number of at least 1"),
            ("replace", 0 <= self.replace <= 1, "a number in [0, 1]"),
            ("descents", self.descents >= 0, "a whole number of at least 0"),
            ("tolerance", 0 <= self.tolerance < math.inf, "a number of at least 0"),
        ]
        for name, fits, allowed in checks:
            if not fits:
                raise UserError(f"got {getattr(self, name)}", where=f"synthesis.{name}", fix=allowed)


def gum_rows(
    targets: Targets, spec: GumSpec, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
) -> CodedTable:
    """`rows` rows whose marginals are close to the targets.

    They start from the one-way marginals, independent of each other; each update moves one marginal a part of the way
    to its target (Appendix A.2), and at last `descend` brings all marginals closer together. Cost of an update: rows ·
    (attributes + 2) + rows moved · columns; memory: the table three times and 40 bytes a row at most.
    """
    table = independent_rows(targets, rows=rows, rng=rng)
    joint = [t for t in targets.marginals if len(t.clique) > 1 or _sole(t, targets)]
    if rows == 0 or not joint or targets.total <= 0:
        return table
    work = _Work.start(table, rng)
    for t in range(spec.iterations):
        alpha = spec.alpha * spec.decay ** (t // spec.step)
        replace = spec.replace * (1 - t / max(spec.iterations - 1, 1))
        moved = sum(work.update(joint[i], alpha=alpha, replace=replace) for i in rng.permutation(len(joint)))
        if progress is not None:
            progress(t + 1, spec.iterations, f"{moved / len(joint) / rows:.2e} of the rows moved")
        if moved <= spec.tolerance * rows * len(joint):
            break
    made, changed = descend(CodedTable(table.domain, tuple(work.columns)), joint, sweeps=spec.descents, rng=rng)
    if progress is not None and changed:
        progress(spec.iterations, spec.iterations, f"{changed[-1]} codes changed in the last descent")
    return made


def _sole(target: Target, targets: Targets) -> bool:
    """A one-way target takes part where larger ones could pull its attribute away."""
    return any(target.clique[0] in t.clique for t in targets.marginals if len(t.clique) > 1)


@dataclass(eq=False)
class _Work:
    """The rows under change, and buffers that every update uses again."""

    domain: Domain
    columns: list[NDArray[np.unsignedinteger]]
    keys: NDArray[np.int32]
    freed: NDArray[np.int32]
    donors: NDArray[np.int32]
    state: NDArray[np.uint64]
    rng: np.random.Generator

    @classmethod
    def start(cls, table: CodedTable, rng: np.random.Generator) -> _Work:
        state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        keys, freed, donors = (np.empty(table.rows, np.int32) for _ in range(3))
        return cls(table.domain, [c.copy() for c in table.columns], keys, freed, donors, state, rng)

    def update(self, target: Target, *, alpha: float, replace: float) -> int:
        """One gradual update of one marginal; returns how many rows moved (Appendix A.2).

        A cell below its target grows by min(n_t − n_s, α n_s); an empty cell, which could never grow so, by α n_t.
        Cells above give rows in proportion to their excess, so that the number of rows stays. (The paper takes
        min(n_s − n_t, β n_s): on real tables that left the two-way marginals a third further off.)
        """
        rows, axes = len(self.keys), self.domain.axes(target.clique)
        for place, axis in enumerate(axes):
            cell_keys(self.columns[axis], self.domain.attributes[axis].size, place == 0, self.keys)
        counts = np.empty(target.values.size, np.int64)
        cell_counts(self.keys, counts)
        gap = target.values.ravel() * (rows / target.values.sum()) - counts
        growth = np.where(gap > 0, np.minimum(gap, alpha * np.where(counts > 0, counts, np.maximum(gap, 0))), 0.0)
        moved = int(growth.sum() + self.rng.random())
        if moved == 0:
            return 0
        gain = systematic(growth, moved, self.rng)
        loss = np.minimum(systematic(np.maximum(-gap, 0.0), moved, self.rng), counts)
        gain = self._balanced(gain, int(loss.sum()))
        return self._move(target, counts, gain, loss, replace)

    def _balanced(self, gain: NDArray[np.int64], moved: int) -> NDArray[np.int64]:
        return gain if gain.sum() == moved else systematic(gain.astype(np.float64), moved, self.rng)

    def _move(
        self,
        target: Target,
        counts: NDArray[np.int64],
        gain: NDArray[np.int64],
        loss: NDArray[np.int64],
        replace: float,
    ) -> int:
        """Free `loss` rows of each cell and give each cell its `gain`, by duplication and by replacement."""
        moved = int(loss.sum())
        wanted = (gain * (1 - replace) + self.rng.random(gain.size)).astype(np.int64)
        copies = np.where(counts > 0, np.minimum(wanted, gain), 0)
        ends = np.cumsum(copies)
        starts, distinct = ends - copies, np.minimum(copies, counts)
        freed, donors = self.freed[:moved], self.donors[: int(copies.sum())]
        pick_rows(self.keys, counts, loss.copy(), distinct.copy(), starts.copy(), freed, donors, self.state)
        for cell in np.flatnonzero(copies > distinct):  # more copies than rows: rows serve again (only for α > 1)
            first = donors[starts[cell] : starts[cell] + distinct[cell]]
            donors[starts[cell] : ends[cell]] = np.resize(first, copies[cell])
        shuffle(freed, self.state)
        to, rest = freed[: len(donors)], freed[len(donors) :]
        cells = np.repeat(np.arange(gain.size, dtype=np.int32), gain - copies)
        for column in self.columns:
            copy_codes(column, to, donors)
        if len(target.clique) > 1:
            rest, cells = self._aligned(target, rest, cells)
        stride = 1
        for name in reversed(target.clique):
            axis, size = self.domain.index(name), self.domain[name].size
            set_codes(self.columns[axis], rest, cells, stride, size)
            stride *= size
        return moved

    def _aligned(
        self, target: Target, rows: NDArray[np.int32], cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows and the cells they go to, both ordered by one attribute (drawn anew each time).

        Most rows then keep that attribute's code, so that a replacement disturbs fewer other marginals: the sense of
        min-cost flow (Appendix A.1) without its cost.
        """
        place = int(self.rng.integers(len(target.clique)))
        size, stride = target.values.shape[place], math.prod(target.values.shape[place + 1 :])
        ordered, sorted_cells = np.empty_like(rows), np.empty_like(cells)
        sort_by_part(rows, self.keys[rows], stride, size, ordered)
        sort_by_part(cells, cells, stride, size, sorted_cells)
        return ordered, sorted_cells
