"""Cells of pairs far from a column's mean: what is within noise there would move the means of small groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.column import Shape
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
#: Where more than this share of a column's rows would change, all stay: its other pairs would lose more (decision 051).
MOST = 0.02
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
    answers, least = completed(measurements).answers, dict[Clique, float]()
    for answer in answers:
        least[answer.clique] = min(answer.stddev, least.get(answer.clique, math.inf))
    for answer in answers:
        labels = pair_labels(answer, table.domain) if answer.stddev == least[answer.clique] else None
        for axis in (0, 1) if labels is not None else ():
            name, by = answer.clique[axis], answer.clique[1 - axis]
            if labels is None or name not in shapes:
                continue
            values = answer.values.reshape([int(own.max()) + 1 for own in labels])
            values = values if axis else values.T
            little = _little(values, np.flatnonzero(far_groups(shapes[name], labels[axis])), answer.stddev)
            if not any(few.any() for few, _ in little.values()):
                continue
            group = labels[1 - axis][np.asarray(columns.get(by, table.column(by)))]
            cells = _Cells.of(group, labels[axis][columns[name]], values.shape)
            for far in reversed(little):
                ours, theirs = _exchanges(values, far, little[far], cells, rng)
                columns[name][ours], columns[name][theirs] = columns[name][theirs], columns[name][ours]
                cells.exchange(ours, theirs)
    stay = {n for n, codes in columns.items() if np.count_nonzero(codes != table.column(n)) > MOST * codes.size}
    if stay:
        return with_far_cells_cleared(table, measurements, {n: shapes[n] for n in shapes if n not in stay}, rng)
    return replace(table, columns=tuple(columns.get(n, table.column(n)) for n in table.domain.names))


def pair_labels(answer: NoisyMarginal, domain: Domain) -> tuple[Ints, ...] | None:
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
    heights: dict[tuple[int, int], float] = {}
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
                heights[low, high + 1] = max(float(most[group]), heights.get((low, high + 1), 0.0))
    far = NormalDist().inv_cdf(1 - CHANCE / max(cells, 1))
    return [bins for bins, most in heights.items() if most > far]


def _little(values: Floats, far: Ints, stddev: float) -> dict[int, tuple[Flags, Floats]]:
    """Far bin → the groups that have little there, and how many records such a group is left, as the answers count.

    So a bin says by itself, or all bins together from one on to the upper end, whose sum has less noise beside what
    independent columns would have there than each of them. What such a tail still has stands in its first bin.

    Args:
        values: noisy records, groups × bins.
        far: ascending.
    """
    records = np.maximum(values, 0.0)
    independent = records.sum(axis=1)[:, None] * records.sum(axis=0) / max(float(records.sum()), 1e-300)
    little, left = _sparse(values[:, far], independent[:, far], stddev)
    gaps = np.flatnonzero(np.diff(far) > 1)
    first = int(gaps[-1]) + 1 if gaps.size else 0
    done = np.zeros(values.shape[0], np.bool_)
    for place in range(first, far.size - 1) if far.size and far[first] > 0 else ():
        tail = far[place:]
        own, sums = _sparse(
            values[:, tail].sum(axis=1), independent[:, tail].sum(axis=1), stddev * math.sqrt(tail.size)
        )
        new = own & ~done
        little[new, place:], left[new, place + 1 :], left[new, place] = True, 0.0, sums[new]
        done |= own
    return {int(one): (little[:, place], left[:, place]) for place, one in enumerate(far)}


def _sparse(answers: Floats, independent: Floats, stddev: float) -> tuple[Flags, Floats]:
    """Whether answers say that there is little, and what they still count then."""
    little = (answers < LITTLE * stddev) & (independent - answers > BELOW * stddev)
    shown = np.maximum(answers, 1e-9 * stddev)
    return little, shown * np.maximum(1 - (REACH * stddev / shown) ** 2, 0.0)


def _exchanges(
    values: Floats, far: int, little_there: tuple[Flags, Floats], cells: _Cells, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Rows in a far bin that are too many in their group, and the row of another group that each exchanges with.

    The other row's bin is one of those that the group has, as often as it has it.

    Args:
        values: noisy records, groups × bins.
        little_there: of `_little`.
    """
    width = cells.width
    held = cells.count.reshape(-1, width).copy()
    have, held[:, far] = held[:, far].copy(), 0
    total = max(float(np.maximum(values, 0.0).sum()), 1e-300)
    little, targets = little_there[0], little_there[1] * (cells.of_row.size / total)
    donors = np.where(little, 0, have)
    few = np.flatnonzero(little & (have > targets) & (held.sum(axis=1) > 0)) if donors.sum() else np.zeros(0, np.int64)
    if not few.size:
        return few, few
    too_many = (have[few] - targets[few]).astype(np.int64)
    sources = rng.choice(donors.size, int(too_many.sum()), p=donors / donors.sum())
    below = np.cumsum(held[few] / held[few].sum(axis=1, keepdims=True), axis=1)
    below /= below[:, -1:]
    others = (np.repeat(below, too_many, axis=0) <= rng.random(sources.size)[:, None]).sum(axis=1)
    ours = cells.drawn(np.repeat(few * width + far, too_many), rng)
    theirs = cells.drawn(sources * width + others, rng)
    return ours[theirs >= 0], theirs[theirs >= 0]


