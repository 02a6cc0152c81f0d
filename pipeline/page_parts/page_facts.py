"""What stands around the sections of a report: the tables that it is about, and what was not computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.pages.page import Table

#: A setting that a reason asks for.
ASKED = re.compile(r"(?:evaluation\.\w+|holdout)=\w+")


def files_table(files: Mapping[str, Any] | None) -> Table | None:
    """A line per table: its file, rows and columns."""
    if not files:
        return None
    rows = [(each["table"], each["file"], each["rows"], each["columns"]) for each in files["tables"]]
    return Table(("table", "file", "rows", "columns"), rows)


def subtitle(files: Mapping[str, Any] | None, what: str) -> str:
    """When the scores were computed, over which schema."""
    return what if not files else f"{what}, scored {files['scored']}; schema: {files['schema']}"


def not_computed(metrics: Mapping[str, Any]) -> str:
    """One line: the metrics without a score, by what they lack; empty where all have one."""
    by_reason: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric.get("score") is None:
            reason = str(metric.get("reason", ""))
            asked = ", ".join(dict.fromkeys(ASKED.findall(reason))) if "needs" in reason else ""
            by_reason.setdefault(f"needs {asked}" if asked else reason, []).append(name)
    parts = [f"{', '.join(names)} ({reason})" if reason else ", ".join(names) for reason, names in by_reason.items()]
    return f"Not computed: {'; '.join(parts)}." if parts else ""
