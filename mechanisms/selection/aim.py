"""AIM (McKenna, Mullins, Sheldon & Miklau 2022): workload-aware choice, annealed noise, a limit to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import GIVEN, LATER, Facts, Method, Schedule
from mechanisms.selection.context import Context, Part
from mechanisms.selection.fixed import GivenMarginals
from mechanisms.selection.questions import CAPPED, FULL, ask_given, penalized, small_enough

#: The budget is first split over this many rounds per column (the paper: 16).
ROUNDS_PER_COLUMN = 2
#: If there are more than `MANY` candidates, each round scores `FEW` of them.
MANY, FEW = 20_000, 5_000


@dataclass(frozen=True)
class Aim(Method):
    """Choose by the workload's weight, measure, fit; halve the noise when a round taught less than its noise.

    Attributes:
        candidates: the downward closure of the workload.
        weights: per candidate Σ over workload marginals of weight · |overlap|.
        measured: the part of each round that measures; the rest chooses.
        rounds: the budget is split for so many rounds at first.
        max_model_cells: the model's size at the end; a round may use the part of it that is spent.
        penalty: what is taken off a candidate's score for its noise (`questions.penalized`).
        per_round: at most so many candidates are looked at in a round (`in_turn`); None: all of them.
    """

    kind: ClassVar[str] = "aim"
    graphical: ClassVar[bool] = True
    squares: ClassVar[bool] = True
    candidates: tuple[Clique, ...]
    weights: tuple[float, ...]
    measured: float
    rounds: int
    max_model_cells: int
    penalty: str = FULL
    per_round: int | None = None

    @property
    def max_cells_between(self) -> int | None:
        return self.max_model_cells

    def slots(self, domain: Domain) -> tuple[list[Reservation], float]:
        """One-way marginals, each as precise as a round of the first size, and the part of the budget for rounds."""
        one = self.measured / self.rounds
        slots = [Reservation(GIVEN, (n,), domain[n].size, one) for n in domain.names]
        return slots, 1 - one * len(domain)

    def run(self, context: Context) -> None:
        """Rounds until the reserve is spent.

        A round that leaves too little for two more takes all that is left. Which marginals may be chosen grows with the
        budget spent: a model of all of them may have that part of max_model_cells.
        """
        ask_given(context)
        weights = dict(zip(self.candidates, self.weights, strict=True))
        left, part, number = 1.0, 1 / self.rounds, 0
        expected = context.fit()
        while left > 0:
            part = context.remember(number, left if left < 2 * part else part)
            noise = context.event(Part(self.measured * part)).mean_abs
            turn = in_turn(self.candidates, number, self.per_round)
            allowed = small_enough(context, turn, round((1 - left + part) * self.max_model_cells))
            scores = penalized(context, {c: weights[c] for c in allowed}, noise, expected, self.penalty)
            clique = context.choose(Part((1 - self.measured) * part, number), allowed, scores)
            before = len(context.answers_so_far)
            if clique is not None:
                context.ask([(Part(self.measured * part, number), clique, Identity(context.domain.cells(clique)))])
            left, number = left - part if left > part else 0.0, number + 1
            context.advance(1 - left, f"round {number}")
            if clique is None or len(context.answers_so_far) == before:
                continue
            old, expected = expected(clique), context.fit()
            if float(np.abs(expected(clique) - old).sum()) <= noise * old.size:  # it taught less than its noise
                part *= 4

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """One marginal for each round of the first size."""
        largest = max((domain.cells(c) for c in self.candidates), default=0)
        return super().later_cells(domain, slots) + [(LATER, min(largest, self.max_model_cells))] * self.rounds


def in_turn(candidates: Sequence[Clique], number: int, most: int | None) -> list[Clique]:
    """The candidates that a round looks at: all, or at most so many, others in the next round, a public matter.

    Every order has an equal part, what a small one leaves falls to the next; each goes through its own in a fixed
    shuffled order.
    """
    if most is None or most >= len(candidates):
        return list(candidates)
    orders: dict[int, list[int]] = {}
    for place, clique in enumerate(candidates):
        orders.setdefault(len(clique), []).append(place)
    chosen: list[int] = []
    for done, (_, places) in enumerate(sorted(orders.items(), key=lambda o: len(o[1]))):
        count = min((most - len(chosen)) // (len(orders) - done), len(places))
        shuffled = np.random.default_rng(len(places)).permutation(places)
        chosen += [int(shuffled[(number * count + i) % len(places)]) for i in range(count)]
    return [candidates[i] for i in sorted(chosen)]


@dataclass(frozen=True)
class AimSettings(GivenMarginals):
    """Settings, as conf/selection/aim.yaml says; the given marginals are the workload, subsets may be chosen too."""

    kind: ClassVar[str] = "aim"
    methods: ClassVar[tuple[type[Method], ...]] = (Aim,)
    k: list[int] = setting([3], least=1, filled=True)
    max_cells: int = setting(100_000, least=1)
    rounds: int | None = setting(None, least=1)
    measured: float = setting(0.9, above=0, below=1)
    max_model_cells: int = setting(4_000_000, least=1)
    penalty: str = setting(FULL, choices=(FULL, CAPPED))
    per_round: int | None = setting(None, least=2)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule:
        """All subsets of the workload's marginals; a subset's weight is Σ of weight · |overlap| over the workload."""
        domain = facts.domain
        candidates = {s for c in workload.cliques for s in subsets(c)}
        order = sorted(candidates, key=lambda c: (len(c), domain.axes(c)))
        held = dict.fromkeys(domain.names, 0.0)  # |overlap| is a sum over columns, and so is the sum over the workload
        for clique, weight in zip(workload.cliques, workload.weights, strict=True):
            for name in clique:
                held[name] += weight
        useful = [sum(held[n] for n in s) for s in order]
        rounds = ROUNDS_PER_COLUMN * len(domain) if self.rounds is None else self.rounds
        if rounds < len(domain):
            fix = f"at least the number of columns, {len(domain)}, or null"
            raise UserError(f"got {rounds}", where="selection.rounds", fix=fix)
        most = self.per_round or (FEW if len(order) > MANY else None)
        largest = max(useful)
        weights = tuple(max(u / largest, 2.0**-16) for u in useful)
        method = Aim(tuple(order), weights, self.measured, rounds, self.max_model_cells, self.penalty, most)
        return Schedule(method, *method.slots(domain))
