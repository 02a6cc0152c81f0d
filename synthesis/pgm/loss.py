"""How far a model's marginals are from the noisy answers: ½ Σ ‖Qμ − y‖² / σ², and its gradient on a junction tree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg, sparse

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries import Identity, QueryMatrix, SparseQuery
from mechanisms.public.release import NoisyMarginal
from synthesis.pgm.inference import Engine, Values, onto
from synthesis.pgm.kernels import add_middle, squared_gap, sum_middle

#: Stacked queries over a marginal of up to so many cells are reduced to as many rows as it has cells.
REDUCE_CELLS = 1024


class Term(Protocol):
    """A weighted squared distance as a function of one flattened marginal, in records."""

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        """The value at total · probabilities; the gradient with respect to these records is added to `slope`."""
        ...


@dataclass(frozen=True, eq=False)
class WholeTerm:
    """½ weight · ‖μ − mean‖²: every whole measurement of one clique."""

    mean: Values
    weight: float

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        return float(squared_gap(probabilities, total, self.mean, self.weight, slope))


@dataclass(frozen=True, eq=False)
class SparseTerm:
    """½ ‖matrix · μ − values‖², each row divided by its σ before."""

    matrix: sparse.csr_array
    transposed: sparse.csr_array
    values: Values

    def evaluate(self, probabilities: Values, total: float, slope: Values) -> float:
        gap = total * np.asarray(self.matrix @ probabilities) - self.values
        slope += np.asarray(self.transposed @ gap)
        return 0.5 * float(gap @ gap)


@dataclass(frozen=True, eq=False)
class QueryTerm:
    """½ weight · ‖Q · μ − mean‖² for a query matrix that brings its own products."""

    query: QueryMatrix
    mean: Values
    weight: float

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
        what = f"{answer.values.size} answers to {rows} × {answer.query.columns} queries about {name}, of {cells} cells"
        raise UserError(what, where="measurements", fix=fix)
    if not np.isfinite(answer.values).all():
        raise UserError(f"the answers to {name} are not all finite", where="measurements", fix=fix)
    if not 0 < answer.stddev < np.inf:
        raise UserError(f"the noise scale of {name} is {answer.scale}", where="measurements", fix=fix)


def _summed(clique: Clique, group: Sequence[NoisyMarginal]) -> Statistics:
    alike: list[list[NoisyMarginal]] = []
    for answer in group:
        for other in alike:
            if _same(answer.query, other[0].query):
                other.append(answer)
                break
        else:
            alike.append([answer])
    constant, single = 0.0, []
    for same in alike:
        weights = np.array([a.stddev**-2 for a in same])
        mean = np.average(np.stack([a.values for a in same]), axis=0, weights=weights / weights.max())
        constant += sum(0.5 * float(np.sum((a.values - mean) ** 2)) * w for a, w in zip(same, weights, strict=True))
        single.append((same[0].query, mean, float(weights.sum())))
    whole: list[Term] = [WholeTerm(m, w) for q, m, w in single if isinstance(q, Identity)]
    thin = [(q, m, w) for q, m, w in single if isinstance(q, SparseQuery)]
    other_terms: list[Term] = [QueryTerm(q, m, w) for q, m, w in single if not isinstance(q, Identity | SparseQuery)]
    if not thin:
        return Statistics(clique, (*whole, *other_terms), constant)
    matrix = sparse.vstack([_floats(q) * w**0.5 for q, _, w in thin], format="csr")
    term, rest = _reduced(sparse.csr_array(matrix), np.concatenate([m * w**0.5 for _, m, w in thin]))
    return Statistics(clique, (*whole, *other_terms, term), constant + rest)


def _same(one: QueryMatrix, two: QueryMatrix) -> bool:
    if one is two or (isinstance(one, Identity) and isinstance(two, Identity)):
        return True
    if isinstance(one, SparseQuery) and isinstance(two, SparseQuery):
        a, b = one.scaled, two.scaled
        pairs = [(a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data)]
        return a.shape == b.shape and all(np.array_equal(x, y) for x, y in pairs)
    return False


def _floats(query: SparseQuery) -> sparse.csr_array:
    scaled = query.scaled
    return sparse.csr_array((scaled.data * 2.0**-query.bits, scaled.indices, scaled.indptr), shape=scaled.shape)


def _reduced(matrix: sparse.csr_array, values: Values) -> tuple[SparseTerm, float]:
    """The same squared distance with no more rows than columns, up to a constant, where the matrix is small."""
    rows, columns = matrix.shape
    rest = 0.0
    if rows > columns and columns <= REDUCE_CELLS:
        gram = sparse.csr_array(matrix.T @ matrix)
        if gram.nnz > 0.25 * columns**2 or rows <= 8 * columns:
            basis, upper = linalg.qr(matrix.toarray(), mode="economic")
            kept = basis.T @ values
            rest = 0.5 * max(float(values @ values - kept @ kept), 0.0)
            matrix, values = sparse.csr_array(np.where(np.abs(upper) > 0, upper, 0.0)), kept
    return SparseTerm(matrix, sparse.csr_array(matrix.T), values), rest


@dataclass(frozen=True, eq=False)
class _Part:
    """One clique's place in the sums of a node: table `source` (0: the node's own), summed over the axes `gone`.

    The clique's table keeps the order of the node's axes; `order` takes it to that of the domain where terms ask.
    """

    terms: tuple[Term, ...]
    source: int
    gone: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...] | None

    def evaluate(self, table: Values, total: float, slope: Values) -> float:
        """The terms' value; their gradient is added to `slope`."""
        if self.order is None:
            return sum(t.evaluate(table.ravel(), total, slope.ravel()) for t in self.terms)
        flat = np.ascontiguousarray(table.transpose(self.order)).ravel()
        more = np.zeros(flat.size)
        value = sum(t.evaluate(flat, total, more) for t in self.terms)
        slope += more.reshape([table.shape[i] for i in self.order]).transpose(np.argsort(self.order))
        return value


