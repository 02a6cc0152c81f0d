"""A graphical model over groups of codes that no answer about several columns tells apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.merged_values import Groups, alike_values, compressed, expanded, one_way_counts
from synthesis.convergence import FitRecord
from synthesis.impossible import Zeros
from synthesis.independent import independent_marginals
from synthesis.pgm.graphical_model import GraphicalModel, ModelSettings, fit_model
from synthesis.pgm.inference import MAX_CELLS, JunctionTreeInference
from synthesis.pgm.junction_tree import junction_tree

#: Records: what a code that no answer shows starts from; a fit moves no code away from 0.
LEAST = 0.5


@dataclass(frozen=True, eq=False)
class AlikeCodes:
    """Codes that no answer about several columns tells apart.

    Attributes:
        domain: of the codes.
        groups: attribute → each code's group; only of attributes of which codes are alike.
        shares: of the same attributes, each code's share of its group.
    """

    domain: Domain
    groups: Groups
    shares: Mapping[str, Floats]

    @classmethod
    def of(cls, measurements: Measurements, *, apart: Collection[str]) -> AlikeCodes:
        """Of all attributes but those that stay apart."""
        groups = alike_values(measurements, apart=apart)
        counts = one_way_counts(measurements, groups)
        return cls(measurements.domain, groups, {n: _shares(counts[n], group) for n, group in groups.items()})

    def merged(self, measurements: Measurements) -> Measurements:
        """The same answers over groups."""
        return compressed(measurements, self.groups)


@dataclass(frozen=True, eq=False)
class GroupedModel:
    """A distribution over codes: that of their groups, and of each code within its group, whatever the others are.

    Of all distributions with the same marginals of groups and the same columns it is the one of largest entropy.

    Attributes:
        coarse: the model, over groups.
        alike: the groups, and the shares of their codes.
    """

    coarse: GraphicalModel
    alike: AlikeCodes

    @property
    def domain(self) -> Domain:
        return self.alike.domain

    @property
    def fit(self) -> FitRecord:
        return self.coarse.fit

    @property
    def total(self) -> float:
        return self.coarse.total

    def marginal(self, clique: Sequence[str]) -> Floats:
        """Records per cell, flattened in C order of the clique in domain order; as of `GraphicalModel.marginal`."""
        names = self.domain.canonical(clique)
        values = self.coarse.marginal(names).reshape(self.coarse.domain.shape(names))
        for axis, name in enumerate(names):
            if name in self.alike.groups:
                share = self.alike.shares[name].reshape([-1 if i == axis else 1 for i in range(len(names))])
                values = values.take(self.alike.groups[name], axis) * share
        return values.ravel()

    def answerable(self, clique: Sequence[str], cells: int | None = None) -> bool:
        """Whether `marginal` gives this clique within its memory, or with no table of more cells than these."""
        return self.domain.cells(clique) <= (cells or MAX_CELLS) and self.coarse.answerable(clique, cells)

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """Synthetic rows; the codes of a group are spread over its rows without bias, in random order."""
        return expanded(self.coarse.rows(count, rng, progress), self.domain, self.alike.groups, self.alike.shares, rng)

    def given(self, weights: Mapping[str, Floats]) -> GroupedModel:
        """The model in which each row's probability is multiplied by the weights of its codes: exact.

        Raises:
            UserError: no row is possible.
        """
        groups = self.alike.groups
        weighed = {n: self.alike.shares[n] * w for n, w in weights.items() if n in groups}
        coarse = {n: np.bincount(groups[n], left).astype(np.float64) for n, left in weighed.items()}
        shares = {n: _shares(left, groups[n]) for n, left in weighed.items()}
        alike = replace(self.alike, shares={**self.alike.shares, **shares})
        return GroupedModel(self.coarse.given({**weights, **coarse}), alike)


def fit_grouped(
    measurements: Measurements,
    alike: AlikeCodes,
    settings: ModelSettings,
    *,
    impossible: Zeros,
    progress: Progress | None,
) -> GroupedModel:
    """The model of answers over groups (`AlikeCodes.merged`), as of `fit_model`, which starts from their columns.

    Guarantee: post-processing; costs no privacy.
    """
    start = columns_alone(measurements)
    model = fit_model(measurements, settings, impossible=impossible, start=start, progress=progress)
    return GroupedModel(model, alike)


def columns_alone(measurements: Measurements) -> GraphicalModel:
    """The model of independent columns, as whole answers about them say; no code of them is impossible.

    A fit to noisy answers ends early: what it leaves out of them is then dependence, and not the columns.
    """
    domain, columns = measurements.domain, independent_marginals(measurements)
    tree = junction_tree(domain, [])
    logs = [np.log(np.maximum(columns(clique), LEAST)) for clique in tree.cliques]
    engine = JunctionTreeInference(tree)
    return GraphicalModel(engine, np.concatenate(logs), estimate_total(measurements), FitRecord((), 0.0, 0.0, ""))


def _shares(counts: Floats, group: Ints) -> Floats:
    """Each code's share of its group; even in a group of which nothing is counted."""
    counts = np.maximum(counts, 0.0)
    sums, size = np.bincount(group, counts)[group], np.bincount(group)[group]
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), 1 / size)
