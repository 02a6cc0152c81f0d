"""The files of a table, and what each says before a row is read: format, compression, header; whether it is whole."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import statistics
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from mechanisms.public.errors import AS_UTF8, UserError, did_you_mean
from mechanisms.public.files import as_path
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.tables.formats import CSV, format_of_file, released_table

DELIMITERS = (",", ";", "\t", "|")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
AS_A_TABLE = "save the table as CSV (UTF-8; plain, .gz or .zst) or as Parquet"
#: Bytes at a place near the start of a file → what it is, and the way out.
FOREIGN = {
    (0, b"SQLite f"): ("a SQLite file", "sqlite:///{path}#NAME, for the table NAME"),
    (8, b"DUCK"): ("a DuckDB file", "in DuckDB: COPY NAME TO 'x.parquet', for the table NAME"),
    (0, b"<stata_dta>"): ("a Stata file", f"{AS_A_TABLE}, or pipeline.fit(pd.read_stata(…), …)"),
    (0, b"$FL2"): ("an SPSS file", f"{AS_A_TABLE}, or pipeline.fit(pd.read_spss(…), …)"),
    (12, b"\xc2\xea\x81\x60"): ("a SAS file", f"{AS_A_TABLE}, or pipeline.fit(pd.read_sas(…), …)"),
    (0, b"ARROW1"): ("an Arrow file", f"{AS_A_TABLE}, or pipeline.fit(pd.read_feather(…), …)"),
    (0, b'{"'): ("JSON", f"{AS_A_TABLE}, or pipeline.fit(pd.read_json(…, lines=True), …)"),
    (0, b"[{"): ("JSON", f"{AS_A_TABLE}, or pipeline.fit(pd.read_json(…), …)"),
    (0, b"\xd0\xcf\x11\xe0"): ("a spreadsheet", AS_A_TABLE),
    **{(0, tag): ("a page (HTML or XML)", AS_A_TABLE) for tag in (b"<table", b"<html", b"<!DOCTYPE", b"<?xml")},
    (0, b"PK\x03\x04"): ("a zip archive or a spreadsheet", AS_A_TABLE),
    (0, b"BZh"): ("bzip2", AS_A_TABLE),
    (0, b"\xfd7zXZ"): ("xz", AS_A_TABLE),
}
MAX_HEADER = 1 << 22
#: The longest line of names of a released table that is read.
LONGEST_LINE = 1 << 20
#: The type of a column of texts that had another one in a database, of which equal values may have several texts.
SEVERAL_TEXTS = "SEVERAL_TEXTS"
DAMAGED = "fetch or compress it again"
WILD = frozenset("*?[")
#: A path; of the file behind it the device, the number there, its bytes, and when it was written and changed (ns); of
#: each symbolic link on the way its path, its number, and when it was made (ns).
State = tuple[Path, int, int, int, int, int, tuple[tuple[Path, int, int], ...]]
ONE_TABLE = "parts of one table, of one format and with the same columns in the same order"


def check_file(path: Path) -> None:
    """The file is there, is a file, can be read, holds something, and is of a kind that is known.

    Raises:
        UserError: names the file and the way out.
    """
    where = str(path)
    if path.is_dir():
        raise UserError("this is a folder", where=where, fix="the path of one file")
    if not path.exists():
        near = sorted(p.name for p in path.parent.iterdir() if p.exists()) if path.parent.is_dir() else []
        fix = did_you_mean(path.name, near) or ("check the path" if near else f"there is no folder {path.parent}")
        problem = "this link leads to no file" if path.is_symlink() else "no such file"
        raise UserError(problem, where=where, fix=fix)
    if not path.is_file():
        raise UserError("this is no regular file", where=where, fix="write it to disk: the table is read several times")
    try:
        start = _first_bytes(path)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=where, fix="check its permissions") from error
    if not start:
        raise UserError("the file is empty", where=where, fix="a table with at least a header")
    unclaimed = format_of_file(path) is CSV  # a format of a plugin may read such files
    for (place, magic), (kind, fix) in FOREIGN.items():
        if unclaimed and start.startswith(magic, place):
            raise UserError(f"is not read as it is: {kind}", where=where, fix=fix.replace("{path}", str(path)))


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def compression(path: Path) -> Literal["none", "gzip", "zstd"]:
    """By the first bytes."""
    start = _first_bytes(path)
    return "gzip" if start.startswith(GZIP) else "zstd" if start.startswith(ZSTD) else "none"


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Reads the bytes of a file that may be compressed.

    Raises:
        UserError: it is truncated or damaged, or the system does not let it be read.
        MemoryError: it is not read for want of memory, of which libraries tell in words alone.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        if re.search(r"memory|shared object", str(error)):
            raise MemoryError(str(error)) from error
        if isinstance(error, OSError) and error.errno:
            raise UserError(f"cannot be read: {error.strerror}", where=str(path), fix="check the disk") from error
        raise UserError("the compressed file is truncated or damaged", where=str(path), fix=DAMAGED) from error


def read_header(
    path: Path, compressed: str, delimiter: str, *, setting: str, where: str
) -> tuple[tuple[str, ...], str]:
    """The column names of a CSV file, and its first line as it stands.

    Args:
        where: what a message names.
    Raises:
        UserError: no header, not UTF-8, a damaged file, plainly another delimiter, or a column name that cannot be one.
    """
    try:
        with undamaged(path), open_bytes(path, compressed) as file:
            start = file.readline(MAX_HEADER)
        line = next(iter(start.splitlines()), b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text", where=where, fix=AS_UTF8) from error
    if "\0" in line:
        raise UserError("is not a text", where=where, fix=AS_A_TABLE)
    if not line.strip():
        raise UserError("the file has no header", where=where, fix="the names of the columns in its first line")
    if re.fullmatch(r'(?i)"?sep=.?"?', line.strip()):
        fault = "the first line is a spreadsheet's note of the delimiter, and no header"
        raise UserError(fault, where=where, fix="delete the line; the header is the next one")
    if line.count('"') % 2:
        fault = "the header has a quote that is not closed, or a column name with a line break"
        raise UserError(fault, where=where, fix="rename the column")
    try:
        names = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        fix = "its names in the first line; perhaps a quote is not closed"
        raise UserError("a column name is too long to be one", where=where, fix=fix) from error
    if len(names) == 1:
        for other in DELIMITERS:
            if len(next(csv.reader([line], delimiter=other))) > 1:
                fault = f"the header is one field with {shown(other)} in it: is the delimiter {shown(delimiter)} right?"
                raise UserError(fault, where=where, fix=f"{setting}={shown(other)}")
    return tuple(names), line


def likely_header(path: Path, dialect: Dialect) -> str:
    """Which line looks like the header: a word in each field, no two alike, and as many as most lines have."""
    with open_bytes(path, compression(path)) as file:
        lines = file.read(1 << 16).decode(dialect.encoding, errors="ignore").splitlines()
    rows = [*csv.reader(lines, delimiter=dialect.delimiter)]
    width = statistics.mode(map(len, rows))
    named = (len(row) == width == len({f for f in row if any(map(str.isalpha, f))}) for row in rows)
    return next((f"line {k} looks like the header: delete those above" for k, fits in enumerate(named, 1) if fits), "")


def open_bytes(path: Path, compressed: str) -> IO[bytes]:
    """The decompressed bytes of a file."""
    if compressed == "gzip":
        return gzip.open(path)  # type: ignore[return-value]
    if compressed == "zstd":
        import pyarrow as pa  # slow to load

        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
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
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
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


def table_parts(path: Path) -> tuple[Path, ...]:
    """The files of a table, checked; what other tools leave beside (`_SUCCESS`, hidden ones) is none of its parts.

    Raises:
        UserError: a name that no system takes; a folder without parts, or a release; a pattern that matches none; as of
            `check_file`.
    """
    parts = [as_path(path, "the table")]
    if path.is_dir():
        for release in (path, path / "release"):
            if (release / "privacy.json").is_file():
                table = released_table((p.name for p in release.iterdir()), release)
                raise UserError("a release, not a table", where=str(path), fix=f"its table: {release / table}")
        parts = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        inner = sorted(p.name for p in path.iterdir() if p.is_dir() and p.name[0] not in "._")
        if not parts:
            fix = f"a folder with parts of the table, for example {path / inner[0]}" if inner else ONE_TABLE
            raise UserError("no files in this folder", where=str(path), fix=fix)
    elif WILD & set(str(path)) and not path.exists():
        start = Path(path.anchor) if path.is_absolute() else Path()
        fixed = next(i for i, name in enumerate(path.parts) if WILD & set(name))
        matches = {p for p in start.glob(str(path.relative_to(start))) if p.is_file()}
        parts = sorted(p for p in matches if all(name[0] not in "._" for name in p.parts[fixed:]))
        if not parts:
            problem = f"no file matches this pattern{' but hidden ones and those that begin with _' if matches else ''}"
            raise UserError(problem, where=str(path), fix=ONE_TABLE)
    for part in parts:
        check_file(part)
    return tuple(parts)


def check_same(parts: Sequence[Path], facts: Sequence[object], verb: str) -> None:
    """What is said of each part is the same.

    Raises:
        UserError: names the first part that differs.
    """
    for part, words in zip(parts, facts, strict=True):
        if words != facts[0]:
            raise UserError(f"its {verb} not agree with {parts[0].name}", where=str(part), fix=ONE_TABLE)


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
