"""All checks, on two processes, and the table that they leave."""

import datetime
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.audit import choosing, protocol
from tests.audit.beside import check_beside
from tests.audit.cases import CHOICES, check_registry, registered, write_public
from tests.audit.catch import all_caught
from tests.audit.hooks import Broken
from tests.audit.losses import FAMILIES, Losses, check_losses
from tests.audit.mutants import MUTANTS
from tests.audit.on_spark import check_spark, why_not
from tests.audit.rates import Rates, check_rates, rates
from tests.audit.replay import Tally, check_noise, replay
from tests.audit.sampling import RARE, check_law, check_streams, check_tails, laws
from tests.audit.tight import Bound, audits
from tests.audit.totals import Ratios, recomputed
from tests.audit.worlds import quick_disk

ROOT = Path(__file__).parents[2]
#: Of the whole audit.
PAIRS, PLANS, RUNS, FAMILY_CASES = 1_000, 320, 24, 30
Rows = list[tuple[str, str, str]]
#: What the third column of a section says, where it is not what is required.
HEADS = {"White-box audits": "found / stated: 0.9 to 1", "Known faults, switched on one at a time": "the fault"}


def _tight(folder: Path, part: tuple[int, int]) -> list[Bound]:
    found = [audit().check() for audit in audits(cells=60_000, draws=20_000, runs=2_200)[part[0] :: part[1]]]
    return found + [bound.check() for bound in choosing.selection_bounds()] * (part[0] == 0)


def _mutants(folder: Path, part: tuple[int, int]) -> Rows:
    return [(mutant.name, f"caught: {check}", mutant.fault) for mutant, check, _ in all_caught(folder, part)]


def _beside(folder: Path, part: tuple[int, int]) -> Rows:
    """What stands beside one run; and Spark, where it is installed."""
    if part[0]:
        runs = check_spark(folder)
        found = f"{runs} runs" if runs else f"left out: {why_not()}"
        return [("tasks of Spark that are lost, run again and run twice", found, "the embedded engine's answers")]
    return check_beside(folder)


def _others(folder: Path, part: tuple[int, int]) -> Rows:
    """The sampler, and what a run does when it is cut off or cheated on."""
    rows = []
    for kind in laws():
        law, tails = check_law(kind, 2_000_000), check_tails(kind, 5_000_000)
        rows.append((f"{kind}: 2 million draws follow the rounded law", f"p = {law:.3f}", f"p above {RARE:g}"))
        rows.append((f"{kind}: parity and last digits of 5 million draws", f"p = {tails:.3f}", f"p above {RARE:g}"))
    went, stopped = protocol.check_refusals(folder, 40)
    refusals = "tables run without and with a stop at lost values (data.max_unplaced=0.2)"
    hidden = "number of the try that is released, and distances at the threshold"
    counted = [
        ("sequences of tries of which one is taken", choosing.check_pick(6), "the first accepted, or the best"),
        ("random private tries, chosen from exactly", choosing.check_random_tries(2_000), "none above its claim"),
        (hidden, choosing.check_hidden(folder), "it shows nowhere; nothing else decides"),
        ("runs of several tries", choosing.check_booked(folder), "booked and said in full"),
        ("streams of events, runs and processes", check_streams(), "no two alike"),
        ("runs cut off between charge and draw", protocol.check_cut_off(folder), "nothing charged or drawn twice"),
        ("kept answers put in each other's place", protocol.check_swapped_answers(folder), "each refused"),
        ("rows added to tables of which rows are set aside", protocol.check_aside(), "no other row's coin changes"),
        ("charges that a ledger must refuse", protocol.check_ledger(folder), "each refused"),
        ("noisy counts of units that speak for another C", protocol.check_bound(folder), "C follows from them alone"),
        ("statements", protocol.check_statements(folder), "private where it is, and only there"),
    ]
    stops = f"p = {choosing.check_stops(100_000):.3f}"
    return [
        *rows,
        ("the coins that stop tries are geometric", stops, f"p above {RARE:g}"),
        *((what, f"{count:,}", holds) for what, count, holds in counted),
        (refusals, f"{went} equal, {stopped} refused", "one sentence differs, or nothing was charged"),
    ]


