"""Adaptive measurement: choose, build queries, measure, and again; everything decided from what was released before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.plan import Plan
from mechanisms.accounting.rounds import CHOOSE, CHOSEN, GIVEN
from mechanisms.public.adagrid import subsets
from mechanisms.public.domain import Clique
from mechanisms.public.methods import Adagrid, Aim, Indif, Merge, Mst, Mwem, PrivBasis, PriView
from mechanisms.public.queries import Identity
from mechanisms.public.rare import merged_query, rare_groups
from mechanisms.public.release import Measurements
from mechanisms.public.tree import joining
from mechanisms.sensitive.measurement import measure, measure_histogram
from mechanisms.sensitive.selection import Candidate, PrivateScores
from pipeline.basis import covering_views, frequent_basis
from pipeline.dense import dense_pairs
from pipeline.fitted import annealed, worst_first
from pipeline.steps import Fit, Rounds, Steps, once


def measure_plan(rounds: Rounds, *, fit: Fit) -> Measurements:
    """Measure what a plan says, in one round or in several.

    Guarantee: the answers and the choices together are (ε, δ)-DP for the plan's unit and neighbouring relation. Between
        rounds only kept answers and public facts are read, so that an interrupted run goes on with the same choices.
    Args:
        fit: a model of what is known so far, for methods that choose.
    """
    run = rounds
    histogram = measure_histogram(run.table, run.plan, run.ledger, run.source, answers_dir=run.folder)
    return replace(_marginals(rounds, fit), histogram=histogram)


def _marginals(rounds: Rounds, fit: Fit) -> Measurements:
    plan = rounds.plan
    if isinstance(plan, Plan):
        return measure(
            rounds.table,
            plan,
            rounds.ledger,
            rounds.source,
            answers_dir=rounds.folder,
            public_total=rounds.public_total,
            progress=rounds.progress,
        )
    rounds.folder.mkdir(mode=0o700, exist_ok=True)
    steps = Steps(rounds, plan)
    match plan.method:
        case Adagrid(candidates=()):
            _given_grids(steps, plan.method.threshold)
        case Adagrid():
            _tree_of_grids(steps, plan.method, fit)
        case Mst():
            _tree(steps, plan.method, fit)
        case Merge():
            _given_merged(steps, plan.method)
        case Mwem():
            worst_first(steps, plan.method, fit)
        case Aim():
            annealed(steps, plan.method, fit)
        case Indif():
            dense_pairs(steps, plan.method, fit)
        case PriView():
            covering_views(steps, plan.method, fit)
        case PrivBasis():
            frequent_basis(steps, plan.method)
    return steps.measurements


def _given_grids(steps: Steps, threshold: float) -> None:
    """Rounds by order over marginals that are known ahead (McKenna 2021, measurements)."""
    slots = steps.plan.slots
    _grids(steps, [(i, s.reservation.clique) for i, s in enumerate(slots) if s.reservation.clique], threshold)


def _grids(steps: Steps, wanted: Sequence[tuple[int, Clique]], threshold: float) -> None:
    for order in sorted({len(c) for _, c in wanted}):
        this = [(i, c) for i, c in wanted if len(c) == order]
        steps.ask([(i, c, steps.grid(c, threshold)) for i, c in this])


def _tree_of_grids(steps: Steps, method: Adagrid, fit: Fit) -> None:
    """One-way marginals with the targets; a tree, chosen privately; its marginals with the targets."""
    _given_grids(steps, method.threshold)
    domain, expected = steps.domain, once(lambda: fit(steps.measurements))
    whole = {pair: domain.canonical((*pair, *method.targets)) for pair in method.candidates}
    scored = once(lambda: steps.scores([Candidate(c) for c in whole.values()], expected()))
    edges = _grow(steps, method.candidates, lambda: _renamed(scored(), whole))
    extras: list[Clique] = [(), *subsets(method.targets)]
    new = [domain.canonical((*edge, *extra)) for extra in extras for edge in edges]
    _grids(steps, list(zip(steps.plan.places(CHOSEN), new, strict=False)), method.threshold)


def _tree(steps: Steps, method: Mst, fit: Fit) -> None:
    """One-way marginals, a maximum spanning tree by the exponential mechanism, its pairs (MST)."""
    places = steps.plan.places(GIVEN)
    ones = [(i, steps.plan.slots[i].reservation.clique or ()) for i in places]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in ones])
    groups = _groups(steps, method)
    queries = {pair: merged_query(steps.domain, pair, groups) for pair in method.candidates}
    expected = once(lambda: fit(steps.measurements))
    scored = once(lambda: steps.scores([Candidate(c, q) for c, q in queries.items()], expected()))
    edges = _grow(steps, method.candidates, scored)
    chosen = zip(steps.plan.places(CHOSEN), edges, strict=False)
    steps.ask([(i, edge, queries[edge]) for i, edge in chosen])


def _given_merged(steps: Steps, method: Merge) -> None:
    """The one-way marginals, then the others with the values merged whose noisy counts are small."""
    given = [(i, s.reservation.clique or ()) for i, s in enumerate(steps.plan.slots)]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in given if len(c) == 1])
    groups = _groups(steps, method)
    steps.ask([(i, c, merged_query(steps.domain, c, groups)) for i, c in given if len(c) > 1])


def _groups(steps: Steps, method: Mst | Merge) -> dict[str, NDArray[np.int64]]:
    known = steps.known if max(method.rare, method.floor) > 0 else ()
    return rare_groups(steps.domain, known, method.rare, method.floor)


def _grow(steps: Steps, candidates: Sequence[Clique], scored: Callable[[], PrivateScores]) -> list[Clique]:
    """Kruskal's tree, each edge by the exponential mechanism among those that join two components."""
    edges: list[Clique] = []
    for place in steps.plan.places(CHOOSE):
        edge = steps.choose(place, joining(candidates, edges), scored)
        if edge is not None:
            edges.append(edge)
    return edges


def _renamed(scores: PrivateScores, whole: Mapping[Clique, Clique]) -> PrivateScores:
    """Scores by pair, from scores by the marginal that the pair stands for."""
    return PrivateScores({pair: scores.values[c] for pair, c in whole.items()}, scores.sensitivity)
