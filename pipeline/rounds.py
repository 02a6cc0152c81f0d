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
from mechanisms.sensitive.counting import Private
from mechanisms.sensitive.measurement import BATCH_CELLS, Progress, measure, measure_some
from mechanisms.sensitive.noise import MAX_UNITS, NoiseSource
from mechanisms.sensitive.selection import Candidate, Expected, PrivateScores, choose, distance_scores

#: A model of everything measured so far: measurements → its marginals.
Fit = Callable[[Measurements], Expected]
#: Entries of query matrices have at least so many bits, or the noise drowns any table anyway.
LEAST_BITS = 6


def measure_plan(
    table: Private,
    plan: Plan | AdaptivePlan,
    ledger: Ledger,
    source: NoiseSource,
    *,
    answers_dir: Path,
    public_total: int | None = None,
    fit: Fit,
    progress: Progress | None = None,
) -> Measurements:
    """Measure what a plan says, in one round or in several.

    Guarantee: the answers and the choices together are (ε, δ)-DP for the plan's unit and neighbouring relation. Between
        rounds only kept answers and public facts are read, so that an interrupted run goes on with the same choices.
    Args:
        answers_dir: where answers and choices are kept, one file each, written whole.
        public_total: the number of records where it is a public fact.
        fit: a model of what is known so far, for methods that choose.
    """
    if isinstance(plan, Plan):
        options = {"answers_dir": answers_dir, "public_total": public_total}
        return measure(table, plan, ledger, source, progress=progress, **options)  # type: ignore[arg-type]
    answers_dir.mkdir(mode=0o700, exist_ok=True)
    rounds = Rounds(table, plan, ledger, source, answers_dir, public_total, progress)
    match plan.method:
        case Adagrid(candidates=()):
            _given_grids(rounds, plan.method.threshold)
        case Adagrid():
            _tree_of_grids(rounds, plan.method, fit)
        case Mst():
            _tree(rounds, plan.method, fit)
        case Mwem():
            _worst_first(rounds, plan.method, fit)
    return rounds.measurements


@dataclass
class Rounds:
    """One adaptive run: what is known so far, and the two ways to know more.

    Attributes:
        known: the answers so far, in the order of their slots.
    """

    table: Private
    plan: AdaptivePlan
    ledger: Ledger
    source: NoiseSource
    folder: Path
    public_total: int | None
    progress: Progress | None
    known: list[NoisyMarginal] = field(default_factory=list)

    @property
    def domain(self) -> Domain:
        return self.table.coded.domain

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.domain, tuple(self.known), self.public_total)

    def ask(self, questions: Sequence[tuple[int, Clique, QueryMatrix]]) -> None:
        """Measure one round: each question under its slot, with the sensitivity of its own matrix."""
        wanted = [(place, self._planned(place, clique, query)) for place, clique, query in questions]
        folder, report = self.folder, self.progress
        self.known += measure_some(
            self.table, wanted, self.plan, self.ledger, self.source, answers_dir=folder, progress=report
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
        path = self.folder / f"{place:05d}.json"
        return choose(among, scores, event, self.ledger, self.source, path=path)

    def scores(self, candidates: Sequence[Candidate], expected: Expected) -> PrivateScores:
        """Distances of the true marginals from the expected ones; NOT private."""
        neighbouring = self.plan.neighbouring
        return distance_scores(self.table, candidates, expected, neighbouring=neighbouring, batch_cells=BATCH_CELLS)


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


def _given_grids(rounds: Rounds, threshold: float) -> None:
    """Rounds by order over marginals that are known ahead (paper 003, measurements)."""
    slots = rounds.plan.slots
    _grids(rounds, [(i, s.reservation.clique) for i, s in enumerate(slots) if s.reservation.clique], threshold)


def _grids(rounds: Rounds, wanted: Sequence[tuple[int, Clique]], threshold: float) -> None:
    for order in sorted({len(c) for _, c in wanted}):
        this = [(i, c) for i, c in wanted if len(c) == order]
        rounds.ask([(i, c, rounds.grid(i, c, threshold)) for i, c in this])


def _tree_of_grids(rounds: Rounds, method: Adagrid, fit: Fit) -> None:
    """One-way marginals with the targets; a tree, chosen privately; its marginals with the targets."""
    _given_grids(rounds, method.threshold)
    domain, expected = rounds.domain, _once(lambda: fit(rounds.measurements))
    whole = {pair: domain.canonical((*pair, *method.targets)) for pair in method.candidates}
    scored = _once(lambda: rounds.scores([Candidate(c) for c in whole.values()], expected()))
    edges = _grow(rounds, method.candidates, lambda: _renamed(scored(), whole))
    extras: list[Clique] = [(), *subsets(method.targets)]
    new = [domain.canonical((*edge, *extra)) for extra in extras for edge in edges]
    _grids(rounds, list(zip(rounds.plan.places(CHOSEN), new, strict=False)), method.threshold)


def _tree(rounds: Rounds, method: Mst, fit: Fit) -> None:
    """One-way marginals, a maximum spanning tree by the exponential mechanism, its pairs (MST)."""
    places = rounds.plan.places(GIVEN)
    ones = [(i, rounds.plan.slots[i].reservation.clique or ()) for i in places]
    rounds.ask([(i, c, Identity(rounds.domain.cells(c))) for i, c in ones])
    groups = rare_groups(rounds.domain, rounds.known if method.rare > 0 else (), method.rare)
    queries = {pair: merged_query(rounds.domain, pair, groups) for pair in method.candidates}
    expected = _once(lambda: fit(rounds.measurements))
    scored = _once(lambda: rounds.scores([Candidate(c, q) for c, q in queries.items()], expected()))
    edges = _grow(rounds, method.candidates, scored)
    chosen = zip(rounds.plan.places(CHOSEN), edges, strict=False)
    rounds.ask([(i, edge, queries[edge]) for i, edge in chosen])


def _grow(rounds: Rounds, candidates: Sequence[Clique], scored: Callable[[], PrivateScores]) -> list[Clique]:
    """Kruskal's tree, each edge by the exponential mechanism among those that join two components."""
    edges: list[Clique] = []
    for place in rounds.plan.places(CHOOSE):
        edge = rounds.choose(place, joining(candidates, edges), scored)
        if edge is not None:
            edges.append(edge)
    return edges


def _worst_first(rounds: Rounds, method: Mwem, fit: Fit) -> None:
    """In each round the marginal that the model of all answers misses most, less what its own noise would add."""
    ones = rounds.plan.places(GIVEN)
    cliques = [rounds.plan.slots[i].reservation.clique or () for i in ones]
    rounds.ask([(i, c, Identity(rounds.domain.cells(c))) for i, c in zip(ones, cliques, strict=True)])
    left = list(method.candidates)
    for choice, place in zip(rounds.plan.places(CHOOSE), rounds.plan.places(CHOSEN), strict=True):
        deviation = rounds.plan.slots[place].event
        assert isinstance(deviation, Gaussian | Laplace)
        one = mean_deviation(deviation)
        options = [Candidate(c, penalty=one * rounds.domain.cells(c)) for c in left]
        now = _once(lambda options=options: rounds.scores(options, fit(rounds.measurements)))  # type: ignore[misc]
        clique = rounds.choose(choice, left, now)
        if clique is not None:
            left.remove(clique)
            rounds.ask([(place, clique, Identity(rounds.domain.cells(clique)))])


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
