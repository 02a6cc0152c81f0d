"""The readers of formats: files → a `Source`; of CSV files whose last quote is open, the engine would drop rows."""

from __future__ import annotations

import codecs
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError
from mechanisms.public.jit import compiled
from mechanisms.public.tables import inspect_file
from mechanisms.public.tables.scan import DURATION, LONG_DECIMAL, Opening, Source, listed, literal, private_folder
from mechanisms.public.tables.sniffed_dialect import with_all_faults

#: Bytes that are read at a time.
CHUNK = 1 << 22
#: Where a reader stands: before a field, behind its first blank, in one without quotes, in a quoted one, at a quote
#: inside of it or behind it; or behind a carriage return in the only column of a file whose lines end otherwise: the
#: engine makes two rows of some such cells.
START, BLANK, PLAIN, QUOTED, AT_QUOTE, MIXED = range(6)


def open_csv(opening: Opening) -> Source:
    """CSV files, plain or compressed as gzip or zstd; of other bytes than UTF-8, copies.

    Raises:
        UserError: a file that is written otherwise; says how, with all else that is wrong with it.
    """
    parts = opening.parts
    try:
        return _opened(opening)
    except UserError as error:
        raise with_all_faults(error, parts[0], opening.dialect, opening.setting, opening.read_as) from None


def _opened(opening: Opening) -> Source:
    parts, delimiter = opening.parts, opening.dialect.delimiter
    pressed = [inspect_file.compression(part) for part in parts]
    inspect_file.check_same(parts, pressed, "compression does")
    if not opening.dialect.bytes_are_utf8:
        encoding = opening.dialect.encoding
        private_folder(opening.workdir)
        folder = Path(tempfile.mkdtemp(dir=opening.workdir))  # mode 0700
        parts = tuple(_as_utf8(part, pressed[0], encoding, folder / f"{i}-{part.name}") for i, part in enumerate(parts))
        pressed = ["none"] * len(parts)
    given = [*zip(opening.parts, parts, strict=True)]  # messages name the file that was given, not its copy
    headers = [
        inspect_file.read_header(part, pressed[0], delimiter, setting=opening.setting, where=str(own))
        for own, part in given
    ]
    inspect_file.check_same(opening.parts, [names for names, _ in headers], "columns do")
    names, header = headers[0]
    for own, part in given:
        state = part.stat()
        end = _end(part, pressed[0], delimiter, len(names) == 1, state.st_size, state.st_mtime_ns)
        if end == QUOTED:
            raise UserError("malformed: a quote is not closed", where=str(own), fix='write " as ""')
        if end == MIXED:
            raise UserError("malformed: line ends are mixed", where=str(own), fix="use one kind of line end throughout")
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    # parallel: readers that begin within a quoted text take its lines for rows, and then give up on the file
    relation = (
        f"read_csv({listed(parts)}, auto_detect = false, parallel = false, hive_partitioning = false, header = true, "
        f"delim = {literal(delimiter)}, "
        f"quote = '\"', escape = '\"', compression = '{pressed[0]}', columns = {{{columns}}})"
    )
    return replace(opening, parts=parts).source(names, ("VARCHAR",) * len(names), relation, header)


def _as_utf8(path: Path, compressed: str, encoding: str, copy: Path) -> Path:
    """A copy in the bytes that the engine reads.

    Raises:
        UserError: it is not of that encoding.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with inspect_file.open_bytes(path, compressed) as file, copy.open("wb") as written:
            while chunk := file.read(CHUNK):
                written.write(decoder.decode(chunk).encode())
            written.write(decoder.decode(b"", True).encode())
    except UnicodeError as error:
        fix = "the encoding that it was written in: `schema` proposes one"
        raise UserError(f"is not {encoding} text", where=str(path), fix=fix) from error
    return copy


def open_parquet(opening: Opening) -> Source:
    """Parquet files."""
    schemas = [inspect_file.parquet_schema(part) for part in opening.parts]
    inspect_file.check_same(opening.parts, schemas, "columns do")
    names = tuple(name for name, _ in schemas[0])
    aliases = ", ".join(f"c{i}" for i in range(len(names)))
    relation = f"read_parquet({listed(opening.parts)}, hive_partitioning = false) AS t({aliases})"
    bare = opening.source(names, ("VARCHAR",) * len(names), relation)
    described = bare.lines(f"DESCRIBE SELECT * FROM {relation}")
    marked = {"duration": DURATION, "decimal256": LONG_DECIMAL}
    own = [marked.get(kind.partition("[")[0].partition("(")[0], kind) for _, kind in schemas[0]]
    apart = (*marked.values(), inspect_file.SEVERAL_TEXTS)
    types = (kind if kind in apart else str(row[1]) for kind, row in zip(own, described, strict=True))
    return replace(bare, types=tuple(types))


@lru_cache(maxsize=1024)
def _end(path: Path, compressed: str, delimiter: str, alone: bool, _size: int, _changed: int) -> int:
    """Where a reader stands at the end of a file, as QUOTED where its last quote is open: one pass over its bytes.

    Args:
        alone: whether it has one column.
        _size, _changed: of the file: another state of it is another question.
    Raises:
        UserError: a compressed file that is damaged, which the engine would not always notice.
    """
    state, line_end = START, 0
    with inspect_file.undamaged(path), inspect_file.open_bytes(path, compressed) as file:
        while chunk := file.read(CHUNK):
            line_end = line_end or next((b for b in chunk if b in b"\r\n"), 0)  # of the header
            state = _after(np.frombuffer(chunk, np.uint8), ord(delimiter), line_end, alone, state)
    return state


@compiled
def _after(chunk: NDArray[np.uint8], delimiter: int, line_end: int, alone: bool, state: int) -> int:
    """The state after these bytes; one blank before a quote belongs to no field, as the engine has it."""
    for byte in chunk:
        if state == QUOTED:
            if byte == 34:
                state = AT_QUOTE
        elif state == MIXED or (alone and byte == 13 and line_end == 10):
            state = MIXED
        elif byte == delimiter or byte == 10 or (byte == 13 and (line_end == 13 or state < PLAIN)):
            state = START
        elif byte == 34 and state != PLAIN:
            state = QUOTED
        elif byte != 32 or state < PLAIN:  # behind a quoted text and blanks, the engine takes one more quoted text
            state = BLANK if byte == 32 and state == START else PLAIN
    return state
