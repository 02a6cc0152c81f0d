"""Every metric: on `acs` (170,254 × 35), on a map of 12 × 278 × 174, and a whole `score`."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.accuracy.anita_accuracy import n_way
from evaluation.metric import Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from evaluation.papers.anita.anita_privacy import privacy
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from pipeline.conf_folder import SCHEMAS
from tests.bench.clock import timed
from tests.evaluation.worlds import horizontal_correlation

SHAPE = (12, 278, 174)
#: Records of a unit in the generated units.
RECORDS = 4
#: Rows of the first call, which compiles.
FEW = 3_000


def _frame() -> pd.DataFrame | None:
    path = Path(os.environ.get("DATA_DIR", "data")) / "acs-il-oh.csv.gz"
    return pd.read_csv(path) if path.exists() else None


def _coded(frame: pd.DataFrame, schema: Schema) -> CodedTable:
    def codes(a: Attribute) -> np.ndarray:
        return np.ascontiguousarray(frame[a.name].to_numpy().astype(code_dtype(a.size)))

    return CodedTable(schema.domain, tuple(codes(a) for a in schema.domain.attributes))


def _rows(table: CodedTable, chosen: np.ndarray | slice) -> CodedTable:
    return CodedTable(table.domain, tuple(np.ascontiguousarray(c[chosen]) for c in table.columns))


def _noisy(table: CodedTable, seed: int) -> CodedTable:
    """As many rows drawn with replacement; a twentieth of each column's values change places."""
    rng = np.random.default_rng(seed)
    columns = []
    rows = rng.integers(0, table.rows, table.rows)
    for column in table.columns:
        drawn = column[rows].copy()
        moved = rng.choice(table.rows, table.rows // 20, replace=False)
        drawn[moved] = drawn[rng.permutation(moved)]
        columns.append(drawn)
    return CodedTable(table.domain, tuple(columns))


def _measured(name: str, where: str, real: CodedTable, schema: Schema, roles: dict[str, str]) -> dict[str, Any]:
    """One metric of a table against a noisy bootstrap of it, all needs met; compiled beforehand."""
    synthetic, holdout = _noisy(real, 0), _noisy(real, 1)

    def work(rows: int) -> None:
        part = slice(rows)
        units = np.arange(min(rows, real.rows)) // RECORDS
        options = Options(subject=(units, units), holdout=_rows(holdout, part), settings=roles)
        outcome = compute(METRICS[name], _rows(real, part), _rows(synthetic, part), schema, options)
        assert outcome.score is not None, outcome.reason

    work(FEW)
    spent = timed(lambda: work(real.rows))
    return {"name": f"{name}, {where}", "rows": 2 * real.rows, "columns": len(real.domain), **spent}


def _metric_of_acs(name: str) -> dict[str, Any] | None:
    """Race, departure and arrival stand for what `acs` lacks: a record's type, and where it goes."""
    frame, schema = _frame(), load_schema(SCHEMAS / "acs.yaml")
    if frame is None:
        return None
    roles = {"time": "YEAR", "segment": "PUMA", "kind": "RACE", "to": "EDUC"}
    return _measured(
        name, "acs", _coded(frame, schema), schema, roles | {"group": "PUMA", "sex": "SEX", "income": "INCTOT"}
    )


def _metric_of_a_map(name: str) -> dict[str, Any]:
    sizes = dict(zip(("month", "place", "type"), SHAPE, strict=True))
    columns = {n: {"kind": "integer", "min": 0, "max": size - 1, "missing": False} for n, size in sizes.items()}
    schema = parse_schema({"columns": columns}, where="map.yaml")
    rng = np.random.default_rng(0)
    places, types = rng.pareto(1.2, SHAPE[1]) + 0.01, rng.pareto(0.8, SHAPE[2]) + 0.001
    rate = np.multiply.outer(np.ones(SHAPE[0]), np.multiply.outer(places, types))
    cells = np.repeat(np.arange(rate.size), rng.poisson(rate / rate.sum() * 287_000).ravel())
    codes = np.unravel_index(rng.permutation(cells), SHAPE)
    table = CodedTable(schema.domain, tuple(c.astype(code_dtype(s)) for c, s in zip(codes, SHAPE, strict=True)))
    roles = {"time": "month", "segment": "place", "kind": "type", "to": "type"}
    return _measured(name, "map", table, schema, roles) | {"cells": int(np.prod(SHAPE))}


def horizontal_correlation_of_all_series() -> dict[str, Any]:
    """Every one of the 48,372 series varies: 1.2 billion pairs."""
    rng = np.random.default_rng(0)
    real, synthetic = (rng.poisson(5, SHAPE).astype(float) for _ in range(2))
    horizontal_correlation(real[:, :2], synthetic[:, :2])
    spent = timed(lambda: horizontal_correlation(real, synthetic))
    cells = int(np.prod(SHAPE))
    return {
        "name": "horizontal correlation, 48,372 series",
        "cells": cells,
        **spent,
        "reference": "aim: 60 s, 1,000 MB",
    }


def _on_thirds(name: str, work: Callable[..., object], reference: str) -> dict[str, Any] | None:
    frame, schema = _frame(), load_schema(SCHEMAS / "acs.yaml")
    if frame is None:
        return None
    parts = [_coded(frame.iloc[i::3], schema) for i in range(3)]
    work(*(_rows(t, slice(300)) for t in parts))
    spent = timed(lambda: work(*parts))
    return {"name": name, "rows": 3 * parts[0].rows, "columns": len(parts[0].domain), **spent, "reference": reference}


def accuracies_of_acs() -> dict[str, Any] | None:
    def work(real: CodedTable, synthetic: CodedTable, _: CodedTable) -> object:
        return [n_way(real, synthetic, n).accuracy for n in (1, 2, 3)]

    return _on_thirds("all 1-, 2- and 3-way accuracies, acs thirds", work, "aim: 6 s; mostlyai-qa 89 s for its triples")


def privacy_of_acs() -> dict[str, Any] | None:
    def work(training: CodedTable, synthetic: CodedTable, holdout: CodedTable) -> object:
        return privacy(training, synthetic, holdout).passed

    return _on_thirds(
        "DCR, NNDR, verdict, matches, acs thirds", work, "aim: 60 s; mostlyai-qa 316 s for three searches"
    )


def score_of_acs() -> dict[str, Any] | None:
    """The command with all metrics, a holdout and the report, in a process of its own; compiled beforehand."""
    frame = _frame()
    if frame is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pipeline", "score", "schema=acs", "metrics=all"]
        command += [f"output={folder}/scores.json", f"report={folder}/report.html"]
        spent = {}
        for rows in (FEW, len(frame)):
            for i, name in enumerate(("real", "synthetic", "holdout")):
                frame.head(rows).iloc[i::3].to_csv(f"{folder}/{name}.csv", index=False)
            tables = [f"{name}={folder}/{name}.csv" for name in ("real", "synthetic", "holdout")]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = timed(lambda given=tables: subprocess.run([*command, *given], check=True, capture_output=True))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    reference = "aim: 60 s of processor time; mostlyai-qa 576 s, 730 MB"
    row = {"name": "score, all metrics and report, acs thirds", "rows": len(frame), "columns": frame.shape[1], **spent}
    return row | {"peak_mb": round(after.ru_maxrss / 1e3), "reference": reference}


#: What reads places, times or types; the rest has nothing to do with a map.
ON_A_MAP = [name for name, metric in METRICS.items() if {"time", "segment", "kind"} & set(metric.needs)]
CASES: dict[str, Callable[[], dict[str, Any] | None]] = {
    "horizontal_correlation_of_all_series": horizontal_correlation_of_all_series,
    "accuracies_of_acs": accuracies_of_acs,
    "privacy_of_acs": privacy_of_acs,
    "score_of_acs": score_of_acs,
    **{f"acs.{name}": partial(_metric_of_acs, name) for name in METRICS},
    **{f"map.{name}": partial(_metric_of_a_map, name) for name in ON_A_MAP},
}
