"""What the answers say about each marginal: whole marginals, or any linear queries by generalised least squares."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.noise_kinds import GAUSSIAN, LAPLACE, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import NoisyMarginal, averaged
from synthesis.pgm.loss import by_clique, by_query

#: The condition number at which an ill-posed system ends, of the library.
CONDITION = 1e8


def _least_squares(
    forward: Callable[[Floats], Floats],
    backward: Callable[[Floats], Floats],
    goal: Floats,
    size: int,
    *,
    tolerance: float,
    steps: int,
    condition: float = CONDITION,
) -> Floats:
    """The `size` numbers x that bring Ax closest to the goal, of least norm among them (Fong & Saunders 2011, LSMR).

    Args:
        forward, backward: x → Ax and y → Aᵀy.
        tolerance, steps, condition: when to stop; a condition of 0: never for that.
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    operator = LinearOperator((goal.size, size), matvec=forward, rmatvec=backward, dtype=np.float64)
    solved = lsmr(operator, goal, atol=tolerance, btol=tolerance, conlim=condition, maxiter=steps)
    return np.asarray(solved[0], np.float64)


def least_weights(query: QueryMatrix, target: Floats) -> Floats | None:
    """The least weights w of the answers with Qᵀw = the wanted cells (so Private-PGM estimates a total); None: none."""
    weights = _least_squares(query.transpose, query.answer, target, query.rows, tolerance=1e-10, steps=300)
    if not weights.any() or np.abs(query.transpose(weights) - target).max(initial=0.0) > 1e-4:
        return None
    return weights


#: Steps of least squares over all marginals, and for the part of one marginal that the answers leave open.
JOINT_STEPS = 150
LIFT_STEPS = 60
#: Cells that the sides say are empty may still change by this share of the mean cell.
FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class Evidence:
    """All answers about one marginal.

    Attributes:
        clique: in domain order; `shape` its attributes' sizes.
        queries: with the standard deviation of an answer each.
        values: the answers, one array per query, in records.
        noise: whose tails that of the answers has: Gaussian, or Laplace where an answer has any other noise.
    """

    clique: Clique
    shape: tuple[int, ...]
    queries: tuple[tuple[QueryMatrix, float], ...]
    values: tuple[Floats, ...]
    noise: NoiseKind = GAUSSIAN.name

    @property
    def whole(self) -> bool:
        """Whether all of them are one measurement of every cell."""
        return len(self.queries) == 1 and isinstance(self.queries[0][0], Identity)

    @property
    def disjoint(self) -> bool:
        """Whether every cell counts in one answer and no other."""
        return len(self.queries) == 1 and bool((self.queries[0][0].transpose(np.ones(self.rows)) == 1).all())

    @property
    def rows(self) -> int:
        return sum(q.rows for q, _ in self.queries)

    @property
    def stddev(self) -> float:
        """The noise of the most precise answers."""
        return min(s for _, s in self.queries)

    @property
    def standardized(self) -> Floats:
        """The answers in units of their noise."""
        return np.concatenate([v / s for v, (_, s) in zip(self.values, self.queries, strict=True)])

    def answer(self, cells: Floats) -> Floats:
        """What the queries say of a marginal, in units of their noise."""
        return np.concatenate([q.answer(cells.ravel()) / s for q, s in self.queries])

    def transpose(self, answers: Floats) -> Floats:
        """The transpose of `answer`: shaped as the marginal."""
        cells, place = np.zeros(self.shape).ravel(), 0
        for query, stddev in self.queries:
            cells = cells + query.transpose(answers[place : place + query.rows] / stddev)
            place += query.rows
        return cells.reshape(self.shape)


def gathered(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[Evidence]:
    """The answers by clique, in the order first seen; answers to the same query become their weighted mean (1/σ²).

    Raises:
        UserError: an answer that is not finite, or does not fit its query.
    """
    evidence = []
    for clique, several in by_clique(domain, answers).items():
        groups = by_query(sorted(several, key=lambda a: not isinstance(a.query, Identity)))  # whole ones first
        means = [(group[0].query, *averaged(group)) for group in groups]
        queries, values = tuple((q, s) for q, _, s in means), tuple(m for _, m, _ in means)
        noise = GAUSSIAN.name if all(a.noise == GAUSSIAN.name for a in several) else LAPLACE.name
        evidence.append(Evidence(clique, domain.shape(clique), queries, values, noise))
    return evidence


def joint_least_squares(
    evidence: Sequence[Evidence], start: Sequence[Floats], project: Callable[[list[Floats]], list[Floats]]
) -> list[Floats]:
    """Marginals that agree and come closest to all answers, each weighed by its noise (generalised least squares).

    Best linear unbiased: no estimable sum has a larger variance than from its own marginal's answers. What no answer
    tells stays as in `start`. Solved by LSMR with the queries' own products; nothing is built as a matrix.

    Args:
        start: marginals that agree.
        project: the orthogonal projection of changes (in units of each marginal's noise) onto those that keep
            agreement and total.
    """
    shapes = [e.shape for e in evidence]
    cells = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])
    rows = np.cumsum([0, *(e.rows for e in evidence)])
    noise = [e.stddev for e in evidence]

    def split(flat: Floats) -> list[Floats]:
        return [flat[a:b].reshape(s) for (a, b), s in zip(itertools.pairwise(cells), shapes, strict=True)]

    def forward(flat: Floats) -> Floats:
        parts = project(split(flat))
        return np.concatenate([e.answer(p * s) for e, p, s in zip(evidence, parts, noise, strict=True)])

    def backward(answers: Floats) -> Floats:
        cut = [answers[a:b] for a, b in itertools.pairwise(rows)]
        parts = project([e.transpose(r) * s for e, r, s in zip(evidence, cut, noise, strict=True)])
        return np.concatenate([p.ravel() for p in parts])

    gap = np.concatenate([e.standardized - e.answer(x) for e, x in zip(evidence, start, strict=True)])
    change = _least_squares(forward, backward, gap, int(cells[-1]), tolerance=1e-9, steps=JOINT_STEPS, condition=0)
    parts = project(split(change))
    return [x + p * s for x, p, s in zip(start, parts, noise, strict=True)]


def lifted(evidence: Evidence, answers: Floats, base: Floats) -> Floats:
    """The marginal nearest to `base` that has the given answers (in units of noise), as nearly as any can.

    Near is measured relative to `base`: a sum's change is shared in proportion to it.
    """
    weights = np.maximum(base, FLOOR * base.mean())
    gap = answers - evidence.answer(base)
    if evidence.disjoint:  # rows do not meet: each is solved by itself
        return np.asarray(base + weights * evidence.transpose(gap * evidence.stddev / evidence.answer(weights)))
    root = np.sqrt(weights).ravel()
    change = _least_squares(
        lambda w: evidence.answer(root * w),
        lambda a: root * evidence.transpose(a).ravel(),
        gap,
        base.size,
        tolerance=1e-8,
        steps=LIFT_STEPS,
        condition=0,
    )
    return np.asarray(base + (root * change).reshape(base.shape))
