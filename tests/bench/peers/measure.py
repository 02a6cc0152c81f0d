"""One measurement: a contestant on a table, in its environment, under limits; then its error by our scorer."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.tvd import distances
from mechanisms.public.schema.table_schema import load_schema
from tests.bench.peers.catalogue import Contestant
from tests.bench.peers.document import Measured
from tests.bench.peers.tables import Table, coded
from tests.bench.processes import PAGE, TICKS, family, fields, of_living

DRIVERS = Path(__file__).parent / "drivers"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Terms:
    """What holds for every contestant; δ is 1/n², and `root` the folder of environments, data and results."""

    epsilon: float
    minutes: float
    gigabytes: float
    root: Path

    @property
    def limits(self) -> Limits:
        return Limits(self.minutes * 60, self.gigabytes * 1024)


def measure(contestant: Contestant, table: Table, repeat: int, terms: Terms) -> Measured:
    """Run once; whatever goes wrong is in the result."""
    empty = Measured(contestant.name, table.name, repeat, terms.epsilon, minutes=terms.minutes)
    empty = replace(empty, gigabytes=terms.gigabytes)
    folder = (terms.root / "work" / f"{contestant.name}-{table.name}").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        command, made = _command(contestant, table, terms, folder)
    except InstallationFailed as error:
        return replace(empty, failed=f"not installed: {error}")
    around = _surroundings(terms.root.resolve() if contestant.warm else folder)
    if contestant.warm and not repeat:
        run_limited(command, terms.limits, log=folder / "log.txt", environment=around)
    spent = run_limited(command, terms.limits, log=folder / "log.txt", environment=around)
    used = {"seconds": spent.seconds, "cpu_seconds": spent.cpu_seconds, "peak_mb": spent.peak_mb}
    ended = replace(empty, **used)
    if spent.stopped:
        return replace(ended, stopped=_stop(spent, terms))
    if spent.code:
        return replace(ended, failed=last_words(folder / "log.txt", spent.code))
    return _judged(ended, contestant, table, made, _answer(folder / "log.txt"))


def _judged(ended: Measured, contestant: Contestant, table: Table, made: Path, answer: dict[str, Any]) -> Measured:
    """With versions and remarks, and the errors of a synthetic table, or the scores that a scorer gave."""
    versions = answer.get("versions") or _our_versions()
    ended = replace(ended, versions=versions, note=answer.get("note", ""))
    if contestant.task == "scoring":
        return replace(ended, values=_scores(made) if contestant.ours else answer["values"])
    real, synthetic = coded(load_schema(table.domain), table.path, made)
    families = distances(real, synthetic).to_json()
    return replace(ended, rows=synthetic.rows, values={k: float(v["mean"]) for k, v in families.items()})


def _our_versions() -> dict[str, str]:
    """Of this project, with its commit where git knows it, and of what it computes with."""
    found = {name: importlib.metadata.version(name) for name in ("dp-synthesis-pipeline", "numba", "numpy")}
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found | ({"commit": done.stdout.strip()} if not done.returncode else {})


def _command(contestant: Contestant, table: Table, terms: Terms, folder: Path) -> tuple[list[str], Path]:
    """The command, and the file that it leaves."""
    real, synthetic, holdout = (str(p.resolve()) for p in table.thirds)
    source, domain = str(table.path.resolve()), str(table.domain.resolve())
    if not contestant.ours:
        output = folder / "synthetic.csv"
        files = {"real": source, "domain": domain, "output": str(output)}
        if contestant.task == "scoring":
            files |= {"real": real, "synthetic": synthetic, "holdout": holdout}
        return driven(contestant, terms.root, folder, epsilon=terms.epsilon, delta=table.delta, files=files), output
    start = [sys.executable, "-m", "pipeline"]
    if contestant.task == "scoring":
        output = folder / "scores.json"
        further = contestant.method.format(holdout=holdout, page=folder / "report.html").split()
        return [*start, "score", f"real={real}", f"synthetic={synthetic}", *further, f"output={output}"], output
    settings = ["data=table", f"data.path={source}", f"data.schema={domain}", "privacy.unit=record"]
    settings += ["privacy.max_records=1", f"privacy.epsilon={terms.epsilon}", f"privacy.delta={table.delta}"]
    settings += [f"selection={contestant.method}", "synthesis=pgm", "evaluation.enabled=false"]
    return [*start, "run", *settings, f"hydra.run.dir={folder / 'run'}"], folder / "run" / "release" / "synthetic.csv"


def driven(peer: Contestant, root: Path, folder: Path, **asked: Any) -> list[str]:
    """The command that runs a peer's driver on a request, which it writes to `folder`; `root`: of the environments."""
    request = folder / "request.json"
    request.write_text(json.dumps({"method": peer.method, **asked}), encoding="utf-8")
    # Not resolved: a link followed to the base interpreter would leave the environment.
    python = environment(peer.environment, root).absolute()
    return [str(python), str(DRIVERS / f"{peer.driver}.py"), str(request)]


