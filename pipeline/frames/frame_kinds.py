"""How the columns of a frame hold their values, and synthetic columns in the same kinds.

A kind is a public fact, like the schema: it must not tell whether a column of the private frame has gaps, nor which
objects a column of Python objects holds. So whole numbers and flags have room for gaps where the schema says that
values may be missing, whatever the frame had; columns of objects are of the schema's kinds; and the categories of a
column are those of the schema.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.members import need_extra
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.write_table import arrow_type
from pipeline.statement.signing import MANIFEST, file_digest

#: What `sample` gives: a frame of pandas, of polars, or an Arrow table.
FORMS = ("pandas", "polars", "arrow")

#: Whole numbers and flags of pandas with room for gaps.
WITH_GAPS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclass(frozen=True)
class Kind:
    """How one column holds its values.

    Attributes:
        label: the column's name in the frame.
        family: text, flag, whole, real, date, time, or "" for whatever the schema makes of it.
        exact: the pandas dtype, or the Arrow type, to keep: one that is the same with and without gaps; or None.
        category: the values are categories; `ordered` ones.
    """

    label: Any
    family: str = ""
    exact: Any = None
    category: bool = False
    ordered: bool = False


def of_objects(dtype: Any) -> bool:
    """Whether pandas gives Python objects, which may depend on the rows, periods or intervals: texts for us."""
    values = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    return isinstance(values, pd.PeriodDtype | pd.IntervalDtype) or pd.api.types.is_object_dtype(values)


def kind_of_pandas(label: Any, dtype: Any, arrow: Any, column: Column | None) -> Kind:
    """The kind of a column of pandas.

    Args:
        arrow: the type of the Arrow array that it makes.
        column: as the schema declares it; the kind of objects, of categories and of plain `bool` follows from it.
    """
    objects = of_objects(dtype) or dtype == np.dtype(bool)  # which one gap makes objects of
    if (category := isinstance(dtype, pd.CategoricalDtype)) or objects:
        return Kind(label, _declared_family(column), category=category, ordered=category and bool(dtype.ordered))
    if isinstance(dtype, np.dtype) and (dtype.kind in "iu" or dtype == np.float64):
        return Kind(label, "real")  # one gap makes floats of whole numbers
    gaps_fit = pd.api.types.is_extension_array_dtype(dtype) or dtype.kind in "fM"
    return Kind(label, _family(arrow), dtype if gaps_fit else None)


def _declared_family(column: Column | None) -> str:
    """The family of Python objects in a column, whatever they are."""
    if column is None or (column.kind in DATE_KINDS and column.format is not None):
        return "text"
    return "flag" if _truth_values(column) else _family(arrow_type(column))


def _truth_values(column: Column | None) -> bool:
    return column is not None and column.kind == "flag" and column.values == ("false", "true")


def declared_orders(*frames: Any) -> dict[str, list[str]]:
    """Column → its categories in their order, of columns that say that they have one: ordered ones, polars' Enum."""
    columns = [c for f in frames if isinstance(f, pd.DataFrame) for c in f.dtypes.items()]
    columns += [c for f in frames if f is not None and form_of(f) == "polars" for c in f.schema.items()]
    in_order = ((isinstance(d, pd.CategoricalDtype) and d.ordered) or type(d).__name__ == "Enum" for _, d in columns)
    return {str(n): [*map(str, d.categories)] for n, d in itertools.compress(columns, in_order)}


def kind_of_arrow(label: str, arrow: Any, column: Column | None) -> Kind:
    """The kind of a column of an Arrow table, whose types all have room for gaps.

    Args:
        column: as the schema declares it; the kind of a column of gaps alone follows from it.
    """
    if pa.types.is_null(arrow):
        family = _declared_family(column)
        return Kind(label, family, pa.string() if family == "text" else None)
    if pa.types.is_dictionary(arrow):
        return Kind(label, _family(arrow.value_type), category=True, ordered=bool(arrow.ordered))
    return Kind(label, _family(arrow), arrow)


def _family(arrow: Any) -> str:
    tests = {
        "flag": (pa.types.is_boolean,),
        "whole": (pa.types.is_integer,),
        "real": (pa.types.is_floating, pa.types.is_decimal),
        "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "date": (pa.types.is_date,),
        "time": (pa.types.is_timestamp,),
    }
    return next((name for name, each in tests.items() if any(test(arrow) for test in each)), "")


def texts(schema: Schema, kinds: Mapping[str, Kind]) -> frozenset[str]:
    """The columns that are wanted as texts."""
    return frozenset(c.name for c in schema.columns if c.name in kinds and kinds[c.name].family == "text")


