"""Counts of marginals as they were asked, maybe over coarser values, and limits of cells that nobody asked."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.inference.marginal_estimates import NOTHING, MarginalEstimate, ReleaseEvidence, summed


@dataclass(frozen=True, eq=False)
class Coarse:
    """Unbiased counts of a marginal over groups of the codes of its columns.

    Attributes:
        counts: one cell for each combination of groups, flattened in C order.
        labels: per column each code's group.
    """

    counts: MarginalEstimate
    labels: Mapping[str, Ints]

    @classmethod
    def every_code(cls, counts: MarginalEstimate, domain: Domain) -> Coarse:
        """Counts of a marginal's own cells: each code is a group."""
        return cls(counts, {n: np.arange(domain[n].size) for n in counts.clique})

    def over(self, name: str, bins: Ints) -> Coarse:
        """The same over the fine cells of a column, by the bin of each."""
        return replace(self, labels={**self.labels, name: self.labels[name][bins]})

    @property
    def merged(self) -> bool:
        """Whether some group has several codes."""
        return self.counts.values.size < self.place.size

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each column has."""
        return tuple(int(self.labels[n].max()) + 1 for n in self.counts.clique)

    @cached_property
    def place(self) -> Ints:
        """Per fine cell of the marginal its coarse cell."""
        place = np.zeros(1, np.int64)
        for name, groups in zip(self.counts.clique, self.shape, strict=True):
            place = (place[:, None] * groups + self.labels[name][None, :]).ravel()
        return place

    def cells(self, members: Floats) -> Floats:
        """The coarse cells in which a set of fine cells (0 and 1) lies."""
        return np.minimum(np.bincount(self.place, members, minlength=self.counts.values.size), 1.0)

    def holds_whole(self, cells: Floats) -> bool:
        """Whether a set of fine cells (0 and 1) is one of coarse cells."""
        inside = np.bincount(self.place, cells, minlength=self.counts.values.size)
        return bool(((inside == 0) | (inside == np.bincount(self.place))).all())

    def within(self, name: str, ones: Floats | None) -> Floats:
        """Per code of a column its share of its group, by the column's own counts; even shares without them."""
        labels = self.labels[name]
        counts = np.ones(labels.size) if ones is None else np.maximum(ones, 0.0)
        sums = np.bincount(labels, counts)[labels]
        return np.where(sums > 0, counts / np.maximum(sums, 1e-300), 1 / np.bincount(labels)[labels])

    def spread(self, ones: Mapping[str, Floats | None]) -> Floats:
        """The fine cells, as if the columns were independent inside each coarse cell.

        Args:
            ones: per column its own counts, where an answer tells them.
        """
        shares = np.ones(1)
        for name in self.counts.clique:
            shares = np.outer(shares, self.within(name, ones[name])).ravel()
        return np.asarray(self.counts.values[self.place] * shares)


def coarse_marginal(measurements: Measurements, clique: Clique) -> Coarse | None:
    """A marginal from the answers over merged values that contain it; None where there are none.

    Answers with the same groups are weighted by precision; of several groupings the finest is taken.

    Guarantee: post-processing; costs no privacy.
    """
    alike: dict[tuple[bytes, ...], list[NoisyMarginal]] = {}
    for answer in measurements.answers_about(clique):
        if isinstance(answer.query, MergedQuery):
            labels = _labels(answer, clique)
            alike.setdefault(tuple(labels[n].tobytes() for n in clique), []).append(answer)
    candidates = [_summed(answers, clique) for answers in alike.values()]
    return max(candidates, key=lambda c: c.counts.values.size) if candidates else None


def _labels(answer: NoisyMarginal, clique: Clique) -> dict[str, Ints]:
    assert isinstance(answer.query, MergedQuery)
    return {n: own for n, own in zip(answer.clique, answer.query.labels, strict=True) if n in clique}


def _summed(answers: Sequence[NoisyMarginal], clique: Clique) -> Coarse:
    """The mean of the sums over the other columns' groups, weighted by precision."""
    queries = [a.query for a in answers if isinstance(a.query, MergedQuery)]
    return Coarse(summed(clique, answers, [q.groups for q in queries]), _labels(answers[0], clique))


#: Pairs of known marginals that are laid together for the lower limit, the largest first.
MAX_PAIRS = 64


