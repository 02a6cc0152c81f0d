"""How closely to fit: noisy answers are split into two of independent noise, one to fit and one to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.progress import Progress
from synthesis.convergence import FitRecord
from synthesis.pgm.estimation import Point, Stopping
from synthesis.pgm.loss import FitLoss

#: Noise added to the answers that are fitted, in σ; the others get as much divided by its square.
SHARE = 0.5
#: Steps between two evaluations on the holdout, and evaluations without progress that end the fit.
LOOK_EVERY = 4
PATIENCE = 6
SEED = 0

Optimizer = Callable[[FitLoss, Values, Stopping, Progress | None], tuple[Point, FitRecord]]


@dataclass
class Judge:
    """The loss on the answers held out, and the loss that the fit had (`best`) where this one was least."""

    loss: FitLoss
    steps: int = 0
    least: float = float("inf")
    looks: int = 0
    best: float | None = None
    slope: Values | None = None

    def __call__(self, point: Point) -> bool:
        """Whether to end here."""
        self.steps += 1
        if self.steps % LOOK_EVERY != 1:
            return False
        value, self.slope = self.loss.evaluate(point.marginals, self.slope)
        self.looks += 1
        if value < self.least:
            self.least, self.best, self.looks = value, point.loss, 0
        return self.looks >= PATIENCE


def split(loss: FitLoss, rng: np.random.Generator) -> tuple[FitLoss, FitLoss]:
    """Two losses from one: to answers y + aσz and to answers y − σz/a, for standard normal z.

    Where the noise of y is normal, the two are independent, with variances (1 + a²)σ² and (1 + 1/a²)σ² (data thinning;
    Rasines and Young 2023): what is fitted to one and comes closer to the other is not noise. Both keep the weights
    1/σ².
    """
    plans = [[(part, [t.split(SHARE, rng) for t in part.terms]) for part in plan] for plan in loss.plans]
    fitted, judged = (
        tuple(tuple(replace(part, terms=tuple(t[side] for t in terms)) for part, terms in plan) for plan in plans)
        for side in (0, 1)
    )
    return replace(loss, plans=fitted, constant=0.0), replace(loss, plans=judged, constant=0.0)


def held_out_target(
    loss: FitLoss, start: Values, rules: Stopping, optimizer: Optimizer, progress: Progress | None
) -> float:
    """The loss at which to stop, found on answers with a little more noise.

    A fit to one half is judged by the other after every few steps. Where the judge saw the least loss, the fit had
    reached a share of its own noise floor; the fit to all answers stops at the same share of theirs, or at the floor
    itself if that is lower. That fit starts anew: the potentials found here have seen noise that is in no answer.
    """
    fitted, judged = split(loss, np.random.default_rng(SEED))
    judge = Judge(judged)
    optimizer(fitted, start, replace(rules, target=0.0, gap=0.0, judge=judge), progress)
    if judge.best is None:
        return loss.floor
    values = sum(t.size for plan in loss.plans for part in plan for t in part.terms)
    share = judge.best / (1 + SHARE**2)
    return loss.constant + min(share, 0.5 * values)
