"""How far a model's marginals are from the noisy answers: ½ Σ ‖Qμ − y‖² / σ², and its gradient on a junction tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.axis_sums import add_over, summed_over
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import ResidualQuery
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, ask_alike
from mechanisms.public.release import NoisyMarginal
from synthesis.pgm.inference import JunctionTreeInference, onto
from synthesis.pgm.kernels import residual_gap, squared_gap


@dataclass(frozen=True, eq=False)
class Term:
    """½ weight · ‖Q · μ − mean‖² as a function of one flattened marginal μ, in records: answers of one weight.

    Attributes:
        mean: of all answers to the query.
        weight: 1/σ² of that mean.
        query: Q.
    """

    mean: Floats
    weight: float
    query: QueryMatrix

    @property
    def size(self) -> int:
        """How many answers it has left."""
        return len(self.mean)

    def evaluate(self, probabilities: Floats, total: float, slope: Floats) -> float:
        """The value at total · probabilities; the gradient with respect to these records is added to `slope`."""
        if isinstance(self.query, Identity):
            return float(squared_gap(probabilities, total, self.mean, self.weight, slope))
        if isinstance(self.query, ResidualQuery) and len(shape := self.query.shape) == 2:
            cells, mean, out = (values.reshape(shape) for values in (probabilities, self.mean, slope))
            return float(residual_gap(cells, total, mean, self.weight, self.query.unit, out))
        gap = total * self.query.answer(probabilities) - self.mean
        slope += self.query.transpose(self.weight * gap)
        return 0.5 * self.weight * float(np.einsum("i,i", gap, gap))  # a BLAS product waits for threads

    def split(self, share: float, rng: np.random.Generator) -> tuple[Term, Term]:
        """Terms to answers with `share`·σ of noise added, and with the same noise over the share's square taken off."""
        noise = rng.normal(0, self.weight**-0.5, self.size)
        return replace(self, mean=self.mean + share * noise), replace(self, mean=self.mean - noise / share)


@dataclass(frozen=True, eq=False)
class Statistics:
    """All answers about one clique, summed up: the cost of a step does not grow with how often a query is repeated.

    Attributes:
        clique: in domain order; the terms are about its flattened marginal.
        terms: what depends on the model.
        constant: what does not: the spread of repeated answers about their mean.
    """

    clique: Clique
    terms: tuple[Term, ...]
    constant: float


def sufficient(domain: Domain, answers: Sequence[NoisyMarginal]) -> list[Statistics]:
    """The answers, summed up by clique: repeated queries become one with the weighted mean of their answers.

    Raises:
        UserError: an unknown attribute, a query that does not fit its marginal, answers that are not finite, a
            standard deviation that is not above 0.
    """
    return [_summed(clique, group) for clique, group in by_clique(domain, answers).items()]


def by_clique(domain: Domain, answers: Iterable[NoisyMarginal]) -> dict[Clique, list[NoisyMarginal]]:
    """The answers about each marginal, in the order first seen; UserError for one that cannot be used."""
    groups: dict[Clique, list[NoisyMarginal]] = defaultdict(list)
    for answer in answers:
        _check_answer(domain, answer)
        groups[answer.clique].append(answer)
    return groups


def _check_answer(domain: Domain, answer: NoisyMarginal) -> None:
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
    constant, terms = 0.0, []
    for same in by_query(group):
        weights = np.array([a.stddev**-2 for a in same])
        mean = np.average(np.stack([a.values for a in same]), axis=0, weights=weights / weights.max())
        constant += sum(0.5 * float(np.sum((a.values - mean) ** 2)) * w for a, w in zip(same, weights, strict=True))
        terms.append(Term(mean, float(weights.sum()), same[0].query))
    whole_first = sorted(terms, key=lambda t: not isinstance(t.query, Identity))
    return Statistics(clique, tuple(whole_first), constant)


