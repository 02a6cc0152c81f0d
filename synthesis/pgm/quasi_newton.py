"""L-BFGS on the potentials, preconditioned by the natural gradient: few steps where many marginals overlap."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from mechanisms.public.marginals import Values
from mechanisms.public.progress import Progress
from synthesis.convergence import FitRecord
from synthesis.pgm.estimation import FAILURES, STALLED, Point, Stopping, Watch, at
from synthesis.pgm.loss import FitLoss

#: Pairs of steps and changes of the gradient that are remembered; three arrays of the model's size each.
HISTORY = 6
#: A step must lower the loss by this share of its linear prediction (Armijo).
ENOUGH = 1e-4


@dataclass(frozen=True, eq=False)
class _Pair:
    """A step, the change of the gradient with respect to the potentials, and of that to the marginals."""

    step: Values
    slope: Values
    natural: Values
    product: float


def lbfgs(loss: FitLoss, start: Values, stopping: Stopping, progress: Progress | None) -> tuple[Point, FitRecord]:
    """L-BFGS (Nocedal 1980) whose first guess of the inverse Hessian is a mirror-descent step.

    The gradient with respect to the potentials is the marginals' covariance times the one with respect to the
    marginals, so the natural gradient, which is the latter, costs nothing: the two-loop recursion carries both. It
    makes steps good from the first, where plain L-BFGS starts in a flat region.
    """
    here = at(loss, start)
    watch = Watch(loss, stopping, progress, here)
    reason = watch.ended(here)
    steepest = float(np.abs(here.gradient).max(initial=0.0))
    if steepest == 0.0:
        return watch.done("the loss is least")
    pairs: deque[_Pair] = deque(maxlen=HISTORY)
    eta = 1.0 / steepest
    slope = loss.total * loss.engine.covariance(here.marginals, here.gradient)
    while reason is None:
        step = _direction(pairs, slope, here.gradient, eta)
        promised = -float(step @ slope)
        if not promised > 0:
            pairs.clear()
            step = -eta * here.gradient
            promised = -float(step @ slope)
        following = _searched(loss, here, step, promised)
        if following is None and not pairs:
            return watch.done(STALLED)
        if following is None:
            pairs.clear()
            continue
        after = loss.total * loss.engine.covariance(following.marginals, following.gradient)
        moved, bent = following.potentials - here.potentials, after - slope
        natural = following.gradient - here.gradient
        product = float(moved @ bent)
        if product > 0:
            pairs.append(_Pair(moved, bent, natural, product))
            curved = float(bent @ natural)
            eta = product / curved if curved > 0 else eta
        else:
            eta *= 2.0
        here, slope = following, after
        reason = watch.ended(here)
    return watch.done(reason)


def _direction(pairs: deque[_Pair], slope: Values, natural: Values, eta: float) -> Values:
    """The two-loop recursion; `natural` is what the preconditioner makes of `slope`, but for the factor eta."""
    slope, natural = slope.copy(), natural.copy()
    shares = []
    for pair in reversed(pairs):
        share = float(pair.step @ slope) / pair.product
        slope -= share * pair.slope
        natural -= share * pair.natural
        shares.append(share)
    natural *= eta
    for pair, share in zip(pairs, reversed(shares), strict=True):
        natural += (share - float(pair.slope @ natural) / pair.product) * pair.step
    return -natural


def _searched(loss: FitLoss, here: Point, step: Values, promised: float) -> Point | None:
    """The first of ever shorter steps that lowers the loss enough; None: none does."""
    length = 1.0
    for _ in range(FAILURES):
        following = at(loss, here.potentials + length * step)
        if following.loss <= here.loss - ENOUGH * length * promised:
            return following
        fall = here.loss - following.loss
        bend = 2 * (fall + length * promised)
        best = length * length * promised / bend if np.isfinite(bend) and bend > 0 else 0.0
        length = min(max(best, 0.1 * length), 0.5 * length)
    return None
