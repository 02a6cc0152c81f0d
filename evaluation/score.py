"""Scores of a synthetic table against the truth, with what they should be compared to; NOT private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluation.mgd import MGDResult, default_targets, mgd
from evaluation.tvd import tvd
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable

Progress = Callable[[int, int, str], None]

BANNER = "These numbers were computed from raw rows. They are NOT private: do not publish them."


@dataclass(frozen=True)
class ScoreSpec:
    """What to score.

    Attributes:
        max_marginals: at most so many marginals of each order enter MGD.
        delta: MGD's tolerance Δ, in records.
        seed: of the sample of marginals.
    """

    max_marginals: int = 300
    delta: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_marginals < 1:
            fix = "a whole number of at least 1"
            raise UserError(f"got {self.max_marginals}", where="evaluation.max_marginals", fix=fix)
        if not 0 <= self.delta < float("inf"):
            raise UserError(f"got {self.delta}", where="evaluation.delta", fix="a number of records of at least 0")
        if self.seed < 0:
            raise UserError(f"got {self.seed}", where="evaluation.seed", fix="a whole number of at least 0")


@dataclass(frozen=True)
class Scorecard:
    """All scores of one pair of tables.

    Attributes:
        mgd: the headline score (0 is perfect).
        tvd: mean and largest total variation distance per family of marginals, in [0, 1].
        rows: records of the real and of the synthetic table.
    """

    mgd: MGDResult
    tvd: dict[str, Any]
    rows: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """JSON values under a banner."""
        return {"not_private": BANNER, "rows": self.rows, "mgd": self.mgd.to_json(), "tvd": self.tvd}


def score_tables(
    real: CodedTable, synthetic: CodedTable, spec: ScoreSpec, *, progress: Progress | None = None
) -> Scorecard:
    """Score two tables over the same domain.

    Cost: a pass over the rows of both tables per batch of marginals.
    """
    if real.domain != synthetic.domain:
        raise ValueError("the two tables have different domains")
    targets = default_targets(real.domain, max_marginals=spec.max_marginals, seed=spec.seed)
    result = mgd(real, synthetic, targets, delta=spec.delta, progress=progress)
    distances = tvd(real, synthetic, progress=progress)
    return Scorecard(result, distances, {"real": real.rows, "synthetic": synthetic.rows})
