"""The list of engines; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mechanisms.public.errors import one_of
from mechanisms.sensitive.engines.engine import Engine

ENGINES = ("duckdb", "spark")


@contextmanager
def opened_engine(kind: str, options: Mapping[str, Any], workdir: Path) -> Iterator[Engine]:
    """An engine while it is used; it leaves nothing behind.

    Args:
        kind: a name in ENGINES.
        options: its settings, by name.
        workdir: of this run, mode 0700.
    Raises:
        UserError: no such engine; one that this machine or its cluster cannot start.
    """
    one_of(kind, ENGINES, "engine")
    if kind == "duckdb":
        from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine

        yield DuckdbEngine()
        return
    from mechanisms.sensitive.engines.spark_engine import SCORE_ROWS, SparkSettings, spark_engine

    settings = tuple((str(name), str(value)) for name, value in (options.get("settings") or {}).items())
    rows = options.get("score_rows") or SCORE_ROWS
    with spark_engine(SparkSettings(options.get("master"), options.get("scratch"), settings, rows), workdir) as engine:
        yield engine
