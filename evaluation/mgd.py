"""MGD: the weighted mean of the AEMC of many marginals (paper 000, Equation 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from evaluation.aemc import Aemc, flow_nodes, marginal_cost
from evaluation.counts import paired_cells
from evaluation.geometry import Axis
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.table import CodedTable

Progress = Callable[[int, int, str], None]

#: Marginals whose min-cost flow would have more nodes are not drawn into a default set (minutes each).
MAX_FLOW_NODES = 5_000


def default_axes(attributes: Sequence[Attribute]) -> tuple[Axis, ...]:
    """The default weights (paper 000, section 2.3.2): ∞ for categorical attributes, equal ones for ordinal ones."""
    finite = sum(a.ordered > 1 for a in attributes)
    return tuple(
        Axis.path(a.size, a.ordered, Fraction(1, finite)) if a.ordered > 1 else Axis.fixed(a.size) for a in attributes
    )


@dataclass(frozen=True)
class Targets:
    """The marginals to score, and how they were chosen.

    Attributes:
        cliques: the marginals.
        note: one sentence per order: all of them, or a seeded sample, and what was left out.
    """

    cliques: tuple[Clique, ...]
    note: tuple[str, ...]


def default_targets(domain: Domain, *, max_marginals: int, seed: int, orders: tuple[int, ...] = (1, 2, 3)) -> Targets:
    """All 1-, 2- and 3-way marginals, or of each order a seeded sample of at most `max_marginals`.

    Marginals with several ordinal attributes whose flow graph would have more than MAX_FLOW_NODES nodes are left out
    and counted in the note.
    """
    rng = np.random.default_rng(seed)
    cliques: list[Clique] = []
    notes = []
    for k in orders:
        if k > len(domain):
            continue
        every = list(itertools.combinations(domain.names, k))
        feasible = [c for c in every if flow_nodes(default_axes([domain[n] for n in c])) <= MAX_FLOW_NODES]
        chosen = feasible
        if len(feasible) > max_marginals:
            places = np.sort(rng.choice(len(feasible), max_marginals, replace=False))
            chosen = [feasible[i] for i in places]
        left = (
            f", {len(every) - len(feasible)} left out for the size of their flow" if len(feasible) < len(every) else ""
        )
        notes.append(f"{k}-way: {len(chosen)} of {math.comb(len(domain), k)} marginals (seed {seed}){left}")
        cliques += chosen
    return Targets(tuple(cliques), tuple(notes))


@dataclass(frozen=True)
class MGDResult:
    """The score and the AEMC of every marginal.

    Attributes:
        score: weighted mean of the defined AEMC values (equal weights); None where none is defined.
        marginals: each marginal with its cells and its AEMC.
        delta, alpha: the tolerance Δ in records, the cost of adding and removing.
        note: how the marginals were chosen.
        reason: why there is no score.
    """

    score: float | None
    marginals: tuple[tuple[Clique, int, Aemc], ...]
    delta: float
    alpha: float
    note: tuple[str, ...]
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON values; the score first."""
        return {
            "score": self.score,
            **({"reason": self.reason} if self.reason else {}),
            "delta": self.delta,
            "alpha": self.alpha,
            "chosen": list(self.note),
            "marginals": [
                {
                    "attributes": list(clique),
                    "aemc": result.value,
                    "cells": cells,
                    "solver": result.solver,
                    **({"reason": result.reason} if result.reason else {}),
                }
                for clique, cells, result in self.marginals
            ],
        }


def mgd(
    real: CodedTable,
    synthetic: CodedTable,
    targets: Targets,
    *,
    delta: float = 2.0,
    alpha: float = 1.0,
    progress: Progress | None = None,
) -> MGDResult:
    """MGD of a synthetic table against the truth; 0 is perfect, and there is no upper bound.

    Args:
        real, synthetic: tables over the same domain.
        delta: tolerance Δ, in records.
    """
    scored = []
    for clique, cells in zip(targets.cliques, paired_cells(real, synthetic, targets.cliques, progress), strict=True):
        axes = default_axes([real.domain[n] for n in clique])
        scored.append((clique, real.domain.cells(clique), marginal_cost(cells, axes, delta=delta, alpha=alpha)))
    values = [r.value for _, _, r in scored if r.value is not None]
    if len(values) < len(scored) or not values:
        reasons = sorted({r.reason for _, _, r in scored if r.value is None}) or ["no marginals"]
        return MGDResult(None, tuple(scored), delta, alpha, targets.note, "; ".join(reasons))
    return MGDResult(math.fsum(values) / len(values), tuple(scored), delta, alpha, targets.note)
