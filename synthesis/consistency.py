"""Consistency: noisy marginals that agree on what they share, are non-negative, and sum to one total."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.total import estimate_total

#: Rounds of agreement and non-negativity; each is linear in the cells.
ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Target:
    """A marginal that synthetic rows should have.

    Attributes:
        clique: its attributes, in domain order.
        values: records per cell, shaped by the attributes' sizes; non-negative, summing to the total.
        stddev: standard deviation of the noise of one cell before consistency, in records.
    """

    clique: Clique
    values: NDArray[np.float64]
    stddev: float


@dataclass(frozen=True, eq=False)
class Targets:
    """Consistent marginals over a domain."""

    domain: Domain
    total: float
    marginals: tuple[Target, ...]

    def one_way(self, name: str) -> NDArray[np.float64]:
        """The marginal of one attribute: from the most precise target that has it, uniform where none has."""
        size = self.domain[name].size
        having = [t for t in self.marginals if name in t.clique]
        if not having:
            return np.full(size, self.total / size)
        best = min(having, key=lambda t: t.stddev**2 * t.values.size)
        return np.asarray(best.values.sum(axis=_others(best.clique, (name,))))


def consistent(measurements: Measurements, *, rounds: int = ROUNDS) -> Targets:
    """Targets from noisy marginals (paper 002, section 3.2; PriView, Qardaji et al. 2014).

    Repeated measurements of a clique are averaged with weights 1/σ². Then, in the order of inclusion of the overlaps
    (smallest first, the empty one being the total), all marginals that share an overlap are shifted to its best
    estimate, the mean with weights 1/(σ² · cells summed); negative cells are taken out by the projection that keeps the
    total (norm-sub); both steps are repeated.
    """
    domain, total = measurements.domain, estimate_total(measurements)
    merged = _merged(domain, measurements.answers)
    cliques = [t.clique for t in merged]
    values = [t.values.copy() for t in merged]
    overlaps = _overlaps(cliques)
    _settle(values, total, overlaps, merged)
    values = _shrunk(domain, total, merged, values)
    for _ in range(rounds):
        _settle(values, total, overlaps, merged)
        if all(array.min(initial=0.0) >= 0 for array in values):
            break
        for i, array in enumerate(values):
            values[i] = norm_sub(array, total)
    kept = tuple(Target(t.clique, norm_sub(v, total), t.stddev) for t, v in zip(merged, values, strict=True))
    return Targets(domain, total, kept)


def _settle(
    values: list[NDArray[np.float64]], total: float, overlaps: list[tuple[Clique, list[int]]], targets: list[Target]
) -> None:
    """One pass of agreement: first on the total, then on every overlap, smaller ones first."""
    for array in values:
        array += (total - array.sum()) / array.size
    for overlap, members in overlaps:
        _agree(overlap, members, targets, values)


def _shrunk(
    domain: Domain, total: float, targets: list[Target], values: list[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Marginals that are mostly noise are drawn towards independence (the positive-part James-Stein estimator).

    With y the marginal, p the product of its one-way marginals and d its interactions' degrees of freedom, what is kept
    of y − p is max(0, 1 − d σ² / ‖y − p‖²): nothing where the noise alone explains the difference, all of it where the
    signal is strong. Post-processing; lowers the expected squared error for d > 2.
    """
    agreed = Targets(domain, total, tuple(Target(t.clique, v, t.stddev) for t, v in zip(targets, values, strict=True)))
    sides = {n: norm_sub(agreed.one_way(n), total) for t in targets for n in t.clique}
    result = []
    for target, array in zip(targets, values, strict=True):
        freedom = array.size - 1 - sum(n - 1 for n in array.shape)
        if len(target.clique) < 2 or freedom <= 2 or total <= 0:
            result.append(array)
            continue
        product = np.ones(())
        for name in target.clique:
            product = np.multiply.outer(product, sides[name] / total)
        gap = array - total * product
        kept = max(0.0, 1 - freedom * target.stddev**2 / max(float((gap**2).sum()), 1e-300))
        result.append(total * product + kept * gap)
    return result


def norm_sub(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The closest array (in L2) that is non-negative and sums to `total`: cells lose a constant, and stop at 0."""
    flat = values.ravel()
    if total <= 0:
        return np.zeros_like(values)
    down = np.sort(flat)[::-1]
    excess = np.cumsum(down) - total
    last = np.flatnonzero(down - excess / np.arange(1, flat.size + 1) > 0)[-1]
    return np.asarray(np.maximum(values - excess[last] / (last + 1), 0.0))


def _merged(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[Target]:
    """One target per clique; the mean of repeated measurements has the precision of all of them."""
    by_clique: dict[Clique, list[NoisyMarginal]] = defaultdict(list)
    for answer in answers:
        if isinstance(answer.query, Identity):
            by_clique[answer.clique].append(answer)
    merged = []
    for clique, several in by_clique.items():
        precision = np.array([a.stddev**-2 for a in several])
        mean = sum(p * a.values for p, a in zip(precision, several, strict=True)) / precision.sum()
        merged.append(Target(clique, np.asarray(mean).reshape(domain.shape(clique)), float(precision.sum() ** -0.5)))
    return merged


def _overlaps(cliques: Sequence[Clique]) -> list[tuple[Clique, list[int]]]:
    """Every attribute set that is the intersection of two or more cliques, smaller ones first, with its members."""
    found: set[frozenset[str]] = set()
    frontier = {frozenset(c) for c in cliques}
    pairwise = {a & b for a, b in itertools.combinations(frontier, 2)}
    while pairwise - found:
        found |= pairwise
        pairwise = {a & b for a, b in itertools.product(found, pairwise)} if len(found) < 2000 else set()
    result = []
    for overlap in sorted(found - {frozenset()}, key=lambda s: (len(s), sorted(s))):
        members = [i for i, c in enumerate(cliques) if overlap <= set(c)]
        if len(members) > 1:
            clique = tuple(n for n in cliques[members[0]] if n in overlap)
            result.append((clique, members))
    return result


def _agree(overlap: Clique, members: list[int], targets: list[Target], values: list[NDArray[np.float64]]) -> None:
    """Shift all members so that their projections on the overlap equal the weighted mean of the projections."""
    sums, weights = [], []
    for i in members:
        projected = values[i].sum(axis=_others(targets[i].clique, overlap))
        sums.append(projected)
        weights.append(projected.size / (values[i].size * targets[i].stddev ** 2))
    best = np.average(np.stack(sums), axis=0, weights=weights)
    for i, projected in zip(members, sums, strict=True):
        clique = targets[i].clique
        gap = (best - projected) * (projected.size / values[i].size)
        values[i] += np.expand_dims(gap, _others(clique, overlap))


def _others(clique: Clique, kept: Clique) -> tuple[int, ...]:
    return tuple(i for i, n in enumerate(clique) if n not in kept)
