"""PrivSyn's selection: one-way marginals, distances from independence, then what is worth its noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.rounds import GIVEN
from mechanisms.public.dense import POWER, combined, dense, tradeoff
from mechanisms.public.domain import Clique
from mechanisms.public.groups import grouped, within
from mechanisms.public.methods import Indif
from mechanisms.public.queries import Identity
from mechanisms.sensitive.selection import Expected
from pipeline.steps import Fit, Steps, once


def dense_pairs(steps: Steps, method: Indif, fit: Fit) -> None:
    """One-way marginals; noisy distances of all pairs; DenseMarg on these; the marginals chosen, by cells^(2/3).

    Where no pair is worth its noise, the one-way marginals are measured once more with what is left. Where the scores
    were charged and lost, every pair counts as equally far from independence.
    """
    ones = one_way(steps)
    expected = once(lambda: fit(steps.measurements))
    chosen = _chosen(steps, method, expected()) if method.candidates else []
    share_out(steps, chosen or ones)


def one_way(steps: Steps) -> list[Clique]:
    """Measure the slots of known marginals; their names."""
    places = steps.plan.places(GIVEN)
    cliques = [steps.plan.slots[i].reservation.clique or () for i in places]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in zip(places, cliques, strict=True)])
    return cliques


def share_out(steps: Steps, cliques: Sequence[Clique]) -> None:
    """Measure these marginals with the whole purse, each with a part in proportion to cells^(2/3)."""
    loads = np.array([steps.domain.cells(c) for c in cliques], np.float64) ** POWER
    parts = loads / loads.sum() * (1 - 1e-9)
    questions = zip(cliques, parts.tolist(), strict=True)
    steps.spend([(c, Identity(steps.domain.cells(c)), part) for c, part in questions])


def _chosen(steps: Steps, method: Indif, expected: Expected) -> list[Clique]:
    gaps = steps.distances(method.candidates, lambda: expected)
    candidates = method.candidates
    if gaps is None:
        gaps = np.full(len(candidates), float(np.sum(expected(candidates[0]))))
    if method.groups:
        parts = grouped(steps.domain.names, candidates, gaps.tolist(), method.groups)
        inside = within(candidates, parts)
        candidates, gaps = tuple(candidates[i] for i in inside), gaps[inside]
    if not candidates:
        return []
    table = tradeoff(_real(gaps), [expected(c) for c in candidates], steps.deviation)
    return combined(steps.domain, [candidates[i] for i in dense(table)], method.combine_cells)


def _real(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances are not negative, whatever the noise says."""
    return np.maximum(gaps, 0.0)
