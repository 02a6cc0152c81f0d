"""Settings of GUM and of its strawman, min-cost flow (Li et al. 2021b, Appendix A)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.public.errors import UserError, did_you_mean
from synthesis.consistency.nonnegative import check_nonnegative

#: How α falls from pass to pass, how cells above their target lose rows, and how the work is laid out.
CHOICES: dict[str, tuple[str, ...]] = {
    "schedule": ("step", "exponential", "linear", "sqrt"),
    "losses": ("excess", "beta"),
    "start": ("oneway", "tree"),
    "lone": ("append", "update"),
    "groups": ("separate", "together"),
}


@dataclass(frozen=True)
class GumSpec:
    """Settings of GUM (Li et al. 2021b, Appendix A).

    Attributes:
        iterations: passes over all marginals.
        alpha: α₀, the largest relative growth of a cell in one update.
        schedule: how α falls: step (α₀ · decay^⌊t / step⌋), exponential (α₀ · e^(−rate · t)), linear
            (α₀ / (1 + rate · t)) or sqrt (α₀ / √(1 + rate · t)).
        decay, step, rate: what the schedules ask for.
        replace: share of the moved rows that are replaced (only the marginal's attributes change) in the first pass;
            the rest are duplicates of rows that are in the cell. It falls linearly to 0 in the last pass.
        losses: how the cells above their target give rows: excess (in proportion to their excess) or beta (the
            paper's min(n_s − n_t, β n_s), with the β that keeps the number of rows).
        start: the first rows: oneway (independent columns) or tree (the two-way marginals of a tree, by mutual
            information).
        lone: attributes in a single marginal are appended at the end (append), or updated like all others (update).
        groups: parts of the table without a common marginal are made apart and joined (separate), or together.
        nonnegative: how negative cells are taken out of the targets; see `NONNEGATIVE`.
        tolerance: stop when a whole pass moves less than this share of the rows per marginal.
        stall: stop when the mean error has fallen by less than this share over the last ten passes.
        descents: closing sweeps in which single codes change where that lowers the error of all marginals together
            (not in the paper; 0: Appendix A alone).
    """

    max_model_cells: ClassVar[None] = None  # it fits no graphical model
    iterations: int = 20
    alpha: float = 0.5
    schedule: str = "step"
    decay: float = 0.6
    step: int = 2
    rate: float = 0.1
    replace: float = 0.5
    losses: str = "excess"
    start: str = "tree"
    lone: str = "append"
    groups: str = "separate"
    nonnegative: str = "norm_sub"
    tolerance: float = 1e-5
    stall: float = 0.01
    descents: int = 4

    def __post_init__(self) -> None:
        checks = [
            ("iterations", self.iterations >= 1, "a whole number of at least 1"),
            ("alpha", 0 < self.alpha < math.inf, "a number above 0"),
            ("decay", 0 < self.decay <= 1, "a number in (0, 1]"),
            ("step", self.step >= 1, "a whole number of at least 1"),
            ("rate", 0 <= self.rate < math.inf, "a number of at least 0"),
            ("replace", 0 <= self.replace <= 1, "a number in [0, 1]"),
            ("descents", self.descents >= 0, "a whole number of at least 0"),
            ("tolerance", 0 <= self.tolerance < math.inf, "a number of at least 0"),
            ("stall", 0 <= self.stall < 1, "a number in [0, 1)"),
        ]
        _check(self, checks)

    def growth(self, t: int) -> float:
        """α in pass t = 0, 1, …"""
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
        return self.replace * (1 - t / max(self.iterations - 1, 1))


@dataclass(frozen=True)
class McfSpec:
    """Settings of min-cost flow (Appendix A.1): every marginal in turn is met exactly, by the fewest changes of codes.

    Attributes:
        iterations: passes over all marginals.
        start, lone, groups, nonnegative, tolerance, stall: as in `GumSpec`.
    """

    max_model_cells: ClassVar[None] = None  # it fits no graphical model
    iterations: int = 20
    start: str = "oneway"
    lone: str = "append"
    groups: str = "separate"
    nonnegative: str = "norm_sub"
    tolerance: float = 1e-5
    stall: float = 0.01

    def __post_init__(self) -> None:
        checks = [
            ("iterations", self.iterations >= 1, "a whole number of at least 1"),
            ("tolerance", 0 <= self.tolerance < math.inf, "a number of at least 0"),
            ("stall", 0 <= self.stall < 1, "a number in [0, 1)"),
        ]
        _check(self, checks)


def _check(spec: GumSpec | McfSpec, numbers: list[tuple[str, bool, str]]) -> None:
    for name, fits, allowed in numbers:
        if not fits:
            raise UserError(f"got {getattr(spec, name)}", where=f"synthesis.{name}", fix=allowed)
    for name, choices in CHOICES.items():
        value = getattr(spec, name, choices[0])
        if value not in choices:
            fix = f"{did_you_mean(value, choices)} one of: {', '.join(choices)}".strip()
            raise UserError(f"got {value!r}", where=f"synthesis.{name}", fix=fix)
    check_nonnegative(spec.nonnegative)
