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
from tests.audit.catch import Survived, all_caught
from tests.audit.hooks import Broken
from tests.audit.protocol import check_cut_off, check_ledger, check_statements, check_swapped_answers
from tests.audit.replay import Tally, replay
from tests.audit.sampling import RARE, check_law, check_streams, check_tails, laws
from tests.audit.tight import Bound, audits
from tests.audit.totals import Ratios, recomputed

ROOT = Path(__file__).parents[2]
#: Of the whole audit.
PAIRS, PLANS = 1_000, 320
Rows = list[tuple[str, str, str]]
#: What the third column of a section says, where it is not what is required.
HEADS = {"White-box audits": "found / stated: 0.9 to 1", "Known faults, switched on one at a time": "the fault"}


def _replay(folder: Path, part: tuple[int, int]) -> Tally:
    return replay(folder, part=part)


def _totals(folder: Path, part: tuple[int, int]) -> Ratios:
    return recomputed(folder, PLANS // part[1], seed=part[0] + 1)


def _tight(folder: Path, part: tuple[int, int]) -> list[Bound]:
    return [audit().check() for audit in audits(cells=60_000, draws=40_000, runs=2_200)[part[0] :: part[1]]]


def _mutants(folder: Path, part: tuple[int, int]) -> Rows:
    return [(mutant.name, f"caught: {check}", mutant.fault) for mutant, check, _ in all_caught(folder, part)]


def _others(folder: Path, part: tuple[int, int]) -> Rows:
    """The sampler, and what a run does when it is cut off or cheated on."""
    rows = []
    for kind in laws():
        law, tails = check_law(kind, 2_000_000), check_tails(kind, 5_000_000)
        rows.append((f"{kind}: 2 million draws follow the rounded law", f"p = {law:.3f}", f"p above {RARE:g}"))
        rows.append((f"{kind}: parity and last digits of 5 million draws", f"p = {tails:.3f}", f"p above {RARE:g}"))
    rows.append(("streams of events, runs and processes", f"{check_streams()}", "no two alike"))
    rows.append(("runs cut off between charge and draw", f"{check_cut_off(folder)}", "nothing charged or drawn twice"))
    rows.append(("kept answers put in each other's place", f"{check_swapped_answers(folder)}", "each refused"))
    rows.append(("charges that a ledger must refuse", f"{check_ledger(folder)}", "each refused"))
    rows.append(("statements", f"{check_statements(folder)}", "private where it is, and only there"))
    return rows


#: The sections of AUDIT.md: the work, in how many parts.
WORK: dict[str, tuple[Callable[[Path, tuple[int, int]], Any], int]] = {
    "Record and replay": (_replay, 8),
    "Known faults, switched on one at a time": (_mutants, 8),
    "Totals": (_totals, 4),
    "White-box audits": (_tight, 7),
    "Sampler, ledger and statements": (_others, 1),
}


def _alone(work: Callable[[Path, tuple[int, int]], Any], part: tuple[int, int]) -> Any:
    """One part, in a folder of its own."""
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


def joined(title: str, found: list[Any]) -> Rows:
    """The parts of a section as its rows."""
    if isinstance(found[0], Tally | Ratios):
        for part in found[1:]:
            found[0].add(part)
        return replay_rows(found[0]) if isinstance(found[0], Tally) else totals_rows(found[0])
    rows = [row for part in found for row in part]
    if isinstance(rows[0], Bound):
        return [
            (
                f"{b.name} ({b.draws:,} draws)",
                f"{b.measure} ≥ {b.found:.4g} of {b.stated:.4g}",
                f"{b.found / b.stated:.3f}",
            )
            for b in rows
        ]
    return rows


def main(arguments: list[str]) -> int:
    """Run everything and write AUDIT.md; exit code 1 where a claim does not hold."""
    start, failures, audited = time.monotonic(), 0, commit()
    target = Path(arguments[0]) if arguments else ROOT / "AUDIT.md"
    sections: list[tuple[str, Rows]] = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = {t: [pool.submit(_alone, w, (i, n)) for i in range(n)] for t, (w, n) in WORK.items()}
        for title, parts in jobs.items():
            try:
                sections.append((title, joined(title, [p.result() for p in parts])))
            except (Broken, Survived) as error:
                print(f"{title}: {error}", file=sys.stderr)
                failures += 1
            print(f"{title}: after {time.monotonic() - start:.0f} s", file=sys.stderr)
    if failures:
        print(f"{failures} of {len(WORK)} sections do not hold; {target} is left as it was", file=sys.stderr)
        return 1
    target.write_text(page(sections, audited, time.monotonic() - start), encoding="utf-8")
    print(f"written: {target}")
    return 0


def page(sections: list[tuple[str, Rows]], audited: str, seconds: float) -> str:
    """AUDIT.md."""
    lines = [
        "# The privacy claims, audited",
        "",
        "Written by `make audit` (`python -m tests.audit`); what each check does stands in `tests/audit/`.",
        "",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- commit: {audited}",
        f"- time: {seconds:.0f} s on {os.cpu_count()} cores",
        "- result: every check below holds",
    ]
    for title, rows in sections:
        lines += ["", f"## {title}", "", f"| what | found | {HEADS.get(title, 'required')} |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def commit() -> str:
    """The commit that is audited, and whether files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = [line for line in git("status", "--porcelain").splitlines() if not line.endswith("AUDIT.md")]
    return (git("rev-parse", "HEAD") or "unknown") + (" with local changes" if changed else "")
