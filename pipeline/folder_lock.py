"""A folder for one command at a time: locked before anything in it is looked at, and as it was after a mistake."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.posix import fcntl

LOCK = "lock"


@contextmanager
def held(
    inside: Path, where: str, *, who: str, unless: Callable[[], bool], but: Collection[str] = ()
) -> Iterator[None]:
    """The folder, made, closed to others (mode 0700) and locked against a second process.

    After a user's mistake or an interruption, what is new in it is deleted, under the lock: a command that is refused
    because another one is at work takes nothing of that one away.

    Args:
        inside: the folder itself; messages name the one that it lies in.
        where: the setting that names it.
        who: what may be at work there already, for the message.
        unless: asked after the failure: what is there by then has to stay.
        but: names of files that stay in any case.
    Raises:
        UserError: another process is at work in it; it cannot be written.
    """
    with no_empty_folders(inside), _locked(inside, where, who):
        before = _names(inside) - {LOCK}
        try:
            yield
        except (UserError, KeyboardInterrupt):
            if not unless():
                for name in _names(inside) - before - set(but):
                    _removed(inside / name)
            raise


@contextmanager
def _locked(inside: Path, where: str, who: str) -> Iterator[None]:
    try:
        lock = _opened(inside / LOCK)
        inside.chmod(0o700)
    except OSError as error:
        raise unwritable(inside.parent, error, where) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(lock.fileno()), (inside / LOCK).stat())
        except (BlockingIOError, FileNotFoundError):
            mine = False
        if not mine:  # held by another one; or the lock of one that ended meanwhile and took it away
            fix = "wait for it, or use another folder"
            raise UserError(f"another {who} is at work in {inside.parent}", where=where, fix=fix)
        yield


def _opened(path: Path, tries: int = 10) -> TextIOWrapper:
    """The lock's file, in a folder that another command may take away at the same moment."""
    for _ in range(tries):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            return path.open("w")
    return path.open("w")


def unwritable(root: Path, error: OSError, where: str) -> UserError:
    """That a folder cannot be written."""
    return UserError(f"cannot write in {root} ({error.strerror})", where=where, fix="another folder")


def _names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} if folder.is_dir() else set()


def _removed(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def no_empty_folders(path: Path) -> Iterator[None]:
    """After a failure, the folders up to `path` that were not there before are gone again where they are empty."""
    new = [p for p in (path, *path.parents) if not p.exists()]
    try:
        yield
    except BaseException:
        for folder in new:
            with suppress(OSError):  # not empty, or not made
                folder.rmdir()
        raise
