"""Runs every bench_*.py beside this file and prints one table; writes build/bench.json."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Measure; `names` picks some of the modules (gum, mgd, load)."""
    modules = sorted(p.stem for p in HERE.glob("bench_*.py"))
    rows: list[dict[str, object]] = []
    for module in modules:
        if names and module.removeprefix("bench_") not in names:
            continue
        rows += importlib.import_module(f"tests.bench.{module}").measure()
    table = Table("what", "rows", "columns", "cells", "wall s", "cpu s", "peak MB", "reference", box=None)
    for row in rows:
        table.add_row(*(_shown(row.get(k)) for k in _COLUMNS))
    Console(width=170).print(table)
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    target.write_text(json.dumps({"machine": machine, "figures": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"written: {target}")
    return 0


_COLUMNS = ("name", "rows", "columns", "cells", "seconds", "cpu_seconds", "peak_mb", "reference")


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
