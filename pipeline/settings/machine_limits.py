"""What a command may use of this machine: memory and threads."""

from __future__ import annotations

import os


def memory_limit_bytes(memory_gb: float | None) -> int:
    """What a run may use: the setting, or 80 % of this machine's memory."""
    if memory_gb is None:
        return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return int(memory_gb * 1e9)


def threads(setting: int | None) -> int:
    """How many threads to use."""
    return setting or len(os.sched_getaffinity(0))
