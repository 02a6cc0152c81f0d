"""Small random marginals, with Equation 1 by brute force: the whole distance matrix and one linear programme."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linprog

from evaluation.counts import Cells
from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.mgd import aemc
from evaluation.mgd.aemc_graph import Axis, Graph
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns, together
from pipeline.scores.table_sources import opened, with_schema, without_schema
from tests.public.table_worlds import coded


def result_of(
    name: str,
    real: CodedTable,
    synthetic: CodedTable,
    settings: JsonDict | None = None,
    *,
    schema: Schema | None = None,
    **options: Any,
) -> Any:
    """What a metric of this name makes of two tables of codes."""
    metric = METRICS[name]
    return metric.computed(Inputs(metric, real, synthetic, schema, Options(settings=settings or {}, **options)))[1]


def frame_of(table: CodedTable) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(table.domain.names, table.columns, strict=True)))


def values_of(folder: Path, real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema | None = None) -> Values:
    """Both tables as values, from CSV files."""
    paths = {"real": folder / "real.csv", "synthetic": folder / "synthetic.csv"}
    for path, frame in zip(paths.values(), (real, synthetic), strict=True):
        frame.to_csv(path, index=False)
    with opened(paths) as sources:
        if schema is not None:
            return with_schema(sources, schema, lambda *_: None)
        return without_schema(sources, "real", lambda *_: None)[0]


def coded_files(schema: Schema, *paths: Path) -> tuple[CodedTable, ...]:
    """Tables on disk as codes of one schema, with a code apart for what it has no place for."""
    with opened({str(number): path for number, path in enumerate(paths)}) as sources:
        own = {name: encode_columns(s, schema, workdir=s.workdir, apart=True)[0] for name, s in sources.items()}
        return tuple(together(schema, own)[1].values())


def each_solver(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both solvers of AEMC, one after the other: our own where it solves, then OR-Tools alone."""
    yield "auto"
    monkeypatch.setattr(aemc, "BY_SIMPLEX", ())
    yield "flow"
    monkeypatch.undo()


def skewed(rows: int, seed: int, domain: Domain) -> CodedTable:
    """Columns independent of each other, in which low codes are frequent."""
    rng = np.random.default_rng(seed)
    return coded(domain, (rng.random(rows) ** 2 * a.size for a in domain.attributes))


DELTAS = (0.0, 0.1, 0.5, 2.0, 10.0)
ALPHAS = (1.0, 0.25, 2.0, 0.1)
PAIRS = ([0, 0, 1, 1, 1], [0, 0])  # five cities in two states
DEEP = ([0, 0, 1, 2, 2, 2], [0, 1, 1], [0, 0])  # six towns, three counties, two states
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def shortest(distances: np.ndarray) -> np.ndarray:
    """The metric below a matrix."""
    result = distances.copy()
    for k in range(len(result)):
        result = np.minimum(result, result[:, k, None] + result[None, k, :])
    return result


def random_matrix(rng: np.random.Generator, size: int, *, metric: bool) -> np.ndarray:
    """Distances in [0, 1], not symmetric, some infinite."""
    matrix = np.where(rng.random((size, size)) < 0.2, np.inf, rng.random((size, size)))
    np.fill_diagonal(matrix, 0.0)
    return shortest(matrix) if metric else matrix


def star(size: int, weight: Fraction | float, extra: int = 0) -> Axis:
    """The default hierarchy: one root over the leaves."""
    return Axis.tree(size + extra, [[0] * size], weight)


