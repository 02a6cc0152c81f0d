"""Potentials whose marginals come closest to the noisy answers: mirror descent on a junction tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.progress import Progress
from synthesis.convergence import FitRecord
from synthesis.pgm.kernels import along, stepped
from synthesis.pgm.loss import FitLoss

#: Steps between two looks at the duality gap.
GAP_EVERY = 25
#: Steps over which the improvement is taken; the loss may rise for as many before the momentum is dropped.
WINDOW = 10
#: A loss above the least that falls below this share of itself in a step is on its way down.
FALLING = 0.99
#: Steps that fail one after another before the descent ends.
FAILURES = 60
STALLED = "the loss no longer falls"


@dataclass(frozen=True)
class Stopping:
    """When an estimation ends.

    Attributes:
        iterations: at most so many steps.
        target: stop at this loss; 0: go on.
        tolerance: stop when ten steps together lower the loss by less than this share of it.
        gap: stop when the loss is proven to be within this share of the noise floor from the least possible one.
        judge: asked at every step whether to end there.
    """

    iterations: int = 1000
    target: float = 0.0
    tolerance: float = 1e-6
    gap: float = 1e-3
    judge: Callable[[Point], bool] | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """Potentials, the node marginals that they give (probabilities), the loss there and its gradient (per record)."""

    potentials: Floats
    marginals: Floats
    loss: float
    gradient: Floats


def at(loss: FitLoss, potentials: Floats, out: tuple[Floats | None, Floats | None] = (None, None)) -> Point:
    """The loss of a model; its marginals and gradient are written to `out`."""
    marginals = loss.engine.infer(potentials, out[0])
    value, gradient = loss.evaluate(marginals, out[1])
    return Point(potentials, marginals, value, gradient)


def _spare(pool: list[Floats], last: Floats, *points: Point) -> list[Floats]:
    """Four arrays that are no point's: the pool's, which grows where they are missing.

    To take new ones at every step costs more than to fill them: the system hands out their pages one by one.
    """
    held = {id(last), *(id(a) for p in points for a in (p.potentials, p.marginals, p.gradient))}
    free = [a for a in pool if id(a) not in held][:4]
    more = [np.empty_like(last) for _ in range(4 - len(free))]
    pool += more
    return free + more


def duality_gap(loss: FitLoss, point: Point) -> float:
    """How far the loss can be above the least one: of all distributions with this total, none is lower by more.

    The loss is convex in the distribution, so it is at least loss + ⟨gradient, μ' − μ⟩; the smallest value over all μ'
    is at one combination of values, which a pass over the tree finds (Frank and Wolfe 1956).
    """
    now = float(point.gradient @ point.marginals)
    return max(loss.total * (now - loss.engine.least(point.gradient)), 0.0)


@dataclass
class Watch:
    """Counts steps, remembers losses and the best point, and says when to stop."""

    loss: FitLoss
    stopping: Stopping
    progress: Progress | None
    best: Point
    losses: list[float] = field(default_factory=list)

    def ended(self, point: Point) -> str | None:
        """Take note of a step; why to end here, or None."""
        self.losses.append(point.loss)
        if point.loss <= self.best.loss:
            self.best = point
        step, rules, floor = len(self.losses) - 1, self.stopping, self.loss.floor
        if self.progress is not None and step:
            figure = f"loss {point.loss / floor:.4g} × the noise floor" if floor else "no answers"
            self.progress(step, rules.iterations, figure)
        if self.best.loss <= rules.target:
            return "the loss is at its target"
        if rules.judge is not None and rules.judge(point):
            return "answers held out are met no better"
        if step >= rules.iterations:
            return "all iterations are done"
        if step > 2 * WINDOW:
            before, now = min(self.losses[:-WINDOW]), min(self.losses)
            on_its_way = now < point.loss < FALLING * self.losses[-2]  # momentum led it up, and it comes down again
            if before - now <= rules.tolerance * now and not on_its_way:
                return STALLED
        if step % GAP_EVERY == 0 and rules.gap and duality_gap(self.loss, self.best) <= rules.gap * floor:
            return "the loss is proven to be least"
        return None

    def done(self, reason: str) -> tuple[Point, FitRecord]:
        """The best point seen, and how it was found."""
        gap = duality_gap(self.loss, self.best)
        return self.best, FitRecord(tuple(self.losses), self.loss.floor, gap, reason)


def mirror_descent(
    loss: FitLoss, start: Floats, stopping: Stopping, progress: Progress | None
) -> tuple[Point, FitRecord]:
    """Mirror descent in the entropy (McKenna et al. 2019) with Nesterov's momentum on the potentials.

    A step takes the gradient with respect to the marginals off the potentials. Its length follows the curvature that
    the last step met, measured in relative entropy: η = ⟨Δθ, Δμ⟩ / ⟨Δg, Δμ⟩. The momentum starts anew when the loss is
    above all of the last ten. One inference a step; the potentials stay in the span of the queries, so that among
    equally good distributions it tends to the one of largest entropy.
    """
    here = at(loss, start)
    watch = Watch(loss, stopping, progress, here)
    reason, steepest = watch.ended(here), float(np.abs(here.gradient).max(initial=0.0))
    if steepest == 0.0:
        return watch.done("the loss is least")
    eta, last, age, failures, pool = 1.0 / steepest, start, 0, 0, list[Floats]()
    while reason is None:
        ahead, point, *out = _spare(pool, last, here, watch.best)
        stepped(here.potentials, here.gradient, last, eta, age / (age + 3.0), ahead, point)
        following = at(loss, point, (out[0], out[1]))
        steepness = _steepness(here, following, eta)
        rose = age > 1 and following.loss > max(watch.losses[-WINDOW:])
        if rose or not steepness <= 4.0 or (age <= 1 and following.loss > here.loss):
            eta *= 0.9 if rose else min(max(1 / steepness, 0.01), 0.5) if steepness > 0 else 0.5
            age, last, failures = 0, here.potentials, failures + 1
            if failures == FAILURES:
                return watch.done(STALLED)
            continue
        last, here, age, failures = ahead, following, age + 1, 0
        if steepness > 0:
            eta = min(eta * (2.0 if steepness < 0.05 else 1.2), max(eta / steepness, eta / 2))
        reason = watch.ended(here)
        if reason == STALLED and here is not watch.best:  # momentum may have led away from where it still falls
            here, last, age, reason = watch.best, watch.best.potentials, 0, None
    return watch.done(reason)


def _steepness(before: Point, after: Point, eta: float) -> float:
    """The step's length times the curvature met between two points, relative to that of the entropy; 0: none seen."""
    both = ((getattr(before, k), getattr(after, k)) for k in ("marginals", "potentials", "gradient"))
    entropy, curved = along(*(values for pair in both for values in pair))
    if not np.isfinite(curved) or not np.isfinite(after.loss):
        return float("inf")
    return eta * curved / entropy if entropy > 0 and curved > 0 else 0.0
