"""Codec: a table on disk → codes in memory-mapped columns, and codes → a table, with their round-trip law.

Law: encoding what was written from codes gives the same codes, for every kind of column and every code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.schema.fine_cells import fine_codes
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import decode_column, decode_table
from mechanisms.public.tables.encode import OUTSIDE, UNPLACED, encoding
from mechanisms.public.tables.out_of_schema import codes_apart, with_apart
from mechanisms.public.tables.scan import Source, mapped_errors, private_folder, stream
from mechanisms.public.tables.write_table import write_table

__all__ = ["EncodingReport", "decode_column", "decode_table", "encode_columns", "encode_table", "write_table"]


@dataclass(frozen=True)
class EncodingReport:
    """What encoding could not take as it was. NOT private: for the internal log alone.

    Attributes:
        rows: of the table, as read.
        outside: column → values outside its domain.
        unplaced: column → values that are none of its kind, or absent where the column has no code for that.
        conflicts: rule of the schema → rows that contradict it, and take what the rule says.
    """

    rows: int
    outside: Mapping[str, int]
    unplaced: Mapping[str, int]
    conflicts: Mapping[str, int] = field(default_factory=dict)

    @property
    def marked(self) -> list[str]:
        """Columns with values outside the domain, or of another kind."""
        return [name for name in self.outside if self.outside[name] or self.unplaced[name]]

    def apart(self, schema: Schema) -> list[str]:
        """Columns with values that the domain has no place for, not even *other*."""
        marked = {c.name: self.unplaced[c.name] + (c.outside != "other") * self.outside[c.name] for c in schema.columns}
        return [name for name, n in marked.items() if n]

    def __str__(self) -> str:
        parts = [f"{name}: {n} outside" for name, n in self.outside.items() if n]
        parts += [f"{name}: {n} unplaced" for name, n in self.unplaced.items() if n]
        parts += [f"{rule}: {n} contradict it" for rule, n in self.conflicts.items() if n]
        return "; ".join(parts) or "nothing"


def encode_table(source: Source, schema: Schema, *, workdir: Path, progress: Progress | None = None) -> CodedTable:
    """All rows of a table as codes, in the order of the file. Not private.

    Args:
        workdir: where the column files go (made with mode 0700); the table maps them.

    Raises:
        UserError: a malformed file, an absent column, a full disk, or a value that a column refuses (quoting none).
    """
    return encode_columns(source, schema, workdir=workdir, progress=progress)[0]


def encode_columns(
    source: Source,
    schema: Schema,
    *,
    workdir: Path,
    progress: Progress | None = None,
    further: dict[str, str] | None = None,
    on_batch: Callable[[Any], None] | None = None,
    apart: bool = False,
    fine: bool = False,
) -> tuple[CodedTable, EncodingReport]:
    """Like `encode_table`, with a report.

    Args:
        further: name → SQL, handed to `on_batch` with each Arrow batch.
        apart: for scores: what the domain has no place for gets a code of its own behind all others, in the columns
            where there is any (the table's domain is larger by it); nothing is clipped, and nothing refused.
        fine: for measuring: the fine columns of the schema stand behind its own; computed columns are not read.
    """
    folder = workdir / "codes"
    with mapped_errors(source):
        private_folder(folder)
    plan = encoding(source, schema, further, fine=fine)
    outside = dict.fromkeys(schema.domain.names, 0)
    unplaced = dict.fromkeys(schema.domain.names, 0)
    beside = tuple(schema.fine.values()) if fine else ()
    places = {name: len(schema.columns) + i for i, name in enumerate(schema.fine if fine else ())}
    paths = [folder / f"{i:04}.codes" for i in range(len(schema.columns) + len(beside))]
    rows = 0
    with source.connect() as connection:
        for path in paths:
            path.write_bytes(b"")
        for statement in plan.types:
            connection.execute(statement)
        for batch in stream(source, connection, plan.select):
            for i, column in enumerate(schema.columns):
                raw = batch.column(i).to_numpy(zero_copy_only=True)
                codes, marks = codes_apart(raw, column) if apart else _split(raw, column.size)
                outside[column.name] += marks[OUTSIDE]
                unplaced[column.name] += marks[UNPLACED]
                if column.outside == "refuse" and not apart and (marks[OUTSIDE] or marks[UNPLACED]):
                    fix = "mend the table, widen the schema, or choose outside: clip, other or missing"
                    raise UserError("a value lies outside the domain", where=f"column {column.name!r}", fix=fix)
                with paths[i].open("ab") as file:
                    _append(file, codes)
                if (place := places.get(column.name)) is not None:
                    with paths[place].open("ab") as file:
                        _append(file, fine_codes(column, codes, batch.column(place).to_numpy(zero_copy_only=True)))
            if on_batch is not None:
                on_batch(batch)
            rows += batch.num_rows
            if progress is not None:
                progress(rows, 0, f"{rows:,} rows")
    sizes = [*(c.size + apart for c in schema.columns), *(a.size for a in beside)]
    columns = tuple(mapped(path, code_dtype(size)) for path, size in zip(paths, sizes, strict=True))
    report = EncodingReport(rows, outside, unplaced)
    domain = with_apart(schema, report.apart(schema) if apart else ()).domain
    return CodedTable(Domain((*domain.attributes, *beside)), columns), report


def _split(raw: NDArray[np.uint32], size: int) -> tuple[NDArray[np.unsignedinteger], list[int]]:
    """Codes, and how many values carry each mark."""
    if not len(raw) or int(raw.max()) < size:
        return raw.astype(code_dtype(size)), [len(raw), 0, 0]
    marks, codes = np.divmod(raw, np.uint32(size))
    return codes.astype(code_dtype(size)), np.bincount(marks, minlength=3).tolist()


def _append(file: BinaryIO, codes: NDArray[np.unsignedinteger]) -> None:
    file.write(codes.data)


def mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A column file as a read-only memory map."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
