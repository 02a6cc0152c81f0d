"""The engines by name; each is loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mechanisms.public.members import Members
from mechanisms.sensitive.engines.engine import Engine, EngineSettings

#: A contract test runs over all of them.
ENGINES: Members[type[EngineSettings]] = Members(
    "engine",
    {
        "duckdb": "mechanisms.sensitive.engines.engines:DuckdbSettings",
        "spark": "mechanisms.sensitive.engines.spark_engine:SparkSettings",
    },
)


@dataclass(frozen=True)
class DuckdbSettings(EngineSettings):
    """The embedded engine has no settings."""

    def opened(self, workdir: Path) -> AbstractContextManager[Engine]:
        from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine  # loads Arrow

        return nullcontext(DuckdbEngine())


@contextmanager
def opened_engine(settings: EngineSettings, workdir: Path) -> Iterator[Engine]:
    """An engine while it is used; one of others behind the checks of `CheckedEngine`.

    Args:
        workdir: of this run, mode 0700.
    Raises:
        UserError: an engine that this machine or its cluster cannot start.
    """
    cls, module = type(settings), type(settings).__module__
    ours = getattr(sys.modules.get(module), cls.__name__, None) is cls and module.partition(".")[0] == "mechanisms"
    with settings.opened(workdir) as engine:
        if ours:  # a class may name any module as its own
            yield engine
        else:
            from mechanisms.sensitive.engines.checked_engine import CheckedEngine  # loads Arrow

            yield CheckedEngine(engine, module)
