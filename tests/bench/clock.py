"""One case in a process of its own: wall time, processor time, peak memory."""

import importlib
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def data_file(name: str) -> Path | None:
    """A real table in $DATA_DIR; None where it is not at hand."""
    path = Path(os.environ.get("DATA_DIR", "data")) / name
    return path if path.is_file() else None


def timed(work: Callable[[], Any], repeats: int = 1, *, who: int = resource.RUSAGE_SELF) -> dict[str, float]:
    """The mean seconds of `repeats` calls; processor time is that of this process, or of children that have ended."""
    wall, cpu = time.perf_counter(), sum(resource.getrusage(who)[:2])
    for _ in range(repeats):
        work()
    spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": sum(resource.getrusage(who)[:2]) - cpu}
    return {name: seconds / repeats for name, seconds in spent.items()}


def one(module: str, case: str) -> dict[str, Any] | None:
    """One case; None where its data is not at hand. Peak memory is that of the whole process."""
    row: dict[str, Any] | None = importlib.import_module(f"tests.bench.{module}").CASES[case]()
    if row is not None:
        row.setdefault("peak_mb", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))
    return row
