"""The page beside peers from the kept measurements: medians, ratios, and who wins in plain words."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.grid.page import table as markdown
from tests.bench.peers.catalogue import OURS, PEERS, Contestant

ERRORS = ("1-way", "2-way", "3-way")
#: Errors and times that differ by less than this share are called equal; errors also where the repeats overlap. Times
#: have no such rule: all take turns, and work beside them would make every span wide enough to hide a winner.
CLOSE, CLOSE_TIME = 0.02, 0.1


def machine() -> dict[str, Any]:
    """What the figures were measured on; the load says whether others worked beside."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [x.partition(":")[2].strip() for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0] if names else cpu
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    about = {"processor": f"{os.cpu_count()} cores, {cpu}", "memory": f"{memory:.0f} GB", "system": platform.platform()}
    return about | {"python": platform.python_version(), "load": f"{os.getloadavg()[0]:.1f}"}


def verdict(ours: Summary | None, peer: Summary | None, title: str, *, scoring: bool = False) -> str:
    """Who wins in error and in processor time, in a sentence; a peer that wins is in bold type."""
    if peer is None:
        return f"{title}: came to no result."
    if ours is None:
        return f"**{title} has a result, ours has none.**"
    said = []
    for name in () if scoring else ERRORS:
        if name in ours.values and name in peer.values:
            medians = (ours.values[name], peer.values[name])
            said.append(_compared(f"{name} error", "{:.4f}", medians, (ours.spans[name], peer.spans[name])))
    said.append(_compared("processor time", "{:,.1f} s", (ours.cpu, peer.cpu), None))
    single = " (one run: small differences mean nothing)" if min(ours.runs, peer.runs) < 2 else ""
    return f"{title}: {'; '.join(said)}{single}."


def _compared(
    what: str, form: str, medians: tuple[float, float], spans: tuple[tuple[float, float], tuple[float, float]] | None
) -> str:
    """One figure, ours and the peer's, less is better; with spans of an error, without of a time."""
    ours, peer = medians
    close = (CLOSE_TIME if spans is None else CLOSE) * max(ours, peer)
    overlap = spans is not None and spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]
    both = f"({form.format(ours)}, the peer {form.format(peer)})"
    if overlap or abs(ours - peer) <= close:
        return f"equal in {what} {both}"
    less, more = sorted((ours, peer))
    times = f", by a factor of {more / less:.3g}" if less > 0 else ""
    return f"**the peer wins in {what}{times} {both}**" if peer < ours else f"ours wins in {what}{times} {both}"


def document(kept: Kept, sizes: dict[str, tuple[int, int]], terms: dict[str, Any]) -> str:
    """The page.

    Args:
        sizes: rows and columns of each table.
        terms: settings and machine.
    """
    epsilon = terms["epsilon"]
    parts = [_head(terms)]
    for name, (rows, columns) in sizes.items():
        made = _section(kept, name, epsilon, "synthesis")
        if made:
            parts.append(f"## Synthetic tables from `{name}`: {rows:,} rows × {columns} columns\n\n{made}")
        scored = _scoring(kept, name, epsilon)
        if scored:
            size = f"{rows // 3:,} rows × {columns} columns each"
            parts.append(f"## Scoring thirds of `{name}`: {size}\n\n{scored}")
    return "\n\n".join(p for p in [*parts, _versions(kept)] if p) + "\n"


def refreshed(old: str, new: str) -> str:
    """A page with the sections of a newer one in the place of its own; those that the newer one lacks stay."""
    was, now = _sections(old), _sections(new)
    if "Versions" in was and "Versions" in now:
        newer = {line.partition(": ")[0] for line in now["Versions"].splitlines()}
        kept = [line for line in was["Versions"].splitlines() if line.partition(": ")[0] not in newer]
        now["Versions"] = "\n\n" + "\n".join(sorted(filter(None, [*kept, *now["Versions"].splitlines()])))
    both = was | now
    order = ["", *(name for name in now if name not in was), *(name for name in was if name)]
    return "\n\n## ".join((name + both[name]).strip() for name in order) + "\n"


def _sections(page: str) -> dict[str, str]:
    """Heading → what stands below it; the head of the page has none."""
    head, *rest = page.split("\n## ")
    parts = [(text.partition("\n")[0], "\n" + text.partition("\n")[2]) for text in rest]
    return {"": head} | dict(parts)


def _head(terms: dict[str, Any]) -> str:
    about = "\n".join(f"- {name}: {terms['machine'][name]}" for name in ("processor", "memory", "system", "python"))
    return f"""# Beside peers

Written by `{terms["command"]}` (`make bench` runs it after our own cases), in one call
or several, the last on {terms["date"]}; not edited by hand.

{about}
- load before the last call: {terms["machine"]["load"]} (0 is an idle machine; wall times beside other work mean little)

Every contestant gets the same file of codes, ε = {terms["epsilon"]:g}, δ = 1/n², record level, add/remove
neighbours, and runs in a process of its own, in turn, round by round; a peer in its own virtual environment from PyPI
(`tests/bench/peers/requirements`). Figures are medians over the runs. The comparable figure is processor time (user
and system, with all child processes). It includes start, imports and compilation, for everyone: ours starts each run
without compiled code on disk, though it keeps it in normal use (of scoring both are shown). Memory is resident, of all
processes together. Errors are mean total variation distances of all 1-way, all 2-way and 100 fixed 3-way marginals, by
our scorer, outside the measured time. A ratio is ours divided by the peer's: below 1 ours is better. A run is stopped
after {terms["minutes"]:g} minutes or beyond {terms["gigabytes"]:g} GB. Accounting is each library's own: ours is exact
for Gaussian noise, the others use zCDP. The tables are public; errors and scores are not private figures."""


