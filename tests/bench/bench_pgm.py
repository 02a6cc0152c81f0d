"""The graphical model: whole marginals of the taxi table (McKenna 2021's 66), and a million rows of 35 columns."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.workload import closure
from pipeline import load_config, run
from synthesis.pgm.graphical_model import fit_model
from synthesis.pgm.inference import JunctionTreeInference
from synthesis.pgm.junction_tree import junction_tree
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.pgm.sampling import model_rows
from tests.bench.clock import timed

CASES = ("taxi_mirror", "taxi_lbfgs", "taxi_adaptive_1", "taxi_adaptive_10", "sample_1_million_rows")

#: σ of each answer at record level, ε = 1 (McKenna 2021: 66 marginals).
SIGMA = 28.60
PLACE = ["shift", "pickup_community_area"]
OUTER = [
    ["fare", "trip_total"],
    ["trip_total", "trip_seconds"],
    ["dropoff_community_area", "fare"],
    ["payment_type", "trip_total"],
    ["fare", "trip_miles"],
    ["company_id"],
    ["tips", "trip_total"],
]


def taxi_mirror() -> dict[str, Any] | None:
    return _taxi("mirror")


def taxi_lbfgs() -> dict[str, Any] | None:
    return _taxi("lbfgs")


def _table() -> CodedTable | None:
    folder = Path(os.environ.get("DATA_DIR", "data"))
    if not (folder / "chicago-taxi.csv.gz").is_file():
        return None
    sizes = json.loads((folder / "chicago-taxi.domain.json").read_text(encoding="utf-8"))
    domain = Domain(tuple(Attribute(k, v) for k, v in sizes.items()))
    with gzip.open(folder / "chicago-taxi.csv.gz", "rt", encoding="utf-8") as file:
        header = next(csv.reader(file))
        codes = np.loadtxt(file, delimiter=",", dtype=np.int32)
    columns = (codes[:, header.index(a.name)].astype(code_dtype(a.size)) for a in domain.attributes)
    return CodedTable(domain, tuple(columns))


def _taxi(optimizer: str) -> dict[str, Any] | None:
    table = _table()
    if table is None:
        return None
    domain, rng = table.domain, np.random.default_rng(0)
    cliques = list(closure(domain, [PLACE + o for o in OUTER], max_cells=10**7).cliques)
    cliques += [domain.canonical(["pickup_community_area", "dropoff_community_area"])] * 7
    answers = [
        NoisyMarginal(c, Identity(n.size), n + rng.normal(0, SIGMA, n.size), "gaussian", SIGMA, str(i))
        for i, (c, n) in enumerate(zip(cliques, count_cliques(table, cliques), strict=True))
    ]
    known = Measurements(domain, tuple(answers))
    made = []
    spent = timed(lambda: made.append(fit_model(known, PgmSpec(stop="floor", optimizer=optimizer))))
    model, report = made[0], made[0].fit
    return {
        "name": f"pgm: taxi, 66 whole marginals, {optimizer}: {report.loss / report.floor:.4f} × the noise floor",
        "rows": table.rows,
        "columns": len(domain),
        "cells": model.engine.tree.cells,
        **spent,
        "reference": "Private-PGM: 626 s, 1.2 × the floor",
    }


def taxi_adaptive_1() -> dict[str, Any] | None:
    return _adaptive(1.0)


def taxi_adaptive_10() -> dict[str, Any] | None:
    return _adaptive(10.0)


def _adaptive(epsilon: float) -> dict[str, Any] | None:
    """McKenna 2021's measurements by the pipeline, adaptive granularity, record level; the fit alone is timed."""
    path = Path(os.environ.get("DATA_DIR", "data")) / "chicago-taxi.csv.gz"
    if not path.is_file():
        return None
    settings = ["data=chicago_taxi", f"data.path={path}", "experiment=nist2021_sprint3", f"privacy.epsilon={epsilon}"]
    settings += ["privacy.unit=record", "privacy.max_records=1", "evaluation.enabled=false", "synthesis.iterations=1"]
    with tempfile.TemporaryDirectory() as folder:
        known = run(load_config(settings), Path(folder) / "run", quiet=True).measurements
    made = []
    spent = timed(lambda: made.append(fit_model(known, PgmSpec(stop="floor"))))
    model, report, answers = made[0], made[0].fit, sum(a.values.size for a in known.answers)
    said = f"adaptive granularity, {answers:,} answers: {report.loss / report.floor:.4f} × the noise floor"
    return {
        "name": f"pgm: taxi, ε = {epsilon:g}, {said}",
        "rows": 226_051,
        "columns": len(known.domain),
        "cells": model.engine.tree.cells,
        **spent,
        "reference": "Private-PGM: 626 s, 1.2 × the floor (ε = 1)",
    }


def sample_1_million_rows() -> dict[str, Any]:
    sizes = [2] * 12 + [5] * 8 + [9] * 6 + [18] * 4 + [27] * 3 + [97, 181]
    domain = Domain(tuple(Attribute(f"c{i:02}", s) for i, s in enumerate(sizes)))
    tree = junction_tree(domain, [(domain.names[i // 2], domain.names[i]) for i in range(1, len(sizes))])
    engine, rng = JunctionTreeInference(tree), np.random.default_rng(0)
    conditionals, _ = engine.conditionals(rng.normal(size=tree.cells))
    model_rows(engine, conditionals, rows=100, rng=rng)
    spent = timed(lambda: model_rows(engine, conditionals, rows=1_000_000, rng=rng))
    return {"name": "pgm: rows", "rows": 1_000_000, "columns": 35, "cells": tree.cells, **spent, "reference": "10 s"}
