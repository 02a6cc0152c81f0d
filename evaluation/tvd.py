"""Total variation distance of 1-, 2- and 3-way marginals: ½ Σ |p − q| of the normalised marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluation.counts import paired_cells
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.table import CodedTable

Progress = Callable[[int, int, str], None]

#: How many 3-way marginals are drawn (of all, in the order of sorted names, with seed 0).
TRIPLES = 100


def tvd_cliques(domain: Domain) -> dict[str, list[Clique]]:
    """All 1- and 2-way marginals and 100 seeded 3-way ones."""
    names = sorted(domain.names)
    triples = list(itertools.combinations(names, 3))
    picked = np.sort(np.random.default_rng(0).choice(len(triples), min(TRIPLES, len(triples)), replace=False))
    families: dict[str, list[Clique]] = {
        "1-way": [(n,) for n in names],
        "2-way": [*itertools.combinations(names, 2)],
        "3-way": [triples[i] for i in picked],
    }
    return {k: [domain.canonical(c) for c in v] for k, v in families.items() if v}


def tvd(real: CodedTable, synthetic: CodedTable, *, progress: Progress | None = None) -> dict[str, Any]:
    """Mean and largest TVD per family of marginals; a reason instead where a table has no records."""
    if real.rows == 0 or synthetic.rows == 0:
        return {"reason": "a table without records has no distribution"}
    families = tvd_cliques(real.domain)
    flat = [c for cliques in families.values() for c in cliques]
    values = [
        0.5 * float(np.abs(cells.p / cells.p.sum() - cells.q / cells.q.sum()).sum())
        for cells in paired_cells(real, synthetic, flat, progress)
    ]
    result: dict[str, Any] = {}
    start = 0
    for name, cliques in families.items():
        part = values[start : start + len(cliques)]
        start += len(cliques)
        result[name] = {"mean": math.fsum(part) / len(part), "max": max(part), "marginals": len(part)}
    return result
