"""Counts of the same marginals in two tables: dense where that is small, else the occupied cells alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import (
    MOST_CELLS,
    AnyTable,
    CodedTable,
    CountedTable,
    count_cliques,
    count_sparse,
    in_batches,
)
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.units import WEIGHT_BITS

#: Rows at hand, or elsewhere, the same as they came.
Table = TypeVar("Table", bound=AnyTable)
#: Cells: smaller marginals are counted densely, as many in one pass over the rows as have so many together; larger ones
#: by sorting.
DENSE_CELLS = 4_000_000
#: Pairs: all of a table of up to 200 columns, a sample of this size of wider tables.
MOST_PAIRS = 20_000
#: A marginal beyond this cannot be numbered in 64 bits.
NUMBERED_CELLS = 2**62


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells that either table occupies; all others hold no records, but may still take what Δ tolerates.

    Attributes:
        shape: number of codes of each attribute.
        ids: the occupied cells by their number in C order, ascending.
        p, q: synthetic and true records of each of them.
    """

    shape: tuple[int, ...]
    ids: Ints
    p: Floats
    q: Floats

    def __post_init__(self) -> None:
        if math.prod(self.shape) > NUMBERED_CELLS:
            fix = "fewer attributes, or values at a coarser level"
            raise UserError(f"{math.prod(self.shape):.3g} cells are too many to number", where="marginal", fix=fix)
        if not len(self.ids) == len(self.p) == len(self.q):
            raise UserError("cells and counts differ in number", where="marginal")
        for name, counts in (("synthetic", self.p), ("true", self.q)):
            least, most = (counts.min(), counts.max()) if counts.size else (0.0, 0.0)
            if not (least >= 0 and most < math.inf):
                problem = "NaN or infinite" if not math.isfinite(least + most) else "negative"
                fix = "counts or weights of at least 0; clamp noisy counts first"
                raise UserError(f"{problem} counts in the {name} table", where="marginal", fix=fix)

    @staticmethod
    def dense(p: ArrayLike, q: ArrayLike) -> Cells:
        """From two whole tables of the same shape."""
        left, right = np.asarray(p, np.float64), np.asarray(q, np.float64)
        if left.shape != right.shape:
            raise UserError(f"shapes {left.shape} and {right.shape} differ", where="marginal")
        ids = np.flatnonzero((left != 0) | (right != 0))
        if ids.size == left.size:
            return Cells(left.shape, ids, left.ravel(), right.ravel())
        return Cells(left.shape, ids, left.ravel()[ids], right.ravel()[ids])

    @property
    def codes(self) -> Ints:
        """One row per attribute, one column per occupied cell."""
        return np.stack(np.unravel_index(self.ids, self.shape)).astype(np.int64, copy=False)


