"""Tables of codes over a Domain, real or synthetic, and their marginals: many are counted in each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.jit import compiled


def code_dtype(size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds codes 0 … size − 1."""
    return np.min_scalar_type(max(size - 1, 1))


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Codes column by column; the repr shows shapes, never rows.

    Attributes:
        domain: what the codes mean.
        columns: one array per attribute: ``rows`` unsigned codes below the attribute's size (may be memory maps).
        weights: None (each row counts 1), or uint32 per row in units of 2**-WEIGHT_BITS records.
        threads: how many count its rows side by side.
    """

    domain: Domain
    columns: tuple[NDArray[np.unsignedinteger], ...]
    weights: NDArray[np.uint32] | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        lengths = {len(c) for c in self.columns} | ({len(self.weights)} if self.weights is not None else set())
        if len(self.columns) != len(self.domain) or len(lengths) > 1:
            raise ValueError(
                f"{len(self.columns)} columns, lengths {sorted(lengths)}, for {len(self.domain)} attributes"
            )

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    def column(self, name: str) -> NDArray[np.unsignedinteger]:
        return self.columns[self.domain.index(name)]

    def at(self, rows: Ints | slice) -> CodedTable:
        """Some of the rows, in the order asked for."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, columns=tuple(np.asarray(c[rows]) for c in self.columns), weights=weights)

    def parted(self, aside: Flags) -> tuple[CodedTable, CodedTable]:
        """The rows that were not set aside, and those that were."""
        return self.at(np.flatnonzero(~aside)), self.at(np.flatnonzero(aside))

    def over(self, names: Clique) -> CodedTable:
        """Some of the columns, in the order asked for."""
        return replace(self, domain=self.domain.project(names), columns=tuple(self.column(n) for n in names))

    def __repr__(self) -> str:
        return f"CodedTable({self.rows} rows × {len(self.domain)} columns, weighted={self.weights is not None})"


@dataclass(frozen=True, eq=False)
class CountedTable:
    """Rows that lie elsewhere, and are counted there; the repr shows shapes, never rows.

    Attributes:
        domain: what their codes mean.
        rows: how many.
        weighted: whether they have weights, in units of 2**-WEIGHT_BITS records.
        count: marginals → the counts of each, as of `count_cliques`.
    """

    domain: Domain
    rows: int
    weighted: bool
    count: Callable[[Sequence[Clique]], list[Ints]]

    def __repr__(self) -> str:
        return f"CountedTable({self.rows} rows × {len(self.domain)} columns, weighted={self.weighted})"


#: Rows at hand, or elsewhere.
AnyTable: TypeAlias = CodedTable | CountedTable


def check_same_domain(one: AnyTable, other: AnyTable) -> None:
    """UserError for two tables whose columns or codes differ: they cannot be compared."""
    if one.domain != other.domain:
        fix = "encode both tables with one schema"
        raise UserError("the two tables have different columns or codes", where="the two tables", fix=fix)


#: Rows per step: a step's columns and keys stay in the processor's cache.
STEP = 1 << 16
#: Codes that 16 bits hold.
SHORT = 1 << 16
#: Cells of the marginals that are counted in one pass.
BATCH_CELLS = 20_000_000
#: Cells of one marginal of rows that lie elsewhere, at most.
MOST_CELLS = 50_000_000


def extend_keys(keys: NDArray[np.signedinteger[Any]], column: NDArray[np.unsignedinteger], size: int) -> None:
    """Fold one more column into each row's cell number.

    By numpy: which types meet here follows from noisy answers, and each pair of them would be compiled for itself.
    """
    cells = keys[: len(column)]
    cells *= size
    cells += column


@compiled
def _tally_pair(
    counts: Ints, first: NDArray[np.unsignedinteger], second: NDArray[np.unsignedinteger], size: int
) -> None:
    for i in range(len(first)):
        counts[np.int64(first[i]) * size + np.int64(second[i])] += 1


@compiled
def _tally(counts: Ints, keys: Ints, rows: int) -> None:
    for i in range(rows):
        counts[keys[i]] += 1


@compiled
def _tally_weighted(counts: Ints, keys: Ints, weights: NDArray[np.uint32]) -> None:
    for i in range(len(weights)):
        counts[keys[i]] += np.int64(weights[i])


