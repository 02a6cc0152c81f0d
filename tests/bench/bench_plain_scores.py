"""`score` of files without a schema: by default and whole (all metrics, holdout, report), each in its own process."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tests.bench.clock import data_file, timed

#: Rows of the first call, which compiles.
FEW = 3_000
NAMES = ("real", "synthetic", "holdout")
#: A generated table: rows of each side, and columns of each kind.
MILLION, CODES, NUMBERS = 1_000_000, 27, 8
#: What others take for their reports on the same thirds, as measured elsewhere on two cores.
PEERS = {
    "adult": "SDMetrics 0.32 quality report 2.8 to 3.5 s, mostlyai-qa 1.10 36 s",
    "acs": "SDMetrics 0.32 quality report 6.6 to 17 s, mostlyai-qa 1.10 193 to 576 s",
    "million": "aim: 20 s by default and 60 s whole, 1,500 MB; SDMetrics 50 s with pairs on 50,000 rows",
}


def _thirds(name: str) -> list[pd.DataFrame] | None:
    if (path := data_file(f"{name}.csv.gz")) is None:
        return None
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    third = len(frame) // 3
    return [frame.iloc[i * third : (i + 1) * third] for i in range(3)]


def _generated(rows: int) -> list[pd.DataFrame]:
    """Codes that hang on a common cause, and numbers with two, three or many decimals."""
    frames = []
    for seed in range(len(NAMES)):
        rng = np.random.default_rng(seed)
        cause = rng.normal(size=rows)
        columns: dict[str, Any] = {}
        for i in range(CODES):
            mixed = 0.6 * cause + rng.normal(size=rows)
            columns[f"code{i}"] = np.searchsorted(np.linspace(-2, 2, 1 + i % 15), mixed)
        for i in range(NUMBERS):
            columns[f"number{i}"] = np.round(np.exp(0.5 * cause + rng.normal(size=rows)), 1 + i % 3)
        frames.append(pd.DataFrame(columns))
    return frames


def _measured(name: str, *, whole: bool) -> dict[str, Any] | None:
    tables = _generated(MILLION) if name == "million" else _thirds({"acs": "acs-il-oh"}.get(name, name))
    if tables is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pipeline", "score", f"output={folder}/scores.json"]
        command += ["metrics=all", f"report={folder}/report.html"] if whole else []
        given = NAMES if whole else NAMES[:2]
        command += [f"{n}={folder}/{n}.csv" for n in given]
        spent: dict[str, Any] = {}
        for rows in (FEW, len(tables[0])):
            for n, table in zip(NAMES, tables, strict=True):
                table.head(rows).to_csv(f"{folder}/{n}.csv", index=False)
            spent = timed(
                lambda: subprocess.run(command, check=True, capture_output=True), who=resource.RUSAGE_CHILDREN
            )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    what = "all metrics, holdout and report" if whole else "default"
    row = {"name": f"score without a schema, {name}, {what}", "rows": len(given) * len(tables[0])}
    row |= {"columns": tables[0].shape[1], **spent, "peak_mb": round(peak / 1e3)}
    return row | {"reference": PEERS[name]}


CASES: dict[str, Callable[[], dict[str, Any] | None]] = {
    f"{name}.{'whole' if whole else 'default'}": partial(_measured, name, whole=whole)
    for name in PEERS
    for whole in (False, True)
}
