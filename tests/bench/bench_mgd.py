"""AEMC of 12 × 278 × 174 cells and of 47 million: our programmes against OR-Tools in the same run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cells
from evaluation.mgd.aemc import aemc, dense_parts, marginal_cost
from evaluation.mgd.aemc_flow import flow_cost
from evaluation.mgd.geometry import Axis
from evaluation.mgd.independent_parts import split
from tests.bench.clock import timed

CASES = (
    *("months_sparse", "months_dense", "places_sparse", "places_dense", "all_finite_sparse", "all_finite_dense"),
    *("months_of_47_million_cells", "places_of_47_million_cells"),
)
SHAPE = (12, 278, 174)
LARGE = (12, 278 * 9, 174 * 9)
#: Parts that OR-Tools solves as one graph in the comparison; the whole is taken as proportional.
SOME_PARTS = 2_000


def _truth(rng: np.random.Generator, shape: tuple[int, ...], records: int) -> NDArray[np.float64]:
    places, types = rng.pareto(1.2, shape[1]) + 0.01, rng.pareto(0.8, shape[2]) + 0.001
    rate = np.multiply.outer(np.ones(shape[0]), np.multiply.outer(places, types))
    return rng.poisson(rate / rate.sum() * records).astype(float)


def _sparse() -> Cells:
    """Synthetic records from the same rates as the truth, in months shuffled per place and type."""
    rng = np.random.default_rng(0)
    q = _truth(rng, SHAPE, 287_000)
    rate = np.random.default_rng(1).permuted(q, axis=0)
    return Cells.dense(rng.poisson(rate).astype(float), q)


def _dense(shape: tuple[int, ...] = SHAPE, records: int = 287_000) -> Cells:
    """The truth with Laplace noise of sensitivity 20 at ε = 1, rounded and clamped at 0."""
    rng = np.random.default_rng(0)
    q = _truth(rng, shape, records)
    return Cells.dense(np.maximum(np.rint(q + rng.laplace(0, 20, shape)), 0), q)


def _axes(shape: tuple[int, ...], finite: tuple[int, ...]) -> tuple[Axis, ...]:
    """Months on a path, places and types below one root; the others fixed."""
    weight = Fraction(1, len(finite))
    moving = [Axis.path(shape[0], shape[0], weight)]
    moving += [Axis.tree(size, [[0] * size], weight) for size in shape[1:]]
    return tuple(moving[i] if i in finite else Axis.fixed(shape[i]) for i in range(3))


def _case(name: str, cells: Cells, finite: tuple[int, ...], repeats: int = 3) -> dict[str, Any]:
    axes = _axes(cells.shape, finite)
    for axis in (Axis.path(2, 2, 1.0), Axis.tree(2, [[0, 0]], 1.0)):
        aemc([9.0, 0.0], [0.0, 9.0], axis)  # compiles
    ours = timed(lambda: marginal_cost(cells, axes), repeats)
    return {
        "name": f"AEMC, {name}",
        "rows": int(cells.q.sum()),
        "columns": 3,
        "cells": int(np.prod(cells.shape)),
        **ours,
        "reference": _by_or_tools(cells, axes, ours["seconds"]),
    }


def _by_or_tools(cells: Cells, axes: tuple[Axis, ...], ours: float) -> str:
    parts = split(cells, axes, 2.0)
    [(moving, chosen)] = parts.groups()
    used, some = [axes[i] for i in moving], chosen[:SOME_PARTS]
    columns = dense_parts(cells, parts, some, used)
    whole = timed(lambda: flow_cost(*columns, used, 2.0, 1.0))["seconds"] * chosen.size / some.size
    scaled = f" (from {SOME_PARTS:,} of {chosen.size:,} parts)" if chosen.size > some.size else ""
    return f"OR-Tools {whole:.3g} s{scaled}, {whole / ours:.3g} times ours"


def months_sparse() -> dict[str, Any]:
    return _case("months finite, sparse table", _sparse(), (0,))


def months_dense() -> dict[str, Any]:
    return _case("months finite, dense Laplace table", _dense(), (0,))


def places_sparse() -> dict[str, Any]:
    return _case("places finite, sparse table", _sparse(), (1,))


def places_dense() -> dict[str, Any]:
    return _case("places finite, dense Laplace table", _dense(), (1,))


def all_finite_sparse() -> dict[str, Any]:
    return _case("all finite, sparse table", _sparse(), (0, 1, 2), 1)


def all_finite_dense() -> dict[str, Any]:
    return _case("all finite, dense Laplace table", _dense(), (0, 1, 2), 1)


def months_of_47_million_cells() -> dict[str, Any]:
    return _case("months finite, dense Laplace table", _dense(LARGE, 3_000_000), (0,), 1)


def places_of_47_million_cells() -> dict[str, Any]:
    return _case("places finite, dense Laplace table", _dense(LARGE, 3_000_000), (1,), 1)
