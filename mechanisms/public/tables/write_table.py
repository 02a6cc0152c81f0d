"""Writing: codes → a file of any format, in chunks, whole or not at all.

The cells of a CSV file are our own. `pyarrow.csv.write_csv` writes a missing value of a table of one column as an
empty line, which readers skip, so that a table read again would have fewer rows. It puts every text in quotes, needed
or not (other bytes for the same seed), and refuses cells that have theirs already. It is faster.
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import whole_file
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.spellings import SAMPLE, moment_of
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Drawn, Owned, draw, draw_table, reordered, with_units
from mechanisms.public.tables.formats import FORMATS, format_of_name


def arrow_table(rows: Owned, schema: Schema, rng: np.random.Generator, *, texts: Collection[str] = ()) -> Any:
    """Codes as a `pyarrow.Table`, its columns in the order of the schema; unit ids, where it declares them, are last.

    Args:
        rows: of `with_units`.
        texts: columns that are wanted as a CSV file would hold them.
    """
    columns = {}
    for drawn, column in zip(draw_table(rows, schema, rng, 0, rows.coded.rows), schema.held, strict=True):
        if column.name in texts:
            columns[column.name] = text_column(drawn, column)
        else:
            columns[column.name] = arrow_column(drawn, column, arrow_type(column))
    if rows.ids is not None:
        columns[schema.rules.id_column] = pa.array(rows.ids)
    return pa.table(columns)


def decode_column(codes: Codes, column: Column, rng: np.random.Generator) -> Any:
    """Codes of one column, one per row, as an Arrow array of the type that the schema gives it."""
    return arrow_column(draw(np.asarray(codes), column, rng), column, arrow_type(column))


def arrow_type(column: Column) -> Any:
    """The Arrow type that holds a column's values as they are written."""
    if column.kind == "flag":
        plain = column.values == ("false", "true") and column.size == 2
        return pa.bool_() if plain else pa.string()
    if column.other is not None or column.width is not None:
        return pa.string()
    if column.numeric or (column.whole and not any(column.missing_texts)):
        return pa.float64() if column.kind == "float" else pa.int64()
    return {"date": pa.date32(), "datetime": pa.timestamp("s")}.get(column.kind, pa.string())


def arrow_column(drawn: Drawn, column: Column, kind: Any) -> Any:
    """One column as an Arrow array of its own type."""
    if kind == pa.string():
        return text_column(drawn, column)
    if drawn.labels is not None:
        texts: list[Any] = list(drawn.labels)
        if kind == pa.int64():
            texts = [None if t is None else int(t) for t in texts]
        if kind == pa.bool_():
            texts = [False, True]
        return pa.array(texts, type=kind).take(pa.array(drawn.values))
    mask = drawn.missing
    if column.kind == "date":
        return pa.array(_as_written(drawn, column).astype(np.int32), type=pa.int32(), mask=mask).cast(pa.date32())
    if column.kind == "datetime":
        return pa.array(_as_written(drawn, column), type=pa.int64(), mask=mask).cast(pa.timestamp("s"))
    return pa.array(drawn.values, type=kind, mask=mask)


def text_column(drawn: Drawn, column: Column) -> Any:
    """A column as text; absent values are null."""
    if drawn.labels is not None:
        return pa.array(written_labels(drawn.labels, column), type=pa.string()).take(pa.array(drawn.values))
    if column.kind in DATE_KINDS:
        values = _moments(drawn, column)
    else:
        values = pa.array(drawn.values).cast(pa.string())
        if column.fixed:
            each = pc.dictionary_encode(values)
            texts = [_padded(text, column.fixed) for text in each.dictionary.to_pylist()]
            values = pa.array(texts, type=pa.string()).take(each.indices)
        if column.decimal != ".":
            values = pc.replace_substring(values, ".", column.decimal)
        if column.width is not None:
            values = pc.utf8_lpad(values, column.width, "0")
    if drawn.other is not None:
        values = pc.if_else(pa.array(drawn.other), pa.scalar(column.other), values)
    if drawn.missing is not None:
        values = pc.if_else(pa.array(drawn.missing), pa.scalar(None, pa.string()), values)
    return values


def written_labels(labels: Sequence[str | None], column: Column) -> Sequence[str | None]:
    """The labels of a column's codes as texts hold them: whole numbers with their fixed decimals."""
    if not column.fixed:
        return labels
    numbers = [_padded(str(t), column.fixed).replace(".", column.decimal) for t in labels[: column.value_codes]]
    return [*numbers, *labels[column.value_codes :]]


def _padded(number: str, decimals: int) -> str:
    """A number with at least so many decimals: 60.00; one with an exponent stays."""
    whole, _, part = number.partition(".")
    return number if "e" in number else f"{whole}.{part:0<{decimals}}"


