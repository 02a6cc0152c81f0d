"""`rehearse`: a whole run on rows that are made from the schema alone."""

from __future__ import annotations

from pathlib import Path

from pipeline.look.rehearse import ROWS, rehearse
from pipeline.report.last_lines import rehearsed
from pipeline.settings.config import Config


def rehearse_once(config: Config, root: Path) -> int:
    """Rehearse, and print where to look."""
    rows = config.plan.rows or ROWS
    print(f"a rehearsal on {rows:,} made-up rows: it tries the path, and says nothing about quality", flush=True)
    print(rehearsed(rehearse(config, root)))
    return 0