def masses(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Sparse or dense counts: whole numbers, weights in multiples of 2^-20, or any reals."""
    counts = rng.poisson(rng.choice([0.3, 3.0, 12.0]), shape).astype(float)
    if kind == "whole":
        return counts
    weighted = counts * rng.random(shape)
    return np.floor(weighted * 2**20) / 2**20 if kind == "weights" else weighted


def world(rng: np.random.Generator, axes: Sequence[Axis], kind: str = "whole") -> Cells:
    """A marginal of two tables of unequal totals; the truth is not empty."""
    shape = tuple(a.size for a in axes)
    p, q = masses(rng, shape, kind), masses(rng, shape, kind)
    q.flat[rng.integers(q.size)] += 1
    return Cells.dense(p, q)


def equation_1(cells: Cells, axes: Sequence[Axis], delta: float, alpha: float) -> float:
    p, q = np.zeros((2, int(np.prod(cells.shape))))
    p[cells.ids], q[cells.ids] = cells.p, cells.q
    return lp_cost(p, q, distance_matrix(axes), delta, alpha) / float(q.sum())


def lp_cost(p: np.ndarray, q: np.ndarray, distance: np.ndarray, delta: float, alpha: float) -> float:
    """Section 4.1: min Σ X_ij M_ij + α Σ_j max(|Σ_i X_ij − Q_j| − Δ, 0) subject to Σ_j X_ij = P_i, X ≥ 0.

    Args:
        p, q: synthetic and true mass of T cells.
        distance: T × T, infinite where no mass may move.
    """
    may = np.isfinite(distance)
    within, all_moved = _constraints(p.size, may.tobytes())
    result = linprog(
        np.concatenate([distance[may], np.full(2 * p.size, alpha)]),
        A_ub=within,
        b_ub=np.concatenate([q + delta, delta - q]),
        A_eq=all_moved,
        b_eq=p,
        method="highs",
    )
    return _solved(result)


@lru_cache(maxsize=64)
def _constraints(cells: int, may: bytes) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Of all tables of so many cells: what bounds Σ_i X_ij, and Σ_j X_ij; `may`: where mass may move."""
    source, target = np.nonzero(np.frombuffer(may, bool).reshape(cells, cells))
    each, ones = np.arange(source.size), np.ones(source.size)
    rows, inflow = (sparse.csr_array((ones, (ends, each)), shape=(cells, each.size)) for ends in (source, target))
    none, identity = sparse.csr_array((cells, cells)), sparse.eye_array(cells)
    above, below = sparse.hstack([inflow, -identity, none]), sparse.hstack([-inflow, none, -identity])
    return sparse.csr_array(sparse.vstack([above, below])), sparse.csr_array(sparse.hstack([rows, none, none]))


def lp_cost_between_neighbours(p: np.ndarray, q: np.ndarray, graph: Graph, delta: float, alpha: float) -> float:
    """Section 4.3: the same with flows between neighbours in the place of moves between any two cells.

    So the variables are as many as the arcs and twice the cells, and not as the squared cells.

    Args:
        p, q: synthetic and true mass of the graph's cells in C order.
    """
    cells, arcs = p.size, graph.tail.size
    each, at = np.arange(arcs), np.arange(cells)
    leave = sparse.csr_array((np.ones(arcs), (graph.tail, each)), shape=(graph.nodes, arcs))
    enter = sparse.csr_array((np.ones(arcs), (graph.head, each)), shape=(graph.nodes, arcs))
    end = sparse.csr_array((np.ones(cells), (graph.last, at)), shape=(graph.nodes, cells))
    start = np.zeros(graph.nodes)
    start[graph.first] += p
    identity, nothing = sparse.eye_array(cells), sparse.csr_array((cells, arcs))
    costs = np.array([float(c) for c in graph.costs])[graph.cost]
    result = linprog(
        np.concatenate([costs, np.zeros(cells), np.full(cells, alpha)]),
        A_ub=sparse.vstack(
            [sparse.hstack([nothing, identity, -identity]), sparse.hstack([nothing, -identity, -identity])]
        ),
        b_ub=np.concatenate([q + delta, delta - q]),
        A_eq=sparse.hstack([leave - enter, end, sparse.csr_array((graph.nodes, cells))]),
        b_eq=start,
        method="highs",
    )
    return _solved(result)


def _solved(result) -> float:
    if result.status != 0:
        raise RuntimeError(f"the linear programme was not solved: {result.message}")
    return float(result.fun)


def distances_of(axis: Axis) -> np.ndarray:
    """The distances of all codes of an axis, size × size, weighted; infinite where no mass moves."""
    result, inner = np.full((axis.size, axis.size), np.inf), slice(0, axis.length)
    if axis.kind == "path":
        line = np.arange(axis.length)
        result[inner, inner] = np.abs(line[:, None] - line) * float(axis.step)
    elif axis.kind == "tree":
        ancestor, height = np.arange(axis.length), np.full((axis.length, axis.length), axis.depth)
        for level in range(axis.depth):
            same = ancestor[:, None] == ancestor
            height[same] = np.minimum(height[same], level)
            ancestor = axis.parents[level][ancestor]
        result[inner, inner] = 2.0 * height * float(axis.step)
    elif axis.kind == "matrix":
        result[inner, inner] = axis.table
    np.fill_diagonal(result, 0.0)
    return result


def distance_matrix(axes: Sequence[Axis]) -> np.ndarray:
    """Equation 2 for all cells of a marginal, T × T for T = Π size, in C order; for small cases."""
    cells = math.prod(a.size for a in axes)
    total = np.zeros((cells, cells))
    codes = np.array(list(itertools.product(*(range(a.size) for a in axes))), np.int64).reshape(cells, len(axes))
    for place, axis in enumerate(axes):
        total += distances_of(axis)[np.ix_(codes[:, place], codes[:, place])]
    return total
