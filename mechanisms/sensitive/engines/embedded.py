"""The embedded engine as a choice of settings: DuckDB and Arrow are loaded when it is opened."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mechanisms.sensitive.engines.engine import Engine, EngineSettings


@dataclass(frozen=True)
class DuckdbSettings(EngineSettings):
    """The embedded engine has no settings."""

    def opened(self, workdir: Path) -> AbstractContextManager[Engine]:
        from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine  # loads Arrow

        return nullcontext(DuckdbEngine())
