"""Whole runs at record level, ε = 1, δ = 1/n²: private selection with the graphical model, beside peers' errors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from pipeline import Run, load_config, run
from tests.bench.clock import timed

#: Name → file, rows, and what MST on mbi 2.0.0 reached: 2-way and 3-way TVD, processor seconds.
TABLES = {
    "adult_codes": ("adult-codes.csv.gz", 48_842, (0.0418, 0.0899, 26)),
    "chicago_taxi": ("chicago-taxi.csv.gz", 226_051, (0.0527, 0.1189, 17)),
    "fire15": ("fire-calls.csv.gz", 305_119, (0.0627, 0.1501, 32)),
    "acs": ("acs-il-oh.csv.gz", 170_254, (0.0424, 0.0811, 65)),
}
CASES = (
    *("mst_adult_codes", "mst_chicago_taxi", "mst_fire15", "mst_acs", "aim_adult_codes", "aim_chicago_taxi"),
    *("aim_fire15", "aim_acs"),
)


def _case(selection: str, name: str) -> dict[str, Any] | None:
    file, rows, (two, three, seconds) = TABLES[name]
    path = Path(os.environ.get("DATA_DIR", "data")) / file
    if not path.is_file():
        return None
    settings = [
        f"data={name}",
        f"data.path={path}",
        "privacy.unit=record",
        "privacy.max_records=1",
        f"privacy.delta={1 / rows**2}",
        f"selection={selection}",
        "synthesis=pgm",
        "evaluation.k=[1]",
    ]
    made: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        spent = timed(lambda: made.append(run(load_config(settings), Path(folder) / "run", quiet=True)))
    scores = made[0].scores
    assert scores is not None
    errors = "/".join(f"{scores.tvd[k]['mean']:.4f}" for k in ("2-way", "3-way"))
    return {
        "name": f"{selection} + pgm on {name}, whole run: 2-/3-way TVD {errors}",
        "rows": rows,
        "columns": len(made[0].measurements.domain),
        "cells": sum(a.values.size for a in made[0].measurements.answers),
        **spent,
        "reference": f"MST on mbi: {two}/{three} in {seconds} s",
    }


def __getattr__(case: str) -> Any:
    """The cases by name."""
    selection, _, name = case.partition("_")
    if case not in CASES:
        raise AttributeError(case)
    return lambda: _case(selection, name)
