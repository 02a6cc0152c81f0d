"""MGD: the weighted mean of the AEMC of many marginals (Li et al. 2021a, Equation 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from evaluation.counts import paired_cells
from evaluation.mgd.aemc import Aemc, Solver, marginal_cost
from evaluation.mgd.levels import at_levels, axes_at, clique_at
from evaluation.mgd.mgd_ends import MgdEnds
from evaluation.mgd.targets import TargetMarginal, Targets
from evaluation.readings.reading import Ends
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema


@dataclass(frozen=True)
class MarginalScore:
    """One target marginal's score.

    Attributes:
        target: the marginal.
        label: its attributes and levels in words.
        cells: how many cells it has.
        aemc: its cost per true record, and which solver found it.
    """

    target: TargetMarginal
    label: str
    cells: int
    aemc: Aemc

    def to_json(self) -> dict[str, Any]:
        """JSON values; the AEMC first."""
        weights = dict(zip(self.target.attributes, map(_shown, self.target.weights), strict=True))
        notes = {"reason": self.aemc.reason, "note": self.aemc.note, "error_bound": self.aemc.error}
        return {
            "attributes": list(self.target.attributes),
            "aemc": self.aemc.value,
            "levels": list(self.target.levels),
            "weights": weights,
            "delta": self.target.delta,
            "weight": self.target.weight,
            "cells": self.cells,
            "solver": self.aemc.solver,
            **{k: v for k, v in notes.items() if v},
        }


@dataclass(frozen=True)
class MGDResult:
    """The score and the AEMC of every marginal; computed from raw rows, NOT private.

    Attributes:
        score: weighted mean of the AEMC of all marginals, 0 is perfect; None where it is not defined.
        marginals: each target marginal with its AEMC.
        alpha: cost of adding or removing one record.
        note: how the marginals were chosen.
        reason: why there is no score.
        ends: what the score may be read against, and its interval.
    """

    score: float | None
    marginals: tuple[MarginalScore, ...]
    alpha: float = 1.0
    note: tuple[str, ...] = ()
    reason: str = ""
    ends: Ends | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON values; the score first."""
        return {
            "score": self.score,
            **({"reason": self.reason} if self.reason else {}),
            "alpha": self.alpha,
            "chosen": list(self.note),
            "marginals": [m.to_json() for m in self.marginals],
        }

    def frame(self) -> pd.DataFrame:
        """One row per marginal, the worst first: marginal, aemc, weight ω, its share of the score, cells, solver."""
        total = math.fsum(m.target.weight for m in self.marginals)
        rows = [
            {
                "marginal": m.label,
                "aemc": m.aemc.value,
                "weight": m.target.weight,
                "share": (m.aemc.value or 0.0) * m.target.weight / (total * self.score) if self.score else 0.0,
                "cells": m.cells,
                "solver": m.aemc.solver,
            }
            for m in self.marginals
        ]
        columns = ["marginal", "aemc", "weight", "share", "cells", "solver"]
        return pd.DataFrame(rows, columns=columns).sort_values("share", ascending=False, ignore_index=True)


def mgd(
    real: AnyTable,
    synthetic: CodedTable,
    schema: Schema,
    targets: Targets,
    *,
    alpha: float = 1.0,
    solver: Solver = "auto",
    progress: Progress | None = None,
) -> MGDResult:
    """MGD of a synthetic table against the truth; 0 is perfect, and there is no upper bound.

    Cost: counting takes a pass over the rows of both tables per batch of marginals; see `marginal_cost` for solving.

    Args:
        real: a table over the schema's domain; may be weighted.
        synthetic: the other table, likewise.
        targets: which marginals, at which levels, with which weights.
        alpha: cost of adding or removing one record (Appendix A.1), above 0.
        solver: auto, exact, flow or lp.
    Raises:
        UserError: tables over another domain than the schema's; a marginal too large for the solver asked for.
    """
    for name, table in (("real", real), ("synthetic", synthetic)):
        if table.domain != schema.domain:
            fix = "encode both tables with this schema"
            raise UserError(f"the {name} table does not have the schema's columns", where="mgd", fix=fix)
    real, synthetic = at_levels(real, schema, targets.marginals), at_levels(synthetic, schema, targets.marginals)
    cliques = [clique_at(schema, t) for t in targets.marginals]
    scored = []
    whole = real.rows and synthetic.rows and not (real.weighted or synthetic.weighted)
    ends = MgdEnds([real.domain.cells(c) for c in cliques]) if whole else None
    counted = paired_cells(real, synthetic, cliques, progress)
    for place, (target, clique, cells) in enumerate(zip(targets.marginals, cliques, counted, strict=True)):
        solve = partial(marginal_cost, axes=axes_at(schema, target), delta=target.delta, alpha=alpha, solver=solver)
        cost = solve(cells)
        if ends is not None:
            ends.add(place, target.weight, cells, cost, solve)
        scored.append(MarginalScore(target, target.label(schema), real.domain.cells(clique), cost))
    reasons = sorted({m.aemc.reason for m in scored if m.aemc.value is None})
    if reasons or not scored:
        return MGDResult(None, tuple(scored), alpha, targets.note, "; ".join(reasons) or "no marginals")
    total = math.fsum(m.target.weight for m in scored)
    score = math.fsum(m.target.weight * (m.aemc.value or 0.0) for m in scored) / total
    return MGDResult(score, tuple(scored), alpha, targets.note, ends=None if ends is None else ends.ends(score))


def _shown(weight: Any) -> Any:
    return "inf" if weight is None else float(weight)
