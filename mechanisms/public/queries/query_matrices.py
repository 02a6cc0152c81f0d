"""Query matrices over a flattened marginal: answer, transpose, column norms and column distances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError
from mechanisms.public.units import Neighbouring, Norm, round_up

if TYPE_CHECKING:  # loaded by the first sparse query
    from scipy import sparse

#: Entries are whole multiples of 2**-MATRIX_BITS, so that answers to counts on a lattice lie on a lattice.
MATRIX_BITS = 16
#: Entries: up to this size the exact distance between columns is computed; above it, twice the norm bounds it.
MAX_DENSE = 4_000_000
#: The entries of a sparse matrix, in multiples of 2**-bits, add up to less: no sum of them leaves the whole numbers.
MAX_SUM = 2.0**53
#: The largest matrix of a plugin's class whose norm is computed, in columns and in entries.
MAX_COLUMNS, MAX_ENTRIES = 10_000, 50_000_000
#: Classes of this project, whose norms are proved and audited. The norms that any other class states are not used.
PROVED: set[type] = set()


Q = TypeVar("Q")


class QueryMatrix(Protocol):
    """A linear map from a flattened marginal (`columns` cells) to `rows` answers."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def bits(self) -> int:
        """Entries are multiples of 2**-bits."""
        ...

    def answer(self, marginal: Floats) -> Floats:
        """Q · marginal."""
        ...

    def answer_exact(self, marginal: Ints) -> Ints:
        """2**bits · Q · marginal, in whole numbers."""
        ...

    def transpose(self, answers: Floats) -> Floats:
        """Qᵀ · answers."""
        ...

    def largest_column_norm(self, norm: Norm) -> float:
        """max over columns of ‖q‖."""
        ...

    def largest_column_distance(self, norm: Norm) -> float:
        """max over pairs of columns of ‖q − q'‖."""
        ...

    def arrays(self) -> dict[str, Ints]:
        """What the query is saved as; `from_arrays` takes it back."""
        ...


def proved(cls: type[Q]) -> type[Q]:
    """Marks a class of ours: its own norms are taken.

    Raises:
        TypeError: a class of others, which may have copied the mark with the code of one of ours.
    """
    if cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
        raise TypeError(f"{cls.__name__} of {cls.__module__}: only our own query matrices are marked as proved")
    PROVED.add(cls)
    return cls


def ask_alike(one: QueryMatrix, two: QueryMatrix) -> bool:
    """Whether two queries ask the same: what is read from a release are other objects than what was asked in a run."""
    if one is two:
        return True
    a, b = one.arrays(), two.arrays()
    return type(one) is type(two) and a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def exact_root(square: int, bits: int) -> float:
    """The root of a whole number, times 2**-bits: exact where it is a whole number, else rounded up."""
    root = math.isqrt(square)
    return root * 2.0**-bits if root * root == square else round_up(math.sqrt(square) * 2.0**-bits)


def distance_of_cells(cells: int, norm: Norm) -> float:
    """max over pairs of columns where each cell counts in one of so many answers, once."""
    return 0.0 if cells < 2 else 2.0 if norm == "l1" else round_up(math.sqrt(2.0))


def too_many_records(problem: str) -> UserError:
    """The refusal of answers that whole numbers of 63 bits do not hold; raised before anything is charged."""
    fix = "a table of fewer records, or a part of it; or a selection whose queries add up fewer of them"
    return UserError(problem, where="data", fix=fix)


