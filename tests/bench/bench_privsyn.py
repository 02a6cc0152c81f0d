"""The whole PrivSyn path at record level, δ = 1/n²: select, measure, make consistent, GUM, release; beside its peers.

The processor seconds are those of a process of its own until the release is written: the libraries' loading, reading
the table and the files of the release are in them, scoring is not.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.tvd import tvd
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.scan import open_table
from pipeline import Run, load_config, run
from pipeline.settings.build import build_schema
from pipeline.settings.specs import build_specs
from tests.bench.clock import timed

EPSILONS = (0.1, 1.0, 10.0)
#: Name → file, rows, and what the public PrivSyn reached at each ε: 2- / 3-way TVD and processor seconds.
TABLES = {
    "adult_codes": (
        "adult-codes.csv.gz", 48_842, ("0.1057/0.1754, 10 s", "0.0440/0.0925, 44 s", "0.0162/0.0552, 97 s")
    ),
    "chicago_taxi": (
        "chicago-taxi.csv.gz", 226_051, ("0.0958/0.1618, 51 s", "0.0288/0.0750, 160 s", "0.0084/0.0502, 249 s")
    ),
    "fire15": ("fire-calls.csv.gz", 305_119, ("0.0824/0.1476, 266 s", "0.0135/0.0368, 437 s", "0.0036/0.0200")),
    "acs": ("acs-il-oh.csv.gz", 170_254, ("0.0804/0.1418", "0.0345/0.0713, 842 s", "")),
}  # fmt: skip
#: Its consistency step repaired.
REPAIRED = {
    "adult_codes": ("0.0986/0.1707", "0.0360/0.0836", "0.0158/0.0555"),
    "chicago_taxi": ("0.0781/0.1446", "0.0251/0.0717", ""),
}
CASES = tuple(f"{name}_{epsilon:g}" for name in TABLES for epsilon in EPSILONS)


def released(name: str, epsilon: float, delta: float | None, settings: Sequence[str]) -> dict[str, Any] | None:
    """A run at record level and its 2-way and 3-way errors; None without the file.

    Args:
        delta: None: 1/n².
        settings: of what is chosen and how.
    """
    file, rows, _ = TABLES[name]
    path = Path(os.environ.get("DATA_DIR", "data")) / file
    if not path.is_file():
        return None
    given = [
        f"data={name}",
        f"data.path={path}",
        "privacy.unit=record",
        "privacy.max_records=1",
        f"privacy.epsilon={epsilon}",
        f"privacy.delta={1 / rows**2 if delta is None else delta}",
        "evaluation.enabled=false",
        *settings,
    ]
    made: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        spent = timed(lambda: made.append(run(load_config(given), Path(folder) / "run", quiet=True)))
        spent["cpu_seconds"] = time.process_time()
        peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        schema = build_schema(build_specs(load_config(given)))
        tables = []
        for number, table in enumerate((path, made[0].table)):
            work = Path(folder) / str(number)
            source = open_table(table, workdir=work, memory_limit_bytes=10**9, threads=2)
            tables.append(encode_table(source, schema, workdir=work / "codes"))
        means = tvd(*tables)
    return {
        "name": "2-/3-way TVD " + "/".join(f"{means[k]['mean']:.4f}" for k in ("2-way", "3-way")),
        "rows": rows,
        "columns": len(made[0].measurements.domain),
        "cells": sum(a.values.size for a in made[0].measurements.answers),
        **spent,
        "peak_mb": peak,
    }


def _case(name: str, place: int) -> dict[str, Any] | None:
    found = released(name, EPSILONS[place], None, ["selection=indif", "synthesis=gum"])
    if found is None:
        return None
    repaired = REPAIRED.get(name, ("", "", ""))[place]
    reference = f"PrivSyn: {TABLES[name][2][place] or 'not run'}" + (f"; repaired: {repaired}" if repaired else "")
    title = f"PrivSyn's path on {name}, ε = {EPSILONS[place]:g}: {found['name']}"
    return {**found, "name": title, "reference": reference}


def __getattr__(case: str) -> Any:
    """The cases by name."""
    name, _, epsilon = case.rpartition("_")
    if case not in CASES:
        raise AttributeError(case)
    return lambda: _case(name, [f"{e:g}" for e in EPSILONS].index(epsilon))
