"""Wall and processor time of one piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(work: Callable[[], Any], repeats: int = 1) -> dict[str, float]:
    """The mean seconds of `repeats` calls."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        work()
    return {
        "seconds": (time.perf_counter() - wall) / repeats,
        "cpu_seconds": (time.process_time() - cpu) / repeats,
    }
