"""DuckDB inside the process: streams the file, spills to disk, and leaves codes in memory-mapped columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import Alongside, EncodingReport, encode_columns, mapped
from mechanisms.public.tables.encode import as_listed_sql
from mechanisms.public.tables.scan import Source, literal, mapped_errors, private_folder
from mechanisms.public.units import MAX_RECORDS
from mechanisms.sensitive.contribution import (
    Aside,
    PrivacyUnit,
    UnitRows,
    UnitSizes,
    clip_records,
    needs_content,
    set_aside_units,
    unit_forms,
    unit_id,
    unit_sizes,
)
from mechanisms.sensitive.engines import coins
from mechanisms.sensitive.engines.engine import Clipped, Encoded, Scored, ValueCount

#: Codes that are looked at together.
CHUNK = 1 << 22
#: Of the copy of ids and contents; both are texts.
UNIT, CONTENT = "unit", "content"


@dataclass(frozen=True)
class DuckdbEngine:
    """The embedded engine."""

    def encode(self, table: UnitRows, schema: Schema, *, contents: bytes | None, progress: Progress | None) -> Encoded:
        """As of `Engine`; the file is parsed once, and the rows keep its order."""
        source, workdir, names = table.source, table.workdir, row_names(table.source, table.unit, contents=contents)
        path, asked = workdir / "units.parquet", table.unit.column is not None or contents is not None
        with ExitStack() as stack:
            beside = Alongside(names, _writer(stack, path, table, list(names))) if asked else None
            coded, report = encode_columns(source, schema, workdir=workdir, progress=progress, beside=beside, fine=True)
        plain = CodedTable(schema.domain, coded.columns[: len(schema.columns)])
        if schema.engineering.steps:
            engineered, conflicts = engineer(plain, schema.engineering, workdir=workdir / "engineered")
            columns = (*engineered.columns, *coded.columns[len(schema.columns) :])  # the fine ones stand behind
            coded, report = CodedTable(schema.measured, columns), replace(report, conflicts=conflicts)
        if progress is not None and table.unit.column is not None:
            progress(coded.rows, 0, "clipping")
        return EncodedFiles(table, coded, report, path, plain)

    def values(
        self, table: UnitRows, columns: Sequence[Column], *, key: bytes, aside: Aside | None
    ) -> dict[str, list[ValueCount]]:
        """As of `Engine`; ids and texts are copied once, and deleted again."""
        path, source = table.workdir / "values.parquet", table.source
        texts = {f"v{i}": as_listed_sql(source, c) for i, c in enumerate(columns)}
        held = None if aside is None else aside_rows(table, aside)
        _copied(table, path, texts | {UNIT: row_names(source, table.unit, contents=None)[UNIT]}, held)
        rows = f"read_parquet({literal(str(path))}, hive_partitioning = false)"
        with source.connect() as engine:
            counts = {
                column.name: [
                    (str(text), int(values), int(count))
                    for sql in _counts(rows, f"v{i}", column, table.unit, key)
                    for text, values, count in engine.execute(sql).fetchall()
                ]
                for i, column in enumerate(columns)
            }
        path.unlink()
        return counts

    def scored(
        self, source: Source, schema: Schema, report: EncodingReport, *, workdir: Path, progress: Progress | None
    ) -> Scored | None:
        return None

    def spread(self, make: Callable[[int], CodedTable], numbers: range) -> Iterator[tuple[NDArray[np.generic], ...]]:
        """As of `Engine`: one after the other, in this process."""
        for number in numbers:
            yield make(number).columns


def row_names(source: Source, unit: PrivacyUnit, *, contents: bytes | None) -> dict[str, str]:
    """What is read beside the codes: name → SQL for the unit's id as it stands, and for the row's content, or NULL.

    Args:
        contents: as of `Engine.encode`.
    """
    return {
        UNIT: "NULL::VARCHAR" if unit.column is None else unit_id(source, unit),
        CONTENT: "NULL::VARCHAR" if contents is None else coins.content(source, contents),
    }


def _writer(stack: ExitStack, path: Path, table: UnitRows, names: Sequence[str]) -> Any:
    """What keeps the last columns of each batch, of these names, as texts; the ids in the forms that tell units."""
    fields = pa.schema([(name, pa.string()) for name in names])
    stack.enter_context(mapped_errors(table.source))
    private_folder(path.parent)
    file = stack.enter_context(path.open("wb"))
    writer = stack.enter_context(pq.ParquetWriter(file, fields, compression="zstd", write_statistics=False))

    def keep(batch: Any, which: Flags | None = None) -> None:
        columns = dict(zip(names, batch.columns[-len(names) :], strict=True))
        if table.unit.column is not None:
            columns[UNIT] = unit_forms(columns[UNIT], table.source, table.unit)
        part = pa.Table.from_arrays([c.cast(pa.string()) for c in columns.values()], schema=fields)
        writer.write_table(part if which is None else part.filter(pa.array(which)))

    return keep


@dataclass(frozen=True, eq=False)
class EncodedFiles:
    """Codes in memory-mapped files, in the order of the table, and a Parquet file with the unit of each row.

    Attributes:
        units: as of `clip_records`; there is no file where nobody asks for units or contents.
        plain: the codes of the schema's own columns, before its steps.
    """

    given: UnitRows
    coded: CodedTable
    report: EncodingReport
    units: Path
    plain: CodedTable | None = None

    def unit_sizes(self, aside: Aside | None = None) -> UnitSizes:
        return unit_sizes(self.units, self.given.source, self.given.unit, aside)

    def clipped(self, key: bytes, aside: Aside | None) -> Clipped:
        """As of `Encoded`; the rows that count keep the order of the table."""
        keep: Flags | None = None
        weights: NDArray[np.uint32] | None = None
        held: Flags | None = None
        source, unit, rows = self.given.source, self.given.unit, self.coded.rows
        if unit.column is not None:
            keep, weights = clip_records(self.units, source, unit, rows, key)
        if aside is not None:
            held = set_aside_units(self.units, source, unit, rows, aside.key, aside.share)
            keep = ~held if keep is None else keep & ~held
        self.units.unlink(missing_ok=True)
        coded = replace(self.coded, weights=weights, threads=source.threads)
        if keep is None:
            return Clipped(coded, complete=True, aside=None)
        with mapped_errors(source):
            return Clipped(_compact(coded, keep, self.given.workdir / "kept"), complete=False, aside=held)


def aside_rows(table: UnitRows, aside: Aside) -> Flags:
    """Which rows are set aside: (rows,), in the order of the file. NOT private: for internal/ alone.

    Raises:
        UserError: the table has no such unit column.
    """
    path, source, unit = table.workdir / "units-aside.parquet", table.source, table.unit
    contents = aside.key if needs_content(replace(unit, clip="weight"), aside) else None
    rows = copy_units(table, path, contents=contents)
    held = set_aside_units(path, source, unit, rows, aside.key, aside.share)
    path.unlink()
    return held


def copy_units(table: UnitRows, path: Path, *, contents: bytes | None) -> int:
    """A file with the unit and the content of each row, as of `clip_records`; how many rows there are.

    Args:
        contents: as of `Engine.encode`.
    Raises:
        UserError: the table has no such unit column.
    """
    return _copied(table, path, row_names(table.source, table.unit, contents=contents))


def _copied(table: UnitRows, path: Path, texts: Mapping[str, str], aside: Flags | None = None) -> int:
    """A file of what SQL makes of the rows that were not set aside; how many rows the table has."""
    rows = 0
    with ExitStack() as stack:
        keep = _writer(stack, path, table, list(texts))
        named = ", ".join(f"{sql} AS {name}" for name, sql in texts.items())
        for batch in table.source.batches(f"SELECT {named} FROM {table.source.relation}"):
            stop = rows + batch.num_rows
            keep(batch, None if aside is None else ~aside[rows:stop])
            rows = stop
    return rows


def _compact(coded: CodedTable, keep: Flags, folder: Path) -> CodedTable:
    """The kept rows, in order, in column files of their own."""
    private_folder(folder)

    def stored(values: NDArray[Any], name: str) -> NDArray[Any]:
        path = folder / name
        with path.open("wb") as file:
            for start in range(0, len(values), CHUNK):
                stop = start + CHUNK
                file.write(np.ascontiguousarray(values[start:stop][keep[start:stop]]).data)
        return mapped(path, values.dtype)

    columns = tuple(stored(column, f"{i:04}.codes") for i, column in enumerate(coded.columns))
    weights = None if coded.weights is None else stored(coded.weights, "weights")
    return replace(coded, columns=columns, weights=weights)


def _counts(table: str, value: str, column: Column, unit: PrivacyUnit, key: bytes) -> list[str]:
    """SQL for (text, t, how many units count it among t values), for units with an id and for those without."""
    some, others = counted_texts(column), not_values(column)
    mine = f"{value} NOT IN ({', '.join(map(literal, others))})"
    mine = mine if some is None else f"trim({value}) IN ({', '.join(map(literal, some))})"
    alone = f"SELECT {value}, 1, count(*) FROM {table} WHERE {mine}"
    if unit.column is None:
        return [f"{alone} GROUP BY {value}"]
    distinct = f"SELECT DISTINCT unit, {value} AS v FROM {table} WHERE unit IS NOT NULL AND {mine}"
    coin = f"left(sha256({literal(coins.of_value(key, column.name))} || unit || chr(0) || v), {coins.DIGITS})"
    held = f"least(count(*) OVER (PARTITION BY unit), {unit.max_records})"
    every = unit.max_records == MAX_RECORDS  # no unit has more values than that: none is chosen
    place = "0" if every else f"row_number() OVER (PARTITION BY unit ORDER BY {coin}, v)"
    ranked = f"SELECT v, {held} AS t, {place} AS place FROM ({distinct})"
    queries = [f"SELECT v, t, count(*) FROM ({ranked}) WHERE place <= t GROUP BY v, t"]
    return [*queries, f"{alone} AND unit IS NULL GROUP BY {value}"] if unit.missing == "own" else queries


def counted_texts(column: Column) -> list[str] | None:
    """The texts of a column that are counted alone, spaces around aside; None: all that are values."""
    if not column.gridded:
        return None
    listed = [*column.missing_texts, *([] if column.other is None else [column.other])]
    return [*listed, *(f"{t}.0" for t in listed)]


def not_values(column: Column) -> list[str]:
    """Texts that are no values of a column: those that mean missing, and *other*."""
    return ["", *column.missing_texts, *([] if column.other is None else [column.other])]