@dataclass(frozen=True, eq=False)
class _Cells:
    """The rows of each cell of a pair, groups × bins.

    Attributes:
        of_row: the cell of each row.
        count: rows of each cell.
        width: how many bins there are.
        by_cell: the rows in the order of the cells in which they were at first; `first`: where a cell's begin there.
        moved: rows that have exchanged their bins since.
    """

    of_row: Ints
    count: Ints
    width: int
    by_cell: Ints
    first: Ints
    moved: list[Ints]

    @classmethod
    def of(cls, group: Ints, bins: Ints, shape: tuple[int, ...]) -> _Cells:
        """From the group and the bin of each row."""
        cell = group * shape[1] + bins
        count = np.bincount(cell, minlength=shape[0] * shape[1])
        short = cell.astype(np.min_scalar_type(count.size))  # sorted by its digits
        first = np.concatenate([[0], np.cumsum(count)])
        return cls(cell, count, shape[1], np.argsort(short, kind="stable"), first, [])

    def drawn(self, cells: Ints, rng: np.random.Generator) -> Ints:
        """A row of each of these cells at random, none twice; -1 where a cell has no more.

        Cost: linear in the rows of these cells and in those that have moved.
        """
        asked = np.zeros(self.count.size, np.bool_)
        asked[cells] = True
        place = (np.cumsum(asked) - 1).astype(np.min_scalar_type(int(np.count_nonzero(asked))))
        there = np.zeros(self.of_row.size, np.bool_)
        for cell in np.flatnonzero(asked):
            there[self.by_cell[self.first[cell] : self.first[cell + 1]]] = True
        for rows in self.moved:
            there[rows] = asked[self.of_row[rows]]
        rows = np.flatnonzero(there)
        mixed = rng.permutation(rows.size)
        mixed = mixed[np.argsort(place[self.of_row[rows]][mixed], kind="stable")]
        held = np.where(asked, self.count, 0)
        by_cell = np.argsort(place[cells], kind="stable")
        sizes = np.bincount(cells, minlength=self.count.size)
        rank = np.empty(cells.size, np.int64)
        rank[by_cell] = np.arange(cells.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        out, enough = np.full(cells.size, -1, np.int64), rank < held[cells]
        out[enough] = rows[mixed[((np.cumsum(held) - held)[cells] + rank)[enough]]]
        return out

    def exchange(self, ours: Ints, theirs: Ints) -> None:
        """These rows, none of them twice, exchange their bins."""
        rows, others = np.concatenate([ours, theirs]), np.concatenate([theirs, ours])
        old = self.of_row[rows]
        new = old + self.of_row[others] % self.width - old % self.width
        np.subtract.at(self.count, old, 1)
        np.add.at(self.count, new, 1)
        self.of_row[rows] = new
        self.moved.append(rows)


def far_groups(shape: Shape, labels: Ints) -> Flags:
    """Which groups of bins lie far from the mean, as values of the shape do; *other* and *missing* never."""
    mean, stddev = moments(shape)
    middle, there = group_middles(shape, labels)
    return np.asarray(there & (np.abs(middle - mean) > FAR * stddev))


def moments(shape: Shape) -> tuple[float, float]:
    """The mean and the standard deviation of the bins' middles, as many records as the shape has in each."""
    values = middles(shape)
    mean = float(np.average(values, weights=shape.counts))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=shape.counts)))


def group_middles(shape: Shape, labels: Ints) -> tuple[Floats, Flags]:
    """The mean value of each group of bins; and which groups have one: not *other*, not *missing*."""
    own, groups = labels[: shape.counts.size], int(labels.max()) + 1
    weights = shape.counts + 1e-9 * shape.counts.sum()
    sums, records = np.bincount(own, weights * middles(shape), groups), np.bincount(own, weights, groups)
    return sums / np.maximum(records, 1e-300), np.bincount(own, minlength=groups) > 0


def middles(shape: Shape) -> Floats:
    """The mean value of each bin; its middle where it is empty."""
    halves = (shape.places[1:] + shape.places[:-1]) / 2 * np.diff(shape.below)
    sums = np.concatenate([[0.0], np.cumsum(halves)])
    first = np.searchsorted(shape.places, shape.edges, side="left")
    first[-1] = shape.places.size - 1
    middle = (shape.edges[1:] + shape.edges[:-1]) / 2
    counts = shape.counts
    return np.asarray(np.where(counts > 0, np.diff(sums[first]) / np.maximum(counts, 1e-300), middle))
