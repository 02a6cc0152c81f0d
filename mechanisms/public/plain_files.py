"""The one reader of files that somebody else may have made: plain files alone, and nothing without a limit."""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, shown
from mechanisms.public.files import JsonDict

#: The largest text that is read, in bytes, and lists and mappings inside of one another: no run writes more.
LARGEST_TEXT, DEEPEST = 2**28, 64
#: A file that takes less than its size by this factor on disk is holes: no rows are packed so well by any file system.
HOLES = 1000
#: So many bytes beside the name of a member of an archive say how large it is.
_SIZES = 28
FIX = "take the release folder of a run, as it was written; do not trust this one"


def check_plain(folder: Path) -> None:
    """Asked before any file of a folder is opened.

    Raises:
        UserError: a link, a pipe, a socket or a device lies there: a release holds plain files and folders; so does a
            name that a terminal would not show, a file that is nearly all holes, or folders without end.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            inside, state = path.relative_to(folder), path.lstat()
            if not name.isprintable() or len(inside.parts) > DEEPEST:
                fault = f"{shown(name)[:80]!r} is a name with unseen characters, or lies deeper than {DEEPEST} folders"
                raise UserError(fault, where=str(folder), fix=FIX)
            if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
                raise _odd(inside.as_posix(), folder, state.st_mode)
            if state.st_size > LARGEST_TEXT and state.st_blocks * 512 * HOLES < state.st_size:  # days to read nothing
                fault = f"{inside.as_posix()} says that it has {state.st_size:,} bytes, and has hardly any"
                raise UserError(fault, where=str(folder), fix=FIX)


def _odd(name: str, folder: Path, mode: int) -> UserError:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    problem = f"{name} is no plain file, but {kinds.get(stat.S_IFMT(mode), 'a device')}"
    return UserError(problem, where=str(folder), fix=FIX)


@contextmanager
def open_plain(path: Path) -> Iterator[BufferedReader]:
    """A plain file, open for reading: a link is not followed, and a pipe without a writer is not waited for.

    Raises:
        UserError: it is no plain file. OSError: it cannot be read.
    """
    if not stat.S_ISREG(mode := path.lstat().st_mode):
        raise _odd(path.name, path.parent, mode)
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # whatever lies there by now
    with os.fdopen(handle, "rb") as file:
        yield file


def read_text(path: Path, most: int = LARGEST_TEXT) -> str:
    """The text of a plain file, line ends as they stand.

    Args:
        most: bytes.
    Raises:
        UserError: it is no plain file, or larger. OSError, ValueError: it cannot be read, or is no UTF-8 text.
    """
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path.name} is larger than a run writes it", where=str(path.parent), fix=FIX)
    return content.decode("utf-8")


def holds(path: Path, text: str) -> bool:
    """Whether a plain file is this very text; of a longer one no more is read."""
    content = text.encode()
    with open_plain(path) as file:
        return file.read(len(content) + 1) == content


def read_mapping(path: Path) -> JsonDict:
    """The mapping in a JSON file.

    Raises:
        UserError: see `read_text`. OSError, ValueError: it holds none; a key twice; no number; lists without end.
    """
    return json_mapping(read_text(path))


def json_mapping(text: str) -> JsonDict:
    """The mapping that a JSON text holds; ValueError where it holds none, or what no run writes."""
    try:
        content = json.loads(text, parse_constant=_number, parse_float=_number, object_pairs_hook=unique_keys)
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(content, dict):
        raise ValueError("no mapping")
    check_depth(content)
    return content


def check_depth(content: Any) -> None:
    """ValueError where lists and mappings stand deeper inside of one another than any reader follows them."""
    level = [content]
    for _ in range(DEEPEST):
        holders = [c.values() if isinstance(c, Mapping) else c for c in level if isinstance(c, Mapping | list)]
        level = [inner for holder in holders for inner in holder]
    if level:
        raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"nested deeper than {DEEPEST} levels")


def unique_keys(pairs: Sequence[tuple[Any, Any]], lines: Sequence[int] = ()) -> dict[Any, Any]:
    """A mapping whose keys stand there once: of two, readers would take now the one, now the other.

    Args:
        lines: in which line each stands, where that is known.
    Raises:
        ValueError: names the key, and the lines.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        own = [f"in line {line}" for (key, _), line in zip(pairs, lines, strict=False) if key == twice]
        raise ValueError(f"{twice!r} is given twice{', ' * bool(own)}{' and '.join(own)}")
    return content


def _number(text: str) -> float:
    """NaN is never larger than what is allowed, and so would pass every comparison; no release holds one."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


@contextmanager
def open_arrays(path: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """The arrays of an .npz file, none of which is larger than it stands there.

    Raises:
        UserError: it is no plain file. OSError, ValueError and others: it is damaged, or holds packed arrays.
    """
    with open_plain(path) as file:
        with zipfile.ZipFile(file) as whole:
            inner, listed = whole.infolist(), whole.start_dir
        size = file.seek(0, os.SEEK_END)
        starts = [*(i.header_offset for i in inner), listed, size]
        if starts != [0, *_ends(file, inner, listed)] or len({i.filename for i in inner}) < len(inner):
            raise ValueError("an array twice, or bytes that belong to no array")
        if any(i.compress_type != zipfile.ZIP_STORED for i in inner) or sum(i.file_size for i in inner) > size:
            raise ValueError("packed arrays, which no run writes")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            yield arrays


def _ends(file: BufferedReader, members: Sequence[zipfile.ZipInfo], listed: int) -> list[int]:
    """Where each member of an archive ends, and the archive itself; ValueError where one says more than its sizes."""
    ends = []
    for member in members:
        file.seek(member.header_offset + 26)  # of a local header: how long the name is, and what follows it
        name, more = (int.from_bytes(file.read(2), "little") for _ in range(2))
        if max(more, len(member.extra)) > _SIZES or member.comment:
            raise ValueError(f"words beside {member.filename}")
        ends.append(member.header_offset + 30 + name + more + member.compress_size)
    return [*ends, listed + sum(46 + len(m.filename.encode()) + len(m.extra) for m in members) + 22]
