"""Cells of pairs far from a column's mean: what is within noise there would move the means of small groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.marginals import Values
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.shapes import Shape
from synthesis.consistency.residual_parts import completed

#: Bins lie far where their values are off the mean by more than so many standard deviations of the column.
FAR = 0.25
#: A cell is cleared where its answer is below so many standard deviations of its noise, and by so many below what
#: independent columns would have there: so where an answer says that there is little, not where it says nothing.
LITTLE = 2.5
BELOW = 3.0
#: What such an answer still counts is what it has above so many (non-negative garrote): few, since records far from the
#: mean that are lost move it as much as those that noise invents.
REACH = 0.7
#: Noise alone shows records in empty bins in no more than this share of the columns.
CHANCE = 0.002


def with_far_cells_cleared(
    table: CodedTable, measurements: Measurements, shapes: Mapping[str, Shape], rng: np.random.Generator
) -> CodedTable:
    """Synthetic rows in which a group has no more records far from the mean than the answers show beyond noise.

    Ten records too many in the tail of a group of 2,000 move its mean by what ten of the largest values weigh. Such
    rows exchange their bin with rows of groups that have records there, so that every one-way marginal stays.

    Guarantee: post-processing; costs no privacy.
    Args:
        shapes: of the columns whose bins may be exchanged.
    """
    columns = {n: np.array(table.column(n)) for n in shapes}
    for answer in completed(measurements).answers:
        labels = pair_labels(answer, table.domain)
        for axis in (0, 1) if labels is not None else ():
            name, by = answer.clique[axis], answer.clique[1 - axis]
            if labels is None or name not in shapes:
                continue
            values = answer.values.reshape([int(own.max()) + 1 for own in labels])
            values = values if axis else values.T
            group = labels[1 - axis][np.array(columns.get(by, table.column(by)))]
            little = _little(values, np.flatnonzero(far_groups(shapes[name], labels[axis])), answer.stddev)
            for far in reversed(little):
                bins = labels[axis][columns[name]]
                ours, theirs = _exchanges(values, far, little[far], group, bins, rng)
                columns[name][ours], columns[name][theirs] = columns[name][theirs], columns[name][ours]
    every = [columns.get(n, table.column(n)) for n in table.domain.names]
    return replace(table, columns=tuple(every))


def pair_labels(answer: NoisyMarginal, domain: Domain) -> tuple[NDArray[np.int64], ...] | None:
    """The groups of codes that a pair is asked over; None for other answers."""
    if len(answer.clique) != 2:
        return None
    if isinstance(answer.query, MergedQuery):
        return answer.query.labels
    return tuple(np.arange(n) for n in domain.shape(answer.clique)) if isinstance(answer.query, Identity) else None


def filled_bins(measurements: Measurements, name: str) -> list[tuple[int, int]]:
    """Bins of a column, from one to before another, in which some cell of a pair stands far out of its noise.

    Records of a tail that drown in the noise of the column's own answers may lie in few groups of another column. Noise
    alone passes the threshold in no more than `CHANCE` of the columns.

    Args:
        measurements: without answers to residuals (`completed`).
    """
    found: dict[tuple[int, int], float] = {}
    cells = 0
    for answer in measurements.answers:
        labels = pair_labels(answer, measurements.domain) if name in answer.clique else None
        if labels is None:
            continue
        axis = answer.clique.index(name)
        bins = labels[axis][: measurements.domain[name].ordered]
        most = answer.values.reshape([int(own.max()) + 1 for own in labels]).max(axis=1 - axis) / answer.stddev
        cells += answer.values.size
        for group in np.unique(bins):
            low, high = np.flatnonzero(bins == group)[[0, -1]].tolist()
            if np.count_nonzero(labels[axis] == group) == high + 1 - low:  # neighbours, and nothing else
                found[low, high + 1] = max(float(most[group]), found.get((low, high + 1), 0.0))
    far = NormalDist().inv_cdf(1 - CHANCE / max(cells, 1))
    return [bins for bins, most in found.items() if most > far]


def _little(values: Values, far: NDArray[np.int64], stddev: float) -> dict[int, tuple[NDArray[np.bool_], Values]]:
    """Far bin → the groups that have little there, and how many records such a group is left, as the answers count.

    So a bin says by itself, or all bins together from one on to the upper end, whose sum has less noise beside what
    independent columns would have there than each of them. What such a tail still has stands in its first bin.

    Args:
        values: noisy records, groups × bins.
        far: ascending.
    """
    known = np.maximum(values, 0.0)
    independent = known.sum(axis=1)[:, None] * known.sum(axis=0) / max(float(known.sum()), 1e-300)
    little, left = _told(values[:, far], independent[:, far], stddev)
    gaps = np.flatnonzero(np.diff(far) > 1)
    first = int(gaps[-1]) + 1 if gaps.size else 0
    done = np.zeros(values.shape[0], np.bool_)
    for place in range(first, far.size - 1) if far.size and far[first] > 0 else ():
        tail = far[place:]
        own, sums = _told(values[:, tail].sum(axis=1), independent[:, tail].sum(axis=1), stddev * math.sqrt(tail.size))
        new = own & ~done
        little[new, place:], left[new, place + 1 :], left[new, place] = True, 0.0, sums[new]
        done |= own
    return {int(one): (little[:, place], left[:, place]) for place, one in enumerate(far)}


def _told(answers: Values, independent: Values, stddev: float) -> tuple[NDArray[np.bool_], Values]:
    """Whether answers say that there is little, and what they still count then."""
    little = (answers < LITTLE * stddev) & (independent - answers > BELOW * stddev)
    shown = np.maximum(answers, 1e-9 * stddev)
    return little, shown * np.maximum(1 - (REACH * stddev / shown) ** 2, 0.0)


def _exchanges(
    values: Values,
    far: int,
    told: tuple[NDArray[np.bool_], Values],
    group: NDArray[np.int64],
    bins: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in a far bin that are too many in their group, and the row of another group that each exchanges with.

    The other row's bin is one of those that the group has, as often as it has it.

    Args:
        values: noisy records, groups × bins.
        told: of `_little`.
        group, bins: of each row.
    """
    total = max(float(np.maximum(values, 0.0).sum()), 1e-300)
    little, wanted = told[0], told[1] * (bins.size / total)
    have = np.bincount(group[bins == far], minlength=values.shape[0])
    donors = np.where(little, 0, have)
    few = np.flatnonzero(little & (have > wanted)) if donors.sum() else np.zeros(0, np.int64)
    if not few.size:
        return few, few
    width = values[0].size
    cells = _Cells.of(group, bins, (len(values), width), rng)
    held = cells.count.reshape(-1, width).copy()
    held[:, far] = 0
    ours, partners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for one in few[held[few].sum(axis=1) > 0]:
        rows = cells.rows(int(one) * width + far)[: int(have[one] - wanted[one])]
        sources = rng.choice(donors.size, rows.size, p=donors / donors.sum())
        others = rng.choice(width, rows.size, p=held[one] / held[one].sum())
        ours.append(rows)
        partners.append(sources * width + others)
    wishes = np.concatenate(partners)
    theirs = cells.taken(wishes)
    return np.concatenate(ours)[theirs >= 0], theirs[theirs >= 0]