#: The sections of AUDIT.md: the work, in how many parts.
WORK: dict[str, tuple[Callable[[Path, tuple[int, int]], Any], int]] = {
    "Record and replay": (lambda folder, part: replay(folder, part=part), 15),
    "Known faults, switched on one at a time": (_mutants, 12),
    "Totals": (lambda folder, part: recomputed(folder, PLANS // part[1], seed=part[0] + 1), 4),
    "White-box audits": (_tight, 7),
    "Whole runs, recomputed from the rows": (lambda folder, part: check_losses(folder, FAMILY_CASES, part=part), 3),
    "Published errors, by simulation": (lambda folder, part: rates(folder, RUNS, part=part), 6),
    "Sampler, tries, ledger and statements": (_others, 1),
    "Budgets, sweeps, ids, plugins, drafts and Spark": (_beside, 2),
}
#: Processes at a time.
PROCESSES = 2


def _alone(title: str, part: tuple[int, int]) -> tuple[Any, float]:
    """One part of a section, in a folder of its own; and its processor time."""
    with tempfile.TemporaryDirectory(dir=quick_disk()) as folder:
        write_public(Path(folder))
        start = time.process_time()
        return WORK[title][0](Path(folder), part), time.process_time() - start


def replay_rows(tally: Tally) -> Rows:
    if tally.pairs < PAIRS:
        raise Broken(f"only {tally.pairs} pairs of neighbours")
    check_registry(tally.ran)
    names = "; ".join(f"{k} {len(v)}" for k, v in registered().items())
    largest = ", ".join(f"{kind} {moved:.6f}" for kind, moved in sorted(tally.largest.items()))
    noise = sum(map(len, tally.noise.values()))
    return [
        ("neighbouring pairs, replayed with frozen answers", f"{tally.pairs:,} of {tally.cases:,} cases", "all equal"),
        ("answers and choices compared", f"{tally.answers:,} and {tally.choices:,}", "none above its charge"),
        ("pairs whose release is accepted by noisy distances", f"{tally.accepts:,}", "all equal"),
        ("largest true difference / charged sensitivity, by what left", largest, "at most 1"),
        (f"noise of {noise:,} answers against its law", f"p = {check_noise(tally):.3f}", f"p above {RARE:g}"),
        ("registered, and run", f"{names}; {len(CHOICES)} cases of selections", "none left out"),
        ("runs refused, on all neighbours alike", f"{tally.refused}", ""),
    ]


def totals_rows(ratios: Ratios) -> Rows:
    rows = [("plans and compositions recomputed", f"{ratios.plans} and {ratios.compositions}", "none above its claim")]
    for key, found in sorted(ratios.exact.items()):
        rows.append((f"exact ε / claimed ε, {key}", f"{min(found):.4f} to {max(found):.4f}", "at most 1.002"))
    return rows


def rates_rows(found: Rates) -> Rows:
    *kinds, (what, runs, error) = check_rates(found)
    rows = [(f"{kind} ({times} runs)", f"{held:.1%}", "95 %, but for chance") for kind, times, held in kinds]
    return [*rows, (f"{what} ({runs} runs)", f"{error:.2f}", "at most 1, but for chance")]


def losses_rows(found: Losses) -> Rows:
    who = {1: "one unit", **{k: f"{k} units with equal records" for k in FAMILIES[1:]}}
    rows = [(f"pairs of tables that differ by {', '.join(who.values())}", f"{found.pairs}", "")]
    for units, share in sorted(found.largest.items()):
        rows.append((f"largest loss / stated loss, {who[units]}", f"{share:.6f}", "at most 1"))
    what = "adaptive grids, their matrices written down anew from the released answers"
    return [*rows, (what, f"{found.grids}", "answers, movement and charge as in the run")]


def joined(title: str, found: list[Any]) -> Rows:
    said: dict[type, Callable[[Any], Rows]] = {Tally: replay_rows, Ratios: totals_rows}
    said |= {Rates: rates_rows, Losses: losses_rows}
    if type(found[0]) in said:
        for part in found[1:]:
            found[0].add(part)
        return said[type(found[0])](found[0])
    rows = [row for part in found for row in part]
    if isinstance(rows[0], Bound):
        names = [f"{b.name} ({b.draws:,} draws)" if b.draws else b.name for b in rows]
        told = [(f"{b.measure} ≥ {b.found:.4g} of {b.stated:.4g}", f"{b.found / b.stated:.3f}") for b in rows]
        return [(name, *words) for name, words in zip(names, told, strict=True)]
    return rows


def main(arguments: list[str]) -> int:
    """Run everything and write AUDIT.md; exit code 1 where a claim does not hold."""
    start, audited = time.monotonic(), commit()
    target = Path(arguments[0]) if arguments else ROOT / "AUDIT.md"
    sections, failures, spent = _all_sections(start)
    if failures:
        print(f"{failures} of {len(WORK)} sections do not hold; {target} is left as it was", file=sys.stderr)
        return 1
    target.write_text(page(sections, audited, time.monotonic() - start, spent), encoding="utf-8")
    print(f"written: {target}")
    return 0


def _all_sections(start: float) -> tuple[list[tuple[str, Rows]], int, float]:
    """The sections that hold, how many do not, and the processor time; says on stderr how far it is."""
    found: dict[str, list[Any]] = {title: [None] * parts for title, (_, parts) in WORK.items()}
    broken, spent, done = set[str](), 0.0, 0
    every = sum(parts for _, parts in WORK.values())
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = {pool.submit(_alone, t, (i, n)): (t, i) for t, (_, n) in WORK.items() for i in range(n)}
        for job in as_completed(jobs):
            (title, part), done = jobs[job], done + 1
            try:
                found[title][part], seconds = job.result()
            except Exception as error:  # also the audit's own mistakes: the other parts go on and are told
                broken.add(title)
                print(f"{title}, part {part + 1}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            spent += seconds
            where = f"[{done:2}/{every}] {title}, part {part + 1} of {len(found[title])}"
            print(f"{where}: {seconds:.0f} s; {time.monotonic() - start:.0f} s in all", file=sys.stderr, flush=True)
    sections: list[tuple[str, Rows]] = []
    for title in [t for t in WORK if t not in broken]:
        try:
            sections.append((title, joined(title, found[title])))
        except Broken as error:
            broken.add(title)
            print(f"{title}: {error}", file=sys.stderr, flush=True)
    return sections, len(broken), spent


def page(sections: list[tuple[str, Rows]], audited: str, seconds: float, spent: float) -> str:
    lines = [
        "# The privacy claims, audited",
        "",
        "Written by `make audit` (`python -m tests.audit`); what each check does stands in `tests/audit/`.",
        "",
        f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- commit: {audited}",
        f"- time: {seconds:.0f} s on {PROCESSES} processes, {spent:.0f} s of processor time",
        f"- result: every check below holds; {len(MUTANTS)} of {len(MUTANTS)} known faults are caught",
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