def pairs_looked_at(names: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs of columns in their order; of more than MOST_PAIRS so many drawn with seed 0, in that order too."""
    return [(one, other) for one, other in sampled_sets(names, 2, MOST_PAIRS)]


def sampled_sets(names: Sequence[str], size: int, most: int, *, seed: int = 0) -> list[Clique]:
    """All sets of so many names in their order; a seeded sample of more than `most`, without a list of them all."""
    count, places = math.comb(len(names), size), []
    if count <= most:
        return list(itertools.combinations(names, size))
    behind = count - 1 - np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
    for k in range(size, 0, -1):  # so many sets of k come from the last 0, 1, … names alone
        among = np.array([min(math.comb(c, k), count) for c in range(len(names))])
        last = np.searchsorted(among, behind, side="right") - 1
        behind = behind - among[last]
        places.append(len(names) - 1 - last)
    return [tuple(names[i] for i in chosen) for chosen in zip(*places, strict=True)]


def read_only(table: CodedTable) -> CodedTable:
    """The table, whose rows no metric can change."""
    columns = tuple(c.view() for c in table.columns)
    for column in columns:
        column.setflags(write=False)
    return replace(table, columns=columns)


def paired_cells(
    real: AnyTable, synthetic: CodedTable, cliques: Sequence[Clique], progress: Progress | None = None
) -> Iterator[Cells]:
    """The occupied cells of each marginal in both tables, in the order asked, in records.

    Cost: one pass over the rows of both tables per batch, and for each larger marginal a sort of its cells.
    """
    domain = real.domain
    done = 0
    for batch in in_batches(domain, cliques, DENSE_CELLS):
        if domain.cells(batch[0]) > DENSE_CELLS:
            pairs = [occupied_cells(real, synthetic, batch[0])]
        else:
            counted = zip(count_cliques(synthetic, batch), count_cliques(real, batch), strict=True)
            pairs = [_occupied(p, q) for p, q in counted]
        for clique, (ids, p, q) in zip(batch, pairs, strict=True):
            yield Cells(domain.shape(clique), ids, in_records(p, synthetic), in_records(q, real))
            done += 1
            if progress is not None:
                progress(done, len(cliques), " × ".join(clique))


def counted_over(
    table: CountedTable, domain: Domain, sources: Mapping[str, tuple[str, NDArray[np.integer]]]
) -> CountedTable:
    """Rows that lie elsewhere, over other codes: the counts over their own are summed, in batches that fit in memory.

    Args:
        sources: each column of the domain → the column that it is made of, and its code for each of that one's codes; a
            code beyond its size never occurs.
    """
    own = table.domain

    def count(cliques: Sequence[Clique]) -> list[Ints]:
        """The counts of each marginal."""
        asked, sums = iter(cliques), []
        for batch in in_batches(own, [tuple(sources[n][0] for n in clique) for clique in cliques], DENSE_CELLS):
            if own.cells(batch[0]) > MOST_CELLS:
                problem = f"{' × '.join(batch[0])} has too many cells"
                raise UserError(problem, where="marginal", fix="fewer or coarser columns")
            for fine, counts in zip(batch, count_cliques(table, batch), strict=True):
                summed = counts.reshape(own.shape(fine))
                for axis, name in enumerate(next(asked)):
                    summed = _summed(summed, axis, sources[name][1], domain[name].size)
                sums.append(summed.ravel())
        return sums

    return CountedTable(domain, table.rows, table.weighted, count)


def _summed(counts: Ints, axis: int, mapping: NDArray[np.integer], size: int) -> Ints:
    """Counts over the new codes of one axis, from those over its own."""
    codes = np.moveaxis(counts, axis, 0)
    sums = np.zeros((size, *codes.shape[1:]), np.int64)
    np.add.at(sums, np.minimum(mapping, size - 1), codes)
    return np.moveaxis(sums, 0, axis)


def _occupied(p: Ints, q: Ints) -> tuple[Ints, ...]:
    ids = np.flatnonzero((p != 0) | (q != 0))
    return ids, p[ids], q[ids]


def occupied_cells(real: AnyTable, synthetic: CodedTable, clique: Clique) -> tuple[Ints, ...]:
    """The numbers of the cells that either table occupies, and their synthetic and real counts, by sorting."""
    ids_p, p = count_sparse(synthetic, clique)
    ids_q, q = count_sparse(real, clique)
    ids = np.union1d(ids_p, ids_q)
    both = np.zeros((2, ids.size), np.int64)
    both[0, np.searchsorted(ids, ids_p)] = p
    both[1, np.searchsorted(ids, ids_q)] = q
    return ids, both[0], both[1]


def in_records(counts: Ints, table: AnyTable) -> Floats:
    """Counts of a table's rows, or of their weights, in records."""
    return np.asarray(counts * (2.0**-WEIGHT_BITS if table.weighted else 1.0), np.float64)


def cells_in_records(table: AnyTable, clique: Clique) -> Floats:
    """All cells of a marginal, in its shape, in records."""
    return in_records(count_cliques(table, [clique])[0], table).reshape(table.domain.shape(clique))


def row_shares(counts: Floats) -> Floats:
    """The shares along the last axis; an empty row has shares 0."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
