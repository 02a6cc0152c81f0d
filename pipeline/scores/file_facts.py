"""What the tables are that a page is about: names, rows, columns, the schema and the time of scoring. NOT private."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

from mechanisms.public.json_values import JsonDict
from mechanisms.public.tables.scan import Source

#: How the folders begin that hold the files of data frames while they are scored.
OF_FRAMES = "frames-"
NO_SCHEMA = "none: the kinds of the columns were read from the tables, for the scores alone"


def file_facts(sources: Mapping[str, Source], rows: Mapping[str, int], schema: str | None) -> JsonDict:
    """The facts for the top of a page; they hold a clock, and belong into no release.

    Args:
        sources: by what a table is: real, synthetic, holdout.
        rows: of each.
        schema: its path or name; None where there was none.
    """
    tables = [
        {"table": name, "file": shown_name(source.path), "rows": rows.get(name), "columns": len(source.names)}
        for name, source in sources.items()
    ]
    now = datetime.datetime.now(datetime.UTC)
    return {"scored": f"{now:%Y-%m-%d %H:%M} UTC", "schema": schema or NO_SCHEMA, "tables": tables}


def shown_name(path: Path) -> str:
    """The last part of a path; of a frame that lay in a file for a while, that it is one."""
    return "a data frame" if path.parent.name.startswith(OF_FRAMES) else path.name