def _as_written(drawn: Drawn, column: Column) -> Any:
    """Dates and times as their texts are read back: the first of a month, where the format writes no other day."""
    unit = 86_400 if column.kind == "date" else 1
    whole = SAMPLE.replace(hour=0, minute=0, second=0) if column.kind == "date" else SAMPLE
    if column.format is None or moment_of(whole.strftime(column.format), column.format) == whole:
        return drawn.values
    distinct, position = np.unique(drawn.values, return_inverse=True)
    moments = (distinct * unit).astype("datetime64[s]").astype(object)
    read = [moment_of(m.strftime(column.format), column.format) or m for m in moments]
    return (np.array(read, "datetime64[s]").astype(np.int64) // unit)[position]


def _moments(drawn: Drawn, column: Column) -> Any:
    """Dates and times as text; equal ones are rendered once where a format makes that slow."""
    kind = pa.timestamp("s")
    if column.format is None:
        if column.kind == "date":
            return pa.array(drawn.values.astype(np.int32)).cast(pa.date32()).cast(pa.string())
        return pa.array(drawn.values).cast(kind).cast(pa.string())
    unit = 86_400 if column.kind == "date" else 1
    distinct, position = np.unique(drawn.values, return_inverse=True)
    moments = (distinct * unit).astype("datetime64[s]").astype(object)
    return pa.array([m.strftime(column.format) for m in moments], type=pa.string()).take(pa.array(position))


#: Rows that are decoded at a time.
CHUNK_ROWS = 200_000
#: Quoted wherever they stand: a byte order mark in front of a file's first name would be taken off.
SPECIAL = set('"\r\n\ufeff')
#: In a column on its own, an empty cell or another delimiter would look like an empty line or a wrong delimiter.
SPECIAL_ALONE = set(",;|\t")


#: Decoded columns of some rows, and the ids of their units if there are any.
Part = tuple[list[Drawn], NDArray[Any] | None]


def write_table(
    path: Path,
    rows: CodedTable | Owned,
    schema: Schema,
    rng: np.random.Generator,
    *,
    persons: Path | None = None,
    progress: Progress | None = None,
    chunk: int | None = None,
) -> None:
    """Decode a table into a file, in the format that its name ends in; it appears there only when it is whole.

    Where the schema declares unit ids, they are a last column, and the rows of one unit stand together.

    Args:
        rows: codes of the schema's columns, or what `with_units` made of them.
        rng: the source of the draws inside bins; the file depends on CHUNK_ROWS through the order of the draws.
        persons: a second file, for a row per unit with what is constant in it, which the first one then lacks; both
            have the ids. The schema must declare a unit.
        chunk: rows that are decoded at a time; None: CHUNK_ROWS.

    Raises:
        UserError: an unknown suffix; a full or read-only disk.
    """
    owned = rows if isinstance(rows, Owned) else with_units(rows, schema, rng)
    unit, units = schema.rules.unit, list[Part]()
    parts = _parts(owned, schema, rng, progress, chunk or CHUNK_ROWS)
    if persons is None or unit is None:
        return _write(path, Chunks(parts, schema.held, schema.rules.id_column, owned.ids, schema.dialect))
    places = [[i for i, c in enumerate(schema.held) if (c.name in unit.constant) == own] for own in (True, False)]
    constant, moving = (tuple(schema.held[i] for i in own) for own in places)
    _write(path, Chunks(_split(parts, places, units), moving, unit.column, owned.ids, schema.dialect))
    return _write(persons, Chunks(units, constant, unit.column, owned.ids, schema.dialect))


def _write(path: Path, chunks: Chunks) -> None:
    form = format_of_name(path.name)
    if form is None:
        fix = f"a name with {', '.join(f.suffixes[0] for f in FORMATS.values())}"
        raise UserError(f"cannot tell the format of {path.name}", where=str(path), fix=fix)
    with whole_file(path) as part, part.open("wb") as file:
        form.function("writer")(file, chunks)


def _parts(
    owned: Owned, schema: Schema, rng: np.random.Generator, progress: Progress | None, chunk: int
) -> Iterator[Part]:
    """The decoded rows, some at a time."""
    start, rows, ids = 0, owned.coded.rows, owned.ids
    while start < rows:
        stop = min(start + chunk, rows)
        while ids is not None and stop < rows and ids[stop] == ids[stop - 1]:
            stop += 1  # a unit's rows are ordered together
        yield draw_table(owned, schema, rng, start, stop), None if ids is None else ids[start:stop]
        start = stop
        if progress is not None:
            progress(stop, rows, "rows written")


def _split(parts: Iterable[Part], places: Sequence[Sequence[int]], units: list[Part]) -> Iterator[Part]:
    """The columns of the second places; those of the first ones go to `units`, of each unit's first row."""
    for drawn, ids in parts:
        assert ids is not None, "persons have ids"
        first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
        units.append(([reordered(drawn[i], first) for i in places[0]], ids[first]))
        yield [drawn[i] for i in places[1]], ids


@dataclass(frozen=True, eq=False)
class Chunks:
    """The decoded rows of a file, some at a time, with the ids of their units if there are any.

    Attributes:
        columns: of the file, but for that of the ids.
        ids: all of them, or more; they say of which type they are.
        dialect: of a CSV file.
    """

    parts: Iterable[Part]
    columns: tuple[Column, ...]
    id_column: str
    ids: NDArray[Any] | None
    dialect: Dialect

    @property
    def id_name(self) -> str | None:
        return None if self.ids is None else self.id_column

    def __iter__(self) -> Iterator[tuple[list[Drawn], Any]]:
        for drawn, ids in self.parts:
            yield drawn, None if ids is None else pa.array(ids)

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of the columns, that of the ids last."""
        fields = [pa.field(c.name, arrow_type(c)) for c in self.columns]
        if self.ids is not None:
            fields.append(pa.field(self.id_name, pa.array(self.ids[:1]).type if len(self.ids) else pa.int64()))
        return pa.schema(fields)

    def tables(self) -> Iterator[pa.Table]:
        """The chunks as Arrow tables."""
        schema = self.arrow_schema
        for drawn, ids in self:
            arrays = [arrow_column(d, c, f.type) for d, c, f in zip(drawn, self.columns, schema, strict=False)]
            yield pa.Table.from_arrays([*arrays, *([] if ids is None else [ids])], schema=schema)


def write_parquet(file: IO[bytes], chunks: Chunks) -> None:
    """The decoded rows as Parquet, a row group a chunk."""
    with pq.ParquetWriter(file, chunks.arrow_schema) as writer:
        for table in chunks.tables():
            writer.write_table(table)


def write_gzipped_csv(file: IO[bytes], chunks: Chunks) -> None:
    """The decoded rows as CSV, compressed; the same bytes for the same rows."""
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5, filename="", mtime=0) as packed:
        write_csv(packed, chunks)


def write_csv(file: Any, chunks: Chunks) -> None:
    """The decoded rows as CSV, with a header, in their dialect."""
    columns, dialect = chunks.columns, chunks.dialect
    marks, delimiter = SPECIAL | {dialect.delimiter}, dialect.delimiter
    # what the schema lists was looked at before; what a table held and this cannot write becomes a question mark
    encoder = codecs.getincrementalencoder(dialect.encoding)("replace")
    names = [c.name for c in columns] + ([] if chunks.id_name is None else [chunks.id_name])
    alone = len(names) == 1
    file.write(encoder.encode(delimiter.join(_cell(n, marks, alone) for n in names) + "\n"))
    ends = [delimiter] * (len(names) - 1) + ["\n"]
    for drawn, ids in chunks:
        cells: list[Any] = []
        for one, column, end in zip(drawn, columns, ends, strict=False):
            cells += _cells(one, column, end, marks, alone)
        if ids is not None:
            texts = ids if pa.types.is_integer(ids.type) else _rendered(ids, marks, alone=False)
            cells += [texts.cast(pa.large_string()), pa.scalar("\n", pa.large_string())]
        lines = pc.binary_join_element_wise(*cells, pa.scalar("", pa.large_string()))
        length = int(np.frombuffer(lines.buffers()[1], dtype=np.int64)[len(lines)])
        view = memoryview(lines.buffers()[2])[:length]
        file.write(view if dialect.bytes_are_utf8 else encoder.encode(str(view, "utf-8")))


def _rendered(texts: Any, marks: set[str], alone: bool) -> Any:
    """Texts as CSV cells: each different one is looked at once."""
    distinct = pc.dictionary_encode(texts)
    cells = [None if t is None else _cell(t, marks, alone) for t in distinct.dictionary.to_pylist()]
    return pa.array(cells, type=pa.string()).take(distinct.indices)


def _cells(drawn: Drawn, column: Column, end: str, marks: set[str], alone: bool) -> list[Any]:
    """The CSV cells of a column, and what follows them."""
    empty = '""' if alone else ""
    if drawn.labels is not None:
        texts = [(empty if t is None else _cell(t, marks, alone)) + end for t in written_labels(drawn.labels, column)]
        return [pa.array(texts, type=pa.large_string()).take(pa.array(drawn.values))]
    text = text_column(drawn, column)
    if column.other is not None or column.format is not None or column.decimal != ".":
        text = _rendered(text, marks, alone)
    return [pc.fill_null(text, empty).cast(pa.large_string()), pa.scalar(end, pa.large_string())]


def _cell(text: str, marks: set[str], alone: bool) -> str:
    """A text as a CSV cell: quoted only where it must be."""
    if marks & set(text) or text != text.strip() or (alone and (not text or SPECIAL_ALONE & set(text))):
        return '"' + text.replace('"', '""') + '"'
    return text
