"""Scores of a synthetic table against the truth, with what they should be compared to; NOT private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluation.aemc import Solver
from evaluation.deep_dive import DETAILS, DeepDive, dive_worst
from evaluation.mgd import MGDResult, mgd
from evaluation.targets import Targets
from evaluation.tvd import tvd
from mechanisms.public.errors import UserError, did_you_mean
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
        detail: none, all, or a key of DETAILS: which tables of the deep dive are wanted.
        worst: how many marginals to dive into, those with the largest shares of the score.
        top: how many bins and movements of each.
    """

    targets: Targets
    alpha: float = 1.0
    solver: Solver = "auto"
    detail: str = "none"
    worst: int = 3
    top: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.alpha < float("inf"):
            raise UserError(f"got {self.alpha}", where="evaluation.alpha", fix="a number above 0")
        known = ("none", *DETAILS, "all")
        if self.detail not in known:
            fix = f"{did_you_mean(self.detail, known)} one of: {', '.join(known)}".strip()
            raise UserError(f"got {self.detail!r}", where="detail", fix=fix)
        for name in ("worst", "top"):
            if getattr(self, name) < 1:
                raise UserError(f"got {getattr(self, name)}", where=name, fix="a whole number of at least 1")


@dataclass(frozen=True)
class Scorecard:
    """All scores of one pair of tables.

    Attributes:
        mgd: the headline score (0 is perfect).
        tvd: mean and largest total variation distance per family of marginals, in [0, 1].
        rows: records of the real and of the synthetic table.
        dives: deep dives into the worst marginals, where they were asked for.
    """

    mgd: MGDResult
    tvd: dict[str, Any]
    rows: dict[str, int]
    dives: tuple[DeepDive, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON values under a banner."""
        dives = {"deep_dive": [d.to_json() for d in self.dives]} if self.dives else {}
        return {"not_private": BANNER, "rows": self.rows, "mgd": self.mgd.to_json(), "tvd": self.tvd, **dives}


def score_tables(
    real: CodedTable, synthetic: CodedTable, schema: Schema, spec: ScoreSpec, *, progress: Progress | None = None
) -> Scorecard:
    """Score two tables over the schema's domain.

    Cost: a pass over the rows of both tables per batch of marginals.
    """
    result = mgd(real, synthetic, schema, spec.targets, alpha=spec.alpha, solver=spec.solver, progress=progress)
    distances = tvd(real, synthetic, progress=progress)
    dives = []
    if spec.detail not in {"none", "marginals"}:
        dives = dive_worst(result, real, synthetic, schema, worst=spec.worst, top=spec.top)
    return Scorecard(result, distances, {"real": real.rows, "synthetic": synthetic.rows}, tuple(dives))