def in_batches(domain: Domain, cliques: Sequence[Clique], most: int) -> Iterator[list[Clique]]:
    """The cliques in their order, as many together as have at most `most` cells; a single larger one goes alone."""
    batch: list[Clique] = []
    cells = 0
    for clique in cliques:
        own = domain.cells(clique)
        if batch and cells + own > most:
            yield batch
            batch, cells = [], 0
        batch.append(clique)
        cells += own
    if batch:
        yield batch


def count_cliques(table: AnyTable, cliques: Sequence[Clique]) -> list[Ints]:
    """Counts of each clique, flattened in C order: whole rows, or units of 2**-WEIGHT_BITS records where weighted.

    Cost: one pass over the rows, about a nanosecond per row, marginal and attribute; memory: the cells counted.

    >>> from mechanisms.public.domain import Attribute, Domain
    >>> domain = Domain((Attribute("sex", 2), Attribute("ward", 3)))
    >>> table = CodedTable(domain, (np.array([0, 1, 1], np.uint8), np.array([2, 0, 0], np.uint8)))
    >>> count_cliques(table, [("sex",), ("sex", "ward")])
    [array([1, 2]), array([0, 0, 1, 2, 0, 0])]
    """
    if isinstance(table, CountedTable):
        return table.count(cliques)
    counts = [np.zeros(table.domain.cells(c), np.int64) for c in cliques]
    add_counts(counts, table, cliques)
    return counts


def add_counts(counts: Sequence[Ints], table: CodedTable, cliques: Sequence[Clique]) -> None:
    """Add the counts of each clique, as of `count_cliques`, to those of other rows.

    Each of the table's threads takes a share of the marginals, and all rows.
    """
    jobs = list(zip(counts, (table.domain.axes(c) for c in cliques), strict=True))
    threads = table.threads if table.rows > STEP else 1
    if threads == 1 or len(jobs) == 1:
        _add(jobs, table)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(_add, jobs[i::threads], table) for i in range(threads)]:
            done.result()


def _add(jobs: Sequence[tuple[Ints, tuple[int, ...]]], table: CodedTable) -> None:
    """Add the counts of some marginals, given by the places of their columns."""
    sizes = [a.size for a in table.domain.attributes]
    used = sorted({place for _, places in jobs for place in places})
    keys = np.empty(STEP, np.int64)
    for start in range(0, table.rows, STEP):
        part = slice(start, min(start + STEP, table.rows))
        columns = {place: _short(table.columns[place][part], sizes[place]) for place in used}
        weights = None if table.weights is None else np.ascontiguousarray(table.weights[part])
        for out, places in jobs:
            if weights is None and len(places) == 2 and max(sizes[place] for place in places) <= SHORT:
                _tally_pair(out, columns[places[0]], columns[places[1]], sizes[places[1]])
                continue
            keys[:] = 0
            for place in places:
                extend_keys(keys, columns[place], sizes[place])
            if weights is None:
                _tally(out, keys, part.stop - part.start)
            else:
                _tally_weighted(out, keys, weights)


def _short(column: NDArray[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
    """A part of a column in one kind of numbers for nearly all columns: each kind compiles the loops once more."""
    return column.astype(np.uint16) if size <= SHORT else column.astype(np.uint32)


def count_sparse(table: AnyTable, clique: Clique) -> tuple[Ints, Ints]:
    """The occupied cells of one marginal: their flat numbers, ascending, and their counts as in `count_cliques`.

    Cost: a sort of the rows; memory: 16 bytes a row. For marginals with too many cells to hold.

    Raises:
        UserError: the cells cannot be numbered in 63 bits; more than MOST_CELLS, where rows lie elsewhere.
    """
    domain = table.domain
    elsewhere = isinstance(table, CountedTable)
    if domain.cells(clique) >= (MOST_CELLS if elsewhere else 2**63):
        raise UserError(f"{' × '.join(clique)} has too many cells", where="marginal", fix="fewer or coarser columns")
    if isinstance(table, CountedTable):
        (dense,) = table.count([clique])
        return (occupied := np.flatnonzero(dense)), dense[occupied]
    keys = np.zeros(table.rows, np.int64)
    for name in clique:
        keys *= domain[name].size
        keys += table.column(name)
    if table.weights is None:
        ids, counts = np.unique(keys, return_counts=True)
        return ids, counts.astype(np.int64)
    ids, inverse = np.unique(keys, return_inverse=True)
    sums = np.zeros(ids.size, np.int64)
    np.add.at(sums, inverse, table.weights.astype(np.int64))
    return ids, sums
