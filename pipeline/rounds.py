"""Adaptive measurement: choose, build queries, measure, and again; everything decided from what was released before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from mechanisms.accounting.adaptive import AdaptivePlan
from mechanisms.accounting.events import Exponential, Gaussian, Laplace
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement
from mechanisms.accounting.rounds import CHOOSE, CHOSEN, GIVEN
from mechanisms.public.adagrid import grid_query, matrix_bits, subsets
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.methods import Adagrid, Mst, Mwem
from mechanisms.public.queries import Identity, Norm, QueryMatrix, sensitivity
from mechanisms.public.rare import merged_query, rare_groups
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.tree import joining
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.measurement import BATCH_CELLS, Progress, measure, measure_some
from mechanisms.sensitive.noise import MAX_UNITS, NoiseSource
from mechanisms.sensitive.selection import Candidate, Expected, PrivateScores, choose, distance_scores
from mechanisms.sensitive.table import PrivateTable

#: A model of everything measured so far: measurements → its marginals.
Fit = Callable[[Measurements], Expected]
#: Entries of query matrices have at least so many bits, or the noise drowns any table anyway.
LEAST_BITS = 6


def measure_plan(rounds: Rounds, *, fit: Fit) -> Measurements:
    """Measure what a plan says, in one round or in several.

    Guarantee: the answers and the choices together are (ε, δ)-DP for the plan's unit and neighbouring relation. Between
        rounds only kept answers and public facts are read, so that an interrupted run goes on with the same choices.
    Args:
        fit: a model of what is known so far, for methods that choose.
    """
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
        case Mwem():
            _worst_first(steps, plan.method, fit)
    return steps.measurements


@dataclass(frozen=True)
class Rounds:
    """What measuring needs.

    Attributes:
        folder: where answers and choices are kept, one file each, written whole.
    """

    table: PrivateTable
    plan: Plan | AdaptivePlan
    ledger: Ledger
    source: NoiseSource
    folder: Path
    progress: Progress | None = None

    @property
    def public_total(self) -> int | None:
        """The number of records where it is a public fact."""
        return self.table.public_rows(self.plan.neighbouring)


@dataclass
class Steps:
    """One adaptive run: what is known so far, and the two ways to know more.

    Attributes:
        known: the answers so far, in the order of their slots.
    """

    run: Rounds
    plan: AdaptivePlan
    known: list[NoisyMarginal] = field(default_factory=list)

    @property
    def domain(self) -> Domain:
        return self.run.table.coded.domain

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.domain, tuple(self.known), self.run.public_total)

    def ask(self, questions: Sequence[tuple[int, Clique, QueryMatrix]]) -> None:
        """Measure one round: each question under its slot, with the sensitivity of its own matrix."""
        wanted = [(place, self._planned(place, clique, query)) for place, clique, query in questions]
        run, plan = self.run, self.plan
        self.known += measure_some(
            run.table, wanted, plan, run.ledger, run.source, answers_dir=run.folder, progress=run.progress
        )

    def _planned(self, place: int, clique: Clique, query: QueryMatrix) -> PlannedMeasurement:
        slot, plan = self.plan.slots[place], self.plan
        bound = sensitivity(query, norm=self.norm, neighbouring=plan.neighbouring, max_records=plan.max_records)
        reserved = slot.event
        event: Gaussian | Laplace
        if isinstance(reserved, Gaussian):
            event = Gaussian(reserved.id, bound, reserved.sigma)
        elif isinstance(reserved, Laplace):
            event = Laplace(reserved.id, bound, reserved.scale)
        else:
            raise TypeError(f"{reserved.id} is reserved for a choice")
        return PlannedMeasurement(clique, query, slot.share, event)

    @property
    def norm(self) -> Norm:
        return "l2" if any(isinstance(s.event, Gaussian) for s in self.plan.slots) else "l1"

    def grid(self, place: int, clique: Clique, threshold: float) -> QueryMatrix:
        """The adaptive grid of a marginal, from the rounds before."""
        event = self.plan.slots[place].event
        assert not isinstance(event, Exponential)
        scale = event.sigma if isinstance(event, Gaussian) else event.scale
        bits = entry_bits(scale)
        return grid_query(self.domain, clique, self.known, threshold=threshold, norm=self.norm, bits=bits)

    def choose(self, place: int, among: Sequence[Clique], scores: Callable[[], PrivateScores]) -> Clique | None:
        """One of the candidates, under the slot's ε."""
        event = self.plan.slots[place].event
        assert isinstance(event, Exponential)
        path = self.run.folder / f"{place:05d}.json"
        return choose(among, scores, event, self.run.ledger, self.run.source, path=path)

    def scores(self, candidates: Sequence[Candidate], expected: Expected) -> PrivateScores:
        """Distances of the true marginals from the expected ones; NOT private."""
        neighbouring = self.plan.neighbouring
        return distance_scores(self.run.table, candidates, expected, neighbouring=neighbouring, batch_cells=BATCH_CELLS)


