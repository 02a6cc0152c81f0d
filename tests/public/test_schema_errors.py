"""Every mistake in a schema is one message that names the file, the column and the field, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema

WHERE = "tiny.yaml: column 'a'"
INTEGER = {"kind": "integer", "min": 0, "max": 9}
DATE = {"kind": "date", "min": "2016-01-01", "max": "2016-12-31"}
VALUES = {"kind": "categorical", "values": ["x", "y"]}

COLUMN_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "categoric", "values": ["x"]}, "did you mean 'categorical'?"),
    ({"values": ["x"]}, "kind: is absent"),
    ({**INTEGER, "bin": {"count": 2}}, "unknown field 'bin'"),
    ({**INTEGER, "bin": {"count": 2}}, "did you mean 'bins'?"),
    ({**INTEGER, "values": [1]}, "unknown field 'values'"),
    ({"kind": "categorical"}, "needs either values or size"),
    ({"kind": "categorical", "values": ["x"], "size": 2}, "needs either values or size"),
    ({"kind": "categorical", "values": []}, "values: got []"),
    ({"kind": "categorical", "values": "x"}, "values: got 'x'"),
    ({"kind": "categorical", "values": ["x", None]}, "values: got None"),
    ({"kind": "categorical", "values": ["x", "x"]}, "given twice: 'x'"),
    ({"kind": "categorical", "size": 0}, "size: got 0"),
    ({"kind": "categorical", "size": True}, "size: got True"),
    ({**VALUES, "ordinal": "yes"}, "ordinal: got 'yes'"),
    ({**VALUES, "other": "x"}, "given twice: 'x'"),
    ({**VALUES, "other": ""}, "other: the label is empty"),
    ({**VALUES, "missing": ["x"]}, "given twice: 'x'"),
    ({**VALUES, "missing": "?"}, "missing: got '?'"),
    ({"kind": "categorical", "values": ["x", ""], "missing": True}, "the empty text is a listed value"),
    ({"kind": "flag", "true": ["Y"], "false": ["Y"]}, "given twice: 'Y'"),
    ({**VALUES, "outside": "clip"}, "outside: clip needs numbers"),
    ({**VALUES, "outside": "other"}, "outside: other, but the column has no such code"),
    ({**VALUES, "missing": False, "outside": "missing"}, "outside: missing, but the column has no such code"),
    ({**VALUES, "outside": "refused"}, "did you mean 'refuse'?"),
    ({"kind": "integer", "min": 0}, "integer needs min and max"),
    ({"kind": "integer", "min": 9, "max": 0}, "min must lie below max"),
    ({"kind": "float", "min": 1, "max": 1}, "min must lie below max"),
    ({"kind": "integer", "min": "zero", "max": 9}, "min: got 'zero'"),
    ({"kind": "integer", "min": 0.5, "max": 9}, "min: got 0.5"),
    ({"kind": "integer", "min": 0, "max": 2**60}, "a whole number up to 2^53"),
    ({"kind": "float", "min": float("-inf"), "max": 9}, "a finite number"),
    ({"kind": "integer", "min": 0, "max": 1_000_000}, "1,000,001 codes"),
    ({**INTEGER, "bins": {"count": 11}}, "11 bins for 10 values"),
    ({**INTEGER, "bins": {"count": 0}}, "bins: count: got 0"),
    ({"kind": "integer", "min": 0, "max": 2**52, "bins": {"count": 100_000}}, "too wide for so many bins"),
    ({**INTEGER, "bins": 5}, "bins: got 5"),
    ({**INTEGER, "bins": {"edge": [1, 2]}}, "did you mean 'edges'?"),
    ({**INTEGER, "bins": {"calendar": "month"}}, "bins: got 'calendar'"),
    ({**INTEGER, "bins": {"edges": [1]}}, "at least two ascending edges"),
    ({"kind": "integer", "bins": {"edges": [1, 5, 5]}}, "edges must ascend"),
    ({**INTEGER, "bins": {"edges": [1, 5, 10]}}, "edges do not fit min and max"),
    ({"kind": "float", "min": 0, "max": 9, "bins": {"edges": [0, 5, 8]}}, "edges do not fit min and max"),
    ({"kind": "float", "min": 1e15, "max": 1e15 + 1, "bins": {"count": 20}}, "the bins are too narrow"),
    ({"kind": "float", "min": 0, "max": 9, "decimals": -1}, "decimals: got -1"),
    ({"kind": "float", "min": 0, "max": 9, "other": "12"}, "other: '12' reads as a value"),
    ({**DATE, "other": "2016-02-02"}, "other: '2016-02-02' reads as a value"),
    ({**DATE, "min": "soon"}, "min: got 'soon', which is no date"),
    ({**DATE, "format": "yyyy"}, "format: got 'yyyy'"),
    ({**DATE, "bins": {"calendar": "hour_of_day"}}, "needs a time of day"),
    ({**DATE, "bins": {"calendar": "months"}}, "did you mean 'month'?"),
    (
        {**DATE, "max": "2016-03-01", "bins": {"calendar": "month_of_year"}},
        "9 of the 12 codes of month_of_year never occur",
    ),
    ({**DATE, "format": "%Y-%m", "bins": {"calendar": "day"}}, "loses what the bins need"),
    ({**DATE, "min": "1931-01-01", "format": "%d.%m.%y"}, "as 1969 to 2068: bounds within"),
]


@pytest.mark.parametrize(("fields", "says"), COLUMN_MISTAKES)
def test_a_mistake_in_a_column_is_named(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_schema({"name": "t", "columns": {"a": fields}}, where="tiny.yaml")
    assert WHERE in str(caught.value) and says in str(caught.value) and "fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"columns": {"a": VALUES}, "leaveout": ["b"]}, "did you mean 'leave_out'?"),
        ({"columns": {"a": VALUES}, "confirmed_public": "no"}, "confirmed_public: got 'no'"),
        ({"columns": {"a": VALUES}, "leave_out": "b"}, "leave_out: got 'b'"),
        ({"columns": {"a": VALUES}, "leave_out": ["a"]}, "both kept and left out"),
        ({"columns": {}}, "no columns"),
        ({"columns": {"a": 3}}, "got 3"),
        ({}, "no columns"),
        ({"a": 3, "b": "x"}, "field 'b' is neither a size nor a column"),
        ({"a": 0}, "size: got 0"),
    ],
)
def test_a_mistake_beside_the_columns_is_named(content: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_schema(content, where="tiny.yaml")
    assert says in str(caught.value) and "tiny.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.yaml", b"columns: {a: [", "not well formed"),
        ("a.yaml", b"columns: {a: {kind: flag}, a: {kind: flag}}", "'a' is given twice"),
        ("a.json", b'{"a": 1, "a": 2}', "'a' is given twice"),
        ("a.json", b"{", "not well formed"),
        ("a.yaml", b"- a", "the file holds no mapping"),
        ("a.yaml", b"", "the file holds no mapping"),
        ("a.yaml", b"name: \xff\xfe", "not UTF-8 text"),
        ("a.yaml", b"columns: {a: &same {kind: flag}, b: *same}", "write out what it stands for"),
        ("a.yaml", b"columns: " + b"[" * 400_000, "nested deeper"),
        ("a.json", b'{"columns": ' + b"[" * 65 + b"]" * 65 + b"}", "nested deeper"),
    ],
)
def test_a_file_that_is_no_schema_is_named(name: str, text: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(UserError, match=says) as caught:
        load_schema(path)
    assert str(path) in str(caught.value)


def test_a_schema_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the schema"):
        load_schema(tmp_path / "none.yaml")
