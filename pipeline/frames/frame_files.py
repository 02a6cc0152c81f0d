"""Data frames of any library → a Parquet file, which is read like any other table, and the kinds of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, parse_schema
from pipeline.frames.frame_kinds import Kind, kind_of_arrow, kind_of_pandas
from pipeline.settings.config import schema_path

Kinds: TypeAlias = "Mapping[str, Kind]"
#: What the libraries raise for values that no column of a file can hold.
MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of any library that hands its columns over by Arrow's C stream interface (polars, pyarrow, DuckDB)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame: TypeAlias = "pd.DataFrame | ArrowStream"
#: A frame, or the path of a CSV, compressed CSV or Parquet table.
Table: TypeAlias = "pd.DataFrame | ArrowStream | Path | str"
#: A schema's path, the name of a ready one, or a mapping as in YAML.
AnySchema: TypeAlias = "Schema | Mapping[str, Any] | Path | str"


def write_frame(frame: Frame, path: Path) -> Kinds:
    """Write a frame as Parquet; returns what its columns are called and how they hold their values, in their order.

    Raises:
        UserError: no frame; columns named twice; a column of values that are of several kinds.
    """
    if isinstance(frame, pd.DataFrame):
        return _write_pandas(frame, path)
    if isinstance(frame, ArrowStream):
        return _write_stream(frame, path)
    fix = "a data frame of pandas, polars or pyarrow" + ("; collect() it first" if hasattr(frame, "collect") else "")
    raise UserError(f"got {type(frame).__name__}", where="frame", fix=fix)


def _write_pandas(frame: pd.DataFrame, path: Path) -> Kinds:
    names = [str(label) for label in frame.columns]
    _check_names(names)
    arrays, kinds = [], {}
    for place, (name, label) in enumerate(zip(names, frame.columns, strict=True)):
        series = frame.iloc[:, place]
        try:
            array = pa.array(series, from_pandas=True)
        except MISFITS:
            raise _mixed(name) from None  # the library's own message quotes values
        arrays.append(array)
        kinds[name] = kind_of_pandas(label, series.dtype, array.type)
    table = pa.table(dict(zip(names, arrays, strict=True)))
    try:
        pq.write_table(table, path)
    except MISFITS as error:
        raise _unwritable() from error
    return kinds


def _write_stream(frame: ArrowStream, path: Path) -> Kinds:
    reader = pa.RecordBatchReader.from_stream(frame)
    _check_names(reader.schema.names)
    stored = pa.schema([(f.name, _stored_type(f.type)) for f in reader.schema])
    try:
        with pq.ParquetWriter(path, stored) as writer:
            for batch in reader:
                arrays = [_stored(a, t) for a, t in zip(batch.columns, stored.types, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=stored))
    except MISFITS as error:
        raise _unwritable() from error
    return {field.name: kind_of_arrow(field.name, field.type) for field in reader.schema}


def _stored_type(kind: Any) -> Any:
    """The type that a file holds such values in: texts as texts, however the library keeps them."""
    if pa.types.is_dictionary(kind):
        return _stored_type(kind.value_type)
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _stored(array: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        return array.dictionary.cast(kind).take(array.indices)
    return array if array.type == kind else array.cast(kind)


def _check_names(names: list[str]) -> None:
    twice = sorted({n for n in names if names.count(n) > 1}) if len(set(names)) < len(names) else []
    if twice or not names:
        what = f"columns named twice: {', '.join(map(repr, twice))}" if twice else "no columns"
        raise UserError(what, where="frame", fix="give each column a name of its own")


def _mixed(name: str) -> UserError:
    fix = f"one kind in each column, for example frame[{name!r}].astype('string')"
    return UserError(
        f"column {name!r} holds values of several kinds, or of one that no table holds", where="frame", fix=fix
    )


def _unwritable() -> UserError:
    fix = "columns of numbers, texts, flags, dates and times"
    return UserError("a column of the frame is of a kind that no table holds", where="frame", fix=fix)


@contextmanager
def table_files(tables: Mapping[str, Table]) -> Iterator[dict[str, Path]]:
    """Each table as a file: paths as they are; frames as Parquet in a folder that is gone after the block."""
    with TemporaryDirectory(prefix="frames-") as folder:  # mode 0700
        paths = {}
        for name, table in tables.items():
            if isinstance(table, Path | str):
                paths[name] = Path(table)
                continue
            paths[name] = Path(folder) / f"{name}.parquet"
            write_frame(table, paths[name])
        yield paths


def schema_file(schema: AnySchema, folder: Path, where: str = "schema") -> Path:
    """The file of a schema: of a path or the name of a ready one where it lies; of others in the folder.

    Raises:
        UserError: no such file; a mapping that is no schema.
    """
    if isinstance(schema, Path | str):
        return schema_path(str(schema), where)
    if not isinstance(schema, Schema | Mapping):
        fix = "a path, the name of a ready schema, or a mapping: {'columns': {...}, 'confirmed_public': True}"
        raise UserError(f"got {type(schema).__name__}", where=where, fix=fix)
    try:
        facts = schema if isinstance(schema, Schema) else parse_schema(schema, where=where, folder=Path.cwd())
    except (OverflowError, RecursionError) as error:
        raise UserError(f"a number or a nesting beyond reason: {error}", where=where, fix="mend it") from error
    path = folder / "schema.yaml"
    path.write_text(facts.to_yaml(), encoding="utf-8")
    return path
