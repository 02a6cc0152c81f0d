"""Decoded columns as Arrow arrays: of the type that the schema gives them, or as the texts of a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mechanisms.public.schema.bins import Codes
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.spellings import SAMPLE, moment_of
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Drawn, Owned, draw, draw_table


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
