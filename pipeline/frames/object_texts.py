"""Columns of Python objects as texts, value by value: no value makes another one's text, or makes a run stop."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.units import ID_RULES
from mechanisms.sensitive.id_rules import normal_form


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
        return f"<{type(value).__name__}>"


def _is_gap(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()  # comparing a signalling NaN is an error
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _plain(value: Any, column: Column | None) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # a member of an enumeration writes itself otherwise than it is
    if isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
        # as an id, a blank text is none, and bytes that show nothing are one
        return text if normal_form(text, tuple(ID_RULES)) else "".join(f"\\x{byte:02X}" for byte in value)
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
    if isinstance(value, uuid.UUID) or (isinstance(value, datetime.time) and value.tzinfo is None):
        return str(value)
    return f"<{type(value).__name__}>"


def _number(value: Any) -> str:
    """As the engine writes it: whole numbers without a point."""
    if not isinstance(value, Decimal) or value.is_infinite():
        value = float(value)
        return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)
    text = str(value)
    return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text
