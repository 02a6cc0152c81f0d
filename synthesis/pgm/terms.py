"""What noisy answers say about one marginal: weighted squared distances, summed up by clique."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import Values
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, SparseQuery
from mechanisms.public.release import NoisyMarginal
from synthesis.pgm.kernels import add_to_cells, add_to_rows, entries_by_cell, squared_gap

#: Cells: stacked queries over a smaller marginal are reduced to as many rows as it has cells.
REDUCE_CELLS = 1024


class Term(Protocol):
    """A weighted squared distance as a function of one flattened marginal, in records."""

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        """The value at total · probabilities; the gradient with respect to these records is added to `slope`."""
        ...

    @property
    def size(self) -> int:
        """How many answers it has left."""
        ...

    def split(self, share: float, rng: np.random.Generator) -> tuple[Term, Term]:
        """Terms to answers with `share`·σ of noise added, and with the same noise over the share's square taken off."""
        ...


@dataclass(frozen=True, eq=False)
class _MeanTerm:
    """Answers of one weight, and their mean."""

    mean: Values
    weight: float

    @property
    def size(self) -> int:
        return len(self.mean)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Term, Term]:
        noise = rng.normal(0, self.weight**-0.5, self.size)
        one, two = replace(self, mean=self.mean + share * noise), replace(self, mean=self.mean - noise / share)
        return cast("Term", one), cast("Term", two)


@dataclass(frozen=True, eq=False)
class WholeTerm(_MeanTerm):
    """½ weight · ‖μ − mean‖²: every whole measurement of one clique."""

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        return float(squared_gap(probabilities, total, self.mean, self.weight, slope))


