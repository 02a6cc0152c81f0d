"""Measurements on disk: what was measured once is kept until `--fresh`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measured:
    """One run of one contestant on one table.

    Attributes:
        contestant, table, repeat: what was run, and for the how-manieth time (from 0).
        epsilon: of the run.
        seconds, cpu_seconds, peak_mb: what it used; up to the stop where it was stopped.
        values: 1-way, 2-way, 3-way: errors of a synthetic table, or the scores that a scorer gave.
        rows: of the synthetic table.
        stopped: the limit that stopped it, in words; empty if none did.
        failed: why there is no result; empty if there is one.
        note: what the driver remarked.
        versions: package → version.
        minutes, gigabytes: the limits it ran under.
    """

    contestant: str
    table: str
    repeat: int
    epsilon: float
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    values: dict[str, float] = field(default_factory=dict)
    rows: int = 0
    stopped: str = ""
    failed: str = ""
    note: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    minutes: float = 0.0
    gigabytes: float = 0.0

    @property
    def good(self) -> bool:
        """Whether it came to its end."""
        return not self.stopped and not self.failed


class Kept:
    """The file of results; written whole after each measurement."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path, self.all = path, list[Measured]()
        if path.is_file() and not fresh:
            self.all = [Measured(**row) for row in json.loads(path.read_text(encoding="utf-8"))]

    def add(self, measured: Measured) -> None:
        """Keep a measurement, in place of an older one of the same run."""
        self.all = [m for m in self.all if _key(m) != _key(measured)] + [measured]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([asdict(m) for m in self.all], indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)

    def find(self, contestant: str, table: str, repeat: int, epsilon: float) -> Measured | None:
        """A kept measurement."""
        wanted = (contestant, table, repeat, epsilon)
        return next((m for m in self.all if _key(m) == wanted), None)

    def of(self, contestant: str, table: str, epsilon: float) -> list[Measured]:
        """All kept repeats."""
        return [m for m in self.all if _key(m)[:2] == (contestant, table) and m.epsilon == epsilon]


def _key(m: Measured) -> tuple[Any, ...]:
    return (m.contestant, m.table, m.repeat, m.epsilon)


@dataclass(frozen=True)
class Summary:
    """The repeats of one contestant on one table: medians, and the spans of the errors.

    Attributes:
        runs: how many came to their end.
        cpu, wall, peak: medians of processor and wall seconds and megabytes.
        values: medians of the errors or scores.
        spans: the least and the largest of each value.
    """

    runs: int
    cpu: float
    wall: float
    peak: float
    values: dict[str, float]
    spans: dict[str, tuple[float, float]]


def summary(measured: Iterable[Measured]) -> Summary | None:
    """Medians over the repeats that came to their end; None if none did."""
    good = [m for m in measured if m.good]
    if not good:
        return None
    names = [n for n in good[0].values if all(n in m.values for m in good)]
    series = {n: [m.values[n] for m in good] for n in names}
    return Summary(
        runs=len(good),
        cpu=statistics.median(m.cpu_seconds for m in good),
        wall=statistics.median(m.seconds for m in good),
        peak=statistics.median(m.peak_mb for m in good),
        values={n: statistics.median(v) for n, v in series.items()},
        spans={n: (min(v), max(v)) for n, v in series.items()},
    )