@proved
@dataclass(frozen=True)
class Identity:
    """Every cell of a marginal, once."""

    cells: int
    bits: int = 0

    @property
    def rows(self) -> int:
        return self.cells

    columns = rows

    def answer(self, marginal: Floats) -> Floats:
        return marginal

    def answer_exact(self, marginal: Ints) -> Ints:
        return marginal

    def transpose(self, answers: Floats) -> Floats:
        return answers

    def largest_column_norm(self, norm: Norm) -> float:
        return 1.0

    def largest_column_distance(self, norm: Norm) -> float:
        return distance_of_cells(self.cells, norm)

    def arrays(self) -> dict[str, Ints]:
        return {"cells": np.array([self.cells])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> Identity:
        return cls(int(arrays["cells"][0]))


@proved
@dataclass(frozen=True, eq=False)
class SparseQuery:
    """Any sparse query matrix; entries are snapped to multiples of 2**-bits before anything is computed from it.

    Attributes:
        scaled: the matrix times 2**bits, whole numbers, `rows` × `columns`.
        bits: how fine the entries are; the noise lies on a lattice of 2**-(WEIGHT_BITS + bits) records.
    Raises:
        UserError: entries that add up to MAX_SUM, or that are no whole numbers.
    """

    scaled: sparse.csr_array
    bits: int = MATRIX_BITS

    def __post_init__(self) -> None:
        from scipy import sparse

        given = self.scaled.data.astype(np.float64)
        if not float(np.abs(given).sum()) < MAX_SUM or (given != np.rint(given)).any():
            fix = "SparseQuery.of(matrix), with entries of a few records at most: no norm of larger ones is exact"
            problem = "the entries of a query matrix are too large, or no whole multiples of 2^-bits"
            raise UserError(problem, where="plugins", fix=fix)
        # narrow numbers run over where norms are taken: -128 in bytes is its own absolute value
        object.__setattr__(self, "scaled", sparse.csr_array(self.scaled).astype(np.int64))

    @classmethod
    def of(cls, matrix: Floats | sparse.csr_array, *, bits: int = MATRIX_BITS) -> SparseQuery:
        """The snapped matrix of a dense or sparse one (`rows` × `columns`)."""
        from scipy import sparse

        csr = sparse.csr_array(matrix)
        data = np.rint(csr.data * 2.0**bits).astype(np.int64)
        return cls(sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape), bits)

    @property
    def rows(self) -> int:
        return int(self.scaled.shape[0])

    @property
    def columns(self) -> int:
        return int(self.scaled.shape[1])

    def answer(self, marginal: Floats) -> Floats:
        return np.asarray(self.scaled @ marginal) * 2.0**-self.bits

    def answer_exact(self, marginal: Ints) -> Ints:
        size = abs(self.scaled).astype(np.float64) @ np.abs(marginal).astype(np.float64)
        if float(np.max(size, initial=0.0)) >= 2.0**62:
            raise too_many_records("the answers of a query do not fit 63 bits")
        return np.asarray(self.scaled @ marginal, dtype=np.int64)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(self.scaled.T @ answers) * 2.0**-self.bits

    def largest_column_norm(self, norm: Norm) -> float:
        largest = float(self._sums(norm).max(initial=0.0))
        return largest if norm == "l1" else round_up(math.sqrt(largest))

    def _sums(self, norm: Norm) -> Floats:
        """Per column the sum of entries (L1), or of their squares (L2)."""
        entries = abs(self.scaled).astype(np.float64) * 2.0**-self.bits
        return np.asarray((entries if norm == "l1" else entries.multiply(entries)).sum(axis=0)).ravel()

    def largest_column_distance(self, norm: Norm) -> float:
        """max over pairs of columns; a bound where the matrix is too large to compare all pairs.

        The bound is twice the largest norm, √2 times for L2 and entries of one sign (no two columns point apart).
        """
        if (apart := self._apart(norm)) is not None:
            return apart
        columns = np.unique(self.scaled.T.toarray(), axis=0) if self.columns * self.rows <= MAX_DENSE else None
        if columns is None:
            factor = round_up(math.sqrt(2)) if norm == "l2" and (self.scaled.data >= 0).all() else 2.0
            return round_up(factor * self.largest_column_norm(norm))
        largest = 0.0
        for column in columns:
            gaps = np.abs(columns - column).astype(np.float64) * 2.0**-self.bits
            sums = gaps.sum(axis=1) if norm == "l1" else np.sqrt((gaps**2).sum(axis=1))
            largest = max(largest, float(sums.max()))
        return largest if norm == "l1" else round_up(largest)

    def _apart(self, norm: Norm) -> float | None:
        """That distance where two columns of the largest norm share no row: none of one sign can be farther apart."""
        if not self.columns or (self.scaled.data < 0).any():
            return None
        sums = self._sums(norm)
        largest = np.flatnonzero(sums == sums.max())
        first, last = (self.scaled[:, [i]].toarray().ravel() for i in (largest[0], largest[-1]))
        if (first * last).any():
            return None
        total = 2 * float(sums.max())
        return total if norm == "l1" else round_up(math.sqrt(total))

    def arrays(self) -> dict[str, Ints]:
        csr = self.scaled
        shape, bits = np.array(csr.shape), np.array([self.bits])
        return {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": shape, "bits": bits}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> SparseQuery:
        """The query of `arrays`; ValueError for arrays that are no sparse matrix."""
        from scipy import sparse

        shape = (int(arrays["shape"][0]), int(arrays["shape"][1]))
        csr = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        csr.check_format(full_check=True)
        bits = int(arrays["bits"][0]) if "bits" in arrays else MATRIX_BITS
        if not 0 <= bits <= MATRIX_BITS:
            raise ValueError(f"entries in multiples of 2^-{bits}")
        return cls(csr, bits)


@proved
class Columns(SparseQuery):
    """A matrix as its columns were told; a norm that is a whole number of units stands as it is, not rounded up."""

    def largest_column_norm(self, norm: Norm) -> float:
        largest = math.ldexp(float(self._sums("l2").max(initial=0.0)), 2 * self.bits)
        whole = norm == "l2" and largest < MAX_SUM
        return exact_root(int(largest), self.bits) if whole else super().largest_column_norm(norm)


def as_matrix(query: QueryMatrix) -> QueryMatrix:
    """The query itself; of a plugin's class the matrix of its answers to each cell alone.

    Rows are counted by this matrix, and its sensitivity is computed from it: whatever such a class says of its norms,
    or would answer to a whole marginal, is not asked.

    Raises:
        UserError: entries finer than 2**-MATRIX_BITS, whose norms run over; a plugin's matrix that is too large to be
            asked column by column, or whose answers are no columns.
    """
    name, fix = type(query).__name__, "a smaller marginal, or SparseQuery.of(matrix)"
    if not 0 <= query.bits <= MATRIX_BITS:
        problem = f"the entries of {name} are multiples of 2^-{query.bits}"
        raise UserError(problem, where="plugins", fix=f"bits from 0 to {MATRIX_BITS}")
    if type(query) in PROVED:
        return query
    from scipy import sparse

    if query.columns > MAX_COLUMNS or query.columns * query.rows > MAX_ENTRIES:
        problem = f"{name} has {query.columns:,} columns of {query.rows:,} answers, too many to be looked at one by one"
        raise UserError(problem, where="plugins", fix=fix)
    columns, cell = [], np.zeros(query.columns, np.int64)
    for place in range(query.columns):
        cell[place - 1], cell[place] = 0, 1
        column = np.asarray(query.answer_exact(cell.copy()))
        if column.shape != (query.rows,) or column.dtype.kind not in "iu":
            raise UserError(f"{name} does not answer {query.rows:,} whole numbers", where="plugins", fix=fix)
        columns.append(sparse.csc_array(column.astype(np.int64).reshape(-1, 1)))
    return Columns(sparse.csr_array(sparse.hstack(columns)), query.bits)


def check_cells(query: QueryMatrix, cells: int) -> None:
    """Refuse a matrix over a marginal of another size: its norms say nothing of numbers that are spread until they fit.

    Raises:
        UserError: it has not one column for each cell.
    """
    if query.columns != cells:
        problem = f"{type(query).__name__} has {query.columns:,} columns, and its marginal {cells:,} cells"
        raise UserError(problem, where="plugins", fix="a matrix of context.domain.cells(clique) columns")


def sensitivity(query: QueryMatrix, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
    """The largest change of the answers, in records, when one unit changes; rounded up.

    A unit adds a non-negative vector of total weight at most C to the marginal. Under `add_remove` the answers move by
    at most C times the largest column norm; under `replace` two such vectors are exchanged, whose difference is
    largest at extreme points: C times the larger of that norm and the largest distance between two columns
    (Li et al. 2021b, 2.3). Of a plugin's class the norms are those of its columns (`as_matrix`), not its word.

    >>> every_cell = Identity(6)
    >>> sensitivity(every_cell, norm="l1", neighbouring=Neighbouring.ADD_REMOVE, max_records=3)
    3.0
    >>> sensitivity(every_cell, norm="l1", neighbouring=Neighbouring.REPLACE, max_records=3)
    6.0
    """
    query = as_matrix(query)
    largest = query.largest_column_norm(norm)
    if neighbouring is Neighbouring.REPLACE:
        largest = max(largest, query.largest_column_distance(norm))
    exact = largest == int(largest)
    return max_records * largest if exact else round_up(max_records * largest)
