"""The console command `dp-synthesis-pipeline`, equal to `python -m pipeline`; it lies outside of what it checks."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> int:
    """Run the command line if all four packages lie beside this file and are ours; returns 1 if not."""
    home = Path(__file__).resolve().parent
    check = runpy.run_path(str(home / "pipeline" / "packages.py"))
    problem = check["stranger"](check["OURS"], home)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    from pipeline.cli import end_with

    return end_with(sys.argv[1:])
