"""PriView's answers (Li et al. 2021b, section 3.2): any marginal from the released ones, and rows that follow it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.settings import setting
from synthesis.consistency.agree import ConsistentTargets, Target, consistent
from synthesis.consistency.projection import Axes, nearest, others_of, raked
from synthesis.contract import Synthesizer
from synthesis.convergence import Synthesized
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import information, outermost
from synthesis.impossible import Zeros, impossible_cells

#: Rounds of proportional fitting and of alternating projections, and when they may stop (share of the total).
ROUNDS = 500
NEAR = 1e-7
#: Cells: rows follow estimated marginals up to this size.
ANSWER_CELLS = 20_000


@dataclass(frozen=True)
class MaxentSpec(Synthesizer):
    """Settings of PriView's answers; conf/synthesis/maxent.yaml says what each is."""

    solution: str = setting("maxent", choices=("maxent", "least_norm", "leastnorm", "linear"))
    way: int = setting(3, least=1)
    answers: int = setting(30, least=0)
    max_cells: int = setting(20_000_000, least=1)

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows that have the views' marginals, and what follows from them."""
        return Synthesized(ViewModel(consistent(measurements, zeros=zeros), self).rows(rows, rng, progress))


@dataclass(frozen=True, eq=False)
class ViewModel:
    """Released views that answer any marginal.

    Attributes:
        targets: the views, consistent and non-negative.
        spec: how a marginal that lies in no view is found.
    """

    targets: ConsistentTargets
    spec: MaxentSpec

    @property
    def domain(self) -> Domain:
        return self.targets.domain

    @property
    def total(self) -> float:
        return self.targets.total

    def marginal(self, clique: Sequence[str]) -> Floats:
        """Records per cell of any marginal, flattened in C order of the clique in domain order; it sums to the total.

        From the most precise view that contains it; else the solution of what all views say about its parts.
        Attributes in no view are uniform and independent.

        Raises:
            UserError: an unknown attribute; a marginal of more than `spec.max_cells` cells.
        """
        names = self.domain.canonical(clique)
        cells = self.domain.cells(names)
        if cells > self.spec.max_cells:
            problem = f"the marginal of {' × '.join(names)} has {cells:,} cells, more than {self.spec.max_cells:,}"
            raise UserError(problem, where="marginal", fix="fewer or coarser columns, or raise synthesis.max_cells")
        holding = [t for t in self.targets.marginals if set(names) <= set(t.clique)]
        if holding:
            return min(holding, key=lambda t: t.variance).sums(names).ravel()
        if self.total <= 0:
            return np.zeros(cells)
        impossible = impossible_cells(self.domain, self.targets.zeros, names)
        shape = self.domain.shape(names)
        possible = np.ones(shape, np.bool_) if impossible is None else ~impossible
        return SOLUTIONS[self.spec.solution](possible, self.total, self._sides(names)).ravel()

    def _sides(self, names: Clique) -> dict[Axes, Floats]:
        """What the views say about the largest parts of a clique that they hold, by axes."""
        held: dict[Clique, Target] = {}
        for target in sorted(self.targets.marginals, key=lambda t: -t.variance):
            part = tuple(n for n in names if n in target.clique)
            if part:
                held[part] = Target(part, target.sums(part), target.stddev)
        return {tuple(names.index(n) for n in t.clique): t.values for t in outermost(list(held.values()))}

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """Synthetic rows that have the views' marginals and answered ones: GUM from a tree of two-way ones."""
        targets = replace(self.targets, marginals=(*self.targets.marginals, *self.answered()))
        return GumSpec(start="tree").follow(targets, rows=count, rng=rng, progress=progress).table

    def answered(self) -> tuple[Target, ...]:
        """Marginals of `spec.way` attributes in no view, answered: those whose pairs tell most of each other.

        They weigh as much as the least precise view.
        """
        views = self.targets.marginals
        if self.total <= 0 or not views or not self.spec.answers:
            return ()
        names = self.domain.canonical({n for t in views for n in t.clique})
        dependence: dict[Clique, float] = {}
        for target in sorted(views, key=lambda t: -t.variance):
            dependence |= {p: information(target.sums(p)) for p in itertools.combinations(target.clique, 2)}
        held = [frozenset(t.clique) for t in views]
        free = [
            c
            for c in itertools.combinations(names, min(self.spec.way, len(names)))
            if self.domain.cells(c) <= ANSWER_CELLS and not any(v.issuperset(c) for v in held)
        ]
        free.sort(key=lambda c: -sum(dependence.get(p, 0.0) for p in itertools.combinations(c, 2)))
        noise = max(t.stddev for t in views)
        return tuple(
            Target(c, self.marginal(c).reshape(self.domain.shape(c)), noise) for c in free[: self.spec.answers]
        )


