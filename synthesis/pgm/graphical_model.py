"""The graphical model: fitted to noisy answers, judged by a part of them, asked for marginals and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes, Floats
from mechanisms.public.coded_table import CodedTable, code_dtype, extend_keys
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.jit import compiled
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.settings import BoundedSettings, setting
from synthesis.consistency.agree import estimate_total
from synthesis.convergence import FitRecord
from synthesis.impossible import Impossible, check_zeros
from synthesis.pgm.estimation import Point, Stopping, mirror_descent
from synthesis.pgm.inference import MAX_CELLS, JunctionTreeInference, largest_table, model_marginal, spread
from synthesis.pgm.junction_tree import JunctionTree, junction_tree
from synthesis.pgm.loss import FitLoss, plan_loss, sufficient
from synthesis.xorshift import shuffle

#: Rows made together; each such chunk is rounded on its own.
CHUNK = 1 << 22
#: The fractional part of the golden ratio: its multiples fill the unit interval evenly.
GOLDEN = (math.sqrt(5.0) - 1) / 2


@compiled
def draw_cells(
    keys: NDArray[np.int32],
    chances: Floats,
    offset: float,
    state: NDArray[np.uint64],
    order: NDArray[np.int32],
    drawn: NDArray[np.int32],
    cells: NDArray[np.int32],
) -> None:
    """For each row a cell, by the chances of its group: row `keys[i]` of the matrix `chances`, which sums to 1.

    Systematic sampling in each group: every cell gets its exact share of the group's rows, rounded up or down, without
    bias. The groups' offsets are multiples of the golden ratio from one random start, so that roundings of many small
    groups cancel. Which row of the group gets which cell is random. `order` and `drawn` are room for one entry a row.
    """
    ends = np.zeros(chances.shape[0] + 1, np.int64)
    for i in range(len(keys)):
        ends[keys[i] + 1] += 1
    for group in range(chances.shape[0]):
        ends[group + 1] += ends[group]
    starts = ends[:-1].copy()
    for i in range(len(keys)):
        order[starts[keys[i]]] = i
        starts[keys[i]] += 1
    for group in range(chances.shape[0]):
        low, high = ends[group], ends[group + 1]
        if low == high:
            continue
        offset = (offset + GOLDEN) % 1.0
        total, at, last = offset, low, 0
        for cell in range(chances.shape[1]):
            chance = chances[group, cell]
            if chance <= 0.0:
                continue
            last = cell
            total += chance * (high - low)
            until = min(high, low + np.int64(total))
            while at < until:
                drawn[at] = cell
                at += 1
            if at == high:
                break
        while at < high:  # the chances sum to a little less than 1
            drawn[at] = last
            at += 1
        shuffle(drawn[low:high], state)
    for i in range(len(order)):
        cells[order[i]] = drawn[i]


def model_rows(
    engine: JunctionTreeInference,
    conditionals: Floats,
    *,
    rows: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> CodedTable:
    """`rows` rows whose marginals are those of the model but for the rounding, in random order.

    Cost: time rows × columns plus cells; memory the columns and 16 bytes per row of a chunk.
    Args:
        conditionals: of every node given its separator, flat (`Engine.conditionals`).
    """
    domain = engine.tree.domain
    columns = tuple(np.empty(rows, code_dtype(a.size)) for a in domain.attributes)
    steps = [(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)]
    nodes = len(engine.tree.cliques)
    room = np.empty((4, min(rows, CHUNK)), np.int32)
    state = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    for number, (start, stop) in enumerate(steps):
        part = [c[start:stop] for c in columns]
        for node in range(nodes):
            _fill(engine, conditionals, node, part, room[:, : stop - start], state, rng.random())
            if progress is not None:
                progress(number * nodes + node + 1, len(steps) * nodes, "rows")
    return CodedTable(domain, columns)


def _fill(
    engine: JunctionTreeInference,
    conditionals: Floats,
    node: int,
    columns: list[Codes],
    room: NDArray[np.int32],
    state: NDArray[np.uint64],
    offset: float,
) -> None:
    """The columns that a node adds to those of its parents."""
    tree, domain = engine.tree, engine.tree.domain
    keys, order, drawn, cells = room
    keys[:] = 0
    for name in tree.separators[node]:
        extend_keys(keys, columns[domain.index(name)], domain[name].size)
    chances = engine.rows(node, engine.view(conditionals, node))
    draw_cells(keys, chances, offset, state, order, drawn, cells)
    stride = chances.shape[1]
    for name in tree.cliques[node][len(tree.separators[node]) :]:
        stride //= domain[name].size
        columns[domain.index(name)][:] = cells // stride % domain[name].size


#: Noise added to the answers that are fitted, in σ; the others get as much divided by its square.
SHARE = 0.5
#: Steps between two evaluations on the holdout, and evaluations without progress that end the fit.
LOOK_EVERY = 4
PATIENCE = 6
SEED = 0


@dataclass
class Judge:
    """The loss on the answers held out, and the loss that the fit had (`best`) where this one was least."""

    loss: FitLoss
    steps: int = 0
    least: float = float("inf")
    looks: int = 0
    best: float | None = None
    slope: Floats | None = None

    def __call__(self, point: Point) -> bool:
        """Whether to end here."""
        self.steps += 1
        if self.steps % LOOK_EVERY != 1:
            return False
        value, self.slope = self.loss.evaluate(point.marginals, self.slope)
        self.looks += 1
        if value < self.least:
            self.least, self.best, self.looks = value, point.loss, 0
        return self.looks >= PATIENCE


def split(loss: FitLoss, rng: np.random.Generator) -> tuple[FitLoss, FitLoss]:
    """Two losses from one: to answers y + aσz and to answers y − σz/a, for standard normal z.

    Where the noise of y is normal, the two are independent, with variances (1 + a²)σ² and (1 + 1/a²)σ² (data thinning;
    Rasines and Young 2023): what is fitted to one and comes closer to the other is not noise. Both keep the weights
    1/σ².
    """
    plans = [[(part, [t.split(SHARE, rng) for t in part.terms]) for part in plan] for plan in loss.plans]
    fitted, judged = (
        tuple(tuple(replace(part, terms=tuple(t[side] for t in terms)) for part, terms in plan) for plan in plans)
        for side in (0, 1)
    )
    return replace(loss, plans=fitted, constant=0.0), replace(loss, plans=judged, constant=0.0)


def held_out_target(loss: FitLoss, start: Floats, rules: Stopping, progress: Progress | None) -> float:
    """The loss at which to stop, found on answers with a little more noise.

    A fit to one half is judged by the other after every few steps. Where the judge saw the least loss, the fit had
    reached a share of its own noise floor; the fit to all answers stops at the same share of theirs, or at the floor
    itself if that is lower. That fit starts anew: the potentials found here have seen noise that is in no answer.
    """
    fitted, judged = split(loss, np.random.default_rng(SEED))
    judge = Judge(judged)
    mirror_descent(fitted, start, replace(rules, target=0.0, gap=0.0, judge=judge), progress)
    if judge.best is None:
        return loss.floor
    values = sum(t.size for plan in loss.plans for part in plan for t in part.terms)
    share = judge.best / (1 + SHARE**2)
    return loss.constant + min(share, 0.5 * values)


@dataclass(frozen=True)
class ModelSettings(BoundedSettings):
    """Settings of the graphical model; conf/synthesis/pgm.yaml says what each is.

    Where `stop` is holdout, it fits as closely as answers with independent noise, split off, are met better.
    """

    settings_group: ClassVar[str] = "synthesis"
    iterations: int = setting(1000, least=0)
    stop: str = setting("holdout", choices=("holdout", "floor", "least"))
    tolerance: float = setting(1e-6, least=0)
    max_cells: int = setting(10_000_000, least=1)


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
    potentials: Floats
    total: float
    fit: FitRecord

    @property
    def domain(self) -> Domain:
        return self.engine.tree.domain

    @cached_property
    def _marginals(self) -> Floats:
        return self.engine.infer(self.potentials)

    def marginal(self, clique: Sequence[str]) -> Floats:
        """Records per cell of any marginal, flattened in C order of the clique in domain order; it sums to the total.

        Raises:
            UserError: an unknown attribute; a marginal across the model that needs too large a table.
        """
        return model_marginal(self.engine, self._marginals, self.domain.canonical(clique)) * self.total

    def given(self, weights: Mapping[str, Floats]) -> GraphicalModel:
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


def _estimated(loss: FitLoss, start: Floats, spec: ModelSettings, progress: Progress | None) -> tuple[Point, FitRecord]:
    """The estimation, with the stopping rule of the settings."""
    rules = Stopping(iterations=spec.iterations, tolerance=spec.tolerance)
    if spec.stop == "least":
        return mirror_descent(loss, start, rules, progress)
    target = loss.floor
    if spec.stop == "holdout":
        target = held_out_target(loss, start, rules, _part_of(progress, 0))
        progress = _part_of(progress, 1)
    return mirror_descent(loss, start, replace(rules, target=target), progress)


def _part_of(progress: Progress | None, half: int) -> Progress | None:
    """Progress of the first or the second half of the work."""
    if progress is None:
        return None
    return lambda done, total, note="", /: progress(done + half * total, 2 * total, note)


def _allowed(tree: JunctionTree, impossible: Sequence[Impossible]) -> Floats | None:
    """0 for possible cells, -inf for others (flat); None where every cell is possible."""
    if not impossible:
        return None
    flat = np.zeros(tree.cells)
    for clique, cells in check_zeros(tree.domain, impossible):
        if not _added(tree, flat, clique, np.where(cells, -np.inf, 0.0)):
            raise ValueError(f"{' × '.join(clique)} lies in no node of the junction tree")
    return flat


def carried(model: GraphicalModel, tree: JunctionTree) -> Floats:
    """The potentials of a model on another tree: each old table in the smallest new node that holds it.

    Tables that no new node can hold are left out; the result is a start, not the same distribution.
    """
    flat = np.zeros(tree.cells)
    for clique, table in zip(model.engine.tree.cliques, model.engine.views(model.potentials), strict=True):
        _added(tree, flat, clique, table)
    return flat


def _added(tree: JunctionTree, flat: Floats, clique: Clique, table: Floats) -> bool:
    """Add a table over a clique to the smallest node that holds it; False where none does."""
    if (node := tree.home(clique)) is None:
        return False
    JunctionTreeInference(tree).view(flat, node)[...] += spread(table, clique, tree.cliques[node])
    return True
