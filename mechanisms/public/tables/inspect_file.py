"""What a table's file says before any row is read: its format, compression, header, and whether it is whole."""

from __future__ import annotations

import csv
import gzip
import io
import json
import statistics
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from mechanisms.public.errors import AS_UTF8, UserError, did_you_mean
from mechanisms.public.schema.dialect import Dialect

DELIMITERS = (",", ";", "\t", "|")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
AS_A_TABLE = "save the table as CSV (UTF-8; plain, .gz or .zst) or as Parquet"
#: Bytes at a place near the start of a file → what it is, and the way out.
FOREIGN = {
    (0, b"SQLite f"): ("a SQLite file", "sqlite:///{path}, with data.table=NAME or a #NAME"),
    (8, b"DUCK"): (
        "this is a DuckDB file, which is not read",
        "in DuckDB: COPY NAME TO 'x.parquet', for the table NAME",
    ),
    (0, b"PK\x03\x04"): ("this is a zip archive or a spreadsheet, which is not read", AS_A_TABLE),
    (0, b"BZh"): ("this is bzip2, which is not read", AS_A_TABLE),
    (0, b"\xfd7zXZ"): ("this is xz, which is not read", AS_A_TABLE),
}
MAX_HEADER = 1 << 22
#: The longest line of names of a released table that is read.
LONGEST_LINE = 1 << 20
#: The type of a column of texts that had another one in a database, of which equal values may have several texts.
SEVERAL_TEXTS = "SEVERAL_TEXTS"
DAMAGED = "fetch or compress it again"


def check_file(path: Path) -> None:
    """The file is there, is a file, can be read, holds something, and is of a kind that is known.

    Raises:
        UserError: names the file and the way out.
    """
    where = str(path)
    if path.is_dir():
        raise UserError("this is a folder", where=where, fix="the path of one file")
    if not path.exists():
        near = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
        fix = did_you_mean(path.name, near) or ("check the path" if near else f"there is no folder {path.parent}")
        raise UserError("no such file", where=where, fix=fix)
    if not path.is_file():
        raise UserError("this is no regular file", where=where, fix="write it to disk: the table is read several times")
    try:
        start = _first_bytes(path)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=where, fix="check its permissions") from error
    if not start:
        raise UserError("the file is empty", where=where, fix="a table with at least a header")
    for (place, magic), (problem, fix) in FOREIGN.items():
        if start.startswith(magic, place):
            raise UserError(problem, where=where, fix=fix.replace("{path}", str(path)))


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(12)


def compression(path: Path) -> Literal["none", "gzip", "zstd"]:
    """By the first bytes."""
    start = _first_bytes(path)
    return "gzip" if start.startswith(GZIP) else "zstd" if start.startswith(ZSTD) else "none"


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Reads the bytes of a file that may be compressed.

    Raises:
        UserError: it is truncated or damaged.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise UserError("the compressed file is truncated or damaged", where=str(path), fix=DAMAGED) from error


def read_header(path: Path, compressed: str, delimiter: str, *, setting: str) -> tuple[tuple[str, ...], str]:
    """The column names of a CSV file, and its first line as it stands.

    Raises:
        UserError: no header, not UTF-8, a damaged file, plainly another delimiter, or a column name that cannot be one.
    """
    where = str(path)
    try:
        with undamaged(path):
            line = _first_line(path, compressed).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text", where=where, fix=AS_UTF8) from error
    if "\0" in line:
        raise UserError("is not a text", where=where, fix=AS_A_TABLE)
    if not line.strip():
        raise UserError("the file has no header", where=where, fix="the names of the columns in its first line")
    if line.count('"') % 2:
        fault = "the header has a quote that is not closed, or a column name with a line break"
        raise UserError(fault, where=where, fix="rename the column")
    try:
        names = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        fix = "its names in the first line; perhaps a quote is not closed"
        raise UserError("a column name is too long to be one", where=where, fix=fix) from error
    if len(names) == 1 and '"' not in line:
        for other in DELIMITERS:
            if other != delimiter and other in line:
                fault = f"the header is one field with {shown(other)} in it: is the delimiter {shown(delimiter)} right?"
                raise UserError(fault, where=where, fix=f"{setting}={shown(other)}")
    return tuple(names), line


def found_header(path: Path, dialect: Dialect) -> str:
    """Which line looks like the header: a word in each field, no two alike, and as many as most lines have."""
    with open_bytes(path, compression(path)) as file:
        lines = file.read(1 << 16).decode(dialect.encoding, errors="ignore").splitlines()
    rows = [*csv.reader(lines, delimiter=dialect.delimiter)]
    width = statistics.mode(map(len, rows))
    named = (len(row) == width == len({f for f in row if any(map(str.isalpha, f))}) for row in rows)
    return next((f"line {k} looks like the header: delete those above" for k, fits in enumerate(named, 1) if fits), "")


def _first_line(path: Path, compressed: str) -> bytes:
    with open_bytes(path, compressed) as file:
        start = file.read(1 << 16)
        while not (b"\n" in start or b"\r" in start) and len(start) < MAX_HEADER:
            more = file.read(1 << 16)
            if not more:
                break
            start += more
    lines = start.removeprefix(b"\xef\xbb\xbf").splitlines()
    return lines[0] if lines else b""


def open_bytes(path: Path, compressed: str) -> IO[bytes]:
    """The decompressed bytes of a file."""
    if compressed == "gzip":
        return gzip.open(path)  # type: ignore[return-value]
    if compressed == "zstd":
        import pyarrow as pa  # slow to load

        stream: IO[bytes] = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
        return stream
    return path.open("rb")


def parquet_schema(path: Path) -> tuple[tuple[str, str], ...]:
    """The names and types of the columns of a Parquet file.

    Raises:
        UserError: truncated, or not Parquet at all.
    """
    import pyarrow as pa  # slow to load
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            several = json.loads((schema.metadata or {}).get(SEVERAL_TEXTS.encode(), "[]"))
            return tuple((c.name, SEVERAL_TEXTS if c.name in several else str(c.type)) for c in schema)
    except (pa.ArrowException, OSError) as error:
        problem = "is not a whole Parquet file: truncated, damaged, or of another kind"
        raise UserError(problem, where=str(path), fix="write or fetch it again") from error


def csv_head(file: IO[bytes], dialect: Dialect) -> list[str]:
    """The names in the first line of a CSV file; ValueError where it has none."""
    start = file.read(LONGEST_LINE).decode(dialect.encoding, errors="ignore")  # the last character may be cut
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=dialect.delimiter), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def gzipped_csv_head(file: IO[bytes], dialect: Dialect) -> list[str]:
    """The same of a compressed one."""
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            return csv_head(unpacked, dialect)  # type: ignore[arg-type]  # reads like any other
    except (EOFError, zlib.error) as error:
        raise ValueError(f"truncated or damaged: {error}") from error


def parquet_head(file: IO[bytes], _dialect: Dialect) -> list[str]:
    """The names in a Parquet file's own schema."""
    import pyarrow.parquet as pq  # slow to load

    return [*pq.read_schema(file).names]


def shown(delimiter: str) -> str:
    """A delimiter as one types it."""
    return "'\\t'" if delimiter == "\t" else f"'{delimiter}'"
