"""GUM, the Gradually Update Method: rows are changed step by step until their marginals are the targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from synthesis.consistency.agree import Target, Targets
from synthesis.convergence import Made, Record, convergence
from synthesis.gum.descent import descend
from synthesis.gum.gum_kernels import cell_counts, cell_keys, copy_codes, pick_rows, set_codes, shuffle, sort_by_part
from synthesis.gum.gum_settings import GumSpec, McfSpec
from synthesis.gum.layout import Columns, draw_lone, lay_out, tree_columns
from synthesis.gum.mcf import fewest_changes
from synthesis.impossible import Zeros, mended
from synthesis.independent import independent_rows
from synthesis.rounding import systematic

Progress = Callable[[int, int, str], None]


Update = Callable[["_Work", Target, int], tuple[int, float]]


def gum_rows(
    targets: Targets,
    spec: GumSpec | McfSpec,
    *,
    rows: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Made:
    """`rows` rows whose marginals are close to the targets.

    Each connected part of the table starts from one-way marginals or a tree; each update moves one marginal a part of
    the way to its target (Appendix A.2; min-cost flow: all the way), and at last `descend` brings all of the part's
    marginals closer together. Then the parts are joined and lone attributes are appended (Appendix A.3). No row has
    one of `targets.zeros`. Cost of an update: rows · (attributes + 2) + rows moved · columns of the part; memory: the
    table three times and 60 bytes a row at most.

    Raises:
        UserError: the structural zeros leave no row possible.
    """
    table = independent_rows(targets, rows=rows, rng=rng)
    if rows == 0 or targets.total <= 0:
        return Made(mended(table, targets.zeros, rng), convergence([], table, ()))
    layout = lay_out(targets, append=spec.lone == "append", separate=spec.groups == "separate")
    columns = {a.name: c for a, c in zip(targets.domain.attributes, table.columns, strict=True)}
    records = []
    for names, own in layout.groups:
        made, record = _Group(targets, names, own, spec).run(columns, rng, progress)
        columns.update(made)
        records.append(record)
    for appended in layout.appended:
        draw_lone(targets.domain, columns, appended, rows=rows, rng=rng)
    table = mended(CodedTable(table.domain, tuple(columns[n] for n in table.domain.names)), targets.zeros, rng)
    return Made(table, convergence(records, table, targets.marginals))


@dataclass(frozen=True, eq=False)
class _Group:
    """A connected part of the table: its attributes and the marginals inside."""

    targets: Targets
    names: Clique
    own: tuple[Target, ...]
    spec: GumSpec | McfSpec

    def run(self, columns: Columns, rng: np.random.Generator, progress: Progress | None) -> tuple[Columns, Record]:
        """Its columns, updated, and the record."""
        domain = self.targets.domain.project(self.names)
        start = {n: columns[n] for n in self.names}
        if self.spec.start == "tree":
            start = tree_columns(self.targets, self.names, self.own, rows=len(columns[self.names[0]]), rng=rng)
        work = _Work.start(CodedTable(domain, tuple(start[n] for n in self.names)), rng)
        zeros = [z for z in self.targets.zeros if set(z[0]) <= set(self.names)]
        record = self._passes(work, zeros, progress)
        made = CodedTable(domain, tuple(work.columns))
        if isinstance(self.spec, GumSpec):
            made, changed = descend(made, list(self.own), sweeps=self.spec.descents, rng=rng, zeros=zeros)
            if progress is not None and changed:
                last = f"{changed[-1]} codes changed in the last descent"
                progress(self.spec.iterations, self.spec.iterations, last)
        return dict(zip(self.names, made.columns, strict=True)), record

    def _passes(self, work: _Work, zeros: Zeros, progress: Progress | None) -> Record:
        record = Record(tuple(t.clique for t in self.own), [])
        rows, update = len(work.keys), self._update
        for t in range(self.spec.iterations):
            for clique, cells in zeros:
                work.banish(clique, cells)
            moved, errors = 0, np.zeros(len(self.own))
            for i in work.rng.permutation(len(self.own)):
                more, errors[i] = update(work, self.own[i], t)
                moved += more
            record.passes.append(errors)
            if progress is not None:
                what = f"{moved / len(self.own) / rows:.2e} of the rows moved, error {errors.mean():.4f}"
                progress(t + 1, self.spec.iterations, what)
            if moved <= self.spec.tolerance * rows * len(self.own):
                record.reason = "tolerance"
                break
            if record.stalled(self.spec.stall):
                record.reason = "stall"
                break
        return record

    def _update(self, work: _Work, target: Target, t: int) -> tuple[int, float]:
        spec = self.spec
        if isinstance(spec, McfSpec):
            return work.flow(target)
        return work.update(target, alpha=spec.growth(t), replace=spec.replaced(t), losses=spec.losses)


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

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """The rows in each cell of a marginal; `keys` then holds each row's cell."""
        for place, name in enumerate(clique):
            axis = self.domain.index(name)
            cell_keys(self.columns[axis], self.domain.attributes[axis].size, place == 0, self.keys)
        counts = np.empty(self.domain.cells(clique), np.int64)
        cell_counts(self.keys, counts)
        return counts

    def update(self, target: Target, *, alpha: float, replace: float, losses: str = "excess") -> tuple[int, float]:
        """One gradual update of one marginal; how many rows moved, and how far it was off before (Appendix A.2).

        A cell below its target grows by min(n_t − n_s, α n_s); an empty cell, which could never grow so, by α n_t, by
        Replace. Cells above give rows in proportion to their excess, or by the paper's min(n_s − n_t, β n_s) with the
        β that keeps the number of rows.
        """
        rows, counts = len(self.keys), self.counts(target.clique)
        gap = target.values.ravel() * (rows / target.values.sum()) - counts
        off = 0.5 * float(np.abs(gap).sum()) / rows
        growth = np.where(gap > 0, np.minimum(gap, alpha * np.where(counts > 0, counts, np.maximum(gap, 0))), 0.0)
        moved = int(growth.sum() + self.rng.random())
        if moved == 0:
            return 0, off
        gain = systematic(growth, moved, self.rng)
        excess = np.maximum(-gap, 0.0)
        if losses == "beta":
            excess = np.minimum(excess, shrink_factor(excess, counts, float(moved)) * counts)
        loss = np.minimum(systematic(excess, moved, self.rng), counts)
        gain = self._balanced(gain, int(loss.sum()))
        return self._move(target.clique, counts, gain, loss, replace), off

    def flow(self, target: Target) -> tuple[int, float]:
        """Meet a marginal exactly by the fewest changes of codes (min-cost flow, Appendix A.1)."""
        counts = self.counts(target.clique)
        wanted = systematic(target.values.ravel(), len(self.keys), self.rng)
        off = 0.5 * float(np.abs(wanted - counts).sum()) / len(self.keys)
        sources, sinks, amounts = fewest_changes(counts, wanted, target.values.shape)
        moved = int(amounts.sum())
        if moved:
            loss = np.bincount(sources, amounts, minlength=counts.size).astype(np.int64)
            freed, none = self.freed[:moved], np.zeros(counts.size, np.int64)
            pick_rows(self.keys, counts, loss, none, none.copy(), freed, self.donors[:0], self.state)
            shuffle(freed, self.state)
            freed = freed[np.argsort(self.keys[freed], kind="stable")]
            order = np.argsort(sources, kind="stable")
            self._set(target.clique, freed, np.repeat(sinks[order], amounts[order]).astype(np.int32))
        return moved, off

    def banish(self, clique: Clique, impossible: NDArray[np.bool_]) -> int:
        """Move the rows with an impossible combination to possible ones, in proportion to their present rows."""
        counts = self.counts(clique)
        loss = np.where(impossible.ravel(), counts, 0)
        moved = int(loss.sum())
        if moved == 0:
            return 0
        left = np.where(impossible.ravel(), 0, counts)
        weights = (left if left.any() else ~impossible.ravel()).astype(np.float64)
        return self._move(clique, counts, systematic(weights, moved, self.rng), loss, 1.0)

    def _balanced(self, gain: NDArray[np.int64], moved: int) -> NDArray[np.int64]:
        return gain if gain.sum() == moved else systematic(gain.astype(np.float64), moved, self.rng)

    def _move(
        self,
        clique: Clique,
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
        if len(clique) > 1:
            rest, cells = self._aligned(clique, rest, cells)
        self._set(clique, rest, cells)
        return moved

    def _set(self, clique: Clique, rows: NDArray[np.int32], cells: NDArray[np.int32]) -> None:
        """Replace: the rows take the codes of their cells."""
        stride = 1
        for name in reversed(clique):
            axis, size = self.domain.index(name), self.domain[name].size
            set_codes(self.columns[axis], rows, cells, stride, size)
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
        ordered, sorted_cells = np.empty_like(rows), np.empty_like(cells)
        sort_by_part(rows, self.keys[rows], stride, size, ordered)
        sort_by_part(cells, cells, stride, size, sorted_cells)
        return ordered, sorted_cells


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
