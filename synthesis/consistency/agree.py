"""Consistency: noisy marginals that agree on what they share, are non-negative, and sum to one total."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.evidence import Evidence, gathered, joint_least_squares, least_weights, lifted
from synthesis.consistency.projection import between, fit, norm_sub, product, soften
from synthesis.consistency.residual_parts import completed
from synthesis.impossible import Impossible, Zeros, check_zeros, impossible_cells

#: Cells: queries over larger marginals give the total only if no smaller marginal does.
FEW_CELLS = 5_000


def estimate_total(measurements: Measurements) -> float:
    """The number of records: the public total, or the inverse-variance mean of the best estimate of each marginal.

    The sum of a whole marginal of `cells` answers with standard deviation σ has variance cells · σ². Other queries
    tell the total where some weights of their answers sum every cell once; they are asked where no whole marginal
    was measured. Never negative; 0 without any answer.

    Raises:
        UserError: answers that are not finite.
    """
    if measurements.public_total is not None:
        return float(measurements.public_total)
    for answer in measurements.answers:
        if not np.isfinite(answer.values).all():
            problem = f"the answers to {' × '.join(answer.clique)} are not all finite"
            raise UserError(problem, where="measurements", fix="take the release folder of a run, unchanged")
    whole = [a for a in measurements.answers if isinstance(a.query, Identity)]
    pairs = [(float(a.values.sum()), a.query.rows * a.stddev**2) for a in whole]
    if not pairs:
        for answer in sorted(measurements.answers, key=lambda a: a.query.columns):
            if answer.query.columns > FEW_CELLS and pairs:
                break  # sums over more cells have more noise, and take long
            weights = least_weights(answer.query, np.ones(answer.query.columns))
            if weights is not None:
                pairs.append((float(weights @ answer.values), float(weights @ weights) * answer.stddev**2))
    if not pairs:
        return max(max((_uniform(a) for a in measurements.answers), default=0.0), 0.0)
    precision = np.array([1 / variance for _, variance in pairs])
    sums = np.array([value for value, _ in pairs])
    return max(float(precision @ sums / precision.sum()), 0.0)


def _uniform(answer: NoisyMarginal) -> float:
    """The total with which a uniform marginal comes closest to the answers."""
    even = answer.query.answer(np.ones(answer.query.columns))  # of 1 / n rows that sum to 0 would say 1e-17
    return answer.query.columns * float(even @ answer.values) / max(float(even @ even), 1e-300)


def default_rows(measurements: Measurements) -> int:
    """How many rows to make where nobody says: the estimated total, rounded, unless more rows stand for it."""
    return round(estimate_total(measurements)) if measurements.rows is None else measurements.rows


@dataclass(frozen=True, eq=False)
class Target:
    """A marginal that synthetic rows should have.

    Attributes:
        clique: its attributes, in domain order.
        values: records per cell, shaped by the attributes' sizes; non-negative, summing to the total.
        stddev: standard deviation of the noise of one answer before consistency, in records.
        answers: how many answers say all of it; None: one per cell.
    """

    clique: Clique
    values: Floats
    stddev: float
    answers: int | None = None

    @property
    def variance(self) -> float:
        """Of the sum of all its answers."""
        return self.stddev**2 * (self.values.size if self.answers is None else self.answers)

    @property
    def cell_stddev(self) -> float:
        """Of one cell: the noise of all answers lies in all cells, or in as many as there are records."""
        if self.answers is None:
            return self.stddev
        cells = min(self.values.size, float(self.values.sum()))
        return self.stddev * math.sqrt(self.answers / max(cells, self.answers))

    def sums(self, clique: Clique) -> Floats:
        """Its marginal on some of its attributes."""
        return np.asarray(self.values.sum(axis=_others(self.clique, clique)))


@dataclass(frozen=True, eq=False)
class ConsistentTargets:
    """Consistent marginals over a domain; `zeros` are the combinations that no row may have."""

    domain: Domain
    total: float
    marginals: tuple[Target, ...]
    zeros: tuple[Impossible, ...] = ()

    def one_way(self, name: str) -> Floats:
        """The marginal of one attribute: from the most precise target that has it, uniform where none has."""
        size = self.domain[name].size
        having = [t for t in self.marginals if name in t.clique]
        return _most_precise(having).sums((name,)) if having else np.full(size, self.total / size)


def consistent(measurements: Measurements, *, zeros: Zeros = ()) -> ConsistentTargets:
    """Targets from noisy answers (Li et al. 2021b, section 3.2; PriView, Qardaji et al. 2014).

    The linear step makes all marginals agree, without bias: whole marginals in closed form (`agreed`), answers to other
    linear queries by generalised least squares with their covariance (`joint_least_squares`). Residuals are made whole
    before (`completed`), so that their smaller marginals agree already. Then every attribute,
    every overlap and every clique is settled once, in the order of inclusion: negative cells are taken out by a
    projection that keeps the total, interactions that noise explains are softened, and the smaller sets, settled
    before, stay as they are. So heavy noise in large marginals cannot spoil small ones, and two-way marginals agree
    exactly (larger ones with overlaps of two attributes or more nearly).

    Args:
        zeros: combinations that get no records.
    Raises:
        UserError: an answer that is not finite or does not fit its query; zeros that do not fit.
    """
    domain, total = measurements.domain, estimate_total(measurements)
    evidence = gathered(domain, completed(measurements).answers)
    impossible = check_zeros(domain, zeros)
    if total <= 0:
        nothing = tuple(Target(e.clique, np.zeros(e.shape), e.stddev) for e in evidence)
        return ConsistentTargets(domain, 0.0, nothing, impossible)
    overlaps = overlaps_of(domain, [e.clique for e in evidence])
    linear = ConsistentTargets(domain, total, tuple(estimated(evidence, total, overlaps)), impossible)
    settled = _settled(linear, evidence, list(overlaps))
    return replace(linear, marginals=tuple(replace(t, values=settled[t.clique]) for t in linear.marginals))


def unbiased(measurements: Measurements) -> tuple[Target, ...]:
    """The marginals after the linear step of `consistent`: they agree and have the total; cells may be negative."""
    domain, evidence = measurements.domain, gathered(measurements.domain, completed(measurements).answers)
    overlaps = overlaps_of(domain, [e.clique for e in evidence])
    return tuple(estimated(evidence, estimate_total(measurements), overlaps))


def estimated(evidence: Sequence[Evidence], total: float, overlaps: dict[Clique, list[int]]) -> list[Target]:
    """The linear step for any answers: unbiased marginals that agree, of that total.

    Whole marginals are settled by `agreed`, which is the least-squares solution. With other queries among them the
    solution is searched from independent columns: what no answer tells stays independent.
    """
    if all(e.whole for e in evidence):
        return agreed([Target(e.clique, e.values[0].reshape(e.shape), e.stddev) for e in evidence], total, overlaps)
    ones = {e.clique[0]: norm_sub(e.values[0], total) for e in evidence if e.whole and len(e.clique) == 1}
    start = []
    for e in evidence:
        sides = [ones.get(n, np.full(k, total / k)) for n, k in zip(e.clique, e.shape, strict=True)]
        start.append(product(sides, total))

    def project(changes: list[Floats]) -> list[Floats]:
        targets = [Target(e.clique, c * e.stddev, e.stddev) for e, c in zip(evidence, changes, strict=True)]
        return [t.values / t.stddev for t in agreed(targets, 0.0, overlaps)]

    solution = joint_least_squares(evidence, start, project)
    return [Target(e.clique, x, e.stddev, None if e.whole else e.rows) for e, x in zip(evidence, solution, strict=True)]


def agreed(targets: Sequence[Target], total: float, overlaps: dict[Clique, list[int]]) -> list[Target]:
    """The linear step: first the total, then every overlap, smaller ones first, is shifted to its best estimate.

    That is the mean of all marginals' sums with weights 1/(σ² · cells summed); a shift of a larger overlap never
    disturbs a smaller one that agrees already. Unbiased, and raises no marginal's expected squared error.
    """
    values = [t.values + (total - t.values.sum()) / t.values.size for t in targets]
    for overlap, members in overlaps.items():
        others = [_others(targets[i].clique, overlap) for i in members]
        sums = [np.asarray(values[i].sum(axis=o)) for i, o in zip(members, others, strict=True)]
        weights = [s.size / (values[i].size * targets[i].stddev ** 2) for i, s in zip(members, sums, strict=True)]
        best = np.average(np.stack(sums), axis=0, weights=np.array(weights) / max(weights))
        for i, o, s in zip(members, others, sums, strict=True):
            values[i] = values[i] + np.expand_dims((best - s) * (s.size / values[i].size), o)
    return [Target(t.clique, v, t.stddev) for t, v in zip(targets, values, strict=True)]


def overlaps_of(domain: Domain, cliques: Sequence[Clique]) -> dict[Clique, list[int]]:
    """Every non-empty intersection of two or more cliques, smaller ones first, with the cliques that contain it.

    Found from the subsets of each clique (no more than it has cells): a set is an intersection if it is the
    intersection of all that contain it. Attributes of one code count as absent: they only repeat the total.
    """
    bare = [tuple(n for n in c if domain[n].size > 1) for c in cliques]
    members: dict[Clique, list[int]] = defaultdict(list)
    for i, clique in enumerate(bare):
        for subset in subsets(clique):
            members[subset].append(i)
    closed = [
        s for s, m in members.items() if len(m) > 1 and len(set.intersection(*(set(bare[i]) for i in m))) == len(s)
    ]
    return {s: members[s] for s in sorted(closed, key=lambda s: (len(s), domain.axes(s)))}


def _settled(
    linear: ConsistentTargets, evidence: Sequence[Evidence], overlaps: Sequence[Clique]
) -> dict[Clique, Floats]:
    """Non-negative values of every attribute, overlap and clique, each with the sides settled before it.

    Args:
        linear: the marginals after the linear step.
    """
    targets, axes = linear.marginals, linear.domain.axes
    cliques = {(n,) for t in targets for n in t.clique} | set(overlaps) | {t.clique for t in targets}
    having: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        for name in target.clique:
            having[name].append(target)
    other = {e.clique: e for e in evidence if not e.whole}
    settled: dict[Clique, Floats] = {}
    for clique in sorted(cliques, key=lambda s: (len(s), axes(s))):
        source = _most_precise([t for t in having[clique[0]] if set(clique) <= set(t.clique)])
        settled[clique] = _one(linear, clique, source, other.get(clique), settled)
    return settled


def _one(
    linear: ConsistentTargets, clique: Clique, source: Target, other: Evidence | None, settled: dict[Clique, Floats]
) -> Floats:
    values = source.sums(clique)
    impossible = impossible_cells(linear.domain, linear.zeros, clique)
    inner = [s for s in subsets(clique)[:-1] if s in settled]
    sides = {tuple(clique.index(n) for n in s): settled[s] for s in inner if not any(set(s) < set(t) for t in inner)}
    if len(clique) > 1 and other is not None:
        base = between(product([settled[(n,)] for n in clique], linear.total), sides)
        softened = soften(other.answer(values), other.answer(base), 1.0)
        values = lifted(other, softened, base)
    elif values.size - 1 > sum(n - 1 for n in values.shape):
        noise = float(np.sqrt(source.variance / values.size))
        values = soften(values, product([settled[(n,)] for n in clique], linear.total), noise)
    return fit(values, linear.total, sides, impossible=impossible)


def _most_precise(targets: Sequence[Target]) -> Target:
    """The one whose sums over a common part have the least variance."""
    return min(targets, key=lambda t: t.variance)


def _others(clique: Clique, overlap: Clique) -> tuple[int, ...]:
    return tuple(i for i, n in enumerate(clique) if n not in overlap)
