"""Queries of sums of cells, over merged values (McKenna et al. 2021) or residual (Xiao et al. 2023); all as JSON."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.domain import Attribute, Clique, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery
from mechanisms.public.queries.query_matrices import (
    MATRIX_BITS,
    PROVED,
    Identity,
    QueryMatrix,
    SparseQuery,
    distance_of_cells,
    exact_root,
    proved,
    too_many_records,
)
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

    labels: tuple[Ints, ...]
    bits: int = 0

    def __post_init__(self) -> None:
        """Whoever asked may fill the arrays anew for the next question: this one stands as it was asked.

        Arrays that nobody may write are shared: the pairs of a wide table have few groups between them.
        """
        object.__setattr__(self, "labels", tuple(own.copy() if own.flags.writeable else own for own in self.labels))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(int(own.max()) + 1 for own in self.labels)

    @cached_property
    def _rows(self) -> Ints:
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

    def answer(self, marginal: Floats) -> Floats:
        return np.bincount(self._rows, marginal, minlength=self.rows).astype(np.float64)

    def answer_exact(self, marginal: Ints) -> Ints:
        sums = np.zeros(self.rows, np.int64)
        np.add.at(sums, self._rows, marginal)
        return sums

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(answers[self._rows], np.float64)

    def largest_column_norm(self, norm: Norm) -> float:
        return 1.0

    def largest_column_distance(self, norm: Norm) -> float:
        return distance_of_cells(self.rows, norm)

    def arrays(self) -> dict[str, Ints]:
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
) -> dict[str, Ints]:
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


def merged_query(domain: Domain, clique: Clique, groups: Mapping[str, Ints]) -> Identity | MergedQuery:
    """The marginal with merged codes; the identity where nothing is merged."""
    if all(int(groups[n].max()) + 1 == domain[n].size for n in clique):
        return Identity(domain.cells(clique))
    return MergedQuery(tuple(groups[n] for n in clique))


def coarse_groups(attribute: Attribute, expected: Floats, groups: int) -> Ints:
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


def solid_groups(attribute: Attribute, expected: Floats, least: float) -> Ints:
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


#: Cells: smaller pairs are measured whole, since combined pairs also describe three columns and more.
SMALL_CELLS = 9


@proved
@dataclass(frozen=True)
class ResidualQuery:
    """The matrix ⊗ᵢ (kᵢ·I − J) over a marginal whose columns have kᵢ codes, in multiples of 2**-bits.

    Divided by ∏ kᵢ it is the projection ⊗ᵢ (I − J/kᵢ) onto the tables all of whose sums along an axis are 0: a basis of
    contrasts would answer the same, but not in whole numbers. One record moves its answers in L2 by √∏ (1 − 1/kᵢ) of
    what it moves all cells by. Every cell is answered, with its own noise; what noise lies outside of the projection
    is taken off again by `residual`.

    Attributes:
        shape: how many codes each column has, at least 2; all cells together at most 2**MATRIX_BITS.
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 2 or self.rows > 1 << MATRIX_BITS:
            raise ValueError(f"no residual of a marginal of {self.shape}")

    @property
    def rows(self) -> int:
        return math.prod(self.shape)

    columns = rows

    @property
    def bits(self) -> int:
        """The least that make every entry at most 1: answers are never larger than counts of records."""
        return (self.rows - 1).bit_length()

    @property
    def unit(self) -> float:
        """What the answers are over the residual in records: above ½, at most 1."""
        return self.rows * 2.0**-self.bits

    def answer(self, marginal: Floats) -> Floats:
        return projected(marginal.reshape(self.shape)).ravel() * self.unit

    def answer_exact(self, marginal: Ints) -> Ints:
        if float(np.abs(marginal).astype(np.float64).sum()) * self.rows >= 2.0**62:
            raise too_many_records("the answers of a residual do not fit 63 bits")
        table = marginal.reshape(self.shape)
        for axis, size in enumerate(self.shape):
            table = size * table - table.sum(axis=axis, keepdims=True)
        return np.asarray(table.ravel(), np.int64)

    def transpose(self, answers: Floats) -> Floats:
        return self.answer(answers)

    def residual(self, answers: Floats) -> Floats:
        """The residual in records, shaped, from noisy answers: the noise outside of the projection is taken off."""
        return projected(answers.reshape(self.shape)) / self.unit

    def noise(self, each: float) -> float:
        """The noise of a cell of `residual`, in records, from that of an answer."""
        return each / self.unit * math.sqrt(math.prod(1 - 1 / k for k in self.shape))

    def largest_column_norm(self, norm: Norm) -> float:
        """Of every column: √∏ kᵢ(kᵢ − 1) in L2, ∏ 2(kᵢ − 1) in L1, times 2**-bits."""
        if norm == "l1":
            return math.prod(2 * (k - 1) for k in self.shape) * 2.0**-self.bits
        return exact_root(math.prod(k * (k - 1) for k in self.shape), self.bits)

    def largest_column_distance(self, norm: Norm) -> float:
        """Exact, over the sets of columns of the marginal in which two cells differ."""
        sets = subsets(tuple(range(len(self.shape))))
        if norm == "l1":
            return max(self._apart(s) for s in sets) * 2.0**-self.bits
        alike = math.prod(k * (k - 1) for k in self.shape)
        products = [math.prod(-k if i in s else k * (k - 1) for i, k in enumerate(self.shape)) for s in sets]
        return exact_root(2 * (alike - min(products)), self.bits)

    def _apart(self, differ: tuple[int, ...]) -> int:
        """The L1 distance of the columns of two cells that differ on these axes: by the values of the factors."""
        outside = math.prod(2 * (k - 1) for i, k in enumerate(self.shape) if i not in differ)
        kinds = [[(k - 1, -1, 1), (-1, k - 1, 1), (-1, -1, k - 2)] for i, k in enumerate(self.shape) if i in differ]
        return outside * sum(
            abs(math.prod(a for a, _, _ in some) - math.prod(b for _, b, _ in some)) * math.prod(n for _, _, n in some)
            for some in itertools.product(*kinds)
        )

    def arrays(self) -> dict[str, Ints]:
        return {"shape": np.array(self.shape)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> ResidualQuery:
        """The query of `arrays`; ValueError for a shape that has no residual."""
        return cls(tuple(int(k) for k in arrays["shape"]))


def projected(table: Floats) -> Floats:
    """A table less its means along every axis: all its sums along an axis are 0."""
    for axis, size in enumerate(table.shape):
        table = table - np.add.reduce(table, axis=axis, keepdims=True) / size
    return table


def with_residuals(
    domain: Domain, queries: Mapping[Clique, QueryMatrix], bound: Callable[[QueryMatrix], float]
) -> tuple[dict[Clique, QueryMatrix], dict[Clique, float]]:
    """What is asked of each pair, and its noise over that of all its cells for the same part of a budget.

    Of pairs that would be asked whole the residual is asked, where its noise is less: what one-way marginals tell is
    not paid for in each of their pairs again. Pairs over coarser values stay as they are.

    Args:
        bound: the sensitivity of the answers to a matrix, in the norm of the noise. Under L1 a residual never has less
            noise; under `replace` it has more than under `add_remove`.
    Returns:
        queries by pair, and factors by pair, 1 where nothing changes.
    """
    asked, factor = dict(queries), dict.fromkeys(queries, 1.0)
    for pair, query in queries.items():
        shape = domain.shape(pair)
        if not isinstance(query, Identity) or min(shape) < 2 or not SMALL_CELLS < query.cells <= 1 << MATRIX_BITS:
            continue
        residual = ResidualQuery(shape)
        less = bound(residual) / residual.unit / bound(query)
        if less < 1:
            asked[pair], factor[pair] = residual, less
    return asked, factor


#: Class name → the query of its arrays: ours, and those of plugins; a new kind of query is one line here.
QUERIES: dict[str, Callable[[Mapping[str, Ints]], QueryMatrix]] = {
    "Identity": Identity.from_arrays,
    "SparseQuery": SparseQuery.from_arrays,
    "GridQuery": GridQuery.from_arrays,
    "MergedQuery": MergedQuery.from_arrays,
    "ResidualQuery": ResidualQuery.from_arrays,
}


def query_of(name: str, arrays: Mapping[str, Ints]) -> QueryMatrix:
    """The query matrix of that class name from its arrays; ValueError for an unknown name or arrays that are none."""
    whole = {key: a for key, a in arrays.items() if key != "values"}
    if any(a.dtype.kind not in "iu" or a.dtype == np.uint64 or a.ndim != 1 for a in whole.values()):
        raise ValueError("a query matrix is saved as rows of whole numbers")
    if name not in QUERIES:
        raise ValueError(f"no query matrix is called {name!r}; known are {', '.join(QUERIES)}")
    return QUERIES[name]({key: a.astype(np.int64) for key, a in whole.items()})  # narrow ones would run over


def check_stored(query: QueryMatrix) -> None:
    """Refuse a query whose class a file would name as another one, or as none; ask before the charge.

    Raises:
        UserError: its class is not what stands in QUERIES under the name of the class.
    """
    cls = type(query)
    if cls in PROVED:
        return
    name = cls.__name__
    if name not in QUERIES or type(query_of(name, query.arrays())) is not cls:
        other = "another class of that name" if name in QUERIES else "nothing: it is not registered"
        problem = f"a query matrix of {cls.__module__} is called {name!r}, and a file would be read as {other}"
        fix = f"QUERIES = {{{name!r}: {name}.from_arrays}} in its module, under a name that is free"
        raise UserError(problem, where="plugins", fix=fix)