def by_query(answers: Iterable[NoisyMarginal]) -> list[list[NoisyMarginal]]:
    """Answers about one marginal, those to the same query together, in the order first seen."""
    alike: list[list[NoisyMarginal]] = []
    for answer in answers:
        same = next((group for group in alike if ask_alike(answer.query, group[0].query)), None)
        if same is None:
            alike.append([answer])
        else:
            same.append(answer)
    return alike


@dataclass(frozen=True, eq=False)
class LossPart:
    """One clique's place in the sums of a node: table `source` (0: the node's own), summed over the axes `gone`.

    The clique's table keeps the order of the node's axes; `order` takes it to that of the domain where terms ask.
    """

    terms: tuple[Term, ...]
    source: int
    gone: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...] | None

    def evaluate(self, table: Floats, total: float, slope: Floats) -> float:
        """The terms' value; their gradient is added to `slope`."""
        if self.order is None:
            return sum(t.evaluate(table.ravel(), total, slope.ravel()) for t in self.terms)
        flat = np.ascontiguousarray(table.transpose(self.order)).ravel()
        more = np.zeros(flat.size)
        value = sum(t.evaluate(flat, total, more) for t in self.terms)
        slope += more.reshape([table.shape[i] for i in self.order]).transpose(np.argsort(self.order))
        return value


@dataclass(frozen=True, eq=False)
class FitLoss:
    """½ Σ ‖Qμ − y‖² / σ² as a function of the nodes' marginals.

    Attributes:
        engine: the tables' layout.
        total: the number of records: marginals are probabilities times this.
        plans: for each node its cliques, larger ones first; each is summed from the smallest table above it.
        constant: what no model can change.
        answers: the number of answers.
    """

    engine: JunctionTreeInference
    total: float
    plans: tuple[tuple[LossPart, ...], ...]
    constant: float
    answers: int

    @property
    def floor(self) -> float:
        """What the truth itself is expected to have: ½ per answer."""
        return 0.5 * self.answers

    def evaluate(self, probabilities: Floats, gradient: Floats | None = None) -> tuple[float, Floats]:
        """The loss, and its gradient with respect to the nodes' marginals in records (flat), in the array given."""
        gradient = np.empty_like(probabilities) if gradient is None else gradient
        gradient.fill(0.0)
        value = self.constant
        pairs = zip(self.engine.views(probabilities), self.engine.views(gradient), self.plans, strict=True)
        for table, out, plan in pairs:
            value += self._node(table, out, plan)
        return float(value), gradient

    def _node(self, table: Floats, out: Floats, plan: Sequence[LossPart]) -> float:
        tables, slopes, value = [table], [out], 0.0
        for part in plan:
            summed = summed_over(tables[part.source], part.gone)
            slope = np.zeros(part.shape) if part.gone else slopes[part.source]
            value += part.evaluate(summed, self.total, slope)
            tables.append(summed)
            slopes.append(slope)
        for part, slope in zip(reversed(plan), reversed(slopes[1:]), strict=True):
            if part.gone:
                add_over(slopes[part.source], slope, part.gone)
        return value


def plan_loss(engine: JunctionTreeInference, statistics: Sequence[Statistics], total: float, answers: int) -> FitLoss:
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
    return FitLoss(engine, total, tuple(plans), float(sum(s.constant for s in statistics)), answers)


def _part(domain: Domain, one: Statistics, source: int, gone: tuple[int, ...], order: tuple[int, ...]) -> LossPart:
    """Whole marginals are brought into the node's order once; queries ask for the domain's at every step."""
    back = tuple(int(i) for i in np.argsort(order))
    shape = domain.shape(one.clique)
    laid = tuple(shape[i] for i in back)
    if order == back == tuple(range(len(order))):
        return LossPart(one.terms, source, gone, laid, None)
    terms = []
    for term in one.terms:
        if not isinstance(term.query, Identity):
            return LossPart(one.terms, source, gone, laid, order)
        mean = np.ascontiguousarray(term.mean.reshape(shape).transpose(back)).ravel()
        terms.append(replace(term, mean=mean))
    return LossPart(tuple(terms), source, gone, laid, None)