def _summed_over(table: Values, gone: Sequence[int]) -> Values:
    """The sums over some axes; C-contiguous in and out."""
    for axis in reversed(gone):
        shape = table.shape
        out = np.empty((math.prod(shape[:axis]), math.prod(shape[axis + 1 :])))
        sum_middle(table.reshape(len(out), shape[axis], -1), out)
        table = out.reshape(shape[:axis] + shape[axis + 1 :])
    return table


def _add_over(table: Values, slope: Values, gone: Sequence[int]) -> None:
    """Add to a table, along some axes, one that lacks them."""
    if not gone:
        table += slope
        return
    for axis in gone[:-1]:
        slope = np.repeat(np.expand_dims(slope, axis), table.shape[axis], axis)
    axis = gone[-1]
    outer = math.prod(table.shape[:axis])
    add_middle(table.reshape(outer, table.shape[axis], -1), slope.reshape(outer, -1))


@dataclass(frozen=True, eq=False)
class Loss:
    """½ Σ ‖Qμ − y‖² / σ² as a function of the nodes' marginals.

    Attributes:
        engine: the tables' layout.
        total: the number of records: marginals are probabilities times this.
        plans: for each node its cliques, larger ones first; each is summed from the smallest table above it.
        constant: what no model can change.
        answers: the number of answers.
    """

    engine: Engine
    total: float
    plans: tuple[tuple[_Part, ...], ...]
    constant: float
    answers: int

    @property
    def floor(self) -> float:
        """What the truth itself is expected to have: ½ per answer."""
        return 0.5 * self.answers

    def evaluate(self, probabilities: Values) -> tuple[float, Values]:
        """The loss, and its gradient with respect to the nodes' marginals in records (flat)."""
        gradient = np.zeros_like(probabilities)
        value = self.constant
        pairs = zip(self.engine.views(probabilities), self.engine.views(gradient), self.plans, strict=True)
        for table, out, plan in pairs:
            value += self._node(table, out, plan)
        return value, gradient

    def _node(self, table: Values, out: Values, plan: Sequence[_Part]) -> float:
        tables, slopes, value = [table], [out], 0.0
        for part in plan:
            summed = _summed_over(tables[part.source], part.gone)
            slope = np.zeros(part.shape) if part.gone else slopes[part.source]
            value += part.evaluate(summed, self.total, slope)
            tables.append(summed)
            slopes.append(slope)
        for part, slope in zip(reversed(plan), reversed(slopes[1:]), strict=True):
            if part.gone:
                _add_over(slopes[part.source], slope, part.gone)
        return value


def plan_loss(engine: Engine, statistics: Sequence[Statistics], total: float, answers: int) -> Loss:
    """Where each clique's marginal is taken from: its smallest node, through the cliques between."""
    tree = engine.tree
    at: list[list[Statistics]] = [[] for _ in tree.cliques]
    for one in statistics:
        home = tree.home(one.clique)
        if home is None:
            raise ValueError(f"{one.clique} lies in no node of the junction tree")
        at[home].append(one)
    plans = []
    for node, here in enumerate(at):
        layouts = [tree.cliques[node]]
        plan = []
        for one in sorted(here, key=lambda s: -tree.domain.cells(s.clique)):
            above = [i for i, c in enumerate(layouts) if set(one.clique) <= set(c)]
            source = min(above, key=lambda i: (tree.domain.cells(layouts[i]), -i))
            gone, order = onto(layouts[source], one.clique)
            layouts.append(tuple(n for n in layouts[source] if n in one.clique))
            plan.append(_part(tree.domain, one, source, gone, order))
        plans.append(tuple(plan))
    return Loss(engine, total, tuple(plans), sum(s.constant for s in statistics), answers)


def _part(domain: Domain, one: Statistics, source: int, gone: tuple[int, ...], order: tuple[int, ...]) -> _Part:
    """Whole marginals are brought into the node's order once; queries ask for the domain's at every step."""
    back = tuple(int(i) for i in np.argsort(order))
    shape = domain.shape(one.clique)
    laid = tuple(shape[i] for i in back)
    if order == back == tuple(range(len(order))):
        return _Part(one.terms, source, gone, laid, None)
    terms = []
    for term in one.terms:
        if not isinstance(term, WholeTerm):
            return _Part(one.terms, source, gone, laid, order)
        mean = np.ascontiguousarray(term.mean.reshape(shape).transpose(back)).ravel()
        terms.append(WholeTerm(mean, term.weight))
    return _Part(tuple(terms), source, gone, laid, None)
