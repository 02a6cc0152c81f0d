"""The parameters of N-CRiPT, with the defaults of the source (N-CRiPT 2021, sections 2.3.2 and 3.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.public.settings import BoundedSettings, setting

#: Sums that differ by more than this are biased (2.2.1).
BIAS_CUTOFF = 500


@dataclass(frozen=True)
class NcriptSpec(BoundedSettings):
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

    settings_group: ClassVar[str] = "evaluation.ncript"
    weights: tuple[float, ...] = setting((0.3, 0.15, 0.15, 0.15, 0.15), least=0, parts=("JSD", "JD", "HH", "HC", "VC"))
    frequency_threshold: float = setting(0.05, least=0, most=1)
    bias_penalty: float = setting(0.1, least=0)
    bias_cutoff: float = setting(BIAS_CUTOFF, least=0)
    delta: float = setting(0.2, least=0, most=1)
    k: float = setting(0.1, least=0, most=1)
    h: float = setting(0.02, least=0)
    strong: float = setting(0.9, least=0, most=1)
    jaccard_of_significant: bool = False
    places: tuple[str, ...] = ()
