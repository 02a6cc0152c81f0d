"""The synthesizer `gum`: the Gradually Update Method (Li et al. 2021b, Appendix A), from a public table's rows too."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.settings import setting
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.consistency.merged_values import Groups, merged_domain
from synthesis.contract import ByTargets
from synthesis.convergence import Record, Synthesized, convergence
from synthesis.gum.gradual_update import UpdateWork, descend
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


@dataclass(frozen=True)
class GumSpec(Passes):
    """Settings of GUM (Li et al. 2021b, Appendix A); conf/synthesis/gum.yaml says what each is.

    Who reads the table of `public` makes a `StartedGum`.
    """

    start: str = setting("tree", choices=STARTS)
    public: str = ""
    alpha: float = setting(0.5, above=0)
    schedule: str = setting("step", choices=("step", "exponential", "linear", "sqrt"))
    decay: float = setting(0.6, above=0, most=1)
    step: int = setting(2, least=1)
    rate: float = setting(0.1, least=0)
    replace: float = setting(0.5, least=0, most=1)
    replace_last: float = setting(0.0, least=0, most=1)
    updates: str = setting("ours", choices=("ours", "paper"))
    descents: int = setting(4, least=0)

    def growth(self, t: int) -> float:
        """The step α of pass t, from 0 on."""
        match self.schedule:
            case "exponential":
                return self.alpha * math.exp(-self.rate * t)
            case "linear":
                return self.alpha / (1 + self.rate * t)
            case "sqrt":
                return self.alpha / math.sqrt(1 + self.rate * t)
        return float(self.alpha * self.decay ** (t // self.step))

    def replaced(self, t: int) -> float:
        """The share of moved rows that are replaced in pass t."""
        part = t / max(self.iterations - 1, 1)
        return self.replace * (1 - part) + self.replace_last * part

    def first(self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator) -> CodedTable:
        """As of `Passes`.

        Raises:
            UserError: a public table is named, and its rows were not read.
        """
        if self.public:
            fix = "leave it out here; run, synth and a release's sample take it"
            raise UserError("a public table is no start of this", where="synthesis.public", fix=fix)
        return super().first(targets, rows=rows, rng=rng)

    def update(self, work: UpdateWork, target: Target, t: int) -> tuple[int, float]:
        """A part of the way."""
        return work.update(target, alpha=self.growth(t), replace=self.replaced(t), as_paper=self.updates == "paper")

    def close(
        self, table: CodedTable, targets: Sequence[Target], *, rng: np.random.Generator, zeros: Zeros
    ) -> tuple[CodedTable, str]:
        """Sweeps in which single codes change."""
        descended, changed = descend(table, list(targets), sweeps=self.descents, rng=rng, zeros=zeros)
        return descended, f"{changed[-1]} codes changed in the last descent" if changed else ""


@dataclass(frozen=True, eq=False)
class StartedGum(GumSpec):
    """GUM whose first rows are those of a public table; all columns are changed together until the answers hold.

    Guarantee: post-processing, where the rows are public: nothing protects them, and they stand in what is made.
    Attributes:
        public_rows: the public rows, over the domain of what is synthesized.
    """

    public_rows: CodedTable | None = None

    def over(self, groups: Groups) -> StartedGum:
        """With the public rows over merged values."""
        assert self.public_rows is not None
        domain = merged_domain(self.public_rows.domain, groups)
        columns = [
            groups[a.name][codes].astype(code_dtype(a.size)) if a.name in groups else codes
            for a, codes in zip(domain.attributes, self.public_rows.columns, strict=True)
        ]
        return replace(self, public_rows=CodedTable(domain, tuple(columns)))

    def first(self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator) -> CodedTable:
        """The public rows, each as often as any other, up to one; in no order."""
        assert self.public_rows is not None
        held = self.public_rows.rows
        places = np.concatenate([np.tile(np.arange(held), rows // held), rng.permutation(held)[: rows % held]])
        places = rng.permutation(places)
        return CodedTable(targets.domain, tuple(np.asarray(c)[places] for c in self.public_rows.columns))

    def layout(self, targets: ConsistentTargets) -> Layout:
        """One part with all columns and all marginals: nothing is drawn anew."""
        return Layout(((targets.domain.names, tuple(targets.marginals)),), ())
