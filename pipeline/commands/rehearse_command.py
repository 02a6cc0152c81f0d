"""`rehearse`: a whole run on rows that are made from the schema alone."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.look.rehearse import ROWS, rehearse
from pipeline.report.last_lines import rehearsed, run_facts
from pipeline.settings.config import Config


def rehearse_once(config: Config, root: Path) -> int:
    """Rehearse, and print where to look."""
    rows, in_json = config.plan.rows or ROWS, config.format == "json"
    if not (in_json or config.quiet):
        print(f"a rehearsal on {rows:,} made-up rows: it tries the path, and says nothing about quality", flush=True)
    done = rehearse(config, root)
    if in_json or not config.quiet:
        print(json.dumps(run_facts(done, scored=True)) if in_json else rehearsed(done))
    return 0