@dataclass(frozen=True, eq=False)
class SparseTerm:
    """½ ‖scale · (matrix · μ) − values‖², the matrix kept cell by cell.

    Attributes:
        starts, rows: the entries of cell j lie in the rows `rows[starts[j]:starts[j + 1]]`.
        entries: their values; empty where all are 1, so that an entry takes four bytes.
        scale: a factor for each row: what all its entries have in common, over σ.
        values: the answers over σ.
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    entries: Values
    scale: Values
    values: Values

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        gap = np.zeros(len(self.values))
        add_to_rows(self.starts, self.rows, self.entries, probabilities, gap)
        gap *= self.scale * total
        gap -= self.values
        add_to_cells(self.starts, self.rows, self.entries, gap * self.scale, slope)
        return 0.5 * float(gap @ gap)

    @property
    def size(self) -> int:
        return len(self.values)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Term, Term]:
        noise = rng.normal(0, 1, self.size)
        return replace(self, values=self.values + share * noise), replace(self, values=self.values - noise / share)


@dataclass(frozen=True, eq=False)
class QueryTerm(_MeanTerm):
    """½ weight · ‖Q · μ − mean‖² for a query matrix that brings its own products."""

    query: QueryMatrix

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        gap = total * self.query.answer(probabilities) - self.mean
        slope += self.query.transpose(self.weight * gap)
        return 0.5 * self.weight * float(gap @ gap)


@dataclass(frozen=True, eq=False)
class Statistics:
    """All answers about one clique, summed up: the cost of a step does not grow with their number.

    Attributes:
        clique: in domain order; the terms are about its flattened marginal.
        terms: what depends on the model.
        constant: what does not: the spread of repeated answers about their mean, and what no marginal can fit.
    """

    clique: Clique
    terms: tuple[Term, ...]
    constant: float


def sufficient(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[Statistics]:
    """The answers, summed up by clique.

    Repeated queries become one with the weighted mean of their answers; different ones over a small marginal become
    one triangular system (QR).

    Raises:
        UserError: an unknown attribute, a query that does not fit its marginal, answers that are not finite, a
            standard deviation that is not above 0.
    """
    groups: dict[Clique, list[NoisyMarginal]] = defaultdict(list)
    for answer in answers:
        check_answer(domain, answer)
        groups[answer.clique].append(answer)
    return [_summed(clique, group) for clique, group in groups.items()]


def check_answer(domain: Domain, answer: NoisyMarginal) -> None:
    """UserError for an answer that cannot be used, naming it."""
    name = " × ".join(answer.clique)
    fix = "take the release folder of a run, unchanged"
    if domain.canonical(answer.clique) != answer.clique:
        raise UserError(f"{name} is not in the order of the schema", where="measurements", fix=fix)
    cells, rows = domain.cells(answer.clique), answer.query.rows
    if answer.query.columns != cells or answer.values.shape != (rows,):
        problem = (
            f"{answer.values.size} answers to {rows} × {answer.query.columns} queries about {name}, of {cells} cells"
        )
        raise UserError(problem, where="measurements", fix=fix)
    if not np.isfinite(answer.values).all():
        raise UserError(f"the answers to {name} are not all finite", where="measurements", fix=fix)
    if not 0 < answer.stddev < np.inf:
        raise UserError(f"the noise scale of {name} is {answer.scale}", where="measurements", fix=fix)


def _summed(clique: Clique, group: Sequence[NoisyMarginal]) -> Statistics:
    constant, single = 0.0, []
    for same in by_query(group):
        weights = np.array([a.stddev**-2 for a in same])
        mean = np.average(np.stack([a.values for a in same]), axis=0, weights=weights / weights.max())
        constant += sum(0.5 * float(np.sum((a.values - mean) ** 2)) * w for a, w in zip(same, weights, strict=True))
        single.append((same[0].query, mean, float(weights.sum())))
    whole: list[Term] = [WholeTerm(m, w) for q, m, w in single if isinstance(q, Identity)]
    thin = [(q, m, w) for q, m, w in single if isinstance(q, SparseQuery)]
    other_terms: list[Term] = [QueryTerm(m, w, q) for q, m, w in single if not isinstance(q, Identity | SparseQuery)]
    if not thin:
        return Statistics(clique, (*whole, *other_terms), constant)
    term, rest = _sparse(thin)
    return Statistics(clique, (*whole, *other_terms, term), constant + rest)


def by_query(answers: Iterable[NoisyMarginal]) -> list[list[NoisyMarginal]]:
    """Answers about one marginal, those to the same query together, in the order first seen."""
    alike: list[list[NoisyMarginal]] = []
    for answer in answers:
        same = next((group for group in alike if _same(answer.query, group[0].query)), None)
        if same is None:
            alike.append([answer])
        else:
            same.append(answer)
    return alike


def _same(one: QueryMatrix, two: QueryMatrix) -> bool:
    """Whether two queries ask the same: what is read from a release are other objects than what was asked in a run."""
    if one is two:
        return True
    if type(one) is not type(two):
        return False
    a, b = one.arrays(), two.arrays()
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def _sparse(several: Sequence[tuple[SparseQuery, Values, float]]) -> tuple[SparseTerm, float]:
    """Different queries over one marginal as one term, and the part of it that no marginal changes.

    Each comes with the mean of its answers and their weight, 1/σ².
    """
    columns, rows = several[0][0].columns, sum(q.rows for q, _, _ in several)
    values = np.concatenate([m * w**0.5 for _, m, w in several])
    if rows > columns and columns <= REDUCE_CELLS:
        dense = np.concatenate([q.scaled.toarray() * (2.0**-q.bits * w**0.5) for q, _, w in several])
        from scipy import linalg

        basis, upper = linalg.qr(dense, mode="economic")
        projected = np.asarray(basis.T @ values)
        cells, filled = np.nonzero(upper.T)
        starts = np.concatenate(([0], np.cumsum(np.bincount(cells, minlength=columns)))).astype(np.int64)
        term = SparseTerm(starts, filled.astype(np.int32), upper[filled, cells], np.ones(len(projected)), projected)
        return term, 0.5 * max(float(values @ values - projected @ projected), 0.0)
    common = [_common(q) for q, _, _ in several]
    alike = all(c is not None for c in common)
    counts = np.sum([np.bincount(q.scaled.indices, minlength=columns) for q, _, _ in several], axis=0)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    places = np.empty(starts[-1], np.int32)
    entries = np.empty(0 if alike else starts[-1])
    ahead, first, scales = starts[:-1].copy(), 0, []
    for (query, _, weight), shared in zip(several, common, strict=True):
        csr = query.scaled
        data = np.empty(0) if alike else csr.data * 2.0**-query.bits
        entries_by_cell(ahead, csr.indices.astype(np.int32), csr.indptr.astype(np.int64), data, places, entries, first)
        scales.append((shared if alike and shared is not None else np.ones(query.rows)) * weight**0.5)
        first += query.rows
    return SparseTerm(starts, places, entries, np.concatenate(scales), values), 0.0


def _common(query: SparseQuery) -> Values | None:
    """For each row the value that all its entries have; None where they differ."""
    csr = query.scaled
    lengths = np.diff(csr.indptr)
    first = np.zeros(query.rows, np.int64)
    first[lengths > 0] = csr.data[csr.indptr[:-1][lengths > 0]]
    if not np.array_equal(np.repeat(first, lengths), csr.data):
        return None
    return np.asarray(first * 2.0**-query.bits)
