"""Runs every case of bench_*.py beside this file, each in a process of its own, and prints one table."""

import importlib
import json
import multiprocessing
import os
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.clock import one
from tests.bench.tables_apart import write_rows

HERE = Path(__file__).parent
#: Field of a figure → its column, as in docs/benchmarks/data/own.csv.
COLUMNS = {"name": "what", "rows": "rows", "seconds": "wall s", "cpu_seconds": "processor s", "peak_mb": "peak MB"}
COLUMNS |= {"reference": "reference"}


def main(wanted: list[str]) -> int:
    """Measure; `wanted` picks cases by part of their name. The real tables are looked for in $DATA_DIR."""
    rows = []
    context = multiprocessing.get_context("spawn")
    for module in sorted(p.stem for p in HERE.glob("bench_*.py")):
        for case in importlib.import_module(f"tests.bench.{module}").CASES:
            if wanted and not any(w in f"{module}.{case}" for w in wanted):
                continue
            with context.Pool(1) as pool:
                row = pool.apply(one, (module, case))
            print(f"{module}.{case}: " + ("its data is not in $DATA_DIR" if row is None else "done"), file=sys.stderr)
            rows += [] if row is None else [row]
    lines = [[_shown(row.get(k)) for k in COLUMNS] for row in rows]
    table = Table(*COLUMNS.values(), box=None)
    for line in lines:
        table.add_row(*line)
    Console(width=190).print(table)
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    target.write_text(json.dumps({"machine": machine, "figures": rows}, indent=1) + "\n", encoding="utf-8")
    write_rows(target.with_suffix(".csv"), [[*COLUMNS.values()], *lines])
    print(f"written: {target} and {target.with_suffix('.csv')}")
    return 0


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
