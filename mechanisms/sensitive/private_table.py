"""PrivateTable: codes and weights of raw rows, already clipped; its repr shows columns, never rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns, mapped
from mechanisms.public.tables.scan import Source, mapped_errors, private_folder, stream
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import (
    PrivacyUnit,
    clip_records,
    counted_units,
    set_aside_rows,
    set_aside_units,
    unit_forms,
    unit_id,
    unit_sizes,
)

CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """Raw rows as codes, clipped; NOT private, and nothing of it may be released without noise.

    Attributes:
        coded: codes of the schema's measured domain, and weights; those of one unit sum to at most `max_records`
            records.
        unit: who is protected.
        encoding: what encoding could not take as it was; for the internal log alone.
        complete: whether every row of the table is in it.
        aside: which rows of the file belong to units that were set aside; None where none were.
        kept: the folder in which the runs of a sweep keep it and its counts; None for a run's own.
        sizes: records and units: how many units have so many records, before clipping; None where a record is a unit.
        histogram: how many units have R = 1 … records, a unit with more counted in the last cell, without those that
            were set aside; None where it was not asked for.
    """

    coded: CodedTable
    unit: PrivacyUnit
    encoding: EncodingReport
    complete: bool
    aside: NDArray[np.bool_] | None = None
    sizes: NDArray[np.int64] | None = None
    histogram: NDArray[np.int64] | None = None
    kept: Path | None = None

    @property
    def max_records(self) -> int:
        """C: the most that one unit contributes, in records."""
        return self.unit.max_records

    def public_rows(self, neighbouring: Neighbouring) -> int | None:
        """The number of rows where it is a public fact: under `replace`, with one record per unit; else None."""
        public = neighbouring is Neighbouring.REPLACE and self.unit.column is None
        return self.coded.rows if public else None

    def __repr__(self) -> str:
        columns = ", ".join(f"{a.name!r}: {a.size}" for a in self.coded.domain.attributes)
        return f"PrivateTable({{{columns}}}, unit={self.unit.column or 'record'!r}, max_records={self.max_records})"


def load_private(
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    *,
    workdir: Path,
    key: bytes,
    holdout: float | None = None,
    histogram: int | None = None,
    progress: Progress | None = None,
) -> PrivateTable:
    """Encode a table, apply the schema's steps, and clip what each unit contributes; the file is parsed once.

    Guarantee: the weights of one unit sum to at most `unit.max_records` records, exactly. With the default handling no
        row can make it fail; outside=refuse, privacy.missing_unit=refuse and privacy.clip=none can, and lie outside of
        the guarantee, as does conflict: refuse of a rule.
    Args:
        workdir: where column files go; a folder with mode 0700.
        key: at least 16 secret bytes; chooses what privacy.clip=truncate keeps and who is set aside. The same key, the
            same choice.
        holdout: each unit is set aside with this probability, by its own coin, before anything is counted.
        histogram: records per unit are counted too, up to so many; None: they are not.

    Returns:
        Rows in the order of the file.

    Raises:
        UserError: as of `encode_columns` and `clip_records`; a unit column that the table has not.
    """
    if len(key) < 16:
        raise ValueError("the key of the truncation needs at least 16 bytes")
    if unit.column is None:
        coded, report = _engineered(
            *encode_columns(source, schema, workdir=workdir, progress=progress, fine=True), schema, workdir
        )
        whole = PrivateTable(coded, unit, report, complete=True)
        if holdout is None:
            return whole
        aside = set_aside_rows(coded.rows, key, holdout)
        with mapped_errors(source):
            return replace(whole, coded=_compact(coded, ~aside, workdir / "kept"), complete=False, aside=aside)
    further = {"unit": unit_id(source, unit)}
    path = workdir / "units.parquet"
    with mapped_errors(source):
        private_folder(workdir)
    with mapped_errors(source), path.open("wb") as file:
        fields = pa.schema([("unit", pa.string())])
        with pq.ParquetWriter(file, fields, compression="zstd", write_statistics=False) as writer:

            def keep_unit(batch: Any) -> None:
                ids = unit_forms(batch.column(batch.num_columns - 1), source, unit)
                writer.write_table(pa.Table.from_arrays([ids], schema=fields))

            coded, report = encode_columns(
                source, schema, workdir=workdir, progress=progress, further=further, on_batch=keep_unit, fine=True
            )
    coded, report = _engineered(coded, report, schema, workdir)
    if progress is not None:
        progress(coded.rows, 0, "clipping")
    keep, weights = clip_records(path, source, unit, coded.rows, key)
    held = None if holdout is None else set_aside_units(path, source, unit, coded.rows, key, holdout)
    sizes = unit_sizes(path, source)
    most = None if histogram is None else replace(unit, max_records=histogram)
    counted = None if most is None else counted_units(path, source, most, coded.rows, key, holdout)
    path.unlink()
    coded = replace(coded, weights=weights)
    if held is not None:
        keep = ~held if keep is None else keep & ~held
    if keep is None:
        return PrivateTable(coded, unit, report, complete=True, sizes=sizes, histogram=counted)
    with mapped_errors(source):
        kept = _compact(coded, keep, workdir / "kept")
    return PrivateTable(kept, unit, report, complete=False, aside=held, sizes=sizes, histogram=counted)


def aside_rows(
    source: Source, unit: PrivacyUnit, rows: int, key: bytes, share: float, *, workdir: Path
) -> NDArray[np.bool_]:
    """Which rows `load_private` sets aside with the same key and share: (rows,), in the order of the file.

    NOT private: for internal/ alone.

    Args:
        rows: how many the table has.
        workdir: for a copy of the ids, deleted again; a folder with mode 0700.

    Raises:
        UserError: the table has no such unit column; no share.
    """
    if unit.column is None:
        return set_aside_rows(rows, key, share)
    path = workdir / "units-aside.parquet"
    fields = pa.schema([("unit", pa.string())])
    sql = f"SELECT {unit_id(source, unit)} AS unit FROM {source.relation}"
    with source.connect() as engine, pq.ParquetWriter(path, fields) as writer:
        for batch in stream(source, engine, sql):
            ids = unit_forms(batch.column(0), source, unit)
            writer.write_table(pa.Table.from_arrays([ids], schema=fields))
    aside = set_aside_units(path, source, unit, rows, key, share)
    path.unlink()
    return aside


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
    return CodedTable(coded.domain, columns, weights)


def fingerprint(path: Path) -> str:
    """The file's content as 32 hexadecimal digits of BLAKE2b; internal, since it depends on every row.

    Raises:
        UserError: the file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), fix="check the path") from error
    return digest.hexdigest()
