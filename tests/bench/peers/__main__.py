"""Ours and the peers in turn on the same tables; goes on where an earlier call ended; writes a page beside peers."""

import argparse
import datetime
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.peers.catalogue import STAND_IN, Contestant, chosen
from tests.bench.peers.document import Kept, Measured, document, machine, refreshed
from tests.bench.peers.measure import Terms, measure
from tests.bench.peers.tables import Table, tables

#: A contestant whose first run took longer, in wall seconds, is not repeated.
FAST = 300.0


def settings(arguments: list[str]) -> argparse.Namespace:
    form = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    form.add_argument("--peers", default="", help="names or parts of names, by commas; default: all")
    form.add_argument(
        "--tables",
        default="",
        help="adult_codes, acs, demo, by commas; default: both real ones, the slow peers on the first alone",
    )
    form.add_argument("--repeats", type=int, default=3, help="of what takes less than five minutes (default 3)")
    form.add_argument("--epsilon", type=float, default=1.0, help="default 1")
    form.add_argument("--minutes", type=float, default=30.0, help="limit of one run (default 30)")
    form.add_argument("--gigabytes", type=float, default=20.0, help="limit of one run (default 20)")
    form.add_argument(
        "--total", type=float, default=60.0, help="minutes of this call (default 60); call again for the rest"
    )
    form.add_argument(
        "--part", action="store_true", help="leave the sections of the page as they are that this call has nothing for"
    )
    form.add_argument("--fresh", action="store_true", help="measure everything anew")
    form.add_argument("--root", type=Path, default=Path("build/peers"), help="environments, data, results")
    form.add_argument("--output", type=Path, default=Path("docs/benchmarks/peers.md"))
    given = form.parse_args(arguments)
    for name in ("repeats", "epsilon", "minutes", "gigabytes", "total"):
        if getattr(given, name) <= 0:
            form.error(f"--{name}: must be positive, got {getattr(given, name)}")
    return given


def rounds(
    contestants: list[Contestant], found: list[Table], repeats: int, *, anywhere: bool = False
) -> Iterator[tuple[Contestant, Table, int]]:
    """Round by round everyone in turn; those that are slow by nature at the end, once.

    `anywhere`: also on tables that a contestant does not run on by default, for want of time.
    """
    for once, times in ((False, repeats), (True, 1)):
        for repeat in range(times):
            for table in found:
                for c in contestants:
                    if c.once == once and (anywhere or table.name in (*c.tables, STAND_IN)):
                        yield c, table, repeat


def wanted_again(earlier: Measured | None, terms: Terms) -> bool:
    """Whether to run: there is no result, it failed, or a smaller limit stopped it."""
    if earlier is None or earlier.failed:
        return True
    return bool(earlier.stopped) and (earlier.minutes, earlier.gigabytes) < (terms.minutes, terms.gigabytes)


def needed(first: Measured | None, terms: Terms, total: float) -> float:
    """Seconds that a run may take: half as much again as its first, or, where that is unknown, its whole limit."""
    if first is not None and first.good:
        return first.seconds * 1.5
    return min(terms.minutes * 60, total * 30)


def main(arguments: list[str]) -> int:
    given = settings(arguments)
    start, about = time.monotonic(), machine()
    terms = Terms(given.epsilon, given.minutes, given.gigabytes, given.root)
    try:
        contestants = chosen([w for w in given.peers.split(",") if w])
        found = tables([w for w in given.tables.split(",") if w], given.root / "data")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    given.root.chmod(0o700)  # copies of the tables
    kept, left = Kept(given.root / "results.json", fresh=given.fresh), 0
    both = bool(given.peers and given.tables)
    for c, table, repeat in rounds(contestants, found, given.repeats, anywhere=both):
        if not wanted_again(kept.find(c.name, table.name, repeat, given.epsilon), terms):
            continue
        first = kept.find(c.name, table.name, 0, given.epsilon)
        if repeat and first is not None and (not first.good or first.seconds > FAST):
            continue
        if time.monotonic() - start + needed(first, terms, given.total) > given.total * 60:
            left += 1
            continue
        done = measure(c, table, repeat, terms)
        kept.add(done)
        print(_line(done), file=sys.stderr, flush=True)
    limits = f"--minutes {given.minutes:g} --gigabytes {given.gigabytes:g} --epsilon {given.epsilon:g}"
    command = f"python -m tests.bench.peers {limits}"
    said = {"epsilon": given.epsilon, "minutes": given.minutes, "gigabytes": given.gigabytes, "machine": about}
    said |= {"command": command, "date": datetime.date.today().isoformat()}
    sizes = {t.name: (t.rows, t.columns) for t in found}
    page = document(kept, sizes, said)
    if given.part and given.output.is_file():
        page = refreshed(given.output.read_text(encoding="utf-8"), page)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(page, encoding="utf-8")
    print(f"written: {given.output}" + (f"; {left} runs are left: call again to go on" if left else ""))
    return 0


def _line(m: Measured) -> str:
    errors = ", ".join(f"{k} {v:.4f}" for k, v in m.values.items())
    said = m.failed or m.stopped or f"{m.cpu_seconds:,.1f} processor s, {m.peak_mb:,.0f} MB; {errors}"
    return f"{m.contestant} on {m.table}, run {m.repeat + 1}: {said}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
