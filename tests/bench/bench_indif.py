"""PrivSyn's distances from independence: all 4,753 pairs of the 98-attribute table of 2018, at its full size."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.private_choice import Candidate, PrivateCounts, distance_scores
from tests.bench.clock import timed

CASES = ("all_pairs_of_98",)
SCHEMA = Path(__file__).parents[2] / "conf" / "schemas" / "pums1940.yaml"
ROWS = 661_967


class _Made:
    """Generated rows in the place of a private table: most of each column lies on its first codes."""

    max_records = 1

    def __init__(self) -> None:
        domain, rng = load_schema(SCHEMA).measured, np.random.default_rng(0)
        columns = ((rng.random(ROWS) ** 3 * a.size).astype(code_dtype(a.size)) for a in domain.attributes)
        self.coded = CodedTable(domain, tuple(columns))


def all_pairs_of_98() -> dict[str, Any]:
    table = _Made()
    domain = table.coded.domain
    columns = zip(domain.attributes, table.coded.columns, strict=True)
    sides = {a.name: np.bincount(c, minlength=a.size) / ROWS for a, c in columns}

    def product(clique: Clique) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.outer(sides[clique[0]], sides[clique[1]]).ravel() * ROWS

    pairs = [Candidate(c) for c in itertools.combinations(domain.names, 2)]
    counts = PrivateCounts(table, batch_cells=20_000_000)
    spent = timed(lambda: distance_scores(counts, pairs, product, neighbouring=Neighbouring.ADD_REMOVE))
    return {
        "name": f"InDif: {len(pairs):,} distances from independence",
        "rows": ROWS,
        "columns": len(domain),
        "cells": sum(domain.cells(c.clique) for c in pairs),
        **spent,
        "reference": "aim: 60 s",
    }
