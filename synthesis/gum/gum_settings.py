"""The synthesizer `gum`: the Gradually Update Method (Li et al. 2021b, Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.convergence import Synthesized
from synthesis.gum.descent import descend
from synthesis.gum.gradual_update import UpdateWork
from synthesis.gum.passes import Passes
from synthesis.impossible import Zeros
from synthesis.setting_checks import AT_LEAST_NONE, AT_LEAST_ONE, NOT_NEGATIVE, check_numbers, check_words

#: How α falls from pass to pass, and how cells above their target lose rows.
WORDS = {
    "schedule": ("step", "exponential", "linear", "sqrt"),
    "losses": ("excess", "beta"),
    "empty": ("grow", "stay"),
    "matched": ("ordered", "any"),
}


@dataclass(frozen=True)
class GumSpec(Passes):
    """Settings of GUM (Li et al. 2021b, Appendix A).

    Attributes:
        iterations, start, lone, groups, nonnegative, tolerance, stall: as in `Passes`.
        alpha: α₀, the largest relative growth of a cell in one update.
        schedule: how α falls: step (α₀ · decay^⌊t / step⌋), exponential (α₀ · e^(−rate · t)), linear
            (α₀ / (1 + rate · t)) or sqrt (α₀ / √(1 + rate · t)).
        decay, step, rate: what the schedules ask for.
        replace: share of the moved rows that are replaced (only the marginal's attributes change) in the first pass;
            the rest are duplicates of rows that are in the cell. It goes linearly to `replace_last` in the last pass.
        losses: how the cells above their target give rows: excess (in proportion to their excess) or beta (the
            paper's min(n_s − n_t, β n_s), with the β that keeps the number of rows).
        empty: an empty cell below its target grows by α n_t (grow), or not at all, as min(n_t − n_s, α n_s) says
            (stay).
        matched: replaced rows go to their cells in the order of one attribute, so that most keep its code (ordered), or
            any row goes to any cell (any).
        public: the file of a table whose rows are the first ones, in the place of `start`; it is declared public. Who
            reads it makes a `StartedGum`; empty: none.
        descents: closing sweeps in which single codes change where that lowers the error of all marginals together
            (not in the paper; 0: none).
    """

    start: str = "tree"
    public: str = ""
    alpha: float = 0.5
    schedule: str = "step"
    decay: float = 0.6
    step: int = 2
    rate: float = 0.1
    replace: float = 0.5
    replace_last: float = 0.0
    losses: str = "excess"
    empty: str = "grow"
    matched: str = "ordered"
    descents: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(
            self,
            ("alpha", 0 < self.alpha < math.inf, "a number above 0"),
            ("decay", 0 < self.decay <= 1, "a number in (0, 1]"),
            ("step", self.step >= 1, AT_LEAST_ONE),
            ("rate", 0 <= self.rate < math.inf, NOT_NEGATIVE),
            ("replace", 0 <= self.replace <= 1, "a number in [0, 1]"),
            ("replace_last", 0 <= self.replace_last <= 1, "a number in [0, 1]"),
            ("descents", self.descents >= 0, AT_LEAST_NONE),
        )
        check_words(self, WORDS)

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

    def follow(
        self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """Rows whose marginals are close to the targets.

        Raises:
            UserError: a public table is named, and its rows were not read.
        """
        if self.public:
            fix = "leave it out here; run, synth and a release's sample take it"
            raise UserError("a public table is no start of this", where="synthesis.public", fix=fix)
        return super().follow(targets, rows=rows, rng=rng, progress=progress)

    def update(self, work: UpdateWork, target: Target, t: int) -> tuple[int, float]:
        """A part of the way."""
        return work.update(
            target,
            alpha=self.growth(t),
            replace=self.replaced(t),
            losses=self.losses,
            empty=self.empty,
            matched=self.matched,
        )

    def close(
        self, table: CodedTable, targets: Sequence[Target], *, rng: np.random.Generator, zeros: Zeros
    ) -> tuple[CodedTable, str]:
        """Sweeps in which single codes change."""
        made, changed = descend(table, list(targets), sweeps=self.descents, rng=rng, zeros=zeros)
        return made, f"{changed[-1]} codes changed in the last descent" if changed else ""
