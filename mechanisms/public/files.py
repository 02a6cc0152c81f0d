"""Files that are written whole or not at all, and their values of JSON by name."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar

from mechanisms.public.errors import UserError


def as_path(given: Any, where: str, fix: str = "a path") -> Path:
    """A path that a caller in Python hands over.

    Raises:
        UserError: it is none.
    """
    if not isinstance(given, str | os.PathLike) or isinstance(path := os.fspath(given), bytes) or not path:
        raise UserError(f"{given!r} is no path", where=where, fix=fix)
    try:
        path.encode()
        place = Path(path).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(place)
    except (OSError, ValueError, RuntimeError) as error:  # too long, no text, or the home of nobody
        raise UserError(f"{path[:40]!r} is no name that the system takes", where=where, fix=fix) from error
    return place


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


@contextmanager
def whole_file(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which takes its name, synced, only if the block ends well.

    Raises:
        UserError: the folder cannot be written, or the disk is full; names the path.
    """
    with no_empty_folders(path.parent):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            os.close(handle)
        except OSError as error:
            raise cannot_write(path, error) from error
        part = Path(name)
        try:
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.chmod(mode)
            part.replace(path)
        except OSError as error:
            raise cannot_write(path, error) from error
        finally:
            part.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a text file whole or not at all, synced to disk."""
    with whole_file(path, mode=mode) as part:
        part.write_text(text, encoding="utf-8")


def stored_values(path: Path, make: Callable[[], Any]) -> Any:
    """JSON values from their file if they were made before; else made, and kept there for the owner alone."""
    if not path.exists():
        write_whole(path, json.dumps(make(), allow_nan=False) + "\n", mode=0o600)
    return json.loads(path.read_text(encoding="utf-8"))


def sync_folder(folder: Path) -> None:
    """The names of its files are on disk before this returns.

    Raises:
        OSError: it cannot be synced.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_write(path: Path, error: OSError) -> UserError:
    """The user's view of a full or read-only disk."""
    return UserError(
        f"cannot write {path.name}: {error.strerror or error}",
        where=str(path.parent),
        fix="free some space there, or choose a folder that can be written",
    )


T = TypeVar("T")
#: A part of a file that was read, or is to be written.
Json: TypeAlias = Mapping[str, Any]
#: The same while it is made.
JsonDict: TypeAlias = dict[str, Any]


def as_declared(record: T) -> T:
    """A record of plain values as it was read from a file.

    Raises:
        TypeError: a field of another type than its own.
    """
    for name, declared in typing.get_type_hints(type(record)).items():
        value, kind = getattr(record, name), typing.get_origin(declared) or declared
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}")
    return record


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number that a float holds; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


#: How the folders begin that hold what a database gave.
FROM_DATABASE = "database-"


def table_name(path: Path) -> str:
    """What a message calls a table: its file, or its name in a database, of which nobody has a file."""
    return f"{path.stem}, of a database" if path.parent.name.startswith(FROM_DATABASE) else path.name
