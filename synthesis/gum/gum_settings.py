"""The synthesizer `gum`: the Gradually Update Method (Li et al. 2021b, Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.gum.descent import descend
from synthesis.gum.gradual_update import UpdateWork
from synthesis.gum.passes import STARTS, Passes
from synthesis.impossible import Zeros


@dataclass(frozen=True)
class GumSpec(Passes):
    """Settings of GUM (Li et al. 2021b, Appendix A).

    Attributes:
        iterations, start, lone, rare, floor, stall: as in `Passes`.
        alpha: α₀, the largest relative growth of a cell in one update.
        schedule: how α falls: step (α₀ · decay^⌊t / step⌋), exponential (α₀ · e^(−rate · t)), linear
            (α₀ / (1 + rate · t)) or sqrt (α₀ / √(1 + rate · t)).
        decay, step, rate: what the schedules ask for.
        replace: share of the moved rows that are replaced (only the marginal's attributes change) in the first pass;
            the rest are duplicates of rows that are in the cell. It goes linearly to `replace_last` in the last pass.
        updates: ours, or paper: as the formulas of Appendix A.2 say (`UpdateWork.update`).
        public: the file of a table whose rows are the first ones, in the place of `start`; it is declared public. Who
            reads it makes a `StartedGum`; empty: none.
        descents: closing sweeps in which single codes change where that lowers the error of all marginals together
            (not in the paper; 0: none).
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