@dataclass(frozen=True, eq=False)
class Limits:
    """Numbers between which the true counts of all cells lie, together, with the confidence that was asked for.

    Attributes:
        low, high: per cell, in records, flattened in C order.
        shape: of the marginal.
        total: the least and the largest number of records.
        inside: per sub-marginal that the answers tell, the limits of its own cells, shaped so that they broadcast over
            the marginal's axes; that of no column is the total.
        groups: where the marginal was asked over coarser values: each cell's coarse cell, and their least counts.
    """

    low: Floats
    high: Floats
    shape: tuple[int, ...]
    total: tuple[float, float]
    inside: Mapping[Clique, tuple[Floats, Floats]]
    groups: tuple[Ints, Floats] | None = None

    @property
    def sources(self) -> tuple[Clique, ...]:
        """The sub-marginals; empty: the answers tell none, and the total is all that is known."""
        return tuple(n for n in self.inside if n)

    def least_sum(self, members: Floats) -> float:
        """The least sum of a set of cells (0 and 1).

        The bound is the largest over cells of sub-marginals, coarse cells and the total that meet the set: their least
        count, less the most that they may hold outside of it.
        """
        least = float(members @ self.low)
        parts = [] if self.groups is None else [self.groups]
        for low, _ in self.inside.values():
            cells = np.arange(low.size).reshape(low.shape)
            parts.append((np.broadcast_to(cells, self.shape).ravel(), low))
        for own, low in parts:
            held = np.bincount(own, members, minlength=low.size)
            outside = np.bincount(own, (1 - members) * self.high, minlength=low.size)
            best = np.where(held > 0, np.maximum(low.ravel() - outside, 0.0), 0.0)
            least = max(least, float(best.sum()))
        return least


def cell_limits(evidence: ReleaseEvidence, clique: Clique, alpha: float) -> Limits | None:
    """Limits of a marginal's cells from all its largest sub-marginals that the answers tell; None without any answer.

    A cell holds at most what each of its sub-marginals holds there. Of two sub-marginals S and T, which together have
    all columns, it holds at least M_S + M_T − M_{S∩T} (Fréchet 1940); M of no column is the number of records. Where
    the marginal was asked over coarser values, it holds at most what its coarse cell holds, and all of that if alone.

    Guarantee: post-processing; costs no privacy. α is shared out over the sub-marginals and the coarse answer, and in
    each over its cells.
    """
    coarse = coarse_marginal(evidence.measurements, clique)
    pieces = _pieces(evidence, clique)
    total = evidence.total
    if total is None:
        return None
    pieces[NOTHING] = total
    shape = evidence.measurements.domain.shape(clique)
    each = alpha / (len(pieces) + (coarse is not None))
    lows, highs = {}, {}
    for names, piece in pieces.items():
        reach = piece.reach(each)
        where = tuple(s if n in names else 1 for s, n in zip(shape, clique, strict=True))
        lows[names] = np.maximum(piece.values - reach, 0.0).reshape(where)
        highs[names] = np.maximum(piece.values + reach, 0.0).reshape(where)
    high = np.full(shape, np.inf)
    for own in highs.values():
        high = np.minimum(high, own)
    ends = (float(lows[NOTHING].ravel()[0]), float(highs[NOTHING].ravel()[0]))
    inside = {n: (lows[n], highs[n]) for n in pieces}
    limits = Limits(_lower(clique, shape, lows, highs).ravel(), high.ravel(), shape, ends, inside)
    return limits if coarse is None else _with_coarse(limits, coarse, each)


def _with_coarse(limits: Limits, coarse: Coarse, alpha: float) -> Limits:
    """The limits with those that the counts of coarse cells give."""
    reach, alone = coarse.counts.reach(alpha), np.bincount(coarse.place) == 1
    least, most = (np.maximum(coarse.counts.values + side, 0.0) for side in (-reach, reach))
    low = np.maximum(limits.low, np.where(alone, least, 0.0)[coarse.place])
    return replace(limits, low=low, high=np.minimum(limits.high, most[coarse.place]), groups=(coarse.place, least))


def _lower(
    clique: Clique, shape: tuple[int, ...], lows: Mapping[Clique, Floats], highs: Mapping[Clique, Floats]
) -> Floats:
    low = np.zeros(shape)
    covering = [p for p in itertools.combinations(lows, 2) if set(p[0]) | set(p[1]) == set(clique)]
    for one, other in covering[:MAX_PAIRS]:
        both = tuple(n for n in clique if n in one and n in other)
        if both in highs:
            low = np.maximum(low, lows[one] + lows[other] - highs[both])
    return low


def _pieces(evidence: ReleaseEvidence, clique: Clique) -> dict[Clique, MarginalEstimate]:
    """Every told sub-marginal that lies in no larger one, the largest first, and what pairs of these have in common."""
    pieces: dict[Clique, MarginalEstimate] = {}
    for size in range(len(clique) - 1, 0, -1):
        for names in itertools.combinations(clique, size):
            inside = any(set(names) < set(larger) for larger in pieces)
            if not inside and (piece := evidence.estimate(names)) is not None:
                pieces[names] = piece
    for one, other in itertools.combinations(list(pieces), 2):
        both = tuple(n for n in clique if n in one and n in other)
        if both and both not in pieces and (piece := evidence.estimate(both)) is not None:
            pieces[both] = piece
    return pieces
