"""The companion metrics: on `acs` (170,254 × 35) in parts, on a map of 12 × 278 × 174, and the official scorers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.anita import n_way
from evaluation.anita_privacy import privacy
from evaluation.correlation import correlation_difference
from evaluation.cube import cubes_from_arrays
from evaluation.density import density
from evaluation.ncript import ncript
from evaluation.ncript_series import horizontal_correlation
from evaluation.range_2018 import range_score
from evaluation.sprint2 import sprint2_coded
from evaluation.sprint3 import EDGES, PLACE, TIME, TO, UNIT, sprint3_table
from evaluation.tstr import tstr
from mechanisms.public.schema import load_schema
from mechanisms.public.table import CodedTable, code_dtype
from pipeline.config import SCHEMAS
from tests.bench.clock import timed

CASES = (
    "horizontal_correlation_of_all_series",
    "ncript_of_a_map",
    "accuracies_of_acs",
    "privacy_of_acs",
    "sprint2_of_acs",
    "sprint3_of_trips",
    "density_of_acs",
    "ranges_of_acs",
    "correlations_of_acs",
    "tstr_of_acs",
)
SHAPE = (12, 278, 174)


def _map(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    places, types = rng.pareto(1.2, 278) + 0.01, rng.pareto(0.8, 174) + 0.001
    rate = np.multiply.outer(np.ones(12), np.multiply.outer(places, types))
    return rng.poisson(rate / rate.sum() * 287_000).astype(float)


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


def ncript_of_a_map() -> dict[str, Any]:
    cubes = cubes_from_arrays(_map(0), _map(1))
    ncript(cubes_from_arrays(_map(0)[:, :2], _map(1)[:, :2]))
    spent = timed(lambda: ncript(cubes))
    return {"name": "N-CRiPT", "rows": 287_000, "columns": 3, "cells": int(np.prod(SHAPE)), **spent}


def _acs() -> list[CodedTable] | None:
    """Three parts of the rows."""
    path = Path(os.environ.get("DATA_DIR", "data")) / "acs-il-oh.csv.gz"
    if not path.exists():
        return None
    frame, domain = pd.read_csv(path), load_schema(SCHEMAS / "acs.yaml").domain
    columns = [frame[a.name].to_numpy().astype(code_dtype(a.size)) for a in domain.attributes]
    return [CodedTable(domain, tuple(np.ascontiguousarray(c[i::3]) for c in columns)) for i in range(3)]


def _on_acs(name: str, work: Callable[..., object], reference: str) -> dict[str, Any] | None:
    parts = _acs()
    if parts is None:
        return None
    tiny = [CodedTable(t.domain, tuple(c[:300] for c in t.columns)) for t in parts]
    work(*tiny)
    spent = timed(lambda: work(*parts))
    return {"name": name, "rows": 3 * parts[0].rows, "columns": len(parts[0].domain), **spent, "reference": reference}


def accuracies_of_acs() -> dict[str, Any] | None:
    def work(real: CodedTable, synthetic: CodedTable, _: CodedTable) -> object:
        return [n_way(real, synthetic, n).accuracy for n in (1, 2, 3)]

    return _on_acs("ANITA: all 1-, 2- and 3-way accuracies", work, "aim: 6 s; mostlyai-qa 89 s for its triples")


def privacy_of_acs() -> dict[str, Any] | None:
    def work(training: CodedTable, synthetic: CodedTable, holdout: CodedTable) -> object:
        return privacy(training, synthetic, holdout).passed

    return _on_acs("ANITA: DCR, NNDR, verdict, matches", work, "aim: 60 s; mostlyai-qa 316 s for three searches")


def sprint2_of_acs() -> dict[str, Any] | None:
    reference = "originals: 118 s of processor time on small inputs"
    return _on_acs("official scorer of sprint 2", lambda a, b, _: sprint2_coded(a, b).score, reference)


def density_of_acs() -> dict[str, Any] | None:
    return _on_acs("2018: density estimation", lambda a, b, _: density(a, b).score, "")


def ranges_of_acs() -> dict[str, Any] | None:
    return _on_acs("2018: 300 range queries", lambda a, b, _: range_score(a, b).score, "")


def correlations_of_acs() -> dict[str, Any] | None:
    return _on_acs("correlation difference", lambda a, b, _: correlation_difference(a, b).score, "")


def tstr_of_acs() -> dict[str, Any] | None:
    targets = ("SEX", "EMPSTAT")
    return _on_acs("TSTR, two targets", lambda a, b, c: tstr(a, b, c, targets=targets).score, "")


def sprint3_of_trips() -> dict[str, Any]:
    """Generated trips of 5,000 taxis that show all shifts and areas."""
    frames = []
    for seed in range(2):
        rng, rows = np.random.default_rng(seed), 220_000
        frame = pd.DataFrame({n: rng.integers(-1, int(e[-1]), rows) for n, e in EDGES.items()})
        frame = frame.assign(company_id=rng.integers(0, 60, rows), payment_type=rng.integers(-1, 7, rows))
        places = {TO: rng.integers(-1, 77, rows), PLACE: rng.integers(-1, 77, rows), TIME: rng.integers(0, 21, rows)}
        frames.append(frame.assign(**places, **{UNIT: rng.integers(0, 5_000, rows)}))
    sprint3_table(frames[0].head(2000), frames[1].head(2000), strict=False)
    spent = timed(lambda: sprint3_table(frames[0], frames[1]))
    reference = "originals: 118 s of processor time on small inputs"
    return {"name": "official scorer of sprint 3", "rows": 440_000, "columns": 11, **spent, "reference": reference}
