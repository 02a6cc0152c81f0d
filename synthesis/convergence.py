"""How the rows came closer to their targets: a record beside the table, for reports and plots."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.files import JsonDict
from synthesis.consistency.agree import Target

#: Passes between the two errors that are compared.
PATIENCE = 10


@dataclass(frozen=True, eq=False)
class Convergence:
    """Total variation distances between rows and targets; a function of released numbers only.

    Attributes:
        cliques: the marginals that were updated.
        errors: passes × marginals: each marginal's distance in that pass, just before its own update; NaN where its
            part of the table had stopped.
        reasons: per part of the table why it ended: iterations, tolerance or stall.
        final: the distance of every target marginal in the finished table, by clique.
    """

    cliques: tuple[Clique, ...]
    errors: Floats
    reasons: tuple[str, ...]
    final: dict[Clique, float]

    def to_json(self) -> JsonDict:
        """JSON values: a list of distances per marginal, in the order of the passes."""
        errors = [[None if math.isnan(e) else round(e, 6) for e in line] for line in self.errors.T.tolist()]
        return {
            "kind": "marginals",
            "marginals": [" × ".join(c) for c in self.cliques],
            "errors": errors,
            "reasons": list(self.reasons),
            "final": {" × ".join(c): value for c, value in self.final.items()},
        }


@dataclass(frozen=True)
class FitRecord:
    """How a model came closer to the noisy answers; a function of released numbers only.

    Attributes:
        losses: ½ Σ ‖Qμ − y‖² / σ² at each step.
        floor: what the truth itself is expected to have.
        gap: an upper bound on how far the last loss is above the least possible one.
        reason: why the estimation ended.
    """

    losses: tuple[float, ...]
    floor: float
    gap: float
    reason: str

    @property
    def loss(self) -> float:
        """The least one: an estimation ends at the best point that it saw."""
        return min(self.losses)

    def to_json(self) -> JsonDict:
        """JSON values."""
        return {"kind": "loss", **asdict(self), "losses": list(self.losses)}


@dataclass(frozen=True, eq=False)
class Synthesized:
    """Synthetic rows, and how they came about (None: a synthesizer that keeps no such record)."""

    table: CodedTable
    record: Convergence | None = None
    fit: FitRecord | None = None


@dataclass(eq=False)
class Record:
    """The passes over one part so far."""

    cliques: tuple[Clique, ...]
    passes: list[Floats]
    reason: str = "iterations"

    def stalled(self, stall: float) -> bool:
        """Whether the mean error has fallen by less than this share since ten passes ago."""
        if stall <= 0 or len(self.passes) <= PATIENCE:
            return False
        before, now = (float(self.passes[i].mean()) for i in (-PATIENCE - 1, -1))
        return now > (1 - stall) * before


def convergence(records: list[Record], table: CodedTable, targets: tuple[Target, ...]) -> Convergence:
    """The records of all parts as one, with the final distances."""
    longest = max((len(r.passes) for r in records), default=0)
    errors = [np.full((longest, len(r.cliques)), np.nan) for r in records]
    for own, record in zip(errors, records, strict=True):
        own[: len(record.passes)] = np.array(record.passes).reshape(len(record.passes), -1)
    final = {}
    if table.rows:
        for target, counts in zip(targets, count_cliques(table, [t.clique for t in targets]), strict=True):
            total = float(target.values.sum())
            share = target.values.ravel() / total if total > 0 else np.full(counts.size, 1 / counts.size)
            final[target.clique] = 0.5 * float(np.abs(counts / table.rows - share).sum())
    return Convergence(
        tuple(c for r in records for c in r.cliques),
        np.concatenate(errors, axis=1) if errors else np.zeros((0, 0)),
        tuple(r.reason for r in records),
        final,
    )
