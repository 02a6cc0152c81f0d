"""One job of a sweep, in a process of its own: whatever becomes of it, the others go on and its outcome is on disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.posix import resource
from pipeline import experiment_run, stages
from pipeline.error_messages import explained, unquoted
from pipeline.folders import RunFolder
from pipeline.measuring.acceptance import Withheld
from pipeline.settings.config import Config
from pipeline.sweeps.planned_jobs import digest

OUTCOME, OUTPUT = "outcome.json", "output.log"


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended. NOT private.

    Attributes:
        status: done, withheld or failed.
        settings: what its settings are known by.
        error: why it was withheld or failed.
        seconds: wall time of the job; of each stage in `stages`.
        cpu_seconds: processor time of the job.
        memory_mb: the largest memory that its process held.
    """

    status: str
    settings: str
    error: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    memory_mb: float = 0.0


@dataclass
class JobProcesses:
    """The processes of a sweep's jobs.

    Attributes:
        shared: a folder that the jobs share.
        ended: whether the sweep ends, so that no further job starts.
    """

    shared: Path
    ended: bool = False
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def outcome(self, settings: Config, root: Path, records: Callable[[], Mapping[str, str]]) -> JobOutcome:
        """Run one job in a process of its own, and wait for what it leaves in its internal/.

        Args:
            records: Hydra's own records of its settings.
        """
        start = time.perf_counter()
        with self._starting:  # Hydra composes for one at a time
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([__name__, "pipeline.sweeps.warm_start"])
            arguments = (settings, root, dict(records()), self.shared.resolve(), os.getpid())
            child = context.Process(target=_work, args=arguments)
            if not self.ended:
                child.start()
        if self.ended:
            return JobOutcome("failed", digest(settings), "the sweep was ended")
        child.join()
        if child.exitcode:
            signal = f"by signal {-child.exitcode}" if child.exitcode < 0 else f"with code {child.exitcode}"
            why = f"its process was ended {signal}" + (" (out of memory?)" if child.exitcode == -9 else "")
            lost = JobOutcome("failed", digest(settings), why, seconds=time.perf_counter() - start)
            with suppress(OSError):  # on a full disk it is told all the same
                keep(root, lost)
            return lost
        return outcome_of(root) or JobOutcome("failed", "", "it left no outcome: is the disk full?")

    def end(self) -> None:
        """End all that are at work, and start no further one."""
        self.ended = True
        with self._starting:
            at_work = multiprocessing.active_children()
        for child in at_work:
            child.terminate()
        for child in at_work:
            child.join()


def keep(root: Path, outcome: JobOutcome) -> None:
    """The outcome, under the job's internal/; a disk that is full leaves none, and the job counts as failed."""
    (root / "internal").mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(root / "internal" / OUTCOME, json.dumps(asdict(outcome), indent=1), mode=0o600)


def outcome_of(root: Path) -> JobOutcome | None:
    """The outcome that a job left; None where there is none that can be read."""
    try:
        return JobOutcome(**load_json(root / "internal" / OUTCOME))
    except TypeError:
        return None


def _work(settings: Config, root: Path, files: dict[str, str], shared: Path, sweep: int) -> None:
    """In the process of the job: its own output goes to internal/output.log."""
    threading.Thread(target=_end_with, args=(sweep,), daemon=True).start()
    start = time.perf_counter()
    outcome = JobOutcome("failed", digest(settings))
    try:
        inside = root / "internal"
        inside.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(inside / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(log, stream)
        settings = replace(settings, resume=settings.resume and RunFolder(root).manifest.exists())
        outcome = replace(outcome, status="done", stages=_run(settings, root, files, shared))
    except Withheld as error:
        outcome = replace(outcome, status="withheld", error=explained(error))
    except KeyboardInterrupt:
        os._exit(1)
    except BaseException as error:
        words = explained(error if settings.console == "always" else unquoted(error))  # the sweep prints them
        outcome = replace(outcome, error=words)
    used = resource.getrusage(resource.RUSAGE_SELF)
    memory = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    wall, processor = time.perf_counter() - start, used.ru_utime + used.ru_stime
    keep(root, replace(outcome, seconds=wall, cpu_seconds=processor, memory_mb=round(memory, 1)))


def _run(settings: Config, root: Path, files: dict[str, str], shared: Path) -> dict[str, float]:
    if settings.experiment.kind or settings.smoke:
        print(experiment_run.run_experiment(settings, root, files))
        return {}
    return dict(stages.run(settings, root, hydra_files=files, shared=shared).seconds)


def _end_with(sweep: int) -> None:
    """A job never outlives the process of the sweep that started it."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(sweep, 0)  # asks whether it is there
            time.sleep(0.2)
    os._exit(1)


def load_json(path: Path) -> JsonDict:
    """A JSON file of a job; empty where there is none."""
    try:
        content: JsonDict = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content
