"""What lies beside the ledger of several runs: the lock under which it is written, and what was written last."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mechanisms.public.files import cannot_write
from mechanisms.public.posix import fcntl

WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def place_of(given: Path) -> Path:
    """The one path of a ledger: `absent/../people.json` is people.json to who reads it as to who writes it."""
    return Path(os.path.realpath(given))  # `resolve` fails on links in a circle


def _lock_of(path: Path) -> Path:
    return path.parent / f".{path.name}.lock"


@contextmanager
def locked(given: Path) -> Iterator[Path]:
    """The ledger's own path, for one process at a time; the lock lies beside it, for it is itself replaced.

    Raises:
        UserError: nothing can be written there; a ledger that somebody closed, as a read-only file.
    """
    path = place_of(given)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.stat().st_mode & WRITABLE:
            raise PermissionError(errno.EACCES, "the file is read-only")
        lock = _lock_of(path).open("a")
    except OSError as error:
        raise cannot_write(path, error) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def recorded(path: Path) -> tuple[int, str] | None:
    """The entries and the digest of the ledger that was last written under this path; None where nobody knows."""
    try:
        entries, digest = _lock_of(place_of(path)).read_text(encoding="utf-8").split()
        return int(entries), digest
    except (OSError, ValueError):
        return None


def record(path: Path, entries: int, digest: str) -> None:
    """Keep what was written: after the ledger itself, so that no crash leaves a record of something that is not there.

    Raises:
        OSError: it cannot be written.
    """
    with _lock_of(path).open("r+") as file:  # as long as the one before: nobody reads half of it
        file.write(f"{entries:012} {digest}\n")


def forget(path: Path) -> None:
    """Of a ledger that is gone: a new one of its name begins with no record.

    Raises:
        OSError: it cannot be written.
    """
    with _lock_of(path).open("r+") as file:
        file.truncate(0)
