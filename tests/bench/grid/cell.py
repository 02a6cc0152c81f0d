"""One cell of the grid: a method on a table, whole or by the functions that `run` calls, in a process of the grid."""

import gc
import json
import resource
import signal
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.sensitive.private_table import EMBEDDED, PrivateTable
from pipeline.folders import claimed
from pipeline.measuring.acceptance import settle, table_of
from pipeline.run_context import State
from pipeline.settings import build
from pipeline.settings.config import Config, load_config
from pipeline.settings.design import Design
from pipeline.settings.methods import usable_synthesizer
from pipeline.settings.specs import build_specs
from pipeline.stage_bars import Stages
from pipeline.stages import run
from tests.bench.grid.coded import GridTable, coded_table
from tests.bench.grid.errors import Columns, errors
from tests.bench.grid.methods import Method
from tests.bench.peers.tables import coded as coded_by

#: Where the exception is lost on its way (in a finalizer, say), it is raised again after so many seconds.
AGAIN_SECONDS = 0.03


class TooLong(BaseException):
    """A cell took longer than it may; no handler of errors on the way may take it for one."""


@dataclass(frozen=True)
class Made:
    """A synthetic table, and what was measured for it."""

    table: CodedTable
    answered: tuple[Columns, ...]


def ours(method: Method, table: GridTable, epsilon: float, seed: int) -> Made:
    """A run's settings, plan, measurements and rows; nothing is written but its ledger and answers.

    Raises:
        UserError: as `run`.
    """
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "schema.json"
        path.write_text(json.dumps(table.schema()), encoding="utf-8")
        config = _config(method.settings)
        data = replace(config.data, path=str(path), schema=str(path))  # no file of rows is read
        privacy = replace(config.privacy, epsilon=epsilon, delta=table.delta, noise_seed=seed)
        config = replace(config, data=data, privacy=privacy, synthesis=replace(config.synthesis, seed=seed))
        specs = build_specs(config)
        schema, unit = build.build_schema(specs), specs.unit
        plan = build.build_plan(specs, build.build_workload(specs, schema), schema)
        rows = CodedTable(schema.measured, table.coded.columns)
        private = PrivateTable(rows, unit, EncodingReport(table.rows, {}, {}), complete=True)
        with claimed(Path(root) / "run", resume=False) as folder:
            usable_synthesizer(config.synthesis, specs.synthesizer)
            fixed = (config, None, {}, None, (), folder, EMBEDDED, Stages(quiet=True))
            state = State(*fixed, Design(specs, schema, plan, None, None, ()), private=private)
            taken = settle(state)
            synthetic, _ = table_of(state, taken)
    return Made(synthetic, tuple(a.clique for a in taken.measurements.answers))


@lru_cache(maxsize=16)
def _config(settings: tuple[str, ...]) -> Config:
    return load_config(["data=table", "evaluation.enabled=false", *settings])


@lru_cache(maxsize=16)
def _warm(method: Method) -> None:
    """The method once on a few rows, so that no cell pays for imports and compilation."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 300)
    columns = {"a": first, "b": (first + (rng.random(300) < 0.2)) % 4, "c": rng.integers(0, 3, 300)}
    columns["d"] = (columns["b"] + columns["c"]) % 4
    tiny = GridTable("tiny", coded_table(columns, {"a": 4, "b": 4, "c": 3, "d": 4}, ["a", "b"]))
    with suppress(UserError):  # what it cannot do at all, the cell says
        ours(method, tiny, 1.0, 0)


def whole(method: Method, table: GridTable, epsilon: float, seed: int, folder: Path) -> Made:
    """A whole run on the table's file, by its schema: from texts to texts.

    Raises:
        UserError: as `run`.
    """
    file, schema = folder / "table.csv", folder / "schema.yaml"
    given = [f"data.path={file}", f"data.schema={schema}", f"privacy.epsilon={epsilon}", f"privacy.delta={table.delta}"]
    given += [f"privacy.noise_seed={seed}", f"synthesis.seed={seed}", "limits.threads=1"]
    with tempfile.TemporaryDirectory() as root:
        done = run(load_config(["data=table", "evaluation.enabled=false", *method.settings, *given]), root, quiet=True)
        _, made = coded_by(load_schema(schema), file, done.table)
    return Made(made, tuple(a.clique for a in done.measurements.answers))


def measured(method: Method, table: GridTable, epsilon: float, seed: int, *, seconds: float) -> dict[str, Any]:
    """One result: errors, time and memory; or why there is none.

    Args:
        seconds: processor time after which it is stopped, so that other work on the machine stops nothing.
    """
    _warm(method)
    _forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    failed, made = "", None
    try:
        with at_most(seconds):
            call = ours if table.folder is None else partial(whole, folder=table.folder)
            made = call(method, table, epsilon, own_seed(method, table, epsilon, seed))
    except (TooLong, Exception) as error:  # one run that breaks is a result, and ends no grid
        # a file that is closed while it is written breaks too
        stopped = isinstance(error, TooLong) or isinstance(error.__context__, TooLong)
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        failed = f"stopped after {seconds:g} processor s" if stopped else why
    spent = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak_mb": _peak()}
    if made is None:
        return {"failed": failed, **spent}
    return {**judged(table, made), **spent, "marginals": len(made.answered)}


def own_seed(method: Method, table: GridTable, epsilon: float, seed: int) -> int:
    """The seed of one run's noise: with one for all tables the luck of a draw would count once for each of them."""
    return zlib.crc32(f"{method.name} {table.name} {epsilon!r} {seed}".encode())


def judged(table: GridTable, made: Made) -> dict[str, Any]:
    real = CodedTable(made.table.domain, table.coded.columns)
    return {"rows": made.table.rows, **asdict(errors(table.name, real, made.table, made.answered))}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TooLong where the work takes more processor time; only the main thread of a process can be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        # An exception is lost where it is raised in a callback of the garbage collector: the next tick raises it.
        if frame is None or all(frame.f_code is not getattr(call, "__code__", None) for call in gc.callbacks):
            raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # first: a tick in here would leave the timer running
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _forget_peak() -> None:
    """From here on the peak of resident memory is counted anew, where Linux lets a process say so."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """The peak of resident memory in megabytes, of the whole process with its libraries."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                return round(int(line.split()[1]) / 1024)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
