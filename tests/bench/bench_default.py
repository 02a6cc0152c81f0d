"""The default on four known tables at record level: beside the best named method, and AIM's published errors.

The processor seconds are those of a process of its own until the release is written: the libraries' loading, reading
the table and the files of the release are in them, scoring is not.
"""

import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.tvd import distances
from pipeline import Run, load_config, run
from pipeline.settings.build import build_schema
from pipeline.settings.specs import build_specs
from tests.bench.clock import data_file, timed
from tests.bench.peers.tables import coded

#: Name → file, rows, and the 2- / 3-way TVD of the best named method at ε = 1, δ = 1/n², before there was a default.
TABLES = {
    "adult_codes": ("adult-codes.csv.gz", 48_842, "0.0255/0.0604"),
    "chicago_taxi": ("chicago-taxi.csv.gz", 226_051, "0.0149/0.0512"),
    "fire15": ("fire-calls.csv.gz", 305_119, "0.0074/0.0216"),
    "acs": ("acs-il-oh.csv.gz", 170_254, "0.0166/0.0368"),
}
#: ε → AIM's published mean error of all 3-way marginals of fire15 at δ = 1e-9.
AIM = {0.1: "0.0705", 1.0: "0.026", 10.0: "0.019"}
SEEDS = (0, 1)


def released(name: str, epsilon: float, delta: float | None, seed: int) -> dict[str, Any] | None:
    """A run at record level and its 2-way and 3-way errors; None without the file.

    Args:
        delta: None: 1/n².
    """
    file, rows, _ = TABLES[name]
    if (path := data_file(file)) is None:
        return None
    given = [f"data={name}", f"data.path={path}", "selection=auto", "synthesis=auto", "evaluation.enabled=false"]
    given += ["privacy.unit=record", "privacy.max_records=1", f"privacy.epsilon={epsilon}"]
    given += [f"privacy.delta={1 / rows**2 if delta is None else delta}"]
    given += [f"privacy.noise_seed={seed}", f"synthesis.seed={seed}"]
    made: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        spent = timed(lambda: made.append(run(load_config(given), Path(folder) / "run", quiet=True)))
        spent["cpu_seconds"] = time.process_time()
        peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        schema = build_schema(build_specs(load_config(given)))
        means = distances(*coded(schema, path, made[0].table)).to_json()
    return {
        "name": "2-/3-way TVD " + "/".join(f"{means[k]['mean']:.4f}" for k in ("2-way", "3-way")),
        "rows": rows,
        "columns": len(made[0].measurements.domain),
        "cells": sum(a.values.size for a in made[0].measurements.answers),
        **spent,
        "peak_mb": peak,
    }


def _case(name: str, epsilon: float, delta: float | None, seed: int) -> dict[str, Any] | None:
    found = released(name, epsilon, delta, seed)
    if found is None:
        return None
    reference = f"best named method: {TABLES[name][2]}" if delta is None else f"AIM, 3-way: {AIM[epsilon]}"
    told = "1/n²" if delta is None else f"{delta:g}"
    title = f"the default on {name}, ε = {epsilon:g}, δ = {told}, seed {seed}: {found['name']}"
    return {**found, "name": title, "reference": reference}


CASES = {f"{name}_seed_{seed}": partial(_case, name, 1.0, None, seed) for name in TABLES for seed in SEEDS}
CASES |= {f"fire15_epsilon_{e:g}_seed_{seed}": partial(_case, "fire15", e, 1e-9, seed) for e in AIM for seed in SEEDS}
