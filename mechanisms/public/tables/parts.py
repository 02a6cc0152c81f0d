"""The files of a table: one, or the parts in a folder or that a pattern matches, in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.tables import inspect_file

WILD = frozenset("*?[")
#: A path; of the file behind it the device, the number there, its bytes, and when it was written and changed (ns); of
#: each symbolic link on the way its path, its number, and when it was made (ns).
State = tuple[Path, int, int, int, int, int, tuple[tuple[Path, int, int], ...]]
FIX = "parts of one table, of one format and with the same columns in the same order"


def table_parts(path: Path) -> tuple[Path, ...]:
    """The files of a table; those that other tools leave beside (`_SUCCESS`, hidden ones) are none of its parts.

    Raises:
        UserError: a folder without parts; a pattern that matches none.
    """
    if path.is_dir():
        parts = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        inner = sorted(p.name for p in path.iterdir() if p.is_dir() and p.name[0] not in "._")
        if not parts:
            fix = f"a folder with parts of the table, for example {path / inner[0]}" if inner else FIX
            raise UserError("no files in this folder", where=str(path), fix=fix)
        return tuple(parts)
    if WILD & set(str(path)) and not path.exists():
        start = Path(path.anchor) if path.is_absolute() else Path()
        fixed = next(i for i, name in enumerate(path.parts) if WILD & set(name))
        found = {p for p in start.glob(str(path.relative_to(start))) if p.is_file()}
        parts = sorted(p for p in found if all(name[0] not in "._" for name in p.parts[fixed:]))
        if not parts:
            problem = f"no file matches this pattern{' but hidden ones and those that begin with _' if found else ''}"
            raise UserError(problem, where=str(path), fix=FIX)
        return tuple(parts)
    return (path,)


def check_table_files(path: Path) -> tuple[Path, ...]:
    """The files of a table: each is there, can be read, holds something, and is of a kind that is known.

    Raises:
        UserError: names the file and the way out.
    """
    parts = table_parts(path)
    for part in parts:
        inspect_file.check_file(part)
    return parts


def check_same(parts: Sequence[Path], facts: Sequence[object], verb: str) -> None:
    """What is said of each part is the same.

    Raises:
        UserError: names the first part that differs.
    """
    for part, words in zip(parts, facts, strict=True):
        if words != facts[0]:
            raise UserError(f"its {verb} not agree with {parts[0].name}", where=str(part), fix=FIX)


def states(parts: Sequence[Path]) -> tuple[State, ...]:
    """How each file stands now; each is opened, since shared folders tell old sizes and times of files that are not.

    Raises:
        UserError: names one that cannot be read; or two that are one file, by links: its rows would count twice.
    """
    file_states, met = [], dict[tuple[int, int], Path]()
    for part in parts:
        try:
            with part.open("rb") as file:
                state = os.fstat(file.fileno())
            links = _links(part)
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", where=str(part), fix="check the path") from error
        if (first := met.setdefault((state.st_dev, state.st_ino), part)) is not part:
            raise UserError(f"is one file with {first}: rows would count twice", where=str(part), fix="remove the link")
        times = state.st_mtime_ns, state.st_ctime_ns  # who writes a file may set the first back, and not the second
        file_states.append((part, state.st_dev, state.st_ino, state.st_size, *times, links))
    return tuple(file_states)


def _links(path: Path) -> tuple[tuple[Path, int, int], ...]:
    """The symbolic links on the way to a file: who turns one away and back makes it anew.

    Raises:
        OSError: one is gone.
    """
    met: dict[Path, tuple[Path, int, int]] = {}
    ways = [Path.cwd() / path]
    while ways:
        way = ways.pop()
        for place in (way, *way.parents):
            if place not in met and place.is_symlink():
                state = place.lstat()
                met[place] = (place, state.st_ino, state.st_ctime_ns)
                ways.append(place.parent / place.readlink())
    return tuple(sorted(met.values()))


def check_unchanged(before: Sequence[State]) -> None:
    """Nobody wrote the files since, nor put others in their place: a row that moves meanwhile may count twice.

    Raises:
        UserError: names the first that is another now, or is gone.
    """
    for old in before:
        if states([old[0]]) != (old,):
            fix = "leave the table alone while it is read, or read a copy of it"
            raise UserError("the table changed while it was read", where=str(old[0]), fix=fix)