def _surroundings(folder: Path) -> dict[str, str]:
    """The environment of a process: ours on the path, and compiled code where only those with the folder find it."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # Bytecode of packages came with pip; ours is kept too, whatever the shell says.
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "compiled")}


def _stop(spent: Spent, terms: Terms) -> str:
    if spent.stopped == "memory":
        return f"stopped at {terms.gigabytes:g} GB after {spent.seconds:,.0f} s"
    return f"stopped after {terms.minutes:g} minutes ({spent.cpu_seconds:,.0f} processor s)"


def _answer(log: Path) -> dict[str, Any]:
    """The JSON line that a driver prints last; empty for ours."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def last_words(log: Path, code: int) -> str:
    lines = [x.strip() for x in log.read_text(encoding="utf-8", errors="replace").splitlines() if x.strip(' ")')]
    return f"exit code {code}: {lines[-1][:300] if lines else 'without a word'}"


def _scores(path: Path) -> dict[str, float]:
    """Our accuracies, 1 − mean TVD, as the peers give them."""
    metrics = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    found = {f"{k}-way": metrics.get(f"anita_{k}way", {}).get("score") for k in (1, 2, 3)}
    return {k: float(v) for k, v in found.items() if v is not None}


REQUIREMENTS = Path(__file__).parent / "requirements"
#: An installation that takes longer is given up.
MINUTES = 30


class InstallationFailed(Exception):
    """An environment could not be built; says why."""


def environment(name: str, root: Path) -> Path:
    """The Python of the peer's environment; built if it is not there or its requirements changed.

    Raises:
        InstallationFailed: with the last thing that pip said.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    folder = root / name
    python, mark = folder / "bin" / "python", folder / "installed.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return python
    if folder.exists():
        shutil.rmtree(folder)
    _run([sys.executable, "-m", "venv", str(folder)], name)
    _run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS / f"{name}.txt")], name)
    mark.write_text(wanted, encoding="utf-8")
    return python


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES * 60, check=False)
    except subprocess.TimeoutExpired as error:
        raise InstallationFailed(f"{name}: not installed within {MINUTES} minutes") from error
    if done.returncode:
        lines = [x for x in (done.stderr or done.stdout).splitlines() if x.strip() and "notice" not in x]
        errors = [x for x in lines if "ERROR" in x] or lines or [f"exit code {done.returncode}"]
        raise InstallationFailed(f"{name}: {errors[-1].strip()}")


@dataclass(frozen=True)
class Limits:
    """Wall seconds, and megabytes of resident memory of all processes together."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Spent:
    """What a command used.

    Attributes:
        cpu_seconds: user and system time of it and all its children.
        peak_mb: resident memory of all its processes together, or of the largest if that was seen between two looks.
        stopped: `time` or `memory` if a limit stopped it, else empty.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    code: int
    stopped: str


def run_limited(
    command: Sequence[str],
    limits: Limits,
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    every: float = 0.25,
) -> Spent:
    """Run a command; all it says goes to `log`. `every` is the time between two looks at it, in seconds."""
    start, peak, stopped = time.monotonic(), 0.0, ""
    clocks: dict[int, float] = {}
    with log.open("w", encoding="utf-8") as said:
        child = subprocess.Popen(
            list(command), stdout=said, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                tree = _tree(child.pid)
                clocks |= {k: cpu for k, (cpu, _) in tree.items()}
                now = sum(mb for _, mb in tree.values())
                peak = max(peak, now)
                if not stopped and (now > limits.megabytes or time.monotonic() - start > limits.seconds):
                    stopped = "memory" if now > limits.megabytes else "time"
                    _kill(child.pid, tree)
                time.sleep(every)
        except BaseException:
            _kill(child.pid, _tree(child.pid))
            child.wait()
            raise
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = max(usage.ru_utime + usage.ru_stime, sum(clocks.values()))
    peak = max(peak, usage.ru_maxrss / 1024)
    return Spent(time.monotonic() - start, cpu, peak, child.returncode, stopped)


def _tree(root: int) -> dict[int, tuple[float, float]]:
    """The processes at and below `root`: processor seconds and resident megabytes of each."""
    living = of_living(family(root), fields).items()
    return {p: ((int(f[11]) + int(f[12])) / TICKS, int(f[21]) * PAGE / 2**20) for p, f in living}


def _kill(root: int, tree: Mapping[int, object]) -> None:
    """End the command's group and whatever of its children left it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(root, signal.SIGKILL)
    for pid in tree:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
