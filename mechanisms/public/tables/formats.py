"""The formats of tables on disk: one entry each, which names all that the rest asks of a format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.members import Members


@dataclass(frozen=True)
class TableFormat:
    """A format of a table's file; its functions are `module:name`, loaded when they are used.

    Attributes:
        name: as `release.format` asks for it.
        suffixes: ends of the names of such files.
        media: the media type, for metadata.
        reader: `scan.Opening` → `scan.Source`.
        writer: (binary file, `write_table.Chunks`) → None.
        head: (binary file, dialect) → names of the columns; reads no row.
        compressed: whether a value may take less than two bytes.
        magic: the first bytes of such a file; empty where any may stand there.
    Raises:
        TypeError: no ends of names among which the format's own is, by which releases are read, or no first bytes.
    """

    name: str
    suffixes: tuple[str, ...]
    media: str
    reader: str
    writer: str
    head: str
    compressed: bool
    magic: bytes = b""

    def __post_init__(self) -> None:
        if not isinstance(self.suffixes, tuple) or f".{self.name}" not in self.suffixes:
            raise TypeError(
                f"the suffixes of the format {self.name} are {self.suffixes!r}: a tuple with '.{self.name}'"
            )
        if not isinstance(self.magic, bytes):
            raise TypeError(f"the magic of the format {self.name} is {self.magic!r}: bytes")

    @property
    def released(self) -> str:
        """The name of the synthetic table in a release."""
        return f"synthetic.{self.name}"

    @property
    def released_persons(self) -> str:
        """The name of the table with a row per person beside it (release.tables=two)."""
        return f"synthetic_persons.{self.name}"

    @property
    def own(self) -> bool:
        """Whether it is one of ours, which tests try."""
        return self in _OWN.values()

    def function(self, role: str) -> Callable[..., Any]:
        """The reader, the writer or the head."""
        function: Callable[..., Any] = resolve_name(getattr(self, role))
        return function


READ, WRITE, HEADS = (f"mechanisms.public.tables.{m}" for m in ("readers", "write_table", "inspect_file"))
_CSV = (f"{READ}:open_csv", f"{WRITE}:write_csv", f"{HEADS}:csv_head")
_GZIPPED = (f"{READ}:open_csv", f"{WRITE}:write_gzipped_csv", f"{HEADS}:gzipped_csv_head")
_PARQUET = (f"{READ}:open_parquet", f"{WRITE}:write_parquet", f"{HEADS}:parquet_head")
CSV = TableFormat("csv", (".csv",), "text/csv", *_CSV, compressed=False)
_OWN: dict[str, TableFormat | str] = {
    "csv": CSV,
    "csv.gz": TableFormat("csv.gz", (".csv.gz",), "application/gzip", *_GZIPPED, compressed=True),
    "parquet": TableFormat(
        "parquet", (".parquet", ".pq"), "application/x-parquet", *_PARQUET, compressed=True, magic=b"PAR1"
    ),
}
#: Format by name, as `release.format` may ask for it: an entry, or `module:name` of it.
FORMATS: Members[TableFormat] = Members("release.format", _OWN)


def format_of_name(name: str) -> TableFormat | None:
    """The format that a file's name ends in; None where it ends in none."""
    ends = [(len(s), f.name) for f in FORMATS.values() for s in f.suffixes if name.lower().endswith(s)]
    return FORMATS[max(ends)[1]] if ends else None


def format_of_file(path: Path) -> TableFormat:
    """By the first bytes, or the name; what says nothing else is taken for CSV."""
    with path.open("rb") as file:
        start = file.read(16)
    marked = (f for f in FORMATS.values() if f.magic and start.startswith(f.magic))
    return next(marked, None) or format_of_name(path.name) or CSV


def persons_of(table: str) -> str:
    """The name of the table with a row per person that may lie beside a synthetic table of this name; else empty."""
    form = format_of_name(table)
    return form.released_persons if form is not None and table == form.released else ""


def released_table(names: Iterable[str], where: Path | str) -> str:
    """The name of the synthetic table among those of a release's files.

    Raises:
        UserError: there is none.
    """
    tables = sorted({f.released for f in FORMATS.values()} & {*names})
    if not tables:
        raise UserError("no synthetic table in this release", where=str(where), fix="take the release folder whole")
    return tables[0]
