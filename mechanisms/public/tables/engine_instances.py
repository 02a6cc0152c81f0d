"""Embedded engines in memory; to start one takes longer than most questions, so that a command's tables share one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

#: A machine's smallest: below it the engine does not start.
LEAST_BYTES = 1 << 27
#: The optimizer that leaves a test away where the least and largest value that a file states seem to answer it. NaN is
#: neither: rows of some would decide how NaN of others is read, and a file that states them wrongly how all are.
TRUSTING = "statistics_propagation"


#: Where all engines that run spill, and these engines, by what they may use.
_SHARED: ContextVar[tuple[Path, dict[tuple[int, int], Any]] | None] = ContextVar("shared engines", default=None)


@contextmanager
def shared_engine(spill: Path) -> Iterator[None]:
    """Tables that are asked within this block, by this thread, share an engine, which ends with it.

    Args:
        spill: the folder where it spills, in one that is closed to others and outlives the block.
    """
    spill.mkdir(mode=0o700, parents=True, exist_ok=True)
    engines = dict[tuple[int, int], Any]()
    token = _SHARED.set((spill, engines))
    try:
        yield
    finally:
        _SHARED.reset(token)
        for engine in engines.values():
            engine.close()


def connection(spill: Path, memory_limit_bytes: int, threads: int) -> Any:
    """A connection with temporary tables of its own, to the shared engine or to one of its own.

    Args:
        spill: of an engine of its own.
    """
    shared = _SHARED.get()
    if shared is None:
        return _started(spill, memory_limit_bytes, threads)
    (place, engines), key = shared, (memory_limit_bytes, threads)
    if key not in engines:
        engines[key] = _started(place, memory_limit_bytes, threads)
    return engines[key].cursor()


def _started(spill: Path, memory_limit_bytes: int, threads: int) -> Any:
    import duckdb  # slow to import

    return duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": f"{max(memory_limit_bytes, LEAST_BYTES)}B",
            "temp_directory": str(spill),
            "preserve_insertion_order": True,
            "autoinstall_known_extensions": False,
            "disabled_optimizers": TRUSTING,
            "enable_external_file_cache": False,  # what was read of a table does not stay in memory
        }
    )