@dataclass(frozen=True, eq=False)
class _Cells:
    """The rows of each cell of a pair, in an order drawn at random.

    Attributes:
        order: rows, cell by cell.
        count: rows of each cell; `start`: where they stand in the order.
    """

    order: NDArray[np.int64]
    count: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(
        cls, group: NDArray[np.int64], bins: NDArray[np.int64], shape: tuple[int, int], rng: np.random.Generator
    ) -> _Cells:
        """Cost: linear in the rows (rows · log rows beyond 65,536 cells), once for all exchanges of a bin."""
        cells = shape[0] * shape[1]
        cell = group * shape[1] + bins
        drawn = rng.permutation(cell.size)
        count = np.bincount(cell, minlength=cells)
        cell = cell.astype(np.min_scalar_type(cells))  # numpy sorts numbers of 16 bits by their digits
        return cls(drawn[np.argsort(cell[drawn], kind="stable")], count, np.cumsum(count) - count)

    def rows(self, cell: int) -> NDArray[np.int64]:
        """Of one cell."""
        return self.order[self.start[cell] : self.start[cell] + self.count[cell]]

    def taken(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """A row of each of these cells, none twice; -1 where a cell has no more."""
        by_cell = np.argsort(cells, kind="stable")
        sizes = np.bincount(cells, minlength=self.count.size)
        rank = np.empty(cells.size, np.int64)
        rank[by_cell] = np.arange(cells.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.minimum(self.start[cells] + rank, self.order.size - 1)
        return np.asarray(np.where(rank < self.count[cells], self.order[places], -1))


def far_groups(shape: Shape, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which groups of bins lie far from the mean, as values of the shape do; *other* and *missing* never."""
    values, records = middles(shape), shape.counts
    mean = float(np.average(values, weights=records))
    stddev = float(np.sqrt(np.average((values - mean) ** 2, weights=records)))
    groups = int(labels.max()) + 1
    own = labels[: records.size]
    weights = records + 1e-9 * records.sum()
    middle = np.bincount(own, weights * values, minlength=groups) / np.maximum(
        np.bincount(own, weights, minlength=groups), 1e-300
    )
    there = np.bincount(own, minlength=groups) > 0
    return np.asarray(there & (np.abs(middle - mean) > FAR * stddev))


def middles(shape: Shape) -> Values:
    """The mean value of each bin; its middle where it is empty."""
    halves = (shape.places[1:] + shape.places[:-1]) / 2 * np.diff(shape.below)
    sums = np.concatenate([[0.0], np.cumsum(halves)])
    first = np.searchsorted(shape.places, shape.edges, side="left")
    first[-1] = shape.places.size - 1
    middle = (shape.edges[1:] + shape.edges[:-1]) / 2
    counts = shape.counts
    return np.asarray(np.where(counts > 0, np.diff(sums[first]) / np.maximum(counts, 1e-300), middle))
