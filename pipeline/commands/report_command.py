"""`report`: the report of a run, or of sweeps, made again from their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.folders import RunFolder
from pipeline.report.run_page import render_again
from pipeline.sweeps.sweep_page import render


def run_report(folder: RunFolder, output: Path | None) -> int:
    """The report of one run."""
    print(f"report (NOT private): {render_again(folder, output)}")
    return 0


def sweep_report(folders: Sequence[Path], output: Path | None, metric: str | None) -> int:
    """The report of one or several sweeps."""
    print(f"report (NOT private): {render(folders, output, metric=metric)}")
    return 0
