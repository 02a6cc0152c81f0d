"""The embedded engine, which each command starts anew, is started once for all commands of a test's process."""

import os
from pathlib import Path
from typing import Any

from mechanisms.public.tables import engine_instances

_started = engine_instances._started
#: By process and what they may use: whole engines, of which each command gets a connection with tables of its own, and
#: where the last command spilled.
_engines: dict[tuple[int, int, int], Any] = {}
_places: dict[tuple[int, int, int], Path] = {}


def _connected(spill: Path, memory_limit_bytes: int, threads: int) -> Any:
    """In place of a start: a connection to the engine that was started with the same, as good as new for each place."""
    import duckdb

    key = (os.getpid(), memory_limit_bytes, threads)
    if key not in _engines:
        _engines[key] = _started(spill, memory_limit_bytes, threads)
    connection = _engines[key].cursor()
    if _places.get(key) != spill:
        least = f"{max(memory_limit_bytes, engine_instances.LEAST_BYTES)}B"  # which the last command may have set
        limits = f"SET memory_limit = '{least}'; RESET max_temp_directory_size"
        try:
            connection.execute(f"SET temp_directory = '{spill}'; {limits}")
        except duckdb.Error:  # it has spilled, or spills: whoever asks holds it, and the next ones share another
            _engines[key] = _started(spill, memory_limit_bytes, threads)
            connection = _engines[key].cursor()
        _places[key] = spill
    return connection


engine_instances._started = _connected
