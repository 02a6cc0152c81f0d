"""One GUM update of one two-way marginal: 35 columns, 60 marginals of 4 to 4,887 cells, over a few passes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from synthesis.consistency.agree import Target
from synthesis.gum.gradual_update import UpdateWork
from tests.bench.clock import timed

CASES = ("update_100_thousand_rows", "update_1_million_rows")


def update_100_thousand_rows() -> dict[str, Any]:
    return _update(100_000, "peers: 0.046 to 0.095 s of processor time")


def update_1_million_rows() -> dict[str, Any]:
    return _update(1_000_000, "peers: 0.55 to 1.04 s of processor time; aim: 0.020")


def _update(rows: int, reference: str) -> dict[str, Any]:
    sizes = [2] * 12 + [5] * 8 + [9] * 6 + [18] * 4 + [27] * 3 + [97, 181]
    domain = Domain(tuple(Attribute(f"c{i}", s) for i, s in enumerate(sizes)))
    rng = np.random.default_rng(0)
    every = [c for c in itertools.combinations(domain.names, 2) if domain.cells(c) <= 4887]
    cliques = [every[i] for i in np.linspace(0, len(every) - 1, 60).astype(int)]

    def table(shape: float) -> CodedTable:
        columns = tuple((rng.random(rows) ** shape * s).astype(code_dtype(s)) for s in sizes)
        return CodedTable(domain, columns)

    truth = table(1.3)
    counted = zip(cliques, count_cliques(truth, cliques), strict=True)
    targets = [Target(c, n.reshape(domain.shape(c)).astype(float), 1.0) for c, n in counted]
    work = UpdateWork.start(table(1.0), rng)
    alphas = itertools.cycle([0.5, 0.25, 0.1, 0.05])

    def one_pass() -> None:
        alpha = next(alphas)
        for target in targets:
            work.update(target, alpha=alpha, replace=0.3)

    one_pass()
    spent = timed(one_pass, 4)
    cells = sum(domain.cells(c) for c in cliques)
    return {
        "name": "GUM: one update of one two-way marginal (mean of 4 passes over 60)",
        "rows": rows,
        "columns": len(sizes),
        "cells": cells // 60,
        **{k: v / 60 for k, v in spent.items()},
        "reference": reference,
    }
