"""The synthesizer `gum`: the Gradually Update Method (Li et al. 2021b, Appendix A), from a public table's rows too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.consistency.merged_values import Groups, merged_domain
from synthesis.gum.descent import descend
from synthesis.gum.gradual_update import UpdateWork
from synthesis.gum.layout import Layout
from synthesis.gum.passes import STARTS, Passes
from synthesis.impossible import Zeros


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