def form_of(frame: Any) -> str:
    """The form of the frames that `sample` gives of what was fitted from this one."""
    return "polars" if type(frame).__module__.partition(".")[0] == "polars" else "pandas"


def in_form(table: Any, schema: Schema, kinds: Mapping[str, Kind], form: str, facts: Mapping[str, Any] | None) -> Any:
    """The synthetic table as a frame of that form, one of FORMS, in the columns and kinds of the frame.

    Args:
        facts: what is said of conditioned rows: `attrs["given"]` of pandas, the metadata of an Arrow table.
    """
    if form == "pandas":
        frame = as_pandas(table, schema, kinds)
        frame.attrs |= {} if facts is None else {"given": facts}
        return frame
    arrow = as_arrow(table, schema, kinds)
    if form == "polars":
        need_extra("polars", "form")
        return import_module("polars").from_arrow(arrow)
    return arrow if facts is None else arrow.replace_schema_metadata({"given": json.dumps(facts)})


def as_arrow(table: Any, schema: Schema, kinds: Mapping[str, Kind]) -> Any:
    """The synthetic table with the columns and types of the frame, as a `pyarrow.Table`."""
    columns = {}
    for _, kind, array in _columns(table, schema, kinds):
        if isinstance(kind.exact, pa.DataType):
            array = _cast(array, kind.exact)
        if kind.category:
            array = array.dictionary_encode()
        columns[str(kind.label)] = array
    return pa.table(columns)


