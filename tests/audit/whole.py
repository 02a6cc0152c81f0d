"""All checks, on as many processes as there are cores, and the table that they leave."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.audit.cases import CHOICES, check_registry, registered, write_public
from tests.audit.hooks import Broken
from tests.audit.replay import Tally, replay
from tests.audit.totals import Ratios, recomputed

ROOT = Path(__file__).parents[2]
#: Of the whole audit.
PAIRS, PLANS = 1_000, 320
Rows = list[tuple[str, str, str]]


def _replay(folder: Path, part: tuple[int, int]) -> Tally:
    return replay(folder, part=part)


def _totals(folder: Path, part: tuple[int, int]) -> Ratios:
    return recomputed(folder, PLANS // part[1], seed=part[0] + 1)


def _in_parts(work: Callable[[Path, tuple[int, int]], Any], parts: int) -> Any:
    """The sum of what the parts found, each in a process and a folder of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        several = [pool.submit(_alone, work, (i, parts)) for i in range(parts)]
        whole, *rest = [job.result() for job in several]
    for found in rest:
        whole.add(found)
    return whole


def _alone(work: Callable[[Path, tuple[int, int]], Any], part: tuple[int, int]) -> Any:
    with tempfile.TemporaryDirectory(dir=quick_disk()) as folder:
        write_public(Path(folder))
        return work(Path(folder), part)


def quick_disk() -> str | None:
    """A place in memory for thousands of small runs, where there is one."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None


def replay_rows(tally: Tally) -> Rows:
    """What the replays say."""
    if tally.pairs < PAIRS:
        raise Broken(f"only {tally.pairs} pairs of neighbours")
    check_registry(tally.ran)
    names = "; ".join(f"{len(v)} {k}s" for k, v in registered().items())
    return [
        ("neighbouring pairs, replayed with frozen answers", f"{tally.pairs:,} of {tally.cases:,} cases", "all equal"),
        ("answers and choices compared", f"{tally.answers:,} and {tally.choices:,}", "none above its charge"),
        ("largest true difference / charged sensitivity", f"{tally.largest:.6f}", "at most 1"),
        ("registered, and run", f"{names}; {len(CHOICES)} cases of selections", "none left out"),
        ("runs refused, on all neighbours alike", f"{tally.refused}", ""),
    ]


def totals_rows(ratios: Ratios) -> Rows:
    """What the recomputed totals say."""
    rows = [("plans and compositions recomputed", f"{ratios.plans} and {ratios.compositions}", "none above its claim")]
    for key, found in sorted(ratios.exact.items()):
        rows.append((f"exact ε / claimed ε, {key}", f"{min(found):.4f} to {max(found):.4f}", "at most 1.002"))
    return rows


def main(arguments: list[str]) -> int:
    """Run everything and write AUDIT.md; exit code 1 where a claim does not hold."""
    start = time.monotonic()
    target = Path(arguments[0]) if arguments else ROOT / "AUDIT.md"
    sections: list[tuple[str, Rows]] = []
    steps: list[tuple[str, Callable[[], Rows]]] = [
        ("Record and replay", lambda: replay_rows(_in_parts(_replay, 8))),
        ("Totals", lambda: totals_rows(_in_parts(_totals, 8))),
    ]
    for title, work in steps:
        try:
            sections.append((title, work()))
        except Broken as error:
            print(f"{title}: {error}", file=sys.stderr)
            return 1
        print(f"{title}: done after {time.monotonic() - start:.0f} s", file=sys.stderr)
    target.write_text(page(sections, time.monotonic() - start), encoding="utf-8")
    print(f"written: {target}")
    return 0


def page(sections: list[tuple[str, Rows]], seconds: float) -> str:
    """AUDIT.md."""
    lines = [
        "# The privacy claims, audited",
        "",
        "Written by `make audit` (`python -m tests.audit`); what each check does stands in `tests/audit/`.",
        "",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- commit: {commit()}",
        f"- time: {seconds:.0f} s on {os.cpu_count()} cores",
        "- result: every check below holds",
    ]
    for title, rows in sections:
        lines += ["", f"## {title}", "", "| what | found | required |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def commit() -> str:
    """The commit that is audited, and whether files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = [line for line in git("status", "--porcelain").splitlines() if not line.endswith("AUDIT.md")]
    return (git("rev-parse", "HEAD") or "unknown") + (" with local changes" if changed else "")
