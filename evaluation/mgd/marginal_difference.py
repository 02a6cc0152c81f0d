"""MGD: the weighted mean of the AEMC of many marginals (Li et al. 2021a, Equation 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import paired_cells
from evaluation.mgd.aemc import Aemc, Solver, marginal_cost
from evaluation.mgd.levels import AxesOf, at_levels, clique_at
from evaluation.mgd.mgd_ends import MgdEnds
from evaluation.mgd.targets import TargetMarginal, Targets
from evaluation.readings.reading import Ends
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.json_values import JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema

#: A cell of at most so many true records (or Δ) is low; nearly all cells of a marginal are where these shares of its
#: cells and of its records are exceeded. The source names no number.
LOW, LOW_CELLS, LOW_RECORDS, LOW_NAMED = 2, 0.9, 0.5, 3


@dataclass(frozen=True)
class MarginalScore:
    """One target marginal's score.

    Attributes:
        target: the marginal.
        label: its attributes and levels in words.
        cells: how many cells it has.
        aemc: its cost per true record, and which solver found it.
        low: the share of its cells, and of the true records, that are in cells of at most LOW (or Δ) true records.
        over: Δ → its cost at other tolerances.
    """

    target: TargetMarginal
    label: str
    cells: int
    aemc: Aemc
    low: tuple[float, float] = (0.0, 0.0)
    over: Mapping[float, Aemc] = field(default_factory=dict)

    @property
    def nearly_all_low(self) -> bool:
        """Whether nearly all cells are low and they hold most records: little can be known of it (section 4.4)."""
        return self.low[0] >= LOW_CELLS and self.low[1] > LOW_RECORDS

    def to_json(self) -> JsonDict:
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
            "low_cells": self.low[0],
            "low_records": self.low[1],
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
        note: how the marginals were chosen, and which of them tell little.
        reason: why there is no score.
        over_delta: Δ → the score at other tolerances (section 5.1).
        ends: what the score may be read against, and its interval.
    """

    score: float | None
    marginals: tuple[MarginalScore, ...]
    alpha: float = 1.0
    note: tuple[str, ...] = ()
    reason: str = ""
    over_delta: Mapping[float, float | None] = field(default_factory=dict)
    ends: Ends | None = None

    def to_json(self) -> JsonDict:
        """JSON values; the score first."""
        over = [{"delta": delta, "score": score} for delta, score in sorted(self.over_delta.items())]
        return {
            "score": self.score,
            **({"reason": self.reason} if self.reason else {}),
            "alpha": self.alpha,
            **({"over_delta": over} if over else {}),
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
    deltas: Sequence[float] = (),
    progress: Progress | None = None,
) -> MGDResult:
    """MGD of a synthetic table against the truth; 0 is perfect, and there is no upper bound.

    Cost: counting takes a pass over the rows of both tables per batch of marginals; see `marginal_cost` for solving.

    Args:
        real: a table over the schema's domain; may be weighted.
        synthetic: the other table, likewise.
        targets: which marginals, at which levels, with which weights.
        alpha: cost of adding or removing one record (Appendix A.1), above 0.
        solver: auto or flow.
        deltas: further tolerances of all marginals, at which the score is computed too; each takes as long again.
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
    ends = MgdEnds(real, synthetic, cliques) if whole else None
    counted, axes_of = paired_cells(real, synthetic, cliques, progress), AxesOf(schema)
    for place, (target, clique, cells) in enumerate(zip(targets.marginals, cliques, counted, strict=True)):
        cost = partial(marginal_cost, axes=axes_of(target), alpha=alpha, solver=solver)
        size = real.domain.cells(clique)
        over = {float(delta): cost(cells, delta=delta) for delta in deltas}
        low, own_cost = _low(cells.q, size, target.delta), cost(cells, delta=target.delta)
        scored.append(MarginalScore(target, target.label(schema), size, own_cost, low, over))
        if ends is not None:
            ends.add(place, target.weight, cells, own_cost, partial(cost, delta=target.delta))
    note = (*targets.note, *_low_note(scored))
    reasons = sorted({m.aemc.reason for m in scored if m.aemc.value is None})
    if reasons or not scored:
        return MGDResult(None, tuple(scored), alpha, note, "; ".join(reasons) or "no marginals")
    score = _weighted([m.target.weight for m in scored], [m.aemc.value for m in scored])
    over_delta = {d: _weighted([m.target.weight for m in scored], [m.over[d].value for m in scored]) for d in over}
    read = None if ends is None else ends.ends(score)
    return MGDResult(score, tuple(scored), alpha, note, over_delta=over_delta, ends=read)


def _weighted(weights: Sequence[float], values: Sequence[float | None]) -> float:
    """Equation 3."""
    return math.fsum(w * (v or 0.0) for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


def _low(counts: NDArray[np.number], size: int, delta: float) -> tuple[float, float]:
    """The shares of all cells and of all true records that are in cells of few of them.

    Args:
        counts: true records of the cells that occur; all others of the `size` cells are empty.
    """
    low = counts <= max(delta, LOW)
    return 1 - float(np.count_nonzero(~low)) / max(size, 1), float(counts[low].sum()) / max(float(counts.sum()), 1e-300)


def _low_note(scored: Sequence[MarginalScore]) -> tuple[str, ...]:
    """Section 4.4 advises against marginals whose true cells are nearly all low."""
    sparse = sorted((m for m in scored if m.nearly_all_low), key=lambda m: -m.low[1])
    if not sparse:
        return ()
    named = "; ".join(m.label for m in sparse[:LOW_NAMED]) + (" …" if len(sparse) > LOW_NAMED else "")
    return (
        f"{len(sparse)} of {len(scored)} marginals have nearly only cells of very few true records, which tell little "
        f"under differential privacy (coarser levels or fewer columns tell more): {named}",
    )


def _shown(weight: Any) -> Any:
    return "inf" if weight is None else float(weight)
