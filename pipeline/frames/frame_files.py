"""Data frames of any library → a Parquet file, which is read like any other table, and the kinds of their columns.

Columns of Python objects become texts: no value makes another one's text, or makes a run stop.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mechanisms.public.errors import UserError, check_head, require_columns
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.inspect_file import SEVERAL_TEXTS
from mechanisms.public.tables.unseen import text_of_bytes
from mechanisms.sensitive.id_rules import MOST_DIGITS
from pipeline.frames.frame_kinds import Kind, declared, kind_of_arrow, kind_of_pandas, of_objects
from pipeline.settings.config import schema_path

Kinds: TypeAlias = "Mapping[str, Kind]"
#: The columns that are read, each with the setting that needs it (None: it may be absent); None: all.
TypesByName: TypeAlias = "Mapping[str, str | None] | None"
#: What the libraries raise for values that no column of a file can hold.
MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
#: Microseconds in the units of time that a Parquet file keeps otherwise.
PER_SECOND = {"s": 10**6, "ms": 10**3}
#: Whole numbers of so many digits are written with all of them; Python writes no longer ones.
LONGEST = 4_300
#: Types of a relation of DuckDB whose equal values have several texts, or which its stream gives as another type.
UNSTABLE = ("JSON", "TIME WITH TIME ZONE", "GEOMETRY")


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of any library that hands its columns over by Arrow's C stream interface (polars, pyarrow, DuckDB)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame: TypeAlias = "pd.DataFrame | ArrowStream"
#: A frame, or the path of a CSV, compressed CSV or Parquet table.
Table: TypeAlias = "pd.DataFrame | ArrowStream | Path | str"
#: A schema's path, the name of a ready one, or a mapping as in YAML.
AnySchema: TypeAlias = "Schema | Mapping[str, Any] | Path | str"


def write_frame(
    frame: Frame, path: Path, schema: Schema | None = None, further: Mapping[str, str | None] | None = None
) -> Kinds:
    """Write a frame as Parquet; returns what its columns are called and how they hold their values, in their order.

    No value makes it fail, only the kind of a column does; of Python objects, texts are written.

    Args:
        schema: says how Python objects are written; None: dates as ISO, numbers with a point.
        further: columns that are written beside those of the schema, with the setting that needs each (None: it may be
            absent); None: all columns are written.
    Raises:
        UserError: no frame; columns named twice, or absent; a column of a kind that no table holds.
    """
    names: TypesByName = None
    if schema is not None and further is not None:
        once = schema.rules.unit.constant if schema.rules.unit else ()  # a table of units may hold them
        names = {c.name: None if c.name in once else f"schema: column {c.name!r}" for c in schema.held} | {**further}
    if isinstance(frame, pd.DataFrame):
        return _write_pandas(frame, path, schema, names)
    if isinstance(frame, ArrowStream):
        return _write_stream(frame, path, schema, names)
    fix = "a data frame of pandas, polars or pyarrow" + ("; collect() it first" if hasattr(frame, "collect") else "")
    raise UserError(f"got {type(frame).__name__}", where="frame", fix=fix)


def _write_pandas(frame: pd.DataFrame, path: Path, schema: Schema | None, read_names: TypesByName) -> Kinds:
    names = [str(label) for label in frame.columns]
    _check_names(names, read_names, [str(name) for name in frame.index.names])
    arrays, kinds = {}, {}
    for place, (name, label) in enumerate(zip(names, frame.columns, strict=True)):
        if read_names is not None and name not in read_names:
            continue
        series, column = frame.iloc[:, place], declared(schema, name)
        series = series.astype(series.dtype.subtype) if isinstance(series.dtype, pd.SparseDtype) else series
        try:
            texts = of_objects(series.dtype) or isinstance(series.dtype, pd.StringDtype)
            array = object_texts(series, column) if texts else pa.array(series, from_pandas=True)
            arrays[name] = _stored(array, _stored_type(array.type, name))
        except MISFITS:
            fix = f"leave it out; or another kind, for example frame[{name!r}].astype('string')"
            problem = f"column {name!r} is of a kind that no table holds"
            raise UserError(problem, where="frame", fix=fix) from None  # the library's own message quotes values
        kinds[name] = kind_of_pandas(label, series.dtype, array.type, column)
    _write_stream(pa.table(arrays), path, None, None)
    return kinds


def _write_stream(frame: ArrowStream, path: Path, schema: Schema | None, read_names: TypesByName) -> Kinds:
    reader = opened_stream(frame)
    _check_names(reader.schema.names, read_names)
    fields = [f for f in reader.schema if read_names is None or f.name in read_names]
    typed = zip(getattr(frame, "columns", ()), getattr(frame, "types", ()), strict=False)  # those of DuckDB know both
    unstable = [name for name, kind in typed if str(kind).partition("(")[0] in UNSTABLE]
    notes = {SEVERAL_TEXTS: json.dumps(unstable)} if unstable else None
    stored = pa.schema([(f.name, _stored_type(f.type, f.name)) for f in fields], metadata=notes)
    try:
        with pq.ParquetWriter(path, stored) as writer:
            for batch in reader:
                arrays = [_stored(batch.column(f.name), f.type) for f in stored]
                writer.write_batch(pa.record_batch(arrays, schema=stored))
    except MISFITS:
        odd = next((f"column {field.name!r}" for field in stored if not _written(field)), "a column of the frame")
        fix = "columns of numbers, texts, flags, dates and times; of lengths of time numbers, or leave it out"
        raise UserError(f"{odd} is of a kind that no table holds", where="frame", fix=fix) from None
    return {f.name: kind_of_arrow(f.name, f.type, declared(schema, f.name)) for f in fields}


def _written(field: Any) -> bool:
    """Whether a file holds columns of such a type, whatever their values are."""
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
    except MISFITS:
        return False
    return True


def opened_stream(frame: ArrowStream, where: str = "frame") -> Any:
    """The batches of a frame.

    Raises:
        UserError: no frame, or one of columns that Arrow does not know.
    """
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowException:
        fix = "a data frame, not one column, of columns that Arrow knows (128-bit numbers: cast them)"
        raise UserError(f"got {type(frame).__name__}", where=where, fix=fix) from None


def _stored_type(kind: Any, name: str) -> Any:
    """The type that a file holds such values in: texts as texts, however the library keeps them, times in µs.

    Raises:
        UserError: 8 bytes each. Polars hands the addresses of Python objects over as such: equal ones differ.
    """
    if pa.types.is_dictionary(kind):
        return _stored_type(kind.value_type, name)
    if "fixed_size_binary[8]" in str(kind):
        fix = f"frame.with_columns(pl.col({name!r}).map_elements(str, return_dtype=pl.String)); of bytes: pa.binary()"
        problem = f"column {name!r} holds 8 bytes each, as addresses of Python objects do: equal objects differ in them"
        raise UserError(problem, where="frame", fix=fix)
    if pa.types.is_timestamp(kind) and kind.unit in PER_SECOND:
        return pa.timestamp("us", kind.tz)
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return pa.decimal128(38, 0) if kind.precision - kind.scale <= 38 else pa.string()  # floats make two ids one
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored_type(field.type, name)) for field in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_stored_type(kind.value_type, name)))
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _stored(array: Any, kind: Any) -> Any:
    if isinstance(array, pa.ChunkedArray):  # columns of Arrow in pandas
        return pa.chunked_array([_stored(chunk, kind) for chunk in array.chunks], kind)
    if pa.types.is_dictionary(array.type):
        return _stored(array.dictionary, kind).take(array.indices)
    if array.type != kind and pa.types.is_timestamp(kind):  # a time beyond all microseconds is an infinite one
        ticks, last = array.cast(pa.int64()), (2**63 - 1) // PER_SECOND[array.type.unit]
        near = pc.and_(pc.less_equal(ticks, last), pc.greater_equal(ticks, -last))
        ticks = pc.multiply(pc.if_else(near, ticks, 0), PER_SECOND[array.type.unit])
        return pc.if_else(near, ticks, 2**63 - 1).cast(kind)
    return array if array.type == kind else array.cast(kind)


def _check_names(names: list[str], read_names: TypesByName, index: Sequence[str] = ()) -> None:
    if not names:
        raise UserError("no columns", where="frame", fix="give each column a name of its own")
    absent = {name: where for name, where in (read_names or {}).items() if name not in names and where is not None}
    for name, where in absent.items():
        if name in index:
            fix = "frame.reset_index(): it is the frame's index"
            raise UserError(f"no column {name!r} in the frame", where=where, fix=fix)
    check_head(names, read_names or (), where="frame", look="pipeline.check")
    require_columns(absent, names, where=next(iter(absent.values()), ""), of=" in the frame", have="the frame has:")


#: Tables that need not be there: None for another is a mistake.
OPTIONAL = ("holdout", "units")


@contextmanager
def table_files(tables: Mapping[str, Table | None], schema: Schema | None = None) -> Iterator[dict[str, str]]:
    """Each table that is given as a file: paths as they are; frames in a folder that is gone after the block.

    Args:
        schema: as of `write_frame`.
    """
    with TemporaryDirectory(prefix="frames-") as folder:  # mode 0700
        paths, written = {}, {}
        for name, table in tables.items():
            if isinstance(table, Path | str):
                paths[name] = str(Path(table).expanduser())
            elif table is not None or name not in OPTIONAL:
                path = Path(folder) / f"{name}.parquet"
                paths[name] = str(path)
                written[path] = "the frame" if name in ("frame", "table") else f"the {name} frame"
                write_frame(table, path, schema)  # type: ignore[arg-type]  # None is refused there
        with named_as_given(written):
            yield paths


@contextmanager
def named_as_given(words: Mapping[Path, str]) -> Iterator[None]:
    """Mistakes name what the person gave, not a file that was written of it.

    Args:
        words: file → what stands for it in a message.
    """
    try:
        yield
    except UserError as error:
        parts = [error.what, error.where, error.fix]
        for path, word in words.items():
            parts = [t and t.replace(str(path), word).replace(path.name, word) for t in parts]
        if parts == [error.what, error.where, error.fix]:
            raise
        raise UserError(str(parts[0]), where=parts[1], fix=parts[2]) from error.__cause__


def schema_file(schema: AnySchema, folder: Path) -> Path:
    """The file of a schema: of a path or the name of a ready one where it lies; of others in the folder.

    Raises:
        UserError: no such file; a mapping that is no schema.
    """
    if isinstance(schema, Path | str):
        return schema_path(str(schema), "schema")
    if not isinstance(schema, Schema | Mapping):
        fix = "a path, the name of a ready schema, or a mapping: {'columns': {...}, 'confirmed_public': True}"
        raise UserError(f"got {type(schema).__name__}", where="schema", fix=fix)
    path = folder / "schema.yaml"
    try:
        facts = schema if isinstance(schema, Schema) else parse_schema(schema, where="schema", folder=Path.cwd())
        path.write_text(facts.to_yaml(), encoding="utf-8")
    except (OverflowError, RecursionError) as error:
        raise UserError(f"a number or a nesting beyond reason: {error}", where="schema", fix="mend it") from error
    except UnicodeEncodeError as error:
        problem = f"{error.object[error.start : error.end]!r} stands in a text, and is no letter"
        raise UserError(problem, where="schema", fix="texts in Unicode") from error
    return path


def object_texts(values: Iterable[Any], column: Column | None) -> Any:
    """An Arrow array of texts, as a CSV file that the schema reads would hold them; gaps are null.

    Objects of foreign classes are all the text of their class: two that are equal must not have two texts.

    Args:
        column: as the schema declares it: its form of dates, its decimal mark; None: ISO, and a point.
    """
    distinct = getattr(getattr(values, "dtype", None), "categories", values)
    if pd.api.types.infer_dtype(distinct, skipna=True) in ("string", "empty"):  # nearly always
        with suppress(pa.ArrowException, TypeError, ValueError):
            return pa.array(values, pa.large_string(), from_pandas=True)
    texts = [_text(value, column) for value in values]
    encodable = [t if t is None else t.encode("utf-8", "backslashreplace").decode() for t in texts]
    return pa.array(encodable, pa.large_string())


def _text(value: Any, column: Column | None) -> str | None:
    try:
        return None if _is_gap(value) else _plain(value, column)
    except Exception:  # whatever a value does when it is compared or written
        return sign_of(value)


def _is_gap(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()  # comparing a signalling NaN is an error
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _plain(value: Any, column: Column | None) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # a member of an enumeration writes itself otherwise than it is
    if isinstance(value, bytes):
        return text_of_bytes(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, datetime.timedelta | np.timedelta64):  # which is a whole number for NumPy
        return str(pd.Timedelta(value))  # a day, 24 hours and 1440 minutes are equal
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating | Decimal):
        return _number(value).replace(".", "." if column is None else column.decimal)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.date):
        form = column.format if column is not None and column.kind in DATE_KINDS else None
        whole = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
        return whole if form is None else value.strftime(form)
    if isinstance(value, pd.Interval):
        ends = f"{_plain(value.left, None)}, {_plain(value.right, None)}"  # equal ones have one text
        return f"{'[' if value.closed_left else '('}{ends}{']' if value.closed_right else ')'}"
    if isinstance(value, uuid.UUID | pd.Period) or (isinstance(value, datetime.time) and value.tzinfo is None):
        return str(value)
    return sign_of(value)


def sign_of(value: object) -> str:
    """What stands for an object that no table holds, as a frame of pandas may: the name of its kind."""
    return f"<{type(value).__name__}>"


def zoned_objects(frame: object) -> list[str]:
    """Columns of Python objects among which are times with a zone, which are written as UTC's clock shows them."""
    objects = [(n, c) for n, c in frame.items() if c.dtype == object] if isinstance(frame, pd.DataFrame) else []
    return [str(n) for n, own in objects if any(getattr(v, "tzinfo", None) is not None for v in own)]


def _number(value: Any) -> str:
    """One text for equal numbers of all types, whole ones without a point."""
    number = value if isinstance(value, Decimal) else Decimal(float(value))
    if not number:
        return "0"
    if not number.is_finite() or not -MOST_DIGITS <= number.adjusted() < LONGEST:
        return repr(float(value))
    if number != number.to_integral_value() and number == float(number):
        number = Decimal(repr(float(number)))  # 0.1, not all digits of the float that is nearest to it
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
