"""How far a model's marginals are from the noisy answers: ½ Σ ‖Qμ − y‖² / σ², and its gradient on a junction tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import Values
from mechanisms.public.domain import Domain
from mechanisms.public.jit import add_over, summed_over
from mechanisms.public.queries.query_matrices import Identity
from synthesis.pgm.inference import JunctionTreeInference, onto
from synthesis.pgm.terms import Statistics, Term


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

    def evaluate(self, table: Values, total: float, slope: Values) -> float:
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

    def evaluate(self, probabilities: Values, gradient: Values | None = None) -> tuple[float, Values]:
        """The loss, and its gradient with respect to the nodes' marginals in records (flat), in the array given."""
        gradient = np.empty_like(probabilities) if gradient is None else gradient
        gradient.fill(0.0)
        value = self.constant
        pairs = zip(self.engine.views(probabilities), self.engine.views(gradient), self.plans, strict=True)
        for table, out, plan in pairs:
            value += self._node(table, out, plan)
        return float(value), gradient

    def _node(self, table: Values, out: Values, plan: Sequence[LossPart]) -> float:
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
