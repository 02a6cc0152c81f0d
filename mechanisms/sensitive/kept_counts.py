"""Exact counts kept on disk for several runs on the same rows: raw data, for the owner alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, Count
from mechanisms.public.domain import Clique
from mechanisms.public.posix import fcntl
from mechanisms.public.tables.scan import private_folder

#: Bytes: a folder that holds more takes no further counts.
MOST_BYTES = 2_000_000_000


@contextmanager
def only_one(folder: Path, name: str) -> Iterator[None]:
    """One process at a time does what has this name; the others wait."""
    private_folder(folder)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept_counts(folder: Path) -> Callable[[CodedTable, Sequence[Clique], Count], list[NDArray[np.int64]]]:
    """Marginals of one table: counted by the first who asks for them, read by all others. NOT private.

    Args:
        folder: of this table and schema alone, made with mode 0700; whoever made it deletes it. What has no room in
            MOST_BYTES is counted again each time.
    """
    private_folder(folder)
    return partial(_counted_once, folder)


def _counted_once(folder: Path, table: CodedTable, cliques: Sequence[Clique], count: Count) -> list[NDArray[np.int64]]:
    """The counts of each marginal, as of `count_cliques`."""
    domain = table.domain
    asked = json.dumps([[c, domain.shape(c)] for c in cliques])
    name = hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()
    path = folder / f"{name}.npy"
    with only_one(folder, name):
        if not path.exists():
            counts = count(table, cliques)
            _keep(path, counts)
            return counts
    ends = np.cumsum([domain.cells(c) for c in cliques])
    return list(np.split(np.load(path, mmap_mode="c"), ends[:-1]))


def _keep(path: Path, counts: Sequence[NDArray[np.int64]]) -> None:
    held = sum(p.stat().st_size for p in path.parent.glob("*.npy"))
    if not counts or held + sum(c.nbytes for c in counts) > MOST_BYTES:
        return
    part = path.with_suffix(".part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            np.save(file, np.concatenate(counts))
        part.replace(path)
    except OSError:  # a full disk: the next one counts again
        part.unlink(missing_ok=True)
