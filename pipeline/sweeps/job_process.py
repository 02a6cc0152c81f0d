"""One job of a sweep, in a process of its own: whatever becomes of it, the others go on and its outcome is on disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from mechanisms.public.files import write_whole
from pipeline import experiment_run, stages
from pipeline.error_messages import explained, unquoted
from pipeline.folders import RunFolder
from pipeline.measuring.acceptance import Withheld
from pipeline.settings.config import Config, typed
from pipeline.sweeps.planned_jobs import digest

OUTCOME = "outcome.json"
#: In the folder that the jobs share: the process of the sweep.
SWEEP = "sweep.pid"


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


def job(config: DictConfig) -> None:
    """What Hydra's launchers call: run it in a process of its own, and leave the outcome in the job's internal/."""
    hydra = HydraConfig.get()
    root = Path(hydra.runtime.output_dir)
    files = {
        "config.yaml": OmegaConf.to_yaml(config, resolve=True),
        "hydra.yaml": OmegaConf.to_yaml(HydraConfig.instance().cfg),
        "overrides.yaml": OmegaConf.to_yaml(hydra.overrides.task),
    }
    settings = typed(config, Config)
    shared = Path(hydra.sweep.dir) / "internal" / "shared"
    sweep = int((shared / SWEEP).read_text(encoding="utf-8"))
    if multiprocessing.get_start_method() not in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("forkserver", force=True)  # a launcher's own, which its children do not know
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "pipeline.sweeps.warm_start"])
    start = time.perf_counter()
    child = context.Process(target=_work, args=(settings, root, files, shared.resolve(), (os.getpid(), sweep)))
    child.start()
    child.join()
    if child.exitcode:
        signal = f"by signal {-child.exitcode}" if child.exitcode < 0 else f"with code {child.exitcode}"
        why = f"its process was ended {signal}" + (" (out of memory?)" if child.exitcode == -9 else "")
        keep(root, JobOutcome("failed", digest(settings), why, seconds=time.perf_counter() - start))


def keep(root: Path, outcome: JobOutcome) -> None:
    """The outcome, under the job's internal/; a disk that is full leaves none, and the job counts as failed."""
    (root / "internal").mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(root / "internal" / OUTCOME, json.dumps(asdict(outcome), indent=1), mode=0o600)


def outcome_of(root: Path) -> JobOutcome | None:
    """The outcome that a job left; None where there is none that can be read."""
    try:
        return JobOutcome(**json.loads((root / "internal" / OUTCOME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _work(settings: Config, root: Path, files: dict[str, str], shared: Path, parents: tuple[int, ...]) -> None:
    """In the process of the job: its own output goes to internal/output.log."""
    threading.Thread(target=_end_with, args=(parents,), daemon=True).start()
    start = time.perf_counter()
    outcome = JobOutcome("failed", digest(settings))
    try:
        inside = root / "internal"
        inside.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(inside / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(log, stream)
        settings = replace(settings, resume=settings.resume and RunFolder(root).manifest.exists())
        outcome = replace(outcome, status="done", stages=_run(settings, root, files, shared))
    except Withheld as error:
        outcome = replace(outcome, status="withheld", error=explained(error))
    except Exception as error:
        words = explained(error if settings.console == "always" else unquoted(error))  # the sweep prints them
        outcome = replace(outcome, error=words)
    except KeyboardInterrupt:
        os._exit(1)
    used = resource.getrusage(resource.RUSAGE_SELF)
    memory = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    wall, processor = time.perf_counter() - start, used.ru_utime + used.ru_stime
    keep(root, replace(outcome, seconds=wall, cpu_seconds=processor, memory_mb=round(memory, 1)))


def _run(settings: Config, root: Path, files: dict[str, str], shared: Path) -> dict[str, float]:
    if settings.experiment.kind or settings.smoke:
        print(experiment_run.run_experiment(settings, root, files))
        return {}
    return dict(stages.run(settings, root, hydra_files=files, shared=shared).seconds)


def _end_with(parents: tuple[int, ...]) -> None:
    """A job never outlives the sweep that started it: neither its launcher's process, nor the one that launched."""
    while all(map(_alive, parents)):
        time.sleep(0.2)
    os._exit(1)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def load_json(path: Path) -> dict[str, Any]:
    """A JSON file of a job; empty where there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content
