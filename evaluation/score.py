"""Scores of a synthetic table against the truth, with what they should be compared to; NOT private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluation.aemc import Solver
from evaluation.mgd import MGDResult, mgd
from evaluation.targets import Targets
from evaluation.tvd import tvd
from mechanisms.public.errors import UserError
from mechanisms.public.schema import Schema
from mechanisms.public.table import CodedTable

Progress = Callable[[int, int, str], None]

BANNER = "These numbers were computed from raw rows. They are NOT private: do not publish them."


@dataclass(frozen=True)
class ScoreSpec:
    """What to score.

    Attributes:
        targets: the marginals of MGD.
        alpha: MGD's cost of adding or removing one record.
        solver: of MGD's marginals: auto, exact, flow or lp.
    """

    targets: Targets
    alpha: float = 1.0
    solver: Solver = "auto"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < float("inf"):
            raise UserError(f"got {self.alpha}", where="evaluation.alpha", fix="a number above 0")


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
    real: CodedTable, synthetic: CodedTable, schema: Schema, spec: ScoreSpec, *, progress: Progress | None = None
) -> Scorecard:
    """Score two tables over the schema's domain.

    Cost: a pass over the rows of both tables per batch of marginals.
    """
    result = mgd(real, synthetic, schema, spec.targets, alpha=spec.alpha, solver=spec.solver, progress=progress)
    distances = tvd(real, synthetic, progress=progress)
    return Scorecard(result, distances, {"real": real.rows, "synthetic": synthetic.rows})
