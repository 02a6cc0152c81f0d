"""The parameters of N-CRiPT, with the defaults of the source (N-CRiPT 2021, sections 2.3.2 and 3.1.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.public.errors import UserError

#: Sums that differ by more than this are biased (2.2.1).
BIAS_CUTOFF = 500


@dataclass(frozen=True)
class NcriptSpec:
    """The parameters, with the defaults of 3.1.2.

    Attributes:
        weights: ω of JSD, JD, HH, HC and VC (2.3.2); the bias penalty has none.
        frequency_threshold: FT: smaller shares of a row are not significant.
        bias_penalty: BP (the formula section 2.2.1 prints 0.2).
        bias_cutoff: sums of a row that are farther apart are biased.
        delta, k, h: of the heavy hitters: Δ, their level as a share of the true row's sum (rounded down), and h.
        strong: correlations above it are strong.
        jaccard_of_significant: whether the Jaccard distance reads the counts left by the frequency threshold.
        places: segments whose temporal scores are told (2.4.2), by their labels; empty for the worst ones.
    """

    weights: tuple[float, float, float, float, float] = (0.3, 0.15, 0.15, 0.15, 0.15)
    frequency_threshold: float = 0.05
    bias_penalty: float = 0.1
    bias_cutoff: float = BIAS_CUTOFF
    delta: float = 0.2
    k: float = 0.1
    h: float = 0.02
    strong: float = 0.9
    jaccard_of_significant: bool = False
    places: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.weights) != 5 or any(not 0 <= w < math.inf for w in self.weights):
            raise UserError(f"got {self.weights}", where="ncript.weights", fix="five numbers of at least 0")
        for name in ("frequency_threshold", "delta", "k", "strong"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"got {getattr(self, name)}", where=f"ncript.{name}", fix="a number from 0 to 1")
        for name in ("bias_penalty", "bias_cutoff", "h"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"got {getattr(self, name)}", where=f"ncript.{name}", fix="a number of at least 0")
