"""What a process costs together with those that it has started: wall time, processor time, memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
#: Seconds between two looks at the memory.
EVERY = 0.25


def family(root: int) -> list[int]:
    """A process and all that it has started, directly or not (as /proc knows them)."""
    numbers = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    parents = of_living(numbers, lambda pid: int(fields(pid)[1]))
    ours, size = {root}, 0
    while len(ours) > size:
        size = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return sorted(ours)


def of_living(pids: Iterable[int], read: Callable[[int], T]) -> dict[int, T]:
    """What `read` finds of each process, without those that have ended meanwhile."""
    found = {}
    for pid in pids:
        try:
            found[pid] = read(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def fields(pid: int) -> list[str]:
    """Of its stat file: state, parent, … (proc(5), from the third field on)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_ticks() -> dict[tuple[int, str], int]:
    """Process and its start → its processor time, of the family's members that live."""
    living = of_living(family(os.getpid()), fields)
    return {(pid, found[19]): sum(map(int, found[11:13])) for pid, found in living.items()}


def memory_bytes() -> dict[str, int]:
    """Resident memory of this process (driver), of Java, and of all others; pages that they share count for each."""
    total = {"driver": 0, "java": 0, "others": 0}
    for pid, (name, found) in of_living(family(os.getpid()), lambda p: (_name(p), fields(p))).items():
        kind = "driver" if pid == os.getpid() else "java" if name == "java" else "others"
        total[kind] += int(found[21]) * PAGE
    return total


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


class Watch:
    """What all processes take between its start and its end; of one that has ended, until the last look.

    Attributes:
        peak_bytes: the most that they held at one of the looks; `peaks` of each kind, as of `memory_bytes`.
        load: of the machine before it.
    """

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.peak_bytes = 0
        self.peaks: dict[str, int] = {}
        self.load = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self.load = os.getloadavg()[0]
        self._began, self._before = time.perf_counter(), cpu_ticks()
        self._ticks = dict(self._before)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()

    def end(self) -> None:
        """The figures, while all processes are still there."""
        self._stop.set()
        self._thread.join()
        self._look()
        self.seconds = time.perf_counter() - self._began
        self.cpu_seconds = (sum(self._ticks.values()) - sum(self._before.values())) / TICKS

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            self._look()

    def _look(self) -> None:
        self._ticks |= cpu_ticks()  # nobody waits for workers of Spark that end: their time is nowhere else
        held = memory_bytes()
        self.peak_bytes = max(self.peak_bytes, sum(held.values()))
        self.peaks = {kind: max(size, self.peaks.get(kind, 0)) for kind, size in held.items()}