def entry_bits(scale: float) -> int:
    """How fine the entries of a query matrix are under noise of that scale, in records.

    Raises:
        UserError: the noise leaves no room for entries.
    """
    bits = matrix_bits(scale, weight_bits=WEIGHT_BITS, max_units=MAX_UNITS)
    if bits < LEAST_BITS:
        fix = "a larger privacy.epsilon, a smaller privacy.max_records, or fewer marginals"
        raise UserError(f"noise of scale {scale:.3g} records drowns any table", where="privacy.epsilon", fix=fix)
    return bits


def _given_grids(steps: Steps, threshold: float) -> None:
    """Rounds by order over marginals that are known ahead (paper 003, measurements)."""
    slots = steps.plan.slots
    _grids(steps, [(i, s.reservation.clique) for i, s in enumerate(slots) if s.reservation.clique], threshold)


def _grids(steps: Steps, wanted: Sequence[tuple[int, Clique]], threshold: float) -> None:
    for order in sorted({len(c) for _, c in wanted}):
        this = [(i, c) for i, c in wanted if len(c) == order]
        steps.ask([(i, c, steps.grid(i, c, threshold)) for i, c in this])


def _tree_of_grids(steps: Steps, method: Adagrid, fit: Fit) -> None:
    """One-way marginals with the targets; a tree, chosen privately; its marginals with the targets."""
    _given_grids(steps, method.threshold)
    domain, expected = steps.domain, _once(lambda: fit(steps.measurements))
    whole = {pair: domain.canonical((*pair, *method.targets)) for pair in method.candidates}
    scored = _once(lambda: steps.scores([Candidate(c) for c in whole.values()], expected()))
    edges = _grow(steps, method.candidates, lambda: _renamed(scored(), whole))
    extras: list[Clique] = [(), *subsets(method.targets)]
    new = [domain.canonical((*edge, *extra)) for extra in extras for edge in edges]
    _grids(steps, list(zip(steps.plan.places(CHOSEN), new, strict=False)), method.threshold)


def _tree(steps: Steps, method: Mst, fit: Fit) -> None:
    """One-way marginals, a maximum spanning tree by the exponential mechanism, its pairs (MST)."""
    places = steps.plan.places(GIVEN)
    ones = [(i, steps.plan.slots[i].reservation.clique or ()) for i in places]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in ones])
    groups = rare_groups(steps.domain, steps.known if method.rare > 0 else (), method.rare)
    queries = {pair: merged_query(steps.domain, pair, groups) for pair in method.candidates}
    expected = _once(lambda: fit(steps.measurements))
    scored = _once(lambda: steps.scores([Candidate(c, q) for c, q in queries.items()], expected()))
    edges = _grow(steps, method.candidates, scored)
    chosen = zip(steps.plan.places(CHOSEN), edges, strict=False)
    steps.ask([(i, edge, queries[edge]) for i, edge in chosen])


def _grow(steps: Steps, candidates: Sequence[Clique], scored: Callable[[], PrivateScores]) -> list[Clique]:
    """Kruskal's tree, each edge by the exponential mechanism among those that join two components."""
    edges: list[Clique] = []
    for place in steps.plan.places(CHOOSE):
        edge = steps.choose(place, joining(candidates, edges), scored)
        if edge is not None:
            edges.append(edge)
    return edges


def _worst_first(steps: Steps, method: Mwem, fit: Fit) -> None:
    """In each round the marginal that the model of all answers misses most, less what its own noise would add."""
    ones = steps.plan.places(GIVEN)
    cliques = [steps.plan.slots[i].reservation.clique or () for i in ones]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in zip(ones, cliques, strict=True)])
    left = list(method.candidates)
    for choice, place in zip(steps.plan.places(CHOOSE), steps.plan.places(CHOSEN), strict=True):
        deviation = steps.plan.slots[place].event
        assert isinstance(deviation, Gaussian | Laplace)
        one = mean_deviation(deviation)
        options = [Candidate(c, penalty=one * steps.domain.cells(c)) for c in left]
        now = _once(lambda options=options: steps.scores(options, fit(steps.measurements)))  # type: ignore[misc]
        clique = steps.choose(choice, left, now)
        if clique is not None:
            left.remove(clique)
            steps.ask([(place, clique, Identity(steps.domain.cells(clique)))])


def mean_deviation(event: Gaussian | Laplace) -> float:
    """The mean absolute noise of one answer, in records."""
    return float(np.sqrt(2 / np.pi)) * event.sigma if isinstance(event, Gaussian) else event.scale


def _renamed(scores: PrivateScores, whole: Mapping[Clique, Clique]) -> PrivateScores:
    """Scores by pair, from scores by the marginal that the pair stands for."""
    return PrivateScores({pair: scores.values[c] for pair, c in whole.items()}, scores.sensitivity)


T = TypeVar("T")


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """The same value every time, made when it is first asked for."""
    kept: list[T] = []

    def value() -> T:
        if not kept:
            kept.append(make())
        return kept[0]

    return value