def as_pandas(table: Any, schema: Schema, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """The synthetic table with the columns and dtypes of the frame."""
    columns, labels = [], []
    for column, kind, array in _columns(table, schema, kinds):
        series = _series(array.combine_chunks(), kind, gaps=column is not None and column.missing)
        if kind.category:
            series = series.astype(pd.CategoricalDtype(_categories(series, column), ordered=kind.ordered))
        columns.append(series)
        labels.append(kind.label)
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    return frame.set_axis(labels, axis=1)


def _columns(table: Any, schema: Schema, kinds: Mapping[str, Kind]) -> Iterator[tuple[Column | None, Kind, Any]]:
    """Each column in the order of the frame (what the schema adds is last): as declared, its kind, and its values.

    Where the frame had no such column, its kind is what the schema makes of it.
    """
    names = table.column_names
    for name in [*(n for n in kinds if n in names), *(n for n in names if n not in kinds)]:
        column = declared(schema, name)
        kind = kinds[name] if name in kinds else Kind(name, "flag" if _truth_values(column) else "")
        yield column, kind, _in_family(table.column(name), column, kind.family)


def declared(schema: Schema | None, name: str) -> Column | None:
    """The column as the schema declares it; None where it does not."""
    return schema[name] if schema is not None and name in schema.domain else None


def _in_family(array: Any, column: Column | None, family: str) -> Any:
    """The column's values in the family of the frame's, where the schema's values have such a form."""
    kind = array.type
    is_flag = column is not None and column.kind == "flag" and column.other is None
    if is_flag and column is not None and pa.types.is_string(kind) and family in {"flag", "whole", "real"}:
        array = _truths(array, column)
        kind = array.type
    if family in {"whole", "real"} and pa.types.is_boolean(kind):
        return array.cast(pa.int64())
    listed = () if column is None or column.other else (*column.values, *filter(None, column.missing_texts[:1]))
    if family in {"whole", "real"} and pa.types.is_string(kind) and listed:
        whole = all(re.fullmatch("0|-?[1-9][0-9]*", v) for v in listed)  # others may be codes, as 0012
        parts = pd.to_numeric(np.array(listed), errors="coerce") % 1
        return _cast(array, pa.int64() if whole else pa.float64()) if whole or parts.sum() > 0 else array
    if family == "date" and pa.types.is_timestamp(kind):
        return array.cast(pa.date32(), safe=False)
    if family == "time" and pa.types.is_date(kind):
        return array.cast(pa.timestamp("s"))
    return array


def _truths(array: Any, column: Column) -> Any:
    """The texts of a flag as truth values; those of no value are null."""
    is_true, is_false = pc.equal(array, column.values[1]), pc.equal(array, column.values[0])
    return pc.if_else(pc.or_(is_true, is_false), is_true, pa.scalar(None, pa.bool_()))


def _cast(array: Any, kind: Any) -> Any:
    """The array in another type, where all its values fit."""
    try:
        return array.cast(kind)
    except pa.ArrowException:
        return array


def _series(array: Any, kind: Kind, *, gaps: bool) -> pd.Series[Any]:
    """An Arrow array as a column of pandas.

    Args:
        gaps: whether values may be missing, by the schema.
    """
    dtype = None if isinstance(kind.exact, pa.DataType) else kind.exact
    arrow = array.type
    if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        values = array.to_pandas(types_mapper=WITH_GAPS.get if gaps or array.null_count else None)
        return _as(values, None if isinstance(dtype, np.dtype) else dtype)
    if pa.types.is_timestamp(arrow) or (pa.types.is_date(arrow) and kind.family != "date"):
        moments = pd.Series(np.asarray(array.cast(pa.timestamp("s"))))
        if isinstance(dtype, pd.DatetimeTZDtype):
            return _as(moments.dt.tz_localize("UTC").dt.tz_convert(dtype.tz), dtype)
        return _as(moments, dtype)
    if pa.types.is_floating(arrow) or pa.types.is_date(arrow):
        return _as(array.to_pandas(), dtype)
    entries = array.to_numpy(zero_copy_only=False)
    if kind.family != "text":  # what the schema alone makes texts of
        return pd.Series(entries, dtype="str")
    return _as(pd.Series(entries, dtype=object), dtype or (None if kind.exact is None else "str"))


def _as(series: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """The column in the frame's dtype, where its values fit."""
    if dtype is None:
        return series
    try:
        return series.astype(dtype)
    except (TypeError, ValueError, pa.ArrowException):
        return series


def _categories(series: pd.Series[Any], column: Column | None) -> Any:
    """The values that the schema names, in its order; of a column of numbers, those that were drawn."""
    listed = [] if column is None else [*column.values, *([] if column.other is None else [column.other])]
    if listed and column is not None and column.missing_texts and series.eq(column.missing_texts[0]).any():
        listed.append(column.missing_texts[0])
    if listed and pd.api.types.is_integer_dtype(series.dtype) and column is not None and column.whole:
        return pd.Index([int(v) for v in listed], dtype="int64")
    if listed and (series.dropna().isin(listed)).all():
        return pd.Index(listed)
    return pd.Index(sorted(series.dropna().unique()))


#: The file beside a saved release that keeps them for a loaded one; it is no part of it.
FORMAT = "frame-kinds/1"


def kinds_file(release: Path) -> Path:
    """The file beside the release folder."""
    return release.with_name(f"{release.name}.frame.json")


def keep_kinds(release: Path, kinds: Mapping[str, Kind], form: str) -> None:
    """Write them beside the folder.

    Args:
        form: of the library whose frames `sample` gives.
    """
    facts = {"format": FORMAT, "release": file_digest(release / MANIFEST), "form": form}
    columns = {name: _written(kind) for name, kind in kinds.items()}
    write_whole(kinds_file(release), json.dumps({**facts, "columns": columns}, indent=1, ensure_ascii=False) + "\n")


def stored_kinds(release: Path) -> tuple[Mapping[str, Kind], str]:
    """The kinds that were kept of this very release, and the form of its frames; none, and pandas, else.

    Raises:
        UserError: the file is damaged, or of a later version.
    """
    path, manifest = kinds_file(release), release / MANIFEST
    if not path.is_file() or not manifest.is_file():
        return {}, "pandas"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}")
        if facts["release"] != file_digest(manifest):
            return {}, "pandas"
        return {name: _read(name, column) for name, column in facts["columns"].items()}, str(facts["form"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, pa.ArrowException) as error:
        fix = "move it away: columns have the kinds of the schema then"
        raise UserError(f"no kinds of a frame's columns ({error})", where=str(path), fix=fix) from error


def _written(kind: Kind) -> JsonDict:
    exact, label = kind.exact, kind.label.item() if hasattr(kind.label, "item") else kind.label
    facts: JsonDict = {"family": kind.family, "category": kind.category, "ordered": kind.ordered}
    facts |= {"label": label} if isinstance(label, int) else {}
    if isinstance(exact, pd.ArrowDtype):  # pandas reads no type with parameters from its name
        exact, facts["dtype"] = exact.pyarrow_dtype, "of Arrow"
    if isinstance(exact, pa.DataType):
        facts["arrow"] = base64.b64encode(pa.schema([("", exact)]).serialize().to_pybytes()).decode()
    elif exact is not None:
        facts["dtype"] = str(exact)
    return facts


def _read(name: str, facts: JsonDict) -> Kind:
    exact: Any = None
    if "arrow" in facts:
        exact = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["arrow"]))).field(0).type
        exact = pd.ArrowDtype(exact) if "dtype" in facts else exact
    elif "dtype" in facts:
        exact = pd.api.types.pandas_dtype(facts["dtype"])
    if not isinstance(label := facts.get("label", name), int | str):
        raise ValueError(f"label {label!r}")
    return Kind(label, str(facts["family"]), exact, bool(facts["category"]), bool(facts["ordered"]))
