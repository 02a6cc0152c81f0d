"""The engines by name; each is loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mechanisms.public.members import Members
from mechanisms.sensitive.engines.engine import Engine, EngineSettings

#: A contract test runs over all of them.
ENGINES: Members[type[EngineSettings]] = Members(
    "engine",
    {
        "duckdb": "mechanisms.sensitive.engines.embedded:DuckdbSettings",
        "spark": "mechanisms.sensitive.engines.spark_engine:SparkSettings",
    },
)


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