def _scoring(kept: Kept, table: str, epsilon: float) -> str:
    text = _section(kept, table, epsilon, "scoring")
    note = (
        "The first third stands for the real table, the second for the synthetic one, the third is the holdout. "
        "Only the reports of mostlyai-qa and ours use it. The columns 1-way to 3-way are accuracies (1 − TVD) as each "
        "tool defines and bins them; they need not agree. Ours reads the files without a schema, and finds compiled "
        "code on disk but for the first time after installing."
    )
    return f"{note}\n\n{text}" if text else ""


def _section(kept: Kept, table: str, epsilon: float, task: str) -> str:
    ours = {c.name: summary(kept.of(c.name, table, epsilon)) for c in OURS}
    head = ["", "runs", *ERRORS, "processor s", "wall s", "peak MB"]
    ratios = ["processor ratio"] if task == "scoring" else ["2-way ratio", "3-way ratio", "processor ratio"]
    lines, words, notes = [], [], []
    for c in [c for c in (*OURS, *PEERS) if c.task == task and table in _at(c, kept, epsilon)]:
        all_of = kept.of(c.name, table, epsilon)
        if not all_of:
            words.append(f"- {c.title}: not measured yet.")
            continue
        found, rival = summary(all_of), ours.get(c.rival)
        lines.append(_row(c, found, all_of, rival, len(ratios)))
        notes += _remarks(c, all_of)
        if not c.ours:
            words.append(f"- {verdict(rival, found, c.title, scoring=task == 'scoring')}")
    if not lines:
        return ""
    form = markdown([*head, *ratios], lines)
    return "\n".join([form, "", *words, *([""] if notes else []), *notes])


def _at(c: Contestant, kept: Kept, epsilon: float) -> list[str]:
    """The tables of a contestant: its own, and any on which it was measured (the stand-in)."""
    return [*c.tables, *(m.table for m in kept.all if m.contestant == c.name and m.epsilon == epsilon)]


def _row(c: Contestant, found: Summary | None, all_of: list[Measured], rival: Summary | None, ratios: int) -> list[str]:
    if found is None:
        why = all_of[-1].stopped or "failed (below)"
        return [c.title, "0", why, *[""] * (len(ERRORS) + 2 + ratios)]
    cells = [c.title, str(found.runs), *(f"{found.values[n]:.4f}" if n in found.values else "" for n in ERRORS)]
    cells += [f"{found.cpu:,.1f}", f"{found.wall:,.1f}", f"{found.peak:,.0f}"]
    compared: list[float | None] = [None] * ratios
    if not c.ours and rival is not None:
        pairs = [(rival.values.get(n), found.values.get(n)) for n in ERRORS[1:]] if ratios > 1 else []
        pairs.append((rival.cpu, found.cpu))
        compared = [a / b if a is not None and b else None for a, b in pairs]
    return [*cells, *("" if r is None else f"{r:.2f}" for r in compared)]


def _remarks(c: Contestant, all_of: Iterable[Measured]) -> list[str]:
    """What failed, was stopped, or was remarked; each once."""
    failed = [f"- {c.title}: {m.failed}" for m in all_of if m.failed]
    stopped = [f"- {c.title}: {m.stopped}; peak {m.peak_mb:,.0f} MB" for m in all_of if m.stopped]
    noted = [f"- {c.title}: {m.note}" for m in all_of if m.note and m.good]
    return list(dict.fromkeys([*failed, *stopped, *noted]))


def _versions(kept: Kept) -> str:
    titles = {c.name: c.title for c in (*OURS, *PEERS)}
    lines = {
        f"- {titles[m.contestant]}: " + ", ".join(f"{k} {v}" for k, v in sorted(m.versions.items()))
        for m in kept.all
        if m.versions and m.contestant in titles
    }
    return "## Versions\n\n" + "\n".join(sorted(lines)) if lines else ""


@dataclass(frozen=True)
class Measured:
    """One run of one contestant on one table.

    Attributes:
        values: 1-way, 2-way, 3-way: errors of a synthetic table, or the scores that a scorer gave.
        stopped, failed: in words the limit that stopped it, and why there is no result.
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
        wanted = (contestant, table, repeat, epsilon)
        return next((m for m in self.all if _key(m) == wanted), None)

    def of(self, contestant: str, table: str, epsilon: float) -> list[Measured]:
        return [m for m in self.all if _key(m)[:2] == (contestant, table) and m.epsilon == epsilon]


def _key(m: Measured) -> tuple[Any, ...]:
    return (m.contestant, m.table, m.repeat, m.epsilon)


@dataclass(frozen=True)
class Summary:
    """Of the repeats that came to their end the medians (seconds, megabytes, errors), and the spans of the errors."""

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