def solved_views(measurements: Measurements, solution: str, zeros: Zeros) -> ViewModel:
    """Views whose answers to marginals in no view are found by a solution.

    Guarantee: post-processing; costs no privacy.
    Args:
        solution: maxent, least_norm (also leastnorm, as it was called earlier) or linear.
    Raises:
        UserError: another word; as `consistent`.
    """
    named = {"leastnorm": "least_norm"}.get(solution, one_of(solution, SOLUTIONS, "solution"))
    return ViewModel(consistent(measurements, zeros=zeros), MaxentSpec(solution=named))


def largest_entropy(possible: Flags, total: float, sides: dict[Axes, Floats]) -> Floats:
    """Proportional fitting from the uniform marginal: the one of largest entropy among those with these sides.

    Sides that contradict each other a little (noise, non-negativity) are met in turn; the mean of the last round is
    returned.
    """
    values = np.where(possible, total / max(int(possible.sum()), 1), 0.0)
    for _ in range(ROUNDS):
        worst, mean = 0.0, np.zeros_like(values)
        for axes, side in sides.items():
            values, off = raked(values, axes, side)
            worst, mean = max(worst, off), mean + values
        if len(sides) < 2 or worst <= NEAR * total:
            break
    mean = mean / len(sides) if sides else values
    return np.asarray(mean * (total / max(float(mean.sum()), 1e-300)), np.float64)


def least_norm(possible: Flags, total: float, sides: dict[Axes, Floats]) -> Floats:
    """The non-negative marginal of least L2 norm with these sides: Dykstra's alternating projections from 0."""
    values, debt = np.zeros(possible.shape), np.zeros(possible.shape)
    for _ in range(ROUNDS):
        worst = 0.0
        for axes, side in sides.items():  # affine: no correction to remember
            others = others_of(values.ndim, axes)
            gap = side - values.sum(axis=others)
            worst = max(worst, float(np.abs(gap).max()))
            share = np.expand_dims(gap / np.maximum(possible.sum(axis=others), 1), others)
            values = values + np.where(possible, share, 0.0)
        lowest = float(values.min(initial=0.0))
        if worst <= NEAR * total and lowest >= -NEAR * total:
            break
        positive = np.maximum(values + debt, 0.0)
        debt = values + debt - positive
        values = positive
    return nearest(values, total, possible)


def linear_programme(possible: Flags, total: float, sides: dict[Axes, Floats]) -> Floats:
    """A non-negative marginal whose sides are off by as little as possible (the largest cell counts)."""
    from scipy import sparse
    from scipy.optimize import linprog

    cells = possible.size
    numbers = np.arange(cells).reshape(possible.shape)
    rows, right = [], []
    for axes, side in sides.items():
        places = np.expand_dims(np.arange(side.size).reshape(side.shape), others_of(possible.ndim, axes))
        key = np.broadcast_to(places, possible.shape)
        rows.append(sparse.csr_array((np.ones(cells), (key.ravel(), numbers.ravel())), shape=(side.size, cells)))
        right.append(side.ravel() / total)
    if not rows:
        return nearest(np.where(possible, 1.0, 0.0), total, possible)
    matrix, goal = sparse.vstack(rows), np.concatenate(right)
    slack = sparse.csr_array(np.ones((goal.size, 1)))
    upper = sparse.vstack([sparse.hstack([matrix, -slack]), sparse.hstack([-matrix, -slack])], format="csr")
    bounds = [(0.0, None if p else 0.0) for p in possible.ravel()] + [(0.0, None)]
    solution = linprog(  # type: ignore[call-overload]  # the stubs know dense matrices only
        np.append(np.zeros(cells), 1.0),
        A_ub=upper,
        b_ub=np.concatenate([goal, -goal]),
        A_eq=sparse.csr_array(np.append(np.ones(cells), 0.0)[None, :]),
        b_eq=np.ones(1),
        bounds=bounds,
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"the linear programme ended with: {solution.message}")
    return nearest(solution.x[:-1].reshape(possible.shape) * total, total, possible)


SOLUTIONS: dict[str, Callable[[Flags, float, dict[Axes, Floats]], Floats]] = {
    "maxent": largest_entropy,
    "least_norm": least_norm,
    "leastnorm": least_norm,  # the earlier spelling
    "linear": linear_programme,
}
