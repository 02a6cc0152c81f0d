"""Whether a CSV file ends within a quoted text: the engine, reading it in one go, drops all rows from there on."""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError
from mechanisms.public.jit import compiled
from mechanisms.public.tables.inspect_file import open_bytes

#: Bytes that are read at a time.
CHUNK = 1 << 22
#: Where a reader stands: before a field, in one without quotes, in a quoted one, at a quote inside of it.
START, PLAIN, QUOTED, AT_QUOTE = range(4)


def check_quotes(path: Path, compressed: str, delimiter: str) -> None:
    """Refuse a file whose last quote is not closed; costs one pass over its bytes, once for each state of the file.

    Raises:
        UserError: the quote is not closed.
    """
    state = path.stat()
    if _ends_quoted(path, compressed, delimiter, state.st_size, state.st_mtime_ns):
        raise UserError("malformed: a quote is not closed", where=str(path), fix='write " as ""')


@lru_cache(maxsize=1024)
def _ends_quoted(path: Path, compressed: str, delimiter: str, size: int, changed: int) -> bool:
    """Whether it does; False for a damaged file, of which the engine tells, and for a delimiter of several bytes.

    Args:
        size, changed: of the file: another state of it is another question.
    """
    import pyarrow as pa  # slow to load

    if len(delimiter.encode()) > 1:
        return False
    state = START
    try:
        with open_bytes(path, compressed) as file:
            while chunk := file.read(CHUNK):
                state = _after(np.frombuffer(chunk, np.uint8), ord(delimiter), state)
    except (OSError, EOFError, zlib.error, pa.ArrowException):
        return False
    return state == QUOTED


@compiled
def _after(chunk: NDArray[np.uint8], delimiter: int, state: int) -> int:
    """The state after these bytes; blanks before a quote belong to no field, as the engine has it."""
    for byte in chunk:
        if state == QUOTED:
            if byte == 34:
                state = AT_QUOTE
        elif byte == delimiter or byte == 10 or byte == 13:
            state = START
        elif byte == 34 and state != PLAIN:
            state = QUOTED
        elif state == AT_QUOTE or byte != 32:
            state = PLAIN
    return state
