"""Marginals as they were asked, maybe over coarser values: the counts of their cells, and where the fine ones lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import Values
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.inference.marginal_estimates import MarginalEstimate, summed

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coarse:
    """Unbiased counts of a marginal over groups of the codes of its columns.

    Attributes:
        counts: one cell for each combination of groups, flattened in C order.
        labels: per column each code's group.
    """

    counts: MarginalEstimate
    labels: Mapping[str, Labels]

    @classmethod
    def every_code(cls, counts: MarginalEstimate, domain: Domain) -> Coarse:
        """Counts of a marginal's own cells: each code is a group."""
        return cls(counts, {n: np.arange(domain[n].size) for n in counts.clique})

    @property
    def merged(self) -> bool:
        """Whether some group has several codes."""
        return self.counts.values.size < self.place.size

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each column has."""
        return tuple(int(self.labels[n].max()) + 1 for n in self.counts.clique)

    @cached_property
    def place(self) -> Labels:
        """Per fine cell of the marginal its coarse cell."""
        place = np.zeros(1, np.int64)
        for name, groups in zip(self.counts.clique, self.shape, strict=True):
            place = (place[:, None] * groups + self.labels[name][None, :]).ravel()
        return place

    def cells(self, members: Values) -> Values:
        """The coarse cells in which a set of fine cells (0 and 1) lies."""
        return np.minimum(np.bincount(self.place, members, minlength=self.counts.values.size), 1.0)

    def holds_whole(self, cells: Values) -> bool:
        """Whether a set of fine cells (0 and 1) is one of coarse cells."""
        inside = np.bincount(self.place, cells, minlength=self.counts.values.size)
        return bool(((inside == 0) | (inside == np.bincount(self.place))).all())

    def within(self, name: str, ones: Values | None) -> Values:
        """Per code of a column its share of its group, by the column's own counts; even shares without them."""
        labels = self.labels[name]
        counts = np.ones(labels.size) if ones is None else np.maximum(ones, 0.0)
        sums = np.bincount(labels, counts)[labels]
        return np.where(sums > 0, counts / np.maximum(sums, 1e-300), 1 / np.bincount(labels)[labels])

    def spread(self, ones: Mapping[str, Values | None]) -> Values:
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


def _labels(answer: NoisyMarginal, clique: Clique) -> dict[str, Labels]:
    assert isinstance(answer.query, MergedQuery)
    return {n: own for n, own in zip(answer.clique, answer.query.labels, strict=True) if n in clique}


def _summed(answers: Sequence[NoisyMarginal], clique: Clique) -> Coarse:
    """The mean of the sums over the other columns' groups, weighted by precision."""
    queries = [a.query for a in answers if isinstance(a.query, MergedQuery)]
    return Coarse(summed(clique, answers, [q.groups for q in queries]), _labels(answers[0], clique))
