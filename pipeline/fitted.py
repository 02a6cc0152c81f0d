"""Methods that fit a graphical model between rounds: MWEM and AIM."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.events import NoiseEvent
from mechanisms.accounting.plan import PlannedMeasurement
from mechanisms.accounting.rounds import CHOOSE, CHOSEN, GIVEN
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.files import write_whole
from mechanisms.public.methods import Aim, Mwem
from mechanisms.public.queries import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.zeros import Zeros
from mechanisms.sensitive.measurement import measure_some
from mechanisms.sensitive.selection import Candidate, Expected, PrivateScores, choose
from pipeline.steps import Fit, Steps
from synthesis.independent import independent_marginals
from synthesis.pgm.junction_tree import still_small
from synthesis.pgm.model import GraphicalModel, PgmSpec, fit_model


class IndependentFit:
    """Independent columns: for methods that look at one-way marginals alone."""

    def __call__(self, measurements: Measurements) -> Expected:
        return independent_marginals(measurements)

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        return list(candidates) if sum(domain.shape(domain.names)) <= limit else []


@dataclass
class PgmFit:
    """A graphical model of all answers, each fit started from the one before.

    Attributes:
        spec: the synthesizer's settings.
        zeros: combinations that cannot occur.
        last: the model fitted last.
    """

    spec: PgmSpec
    zeros: tuple[Zeros, ...] = ()
    last: GraphicalModel | None = None

    def __call__(self, measurements: Measurements) -> Expected:
        self.last = fit_model(measurements, self.spec, impossible=self.zeros, start=self.last)
        return self.last.marginal

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        small = still_small(domain, [*measured, *(c for c, _ in self.zeros)], candidates, limit)
        fitting = [c for c, keeps in zip(candidates, small, strict=True) if keeps]
        return [c for c in fitting if self.last is None or self.last.answerable(c)]


def worst_first(steps: Steps, method: Mwem, fit: Fit) -> None:
    """MWEM: in each round the marginal that the model misses most, less what its own noise would add, is measured.

    The model is fitted to all answers so far every time, and the last one is what counts (Li et al. 2021b, §6.2).
    """
    _one_way(steps)
    left = list(method.candidates)
    for choice, place in zip(steps.plan.places(CHOOSE), steps.plan.places(CHOSEN), strict=True):
        event = steps.plan.measurement_slot(place)
        expected = fit(steps.measurements)
        allowed = _small_enough(steps, left, fit, method.max_model_cells)
        scores = _scores(steps, [(c, 1.0) for c in allowed], event.mean_abs, expected)
        clique = steps.choose(choice, allowed, scores)
        if clique is not None:
            left.remove(clique)
            steps.ask([(place, clique, Identity(steps.domain.cells(clique)))])


def annealed(steps: Steps, method: Aim, fit: Fit) -> None:
    """AIM: choose by the workload's weight, measure, fit; halve the noise when a round taught less than its noise.

    A round that leaves too little for two more takes all that is left. Which marginals may be chosen grows with the
    budget spent: a model of all of them may have that part of method.max_model_cells.
    """
    _one_way(steps)
    weights = dict(zip(method.candidates, method.weights, strict=True))
    left, part, number = 1.0, 1 / method.rounds, 0
    expected = fit(steps.measurements)
    while left > 0:
        part = left if left < 2 * part else part
        part = _kept_part(steps, number, part)
        asked = steps.plan.measurement_event(f"{number:04d}:measure", method.measured * part)
        allowed = _small_enough(steps, method.candidates, fit, round((1 - left + part) * method.max_model_cells))
        scores = _scores(steps, [(c, weights[c]) for c in allowed], asked.mean_abs, expected)
        clique = _chosen(steps, number, allowed, (1 - method.measured) * part, scores)
        known = len(steps.known)
        if clique is not None:
            _measured(steps, number, clique, asked)
        left, number = left - part if left > part else 0.0, number + 1
        if clique is None or len(steps.known) == known:
            continue
        before, expected = expected(clique), fit(steps.measurements)
        if _taught(before, expected(clique)) <= asked.mean_abs * before.size:
            part *= 4


def _one_way(steps: Steps) -> None:
    ones = steps.plan.places(GIVEN)
    cliques = [steps.plan.slots[i].reservation.clique or () for i in ones]
    steps.ask([(i, c, Identity(steps.domain.cells(c))) for i, c in zip(ones, cliques, strict=True)])


def _taught(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    return float(np.abs(after - before).sum())


def _small_enough(steps: Steps, candidates: Sequence[Clique], fit: Fit, limit: int) -> list[Clique]:
    """The candidates whose model, with all that is measured, keeps to the limit; those inside a measured one always.

    Those that the present model cannot answer within memory are left out: their scores could not be computed.
    """
    measured = [a.clique for a in steps.known]
    inside = {c for c in candidates if any(set(c) <= set(m) for m in measured)}
    others = [c for c in candidates if c not in inside]
    allowed = inside | set(fit.possible(steps.domain, measured, others, limit))
    return [c for c in candidates if c in allowed]


def _scores(
    steps: Steps, weighted: Sequence[tuple[Clique, float]], noise: float, expected: Expected
) -> Callable[[], PrivateScores]:
    """Distances to the model less what the noise would add, times the weights; made where a draw is due."""
    cells = steps.domain.cells
    candidates = [Candidate(c, weight=w, penalty=noise * cells(c)) for c, w in weighted]
    return lambda: steps.scores(candidates, expected)


def _kept_part(steps: Steps, number: int, part: float) -> float:
    """The round's part of the purse, kept on disk before it is spent, so that a resumed run spends the same."""
    path = steps.run.folder / f"round-{number:04d}.json"
    if path.exists():
        return float(json.loads(path.read_text(encoding="utf-8"))["part"])
    write_whole(path, json.dumps({"part": part}) + "\n", mode=0o600)
    return part


def _chosen(
    steps: Steps, number: int, among: Sequence[Clique], part: float, scores: Callable[[], PrivateScores]
) -> Clique | None:
    event = steps.plan.choice_event(f"{number:04d}:choose", part)
    path = steps.run.folder / f"choice-{number:04d}.json"
    return choose(among, scores, event, steps.run.ledger, steps.run.source, path=path)


def _measured(steps: Steps, number: int, clique: Clique, event: NoiseEvent) -> None:
    """One marginal out of the purse; its sensitivity is that of its own matrix."""
    run, plan, query = steps.run, steps.plan, Identity(steps.domain.cells(clique))
    planned = PlannedMeasurement(clique, query, 0.0, event.with_sensitivity(steps.bound(query)))
    place = len(plan.slots) + number
    steps.known += measure_some(
        run.table, [(place, planned)], plan, run.ledger, run.source, answers_dir=run.folder, progress=run.progress
    )
