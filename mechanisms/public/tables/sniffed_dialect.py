"""How a CSV file is plainly written, and all that is wrong with it at once: for drafts, scores and messages.

A run never reads by this: one cell with a byte that is no UTF-8 would change how all others are read.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.schema.dialect import WESTERN, Dialect
from mechanisms.public.tables import inspect_file
from mechanisms.public.tables.formats import CSV, format_of_file

MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
#: Bytes that are no letters of Windows' Western encoding.
NOT_WINDOWS = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
#: So many bytes are looked at at a time.
CHUNK = 1 << 22


def sniffed_dialect(path: Path, declared: Dialect | None = None) -> Dialect:
    """How a file is written, by all its bytes and its header.

    Args:
        declared: taken as it is where it reads the header as several columns, and the bytes as text.
    Raises:
        UserError: a compressed file that is damaged.
    """
    compressed = inspect_file.compression(path)
    with inspect_file.undamaged(path):
        encoding = _encoding(path, compressed)
    wide = declared is not None and declared.encoding.lower().startswith(("utf-16", "utf-32"))
    if declared is not None and (wide or (not declared.bytes_are_utf8 and encoding in WESTERN)):
        encoding = declared.encoding  # what a person says of letters is better than a guess
    with inspect_file.open_bytes(path, compressed) as file:
        text = file.read(1 << 16).decode(encoding, errors="replace").lstrip("\n\r")
    line = (text.splitlines() or [""])[0]
    widths = {d: len(next(csv.reader([line], delimiter=d), [])) for d in inspect_file.DELIMITERS}
    best = max(widths, key=lambda d: widths[d])
    if declared is not None and (declared.delimiter in line or widths[best] < 2):
        best = declared.delimiter
    return Dialect(best, encoding)


def _encoding(path: Path, compressed: str) -> str:
    decoder, utf8, windows = codecs.getincrementaldecoder("utf-8")(), True, True
    with inspect_file.open_bytes(path, compressed) as file:
        start = chunk = file.read(CHUNK)
        while chunk:
            windows &= not any(byte in chunk for byte in NOT_WINDOWS)
            try:
                decoder.decode(chunk) if utf8 else None
            except UnicodeDecodeError:
                utf8 = False
            chunk = file.read(CHUNK)
    utf8 &= not decoder.getstate()[0]  # no letter is cut at the end
    marked = next((name for mark, name in MARKS if start.startswith(mark)), "")
    return marked or ("utf-8" if utf8 else "cp1252" if windows else "latin-1")


def dialect_of(location: Path, declared: Dialect | None = None) -> Dialect:
    """How the first file of a table is written; of other formats than CSV it says nothing."""
    part = inspect_file.table_parts(location)[0]
    return sniffed_dialect(part, declared) if format_of_file(part).reader == CSV.reader else Dialect()


def with_all_faults(
    error: UserError, part: Path, declared: Dialect, setting: str, read_as: Callable[[Dialect], None]
) -> UserError:
    """The error of a file that was read in another dialect than its own, with that dialect, and what else is wrong.

    Args:
        part: the file, which was read as declared.
        setting: the name of the delimiter's setting.
        read_as: reads every row in another dialect.
    """
    try:
        own = sniffed_dialect(part, declared)
    except (UserError, OSError, ValueError):  # damaged: the error says so
        return error
    same_bytes = own.encoding == declared.encoding or (own.bytes_are_utf8 and declared.bytes_are_utf8)
    if own.delimiter == declared.delimiter and same_bytes:
        return error
    problems, fixes = [], []
    if own.delimiter != declared.delimiter:
        read, written = inspect_file.shown(declared.delimiter), inspect_file.shown(own.delimiter)
        problems.append(f"the header is one field with {written} in it: is the delimiter {read} right?")
        fixes.append(f"{setting}={written}")
    if not same_bytes:
        read = f"is not {declared.encoding.upper()} text"
        problems.append(f"{error.what if read in error.what else read}, but likely {own.encoding}")
        fixes.append(f"{setting.removesuffix('delimiter')}encoding={own.encoding}")
    fields = f"dialect: {json.dumps(own.fields)}" if own.fields else "no dialect"
    fix = f"{' '.join(fixes)}, or in the schema {fields}"
    try:
        read_as(own)
    except UserError as further:
        problems.append(further.what)
        fix += f"; then {further.fix}"
    return UserError("; ".join(problems), where=str(part), fix=fix)
