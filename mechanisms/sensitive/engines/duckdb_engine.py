"""DuckDB inside the process: streams the file, spills to disk, and leaves codes in memory-mapped columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import Alongside, EncodingReport, encode_columns, mapped
from mechanisms.public.tables.scan import Source, literal, mapped_errors, private_folder
from mechanisms.public.units import MAX_RECORDS
from mechanisms.sensitive.contribution import (
    Aside,
    PrivacyUnit,
    UnitSizes,
    clip_records,
    needs_content,
    set_aside_units,
    unit_forms,
    unit_id,
    unit_sizes,
)
from mechanisms.sensitive.engines import coins
from mechanisms.sensitive.engines.engine import Clipped, Scored, ValueCount

CHUNK = 1 << 22
#: Of the copy of ids and contents; both are texts.
UNIT, CONTENT = "unit", "content"


@dataclass(frozen=True)
class DuckdbEngine:
    """The embedded engine."""

    def encode(
        self,
        source: Source,
        schema: Schema,
        unit: PrivacyUnit,
        *,
        contents: bytes | None,
        workdir: Path,
        progress: Progress | None,
    ) -> EncodedFiles:
        """As of `Engine`; the file is parsed once, and the rows keep its order."""
        names = row_names(source, unit, contents=contents)
        path = workdir / "units.parquet"
        with mapped_errors(source):
            private_folder(workdir)
        with ExitStack() as stack:
            beside = Alongside(names, _writer(stack, path, source, unit, list(names))) if names else None
            coded, report = encode_columns(source, schema, workdir=workdir, progress=progress, beside=beside, fine=True)
        plain = CodedTable(schema.domain, coded.columns[: len(schema.columns)])
        coded, report = _engineered(coded, report, schema, workdir)
        if progress is not None and unit.column is not None:
            progress(coded.rows, 0, "clipping")
        return EncodedFiles(source, unit, coded, report, path if names else None, workdir, plain)

    def values(
        self,
        source: Source,
        columns: Sequence[Column],
        unit: PrivacyUnit,
        *,
        key: bytes,
        aside: Aside | None,
        workdir: Path,
    ) -> dict[str, list[ValueCount]]:
        """As of `Engine`; ids and texts are copied once, and deleted again."""
        path = workdir / "values.parquet"
        with mapped_errors(source):
            private_folder(workdir)
        held = None if aside is None else aside_rows(source, unit, aside, workdir=workdir)
        _copy(source, columns, unit, held, path)
        table = f"read_parquet({literal(str(path))}, hive_partitioning = false)"
        with source.connect() as engine:
            counts = {
                column.name: [
                    (str(text), int(values), int(count))
                    for sql in _counts(table, f"v{i}", column, unit, key)
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
    """What is read beside the codes: name → SQL for the unit's id as it stands, and for the row's content.

    Args:
        contents: as of `Engine.encode`.
    """
    names = {} if unit.column is None else {UNIT: unit_id(source, unit)}
    return names | ({} if contents is None else {CONTENT: coins.content(source, contents)})


def _writer(stack: ExitStack, path: Path, source: Source, unit: PrivacyUnit, names: Sequence[str]) -> Any:
    """What keeps the ids and contents of each batch, which are its last columns."""
    fields = pa.schema([(UNIT, pa.string()), (CONTENT, pa.string())])
    stack.enter_context(mapped_errors(source))
    file = stack.enter_context(path.open("wb"))
    writer = stack.enter_context(pq.ParquetWriter(file, fields, compression="zstd", write_statistics=False))

    def keep(batch: Any) -> None:
        given = dict(zip(names, batch.columns[-len(names) :], strict=True))
        absent = pa.nulls(batch.num_rows, pa.string())
        ids = unit_forms(given[UNIT], source, unit) if UNIT in given else absent
        content = given[CONTENT].cast(pa.string()) if CONTENT in given else absent
        writer.write_table(pa.Table.from_arrays([ids, content], schema=fields))

    return keep


@dataclass(frozen=True, eq=False)
class EncodedFiles:
    """Codes in memory-mapped files, in the order of the table, and a Parquet file with the unit of each row.

    Attributes:
        units: as of `clip_records`; None where a record is a unit and has no coin.
        plain: the codes of the schema's own columns, before its steps.
    """

    source: Source
    unit: PrivacyUnit
    coded: CodedTable
    report: EncodingReport
    units: Path | None
    workdir: Path
    plain: CodedTable | None = None

    def unit_sizes(self, aside: Aside | None = None) -> UnitSizes:
        assert self.units is not None
        return unit_sizes(self.units, self.source, self.unit, aside)

    def clipped(self, key: bytes, aside: Aside | None) -> Clipped:
        """As of `Encoded`; the rows that count keep the order of the table."""
        if self.units is None:
            return Clipped(replace(self.coded, threads=self.source.threads), complete=True, aside=None)
        keep: NDArray[np.bool_] | None = None
        weights: NDArray[np.uint32] | None = None
        held: NDArray[np.bool_] | None = None
        rows = self.coded.rows
        if self.unit.column is not None:
            keep, weights = clip_records(self.units, self.source, self.unit, rows, key)
        if aside is not None:
            held = set_aside_units(self.units, self.source, self.unit, rows, aside.key, aside.share)
            keep = ~held if keep is None else keep & ~held
        self.units.unlink()
        coded = replace(self.coded, weights=weights, threads=self.source.threads)
        if keep is None:
            return Clipped(coded, complete=True, aside=None)
        with mapped_errors(self.source):
            return Clipped(_compact(coded, keep, self.workdir / "kept"), complete=False, aside=held)


def aside_rows(source: Source, unit: PrivacyUnit, aside: Aside, *, workdir: Path) -> NDArray[np.bool_]:
    """Which rows are set aside: (rows,), in the order of the file. NOT private: for internal/ alone.

    Args:
        workdir: for a copy of the ids, deleted again; a folder with mode 0700.

    Raises:
        UserError: the table has no such unit column.
    """
    path = workdir / "units-aside.parquet"
    with mapped_errors(source):
        private_folder(workdir)
    contents = aside.key if needs_content(replace(unit, clip="weight"), aside) else None
    rows = copy_units(source, unit, path, contents=contents)
    held = set_aside_units(path, source, unit, rows, aside.key, aside.share)
    path.unlink()
    return held


def copy_units(source: Source, unit: PrivacyUnit, path: Path, *, contents: bytes | None) -> int:
    """A file with the unit and the content of each row, as of `clip_records`; how many rows there are.

    Args:
        contents: as of `Engine.encode`.
    Raises:
        UserError: the table has no such unit column.
    """
    names, rows = row_names(source, unit, contents=contents) or {CONTENT: "''"}, 0
    with ExitStack() as stack:
        keep = _writer(stack, path, source, unit, list(names))
        named = ", ".join(f"{sql} AS {name}" for name, sql in names.items())
        for batch in source.batches(f"SELECT {named} FROM {source.relation}"):
            keep(batch)
            rows += batch.num_rows
    return rows


def _engineered(
    coded: CodedTable, report: EncodingReport, schema: Schema, workdir: Path
) -> tuple[CodedTable, EncodingReport]:
    """The table as it is measured: after the schema's steps, with the fine columns; how many rows contradict each rule.

    Args:
        coded: the schema's columns, and the fine ones behind them.
    """
    if not schema.engineering.steps:
        return coded, report
    own = len(schema.columns)
    plain = CodedTable(schema.domain, coded.columns[:own])
    engineered, conflicts = engineer(plain, schema.engineering, workdir=workdir / "engineered")
    columns = (*engineered.columns, *coded.columns[own:])
    return CodedTable(schema.measured, columns), replace(report, conflicts=conflicts)


def _compact(coded: CodedTable, keep: NDArray[np.bool_], folder: Path) -> CodedTable:
    """The kept rows, in order, in column files of their own."""
    private_folder(folder)

    def kept(values: NDArray[Any], name: str) -> NDArray[Any]:
        path = folder / name
        with path.open("wb") as file:
            for start in range(0, len(values), CHUNK):
                stop = start + CHUNK
                file.write(np.ascontiguousarray(values[start:stop][keep[start:stop]]).data)
        return mapped(path, values.dtype)

    columns = tuple(kept(column, f"{i:04}.codes") for i, column in enumerate(coded.columns))
    weights = None if coded.weights is None else kept(coded.weights, "weights")
    return replace(coded, columns=columns, weights=weights)


def _copy(
    source: Source, columns: Sequence[Column], unit: PrivacyUnit, aside: NDArray[np.bool_] | None, path: Path
) -> None:
    """The ids and the texts of the rows that were not set aside, as a file."""
    names = [f"v{i}" for i in range(len(columns))]
    texts = [source.text(source.declared(c.name)) for c in columns]
    cells = [*texts, "''" if unit.column is None else unit_id(source, unit)]
    fields = pa.schema([(name, pa.string()) for name in (*names, UNIT)])
    start = 0
    with mapped_errors(source), pq.ParquetWriter(path, fields, compression="zstd", write_statistics=False) as file:
        named = ", ".join(f"{sql} AS {name}" for sql, name in zip(cells, fields.names, strict=True))
        for batch in source.batches(f"SELECT {named} FROM {source.relation}"):
            arrays: list[Any] = [batch.column(i).cast(pa.string()) for i in range(len(names))]
            ids = batch.column(len(names))
            arrays.append(ids.cast(pa.string()) if unit.column is None else unit_forms(ids, source, unit))
            part = pa.Table.from_arrays(arrays, schema=fields)
            stop = start + batch.num_rows
            file.write_table(part if aside is None else part.filter(pa.array(~aside[start:stop])))
            start = stop


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
