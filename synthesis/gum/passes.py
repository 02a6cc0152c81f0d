"""Passes over all marginals, part by part of the table: rows are changed until their marginals are the targets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.settings import setting
from synthesis.by_targets import ByTargets
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.convergence import Record, Synthesized, convergence
from synthesis.gum.gradual_update import UpdateWork
from synthesis.gum.layout import Layout, draw_lone, lay_out, tree_columns
from synthesis.impossible import Zeros, mended
from synthesis.independent import independent_rows

STARTS = ("oneway", "tree")
#: Passes end where a whole one moves less than this share of the rows per marginal.
SETTLED = 1e-5


@dataclass(frozen=True)
class Passes(ByTargets):
    """Settings of methods that update one marginal after the other.

    Attributes:
        iterations: passes over all marginals.
        start: the first rows: oneway (independent columns) or tree (the two-way marginals of a tree, by mutual
            information).
        lone: attributes in a single marginal are appended at the end: again and again, until none is left, so that a
            tree is drawn whole (append); or those that are so at first (once, as Appendix A.3 says).
        rare, floor: values with a noisy count below max(rare · σ, floor records) get no rows where all of them together
            are below that too (Li et al. 2021b, section 5.3); 0 and 0: no such rule. See `rare_zeros`.
        stall: stop when the mean error has fallen by less than this share over the last ten passes.
    """

    iterations: int = setting(20, least=1)
    start: str = setting("oneway", choices=STARTS)
    lone: str = setting("append", choices=("append", "once"))
    rare: float = setting(0.0, least=0)
    floor: float = setting(0.0, least=0)
    stall: float = setting(0.01, least=0, below=1)

    @abstractmethod
    def update(self, work: UpdateWork, target: Target, t: int) -> tuple[int, float]:
        """Move one marginal towards its target in pass t = 0, 1, …; how many rows moved, and how far it was off."""

    def close(
        self, table: CodedTable, targets: Sequence[Target], *, rng: np.random.Generator, zeros: Zeros
    ) -> tuple[CodedTable, str]:
        """What is done to a part of the table after all passes, with a line for the progress; nothing here."""
        return table, ""

    def first(self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator) -> CodedTable:
        """The rows before any update: independent columns; those of a part may start from a tree in their place."""
        return independent_rows(targets, rows=rows, rng=rng)

    def layout(self, targets: ConsistentTargets) -> Layout:
        """Which parts are updated apart, and what is appended."""
        return lay_out(targets, again=self.lone == "append")

    def follow(
        self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """`rows` rows whose marginals are close to the targets.

        Each connected part of the table starts from one-way marginals or a tree; each update moves one marginal a part
        of the way to its target (Appendix A.2; min-cost flow: all the way), and at last `close` brings all of the
        part's marginals closer together. Then the parts are joined and lone attributes are appended (Appendix A.3). No
        row has one of `targets.zeros`. Cost of an update: rows · (attributes + 2) + rows moved · columns of the part;
        memory: the table three times and 60 bytes a row at most.

        Raises:
            UserError: the structural zeros leave no row possible.
        """
        table = self.first(targets, rows=rows, rng=rng)
        if rows == 0 or targets.total <= 0:
            return Synthesized(mended(table, targets.zeros, rng), convergence([], table, ()))
        layout = self.layout(targets)
        columns = {a.name: c for a, c in zip(targets.domain.attributes, table.columns, strict=True)}
        records = []
        for names, own in layout.groups:
            start = {n: columns[n] for n in names}
            if self.start == "tree":
                start = tree_columns(targets, names, own, rows=rows, rng=rng)
            work = UpdateWork.start(CodedTable(targets.domain.project(names), tuple(start[n] for n in names)), rng)
            zeros = [z for z in targets.zeros if set(z[0]) <= set(names)]
            records.append(self._passes(work, own, zeros, progress))
            changed, note = self.close(CodedTable(work.domain, tuple(work.columns)), own, rng=rng, zeros=zeros)
            if progress is not None and note:
                progress(self.iterations, self.iterations, note)
            columns.update(zip(names, changed.columns, strict=True))
        for appended in layout.appended:
            draw_lone(targets.domain, columns, appended, rows=rows, rng=rng)
        table = mended(CodedTable(table.domain, tuple(columns[n] for n in table.domain.names)), targets.zeros, rng)
        return Synthesized(table, convergence(records, table, targets.marginals))

    def _passes(self, work: UpdateWork, own: Sequence[Target], zeros: Zeros, progress: Progress | None) -> Record:
        """All passes over the marginals of one part, and their record."""
        record, rows = Record(tuple(t.clique for t in own), []), len(work.keys)
        for t in range(self.iterations):
            for clique, cells in zeros:
                work.banish(clique, cells)
            moved, errors = 0, np.zeros(len(own))
            for i in work.rng.permutation(len(own)):
                more, errors[i] = self.update(work, own[i], t)
                moved += more
            record.passes.append(errors)
            if progress is not None:
                status = f"{moved / len(own) / rows:.2e} of the rows moved, error {errors.mean():.4f}"
                progress(t + 1, self.iterations, status)
            if moved <= SETTLED * rows * len(own):
                record.reason = "tolerance"
                break
            if record.stalled(self.stall):
                record.reason = "stall"
                break
        return record
