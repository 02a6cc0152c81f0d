"""One command under watch: processor time and memory of all its processes; stopped beyond a limit. For Linux."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """Wall seconds, and megabytes of resident memory of all processes together."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Spent:
    """What a command used.

    Attributes:
        seconds: wall time.
        cpu_seconds: user and system time of it and all its children.
        peak_mb: resident memory of all its processes together, or of the largest if that was seen between two looks.
        code: its exit code; negative for a signal.
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
    found: dict[int, tuple[int, float, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended between the listing and the look
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / TICK
            found[int(path.parent.name)] = (int(fields[1]), used, int(fields[21]) * PAGE / 2**20)
    inside = {root} & set(found)
    while True:
        below = {p for p, (parent, _, _) in found.items() if parent in inside} - inside
        if not below:
            return {p: found[p][1:] for p in inside}
        inside |= below


def _kill(root: int, tree: Mapping[int, object]) -> None:
    """End the command's group and whatever of its children left it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(root, signal.SIGKILL)
    for pid in tree:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
