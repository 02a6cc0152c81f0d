"""The graphical model: fitted to noisy answers, asked for marginals and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechanisms.public.coded_table import CodedTable, Values
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.total import estimate_total
from synthesis.convergence import FitRecord
from synthesis.impossible import Impossible, check_zeros
from synthesis.pgm.estimation import Point, Stopping, lbfgs, mirror_descent
from synthesis.pgm.holdout import Optimizer, held_out_target
from synthesis.pgm.inference import JunctionTreeInference, spread
from synthesis.pgm.junction_tree import JunctionTree, junction_tree
from synthesis.pgm.loss import FitLoss, plan_loss
from synthesis.pgm.model_settings import ModelSettings
from synthesis.pgm.observed import MAX_CELLS, largest_table, model_marginal
from synthesis.pgm.sampling import model_rows
from synthesis.pgm.terms import sufficient

OPTIMIZERS: dict[str, Optimizer] = {"mirror": mirror_descent, "lbfgs": lbfgs}


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution over all attributes that factorizes over a junction tree, and a total.

    Attributes:
        engine: the tree, and which cells are possible.
        potentials: logarithms of the factors, one flat array for all nodes.
        total: the number of records.
        fit: how it came closer to the noisy answers.
    """

    engine: JunctionTreeInference
    potentials: Values
    total: float
    fit: FitRecord

    @property
    def domain(self) -> Domain:
        return self.engine.tree.domain

    @cached_property
    def _marginals(self) -> Values:
        return self.engine.infer(self.potentials)

    def marginal(self, clique: Sequence[str]) -> Values:
        """Records per cell of any marginal, flattened in C order of the clique in domain order; it sums to the total.

        Raises:
            UserError: an unknown attribute; a marginal across the model that needs too large a table.
        """
        return model_marginal(self.engine, self._marginals, self.domain.canonical(clique)) * self.total

    def given(self, weights: Mapping[str, Values]) -> GraphicalModel:
        """The model in which each row's probability is multiplied by the weights of its codes: exact, and as fast.

        A weight enters the factor of one node that holds its attribute; the total is that of the rows, so weighed.

        Args:
            weights: attribute → a weight of at least 0 for each of its codes.
        Raises:
            UserError: no row is possible.
        """
        tree, flat = self.engine.tree, self.potentials.copy()
        allowed = np.zeros(tree.cells) if self.engine.allowed is None else self.engine.allowed.copy()
        for name, weight in weights.items():
            node, possible = tree.tops[name], weight > 0
            shape = ((name,), tree.cliques[node])
            self.engine.view(flat, node)[...] += spread(np.log(np.where(possible, weight, 1.0)), *shape)
            self.engine.view(allowed, node)[...] += spread(np.where(possible, 0.0, -np.inf), *shape)
        engine = JunctionTreeInference(tree, allowed)
        try:
            share = engine.conditionals(flat)[1] - self.engine.conditionals(self.potentials)[1]
        except UserError as error:
            fix = "a wider condition: by the measured marginals it cannot be"
            raise UserError("no row satisfies the conditions", where="where", fix=fix) from error
        return GraphicalModel(engine, flat, self.total * math.exp(share), self.fit)

    def answerable(self, clique: Sequence[str], cells: int | None = None) -> bool:
        """Whether `marginal` gives this clique within its memory, or with no table of more cells than these."""
        return largest_table(self.engine.tree, self.domain.canonical(clique)) <= (cells or MAX_CELLS)

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """Synthetic rows; their marginals are the model's but for rounding, which is without bias."""
        conditionals, _ = self.engine.conditionals(self.potentials)
        return model_rows(self.engine, conditionals, rows=count, rng=rng, progress=progress)


def fit_model(
    measurements: Measurements,
    spec: ModelSettings | None = None,
    *,
    impossible: Sequence[Impossible] = (),
    start: GraphicalModel | None = None,
    progress: Progress | None = None,
) -> GraphicalModel:
    """The model whose marginals come closest to noisy answers, each weighted by 1/σ².

    Guarantee: post-processing; costs no privacy.
    Args:
        impossible: combinations that get probability 0 exactly.
        start: a model to start from; over other cliques, what of it the new ones can hold is taken over.
    Raises:
        UserError: a model larger than `spec.max_cells`; unknown attributes; answers that are not finite or do not fit
            their queries; no combination left possible.
    """
    spec = spec or ModelSettings()
    domain = measurements.domain
    statistics = sufficient(domain, measurements.answers)
    fixed = [domain.canonical(c) for c, _ in impossible]
    tree = junction_tree(domain, [s.clique for s in statistics], fixed=fixed, max_cells=spec.max_cells)
    engine = JunctionTreeInference(tree, _allowed(tree, impossible))
    total = estimate_total(measurements)
    loss = plan_loss(engine, statistics, total, sum(a.values.size for a in measurements.answers))
    first = np.zeros(tree.cells) if start is None else carried(start, tree)
    point, fit = _estimated(loss, first, spec, progress)
    return GraphicalModel(engine, point.potentials, total, fit)


def _estimated(loss: FitLoss, start: Values, spec: ModelSettings, progress: Progress | None) -> tuple[Point, FitRecord]:
    """The estimation, with the stopping rule of the settings."""
    rules, optimizer = Stopping(iterations=spec.iterations, tolerance=spec.tolerance), OPTIMIZERS[spec.optimizer]
    if spec.stop == "least":
        return optimizer(loss, start, rules, progress)
    target = loss.floor
    if spec.stop == "holdout":
        target = held_out_target(loss, start, rules, optimizer, _part_of(progress, 0))
        progress = _part_of(progress, 1)
    return optimizer(loss, start, replace(rules, target=target), progress)


def _part_of(progress: Progress | None, half: int) -> Progress | None:
    """Progress of the first or the second half of the work."""
    if progress is None:
        return None
    return lambda done, total, note="", /: progress(done + half * total, 2 * total, note)


def _allowed(tree: JunctionTree, impossible: Sequence[Impossible]) -> Values | None:
    """0 for possible cells, -inf for others (flat); None where every cell is possible."""
    if not impossible:
        return None
    flat = np.zeros(tree.cells)
    for clique, cells in check_zeros(tree.domain, impossible):
        if not _added(tree, flat, clique, np.where(cells, -np.inf, 0.0)):
            raise ValueError(f"{' × '.join(clique)} lies in no node of the junction tree")
    return flat


def carried(model: GraphicalModel, tree: JunctionTree) -> Values:
    """The potentials of a model on another tree: each old table in the smallest new node that holds it.

    Tables that no new node can hold are left out; the result is a start, not the same distribution.
    """
    flat = np.zeros(tree.cells)
    for clique, table in zip(model.engine.tree.cliques, model.engine.views(model.potentials), strict=True):
        _added(tree, flat, clique, table)
    return flat


def _added(tree: JunctionTree, flat: Values, clique: Clique, table: Values) -> bool:
    """Add a table over a clique to the smallest node that holds it; False where none does."""
    if (node := tree.home(clique)) is None:
        return False
    JunctionTreeInference(tree).view(flat, node)[...] += spread(table, clique, tree.cliques[node])
    return True
