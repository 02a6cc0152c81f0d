"""AEMC of 12 × 278 × 174 cells with months finite: our path programme against OR-Tools in the same run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.aemc import Cells, aemc
from evaluation.aemc_flow import grid_cost
from mechanisms.public.domain import Attribute
from tests.bench.clock import timed

CASES = ("sparse_table", "dense_laplace_table")
SHAPE = (12, 278, 174)


def _truth(rng: np.random.Generator) -> NDArray[np.float64]:
    places, types = rng.pareto(1.2, 278) + 0.01, rng.pareto(0.8, 174) + 0.001
    rate = np.multiply.outer(np.ones(12), np.multiply.outer(places, types))
    return rng.poisson(rate / rate.sum() * 287_000).astype(float)


def sparse_table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return _case("sparse synthetic table", _truth(rng), rng.permuted(_truth(rng), axis=0))


def dense_laplace_table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    q = _truth(rng)
    return _case("dense Laplace-noised table", q, np.maximum(np.rint(q + rng.laplace(0, 20, SHAPE)), 0))


def _case(name: str, q: NDArray[np.float64], p: NDArray[np.float64]) -> dict[str, Any]:
    attributes = (Attribute("month", 12, 12), Attribute("place", 278), Attribute("type", 174))
    ids = np.flatnonzero((p > 0) | (q > 0))
    cells = Cells(attributes, np.stack(np.unravel_index(ids, SHAPE)).astype(np.int64), p.ravel()[ids], q.ravel()[ids])
    aemc(cells)
    result = []
    ours = timed(lambda: result.append(aemc(cells)), 3)
    by_flow = []

    def flow() -> None:
        parts = np.moveaxis(np.stack([p, q]), 1, -1).reshape(2, -1, 12)
        busy = np.flatnonzero((np.abs(parts[0] - parts[1]) > 2).any(axis=1))
        steps = (Fraction(1, 11),)
        by_flow.append(sum(grid_cost(parts[0, i], parts[1, i], steps, Fraction(2), Fraction(1)) for i in busy[:2000]))
        by_flow.append(busy.size)

    theirs = timed(flow)
    factor = max(1.0, by_flow[1] / 2000)
    whole = theirs["seconds"] * factor
    return {
        "name": f"AEMC, months finite, {name}",
        "rows": int(q.sum()),
        "columns": 3,
        "cells": int(np.prod(SHAPE)),
        **ours,
        "reference": f"OR-Tools part by part (from 2,000): {whole:.3g} s, {whole / ours['seconds']:.3g} times ours",
    }
