"""Engines in memory that each command starts anew are started once: connections leave nothing there but tables."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mechanisms.public.tables import engine_instances

_started = engine_instances._started
#: With less memory an engine may come to spill, where its command says.
ENOUGH = 1 << 28


@cache
def _one(memory_limit_bytes: int, threads: int) -> Any:
    return _started(Path("no shared engine spills"), memory_limit_bytes, threads)


def _connected(spill: Path, memory_limit_bytes: int, threads: int) -> Any:
    if memory_limit_bytes < ENOUGH:
        return _started(spill, memory_limit_bytes, threads)
    return _one(memory_limit_bytes, threads).cursor()


@pytest.fixture(autouse=True, scope="module")
def one_engine() -> Iterator[None]:
    """For a folder of tests that imports it: to start an engine takes longer than most of what is asked of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_instances, "_started", _connected)
        yield
