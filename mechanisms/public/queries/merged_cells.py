"""Merged values: all whose noisy counts are small as one (MST, McKenna et al. 2021), or neighbours of equal mass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.queries.query_matrices import Identity, distance_of_cells, proved
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.units import Norm

#: A last group beside a large code stays separate if it holds this part of a full group.
ENOUGH = 0.2


@proved
@dataclass(frozen=True, eq=False)
class MergedQuery:
    """A marginal in which codes of each attribute are merged: every cell counts in exactly one answer.

    Attributes:
        labels: per attribute of the clique, each code's group, 0 … groups − 1.
    """

    labels: tuple[NDArray[np.int64], ...]
    bits: int = 0

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(int(own.max()) + 1 for own in self.labels)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Each cell's answer."""
        row_of_cell = np.zeros(1, np.int64)
        for own, size in zip(self.labels, self.groups, strict=True):
            row_of_cell = (row_of_cell[:, None] * size + own[None, :]).ravel()
        return row_of_cell

    @cached_property
    def rows(self) -> int:
        return math.prod(self.groups)

    @property
    def columns(self) -> int:
        return math.prod(own.size for own in self.labels)

    def answer(self, marginal: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self._rows, marginal, minlength=self.rows).astype(np.float64)

    def answer_exact(self, marginal: NDArray[np.int64]) -> NDArray[np.int64]:
        sums = np.zeros(self.rows, np.int64)
        np.add.at(sums, self._rows, marginal)
        return sums

    def transpose(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(answers[self._rows], np.float64)

    def largest_column_norm(self, norm: Norm) -> float:
        return 1.0

    def largest_column_distance(self, norm: Norm) -> float:
        return distance_of_cells(self.rows, norm)

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        return {f"labels_{i}": own for i, own in enumerate(self.labels)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> MergedQuery:
        """The query of `arrays`; ValueError for groups that are not numbered from 0 on."""
        labels = tuple(arrays[f"labels_{i}"] for i in range(sum(k.startswith("labels_") for k in arrays)))
        if not labels or any(not np.array_equal(np.unique(own), np.arange(own.max() + 1)) for own in labels):
            raise ValueError("no merged marginal")
        return cls(labels)


def rare_groups(
    domain: Domain, answers: Sequence[NoisyMarginal], threshold: float, floor: float = 0.0
) -> dict[str, NDArray[np.int64]]:
    """Per attribute the groups of its codes: all codes with a noisy count below θ (two or more) are the last group.

    θ = max(threshold · σ, floor), as in Li et al. 2021b, section 5.3, which takes 4.5 and 800 records; 0 merges none.

    An attribute without a noisy one-way marginal keeps all of its codes apart.

    Args:
        answers: whole one-way marginals; others are passed over.
    """
    groups = {a.name: np.arange(a.size) for a in domain.attributes}
    for answer in answers if max(threshold, floor) > 0 else ():
        if len(answer.clique) > 1 or not isinstance(answer.query, Identity):
            continue
        common = answer.values >= max(threshold * answer.stddev, floor)
        if np.count_nonzero(~common) < 2:
            continue  # one rare value alone has nothing to merge with
        own = np.cumsum(common) - 1
        own[~common] = int(common.sum())
        groups[answer.clique[0]] = own.astype(np.int64)
    return groups


def merged_query(domain: Domain, clique: Clique, groups: Mapping[str, NDArray[np.int64]]) -> Identity | MergedQuery:
    """The marginal with merged codes; the identity where nothing is merged."""
    if all(int(groups[n].max()) + 1 == domain[n].size for n in clique):
        return Identity(domain.cells(clique))
    return MergedQuery(tuple(groups[n] for n in clique))


def coarse_groups(attribute: Attribute, expected: NDArray[np.float64], groups: int) -> NDArray[np.int64]:
    """Each code's group, 0, 1, …; at most so many groups, and every code alone where there are no more codes.

    The codes that lie on a line are merged with their neighbours to about equal mass; the codes behind them stay alone.
    Of the values of a categorical column the most frequent stay alone, and all others are one group.

    Args:
        expected: records per code, from noisy answers; negative ones count as none.
        groups: at least 2.
    """
    if attribute.size <= groups:
        return np.arange(attribute.size)
    mass = np.maximum(expected, 0.0) + 1e-9
    line = attribute.ordered
    behind = attribute.size - line
    if line > 1 and groups - behind >= 2:
        share = (np.cumsum(mass[:line]) - mass[:line] / 2) / mass[:line].sum()
        own = np.minimum((share * (groups - behind)).astype(np.int64), groups - behind - 1)
        _, own = np.unique(own, return_inverse=True)
        return np.concatenate([own, own.max() + 1 + np.arange(behind)]).astype(np.int64)
    common = np.zeros(attribute.size, np.bool_)
    common[np.argsort(-mass, kind="stable")[: groups - 1]] = True
    labels = np.cumsum(common) - 1
    labels[~common] = groups - 1
    return labels.astype(np.int64)


def solid_groups(attribute: Attribute, expected: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """The group of each code: neighbours on the line are merged until they hold `least` records.

    So no group is a tail of noise alone. A code that holds `least` by itself stays alone, as do codes behind the line.

    What is left at the end of the line joins the group before it, unless it holds a part of `least` (ENOUGH) and that
    group is a single large code.

    Args:
        expected: records per code, from noisy answers.
    """
    mass = np.maximum(expected[: attribute.ordered], 0.0)
    line = np.zeros(attribute.ordered, np.int64)
    group, held, run, before = -1, 0.0, False, False  # whether the group is a run of small codes; and the one before it
    for code, records in enumerate(mass):
        large = bool(records >= least)
        if large or not run or held >= least:
            group, held, before, run = group + 1, 0.0, run, not large
        line[code] = group
        held += records
    if group > 0 and run and held < (least if before else ENOUGH * least):
        line[line == group] = group - 1
    behind = (int(line.max()) + 1 if line.size else 0) + np.arange(attribute.size - attribute.ordered)
    return np.concatenate([line, behind]).astype(np.int64)
