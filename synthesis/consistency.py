"""Consistency: noisy marginals that agree on what they share, are non-negative, and sum to one total."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.projection import fit, norm_sub, product, soften
from synthesis.total import estimate_total, whole_marginals


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

    def sums(self, clique: Clique) -> NDArray[np.float64]:
        """Its marginal on some of its attributes."""
        return np.asarray(self.values.sum(axis=_others(self.clique, clique)))


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
        return _most_precise(having).sums((name,)) if having else np.full(size, self.total / size)


def consistent(measurements: Measurements) -> Targets:
    """Targets from noisy marginals (paper 002, section 3.2; PriView, Qardaji et al. 2014).

    Repeated measurements of a clique are averaged with weights 1/σ². `agreed` makes all marginals agree, without bias.
    Then every attribute, every overlap and every clique is settled once, in the order of inclusion: negative cells are
    taken out by the projection that keeps the total (norm-sub), interactions that noise explains are softened, and the
    smaller sets, settled before, stay as they are. So heavy noise in large marginals cannot spoil small ones, and two-
    way marginals agree exactly (larger ones with overlaps of two attributes or more nearly).

    Raises:
        UserError: an answer that is no whole marginal, or not finite.
    """
    domain, total = measurements.domain, estimate_total(measurements)
    merged = _merged(domain, whole_marginals(measurements))
    if total <= 0:
        return Targets(domain, 0.0, tuple(Target(t.clique, np.zeros_like(t.values), t.stddev) for t in merged))
    overlaps = overlaps_of(domain, [t.clique for t in merged])
    linear = agreed(merged, total, overlaps)
    settled = _settled(domain, total, linear, list(overlaps))
    return Targets(domain, total, tuple(Target(t.clique, settled[t.clique], t.stddev) for t in merged))


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
        for size in range(1, len(clique) + 1):
            for subset in itertools.combinations(clique, size):
                members[subset].append(i)
    closed = [
        s for s, m in members.items() if len(m) > 1 and len(set.intersection(*(set(bare[i]) for i in m))) == len(s)
    ]
    return {s: members[s] for s in sorted(closed, key=lambda s: (len(s), domain.axes(s)))}


def _settled(
    domain: Domain, total: float, targets: Sequence[Target], overlaps: Sequence[Clique]
) -> dict[Clique, NDArray[np.float64]]:
    """Non-negative values of every attribute, overlap and clique, each with the sides settled before it."""
    attributes = {(n,) for t in targets for n in t.clique}
    order = sorted(attributes | set(overlaps) | {t.clique for t in targets}, key=lambda s: (len(s), domain.axes(s)))
    having: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        for name in target.clique:
            having[name].append(target)
    settled: dict[Clique, NDArray[np.float64]] = {}
    for clique in order:
        source = _most_precise([t for t in having[clique[0]] if set(clique) <= set(t.clique)])
        values = source.sums(clique)
        if len(clique) == 1:
            settled[clique] = norm_sub(values, total)
            continue
        if values.size - 1 > sum(n - 1 for n in values.shape):
            base = product([settled[(n,)] for n in clique], total)
            values = soften(values, base, source.stddev * float(np.sqrt(source.values.size / values.size)))
        inner = [s for s in _within(clique) if s in settled]
        largest = [s for s in inner if not any(set(s) < set(t) for t in inner)]
        settled[clique] = fit(values, total, {tuple(clique.index(n) for n in s): settled[s] for s in largest})
    return settled


def _within(clique: Clique) -> list[Clique]:
    """The proper subsets of a clique."""
    return [s for size in range(1, len(clique)) for s in itertools.combinations(clique, size)]


def _most_precise(targets: Sequence[Target]) -> Target:
    """The one whose sums over a common part have the least variance."""
    return min(targets, key=lambda t: t.stddev**2 * t.values.size)


def _merged(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[Target]:
    """One target per clique; the mean of repeated measurements has the precision of all of them."""
    by_clique: dict[Clique, list[NoisyMarginal]] = defaultdict(list)
    for answer in answers:
        by_clique[answer.clique].append(answer)
    merged = []
    for clique, several in by_clique.items():
        precision = np.array([a.stddev**-2 for a in several])
        mean = sum(p * a.values for p, a in zip(precision, several, strict=True)) / precision.sum()
        merged.append(Target(clique, np.asarray(mean).reshape(domain.shape(clique)), float(precision.sum() ** -0.5)))
    return merged


def _others(clique: Clique, kept: Clique) -> tuple[int, ...]:
    return tuple(i for i, n in enumerate(clique) if n not in kept)
