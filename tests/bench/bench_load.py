"""Load, encode and count: a published table of 305,119 × 32, and 16 million generated rows."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

from mechanisms.public.marginals import count_cliques
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.scan import open_table
from pipeline.conf_folder import SCHEMAS
from pipeline.demo import write_demo
from tests.bench.clock import timed

CASES = ("fire_calls_60_two_way_marginals", "sixteen_million_rows_66_marginals")
LIMIT = 3_000_000_000


def _measure(path: Path, schema_name: str, marginals: int, max_cells: int, folder: Path) -> dict[str, Any]:
    schema = load_schema(SCHEMAS / f"{schema_name}.yaml")
    domain = schema.domain
    every = [c for k in (2, 1, 3) for c in itertools.combinations(domain.names, k) if domain.cells(c) <= max_cells]
    cliques = every[:marginals]
    rows = 0

    def work() -> None:
        nonlocal rows
        source = open_table(path, workdir=folder, memory_limit_bytes=LIMIT, threads=2)
        table = encode_table(source, schema, workdir=folder)
        rows = table.rows
        count_cliques(table, cliques)

    spent = timed(work)
    cells = sum(domain.cells(c) for c in cliques)
    return {"rows": rows, "columns": len(domain), "cells": cells, **spent}


def fire_calls_60_two_way_marginals() -> dict[str, Any] | None:
    path = Path(os.environ.get("DATA_DIR", "data")) / "fire-calls.csv.gz"
    if not path.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        row = _measure(path, "fire_calls", 60, 100_000, Path(folder))
    return {"name": "load, encode, count 60 two-way marginals", **row, "reference": "aim: 5 s, 1,000 MB"}


def sixteen_million_rows_66_marginals() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.parquet"
        write_demo(path, rows=16_000_000, seed=0)
        row = _measure(path, "demo", 66, 100_000, Path(folder))
    return {"name": "load, encode, count 66 marginals", **row, "reference": "aim: 4,000 MB"}
