"""Counts on two executors that are processes of their own, one of which is killed while it counts.

A process has one session of Spark: `test_executors` runs this as a command, which prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mechanisms.sensitive.engines import slices
from mechanisms.sensitive.engines.spark_engine import SparkSettings
from tests.bench.processes import family, of_living
from tests.engines.contract import SETTINGS, loaded, seen
from tests.engines.test_engines import write
from tests.engines.test_spark import mixed


def executors() -> set[int]:
    """The executors among the processes that this one has started, directly or not."""
    commands = of_living(family(os.getpid()), lambda pid: Path(f"/proc/{pid}/cmdline").read_bytes())
    return {pid for pid, command in commands.items() if b"CoarseGrainedExecutorBackend" in command}


def kill_one(session: Any, killed: list[int], stop: threading.Event) -> None:
    """Kill an executor at once when both are at work."""
    tracker = session.sparkContext.statusTracker()
    while not stop.is_set() and not killed:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if sum(stage.numActiveTasks for stage in stages if stage is not None) >= 2:
            killed.append(min(executors()))
            os.kill(killed[0], signal.SIGKILL)
        time.sleep(0.01)


def main(folder: Path) -> dict[str, Any]:
    """What both engines counted, and what became of the executor."""
    slices.SLICE_ROWS = 2_000
    table, setting = write(folder / "t.parquet", mixed(20_000)), SETTINGS[5]
    here = seen(loaded(table, setting, folder / "here"))
    work = folder / "there"
    work.mkdir(mode=0o700)
    with SparkSettings("local-cluster[2,1,1024]").opened(work) as engine:
        private = loaded(table, setting, folder / "rows", engine=engine)
        whole, before = seen(private), executors()
        killed: list[int] = []
        stop = threading.Event()
        watch = threading.Thread(target=kill_one, args=(engine.session, killed, stop))
        watch.start()
        for _ in range(10):  # where others are at work, both may not be seen at work in the first count
            again = seen(private)
            if killed:
                break
        stop.set()
        watch.join()
        left = before - executors()
    return {
        "same": whole == here,
        "same after": again == here,
        "before": len(before),
        "killed": killed,
        "left": [*left],
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
