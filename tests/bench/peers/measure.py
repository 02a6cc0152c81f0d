"""One measurement: a contestant on a table, under limits, in a folder of its own; then its error by our scorer."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.tvd import tvd
from tests.bench.peers.catalogue import Contestant
from tests.bench.peers.environments import InstallationFailed, environment
from tests.bench.peers.limits import Limits, Spent, run_limited
from tests.bench.peers.results import Measured
from tests.bench.peers.tables import Table, coded

DRIVERS = Path(__file__).parent / "drivers"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Terms:
    """What holds for every contestant.

    Attributes:
        epsilon: of every synthesis; δ is 1/n².
        minutes, gigabytes: limits of wall time and resident memory.
        root: the folder of environments, data and results.
    """

    epsilon: float
    minutes: float
    gigabytes: float
    root: Path

    @property
    def limits(self) -> Limits:
        """In seconds and megabytes."""
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
        return replace(ended, failed=_last_words(folder / "log.txt", spent.code))
    return _judged(ended, contestant, table, made, _answer(folder / "log.txt"))


def _judged(ended: Measured, contestant: Contestant, table: Table, made: Path, answer: dict[str, Any]) -> Measured:
    """With versions and remarks, and the errors of a synthetic table, or the scores that a scorer gave."""
    versions = answer.get("versions") or _our_versions()
    ended = replace(ended, versions=versions, note=answer.get("note", ""))
    if contestant.task == "scoring":
        return replace(ended, values=_scores(made) if contestant.ours else answer["values"])
    real, synthetic = coded(table.path, table.domain), coded(made, table.domain)
    families = tvd(real, synthetic)
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
        wanted = {"method": contestant.method, "epsilon": terms.epsilon, "delta": table.delta, "files": files}
        (folder / "request.json").write_text(json.dumps(wanted), encoding="utf-8")
        # Not resolved: a link followed to the base interpreter would leave the environment.
        python = environment(contestant.environment, terms.root).absolute()
        return [str(python), str(DRIVERS / f"{contestant.driver}.py"), str(folder / "request.json")], output
    start = [sys.executable, "-m", "pipeline"]
    if contestant.task == "scoring":
        output = folder / "scores.json"
        further = contestant.method.format(holdout=holdout, page=folder / "report.html").split()
        return [*start, "score", f"real={real}", f"synthetic={synthetic}", *further, f"output={output}"], output
    settings = ["data=table", f"data.path={source}", f"data.schema={domain}", "privacy.unit=record"]
    settings += ["privacy.max_records=1", f"privacy.epsilon={terms.epsilon}", f"privacy.delta={table.delta}"]
    settings += [f"selection={contestant.method}", "synthesis=pgm", "evaluation.enabled=false"]
    return [*start, "run", *settings, f"hydra.run.dir={folder / 'run'}"], folder / "run" / "release" / "synthetic.csv"


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


def _last_words(log: Path, code: int) -> str:
    lines = [x.strip() for x in log.read_text(encoding="utf-8", errors="replace").splitlines() if x.strip(' ")')]
    return f"exit code {code}: {lines[-1][:300] if lines else 'without a word'}"


def _scores(path: Path) -> dict[str, float]:
    """Our accuracies, 1 − mean TVD, as the peers give them."""
    metrics = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    found = {f"{k}-way": metrics.get(f"anita_{k}way", {}).get("score") for k in (1, 2, 3)}
    return {k: float(v) for k, v in found.items() if v is not None}
