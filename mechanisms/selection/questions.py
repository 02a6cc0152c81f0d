"""Rounds that several methods share: one-way marginals, the reserve shared out, a tree, what a model has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.candidates import Candidate, Expected
from mechanisms.public.designs.tree import joining
from mechanisms.public.domain import Clique
from mechanisms.public.queries.merged_cells import rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.selection.base import CHOOSE, GIVEN
from mechanisms.selection.context import Context, Scores


def ask_given(context: Context) -> list[Clique]:
    """Measure the slots of known marginals, whole; their names."""
    places = context.places(GIVEN)
    cliques = [context.clique(i) for i in places]
    context.ask([(i, c, Identity(context.domain.cells(c))) for i, c in zip(places, cliques, strict=True)])
    return cliques


def share_out(context: Context, cliques: Sequence[Clique]) -> None:
    """Measure these marginals with the whole reserve, each with a part in proportion to cells^power."""
    loads = np.array([context.domain.cells(c) for c in cliques], np.float64) ** context.power
    parts = loads / loads.sum() * (1 - 1e-9)
    questions = zip(cliques, parts.tolist(), strict=True)
    context.spend([(c, Identity(context.domain.cells(c)), part) for c, part in questions])


def grow_tree(context: Context, candidates: Sequence[Clique], scores: Scores) -> list[Clique]:
    """Kruskal's tree, each edge by the exponential mechanism among those that join two components."""
    tree: list[Clique] = []
    for place in context.places(CHOOSE):
        edge = context.choose(place, joining(candidates, tree), scores)
        if edge is not None:
            tree.append(edge)
    return tree


def common_values(context: Context, rare: float, floor: float) -> Mapping[str, NDArray[np.int64]]:
    """Per attribute the groups of its codes, those with small noisy counts merged."""
    answers = context.known if max(rare, floor) > 0 else ()
    return rare_groups(context.domain, answers, rare, floor)


def small_enough(context: Context, candidates: Sequence[Clique], limit: int) -> list[Clique]:
    """The candidates whose model, with all that is measured, keeps to the limit; those inside a measured one always.

    Those that the present model cannot answer within memory are left out: their scores could not be computed.
    """
    measured = [a.clique for a in context.known]
    inside = {c for c in candidates if any(set(c) <= set(m) for m in measured)}
    others = [c for c in candidates if c not in inside]
    allowed = inside | set(context.possible(others, limit))
    return [c for c in candidates if c in allowed]


def penalized(context: Context, weights: Mapping[Clique, float], noise: float, expected: Expected) -> Scores:
    """Distances to the model less what the noise would add, times the weights; made where a draw is due.

    Args:
        noise: mean absolute noise of an answer, in records.
    """
    cells = context.domain.cells
    candidates = {c: Candidate(c, weight=w, penalty=noise * cells(c)) for c, w in weights.items()}
    return context.score(lambda: candidates, lambda: expected)
