"""What a process costs together with those that it has started: wall time, processor time, memory."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
#: Seconds between two looks at the memory.
EVERY = 0.25


def family() -> list[int]:
    """This process and all that it has started, directly or not (as /proc knows them)."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int(_fields(int(folder.name))[1])
            except OSError:  # it has ended meanwhile
                continue
    ours, size = {os.getpid()}, 0
    while len(ours) > size:
        size = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return sorted(ours)


def _fields(pid: int) -> list[str]:
    """Of its stat file: state, parent, … (proc(5), from the third field on)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_seconds() -> float:
    """Processor time of the family, with that of its members which have ended and were waited for."""
    total = 0
    for pid in family():
        try:
            total += sum(map(int, _fields(pid)[11:15]))
        except OSError:
            continue
    return total / TICKS


def memory_bytes() -> int:
    """Resident memory of the family; pages that its members share count for each of them."""
    total = 0
    for pid in family():
        try:
            total += int(_fields(pid)[21]) * PAGE
        except OSError:
            continue
    return total


class Watch:
    """What happens between its start and its end.

    Attributes:
        seconds: of wall time.
        cpu_seconds: of all processes.
        peak_bytes: the most that they held at one of the looks.
    """

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._began, self._cpu = time.perf_counter(), cpu_seconds()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()

    def end(self) -> None:
        """The figures, while all processes are still there."""
        self.seconds, self.cpu_seconds = time.perf_counter() - self._began, cpu_seconds() - self._cpu
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(EVERY):
            self.peak_bytes = max(self.peak_bytes, memory_bytes())
