"""Distances of values, and mistakes in hierarchies and distances: each is named with a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from tests.public.table_worlds import schema

VALUES = {"kind": "categorical", "values": ["a", "b", "c", "d"]}
LINE = {**VALUES, "ordinal": True}


def said(fields: dict[str, Any], folder: Path = Path()) -> str:
    with pytest.raises(UserError) as caught:
        parse_schema({"columns": {"place": fields}}, where="s.yaml", folder=folder)
    text = str(caught.value)
    assert text.startswith("s.yaml: column 'place': ") and "fix: " in text
    return text


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"n": ["a", "b"], "s": ["c"]}, "without a leaf for 'd'"),
        ({"n": ["a", "b"], "s": ["c", "d", "e"]}, "no value of the column is 'e'"),
        ({"n": ["a", "b"], "s": ["c", "d", "a"]}, "leaf 'a' is there twice"),
        ({"n": ["a", "b"], "s": ["c", "?"]}, "'?' is no value"),
        ({"n": ["a", "b"], "s": ["c", "Other"]}, "'Other' is no value"),
        ({"n": ["a", "b"], "s": {"t": ["c"], "u": ["d"]}}, "leaf 'c' lies 3 below the root, but 'a' 2"),
        ({"n": ["a", "b"], "s": []}, "below 's': has no leaf"),
        ({"n": ["a", "b"], "s": None}, "below 's': has no leaf"),
        ({"n": ["a", "b"], "s": "c"}, "below 's': got 'c'"),
        ({"n": ["a", "b"], "s": ["c", ["d"]]}, "below 's': got ['d']"),
        ({}, "below the root: has no leaf"),
        (7, "below the root: got 7"),
        ({"n": {"x": ["a"]}, "s": {"x": ["b", "c", "d"]}}, "node 'x' of level '2' has two parents, 'n' and 's'"),
        ({"levels": ["only"], "tree": {"n": ["a", "b", "c", "d"]}}, "1 level names for 2 levels"),
        ({"levels": ["x", "x"], "tree": {"n": ["a", "b", "c", "d"]}}, "a level called 'x'"),
        ({"levels": ["2", "1"], "tree": {"n": ["a", "b", "c", "d"]}}, "a level called '2'"),
        ({"levels": "x", "tree": {"n": ["a", "b", "c", "d"]}}, "hierarchy: levels: got 'x'"),
        ("none.csv", "cannot read none.csv"),
        ({"n": ["b", "a"], "s": ["c", "d"]}, "leaf 'b' (in 'n') stands where 'a' belongs"),
        ({"n": ["a", "c"], "s": ["b", "d"]}, "leaf 'c' (in 'n') stands where 'b' belongs"),
        (["b", "a", "c", "d"], "leaf 'b' stands where 'a' belongs"),
    ],
)
def test_a_mistake_in_a_hierarchy_is_named(tree: object, says: str) -> None:
    assert says in said({**LINE, "other": "Other", "missing": ["?"], "hierarchy": tree})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("v,group\na,n\nb,s\nc,n\nd,s\n", "node 'n' of level 'group' has 'c' but not 'b' before it"),
        ("v,group\na,n\nb,\nc,n\nd,s\n", "leaf 'b' has no 'group'"),
        ("v,group\na,n\nb\n", "line 3, with 'b': 1 cells below 2 in the header"),
        ("v\na\nb\nc\nd\n", "has one column"),
        ("v,group\n", "holds no row below its header"),
        ("", "holds no row below its header"),
        ("v,v\na,n\nb,n\nc,n\nd,n\n", "a level called 'v'"),
        ('v,group\n"a,n\n', "is no CSV"),
        ("v,group\n\xff,\xfe\n", "given.csv is not UTF-8 text"),
        ("a,b\n0,1\n", "1 rows below 2 columns"),
        (",a,b\na,0,1\nc,1,0\n", "2 rows below 3 columns"),
        (",a,b\na,0,1\nb,2,0\n", "from 'b' to 'a': got 2"),
    ],
)
def test_a_mistake_in_a_csv_of_a_hierarchy_or_of_distances_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text(text, encoding="latin-1")
    far = {"kind": "categorical", "values": ["a", "b"], "distances": "given.csv"}
    assert says in said(far if "a,b\n" in text else {**LINE, "hierarchy": "given.csv"}, tmp_path)


SQUARE = {"values": ["a", "b"], "matrix": [[0, 1], [1, 0]]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"distances": SQUARE, "hierarchy": ["a", "b"]}, "both hierarchy and distances"),
        ({"distances": {**SQUARE, "values": ["a"]}}, "without a leaf for 'b'"),
        ({"distances": {**SQUARE, "matrix": [[0, 1.5], [1, 0]]}}, "from 'a' to 'b': got 1.5"),
        ({"distances": {**SQUARE, "matrix": [[0, -1], [1, 0]]}}, "from 'a' to 'b': got -1"),
        ({"distances": {**SQUARE, "matrix": [[0, "nan"], [1, 0]]}}, "from 'a' to 'b': got nan"),
        ({"distances": {**SQUARE, "matrix": [[0, "far"], [1, 0]]}}, "from 'a' to 'b': got 'far'"),
        ({"distances": {**SQUARE, "matrix": [[0, True], [1, 0]]}}, "from 'a' to 'b': got True"),
        ({"distances": {**SQUARE, "matrix": [[0, 1], [1, 0.5]]}}, "from 'b' to 'b': got 0.5"),
        ({"distances": {**SQUARE, "matrix": [[0, 1], [1]]}}, "from 'b': 1 numbers for 2 values"),
        ({"distances": {**SQUARE, "matrix": [[0, 1]]}}, "1 rows for 2 values"),
        ({"distances": {**SQUARE, "matrix": 3}}, "1 rows for 2 values"),
        ({"distances": {"values": ["a", "b"]}}, "neither a path nor a matrix"),
        ({"distances": [[0, 1], [1, 0]]}, "neither a path nor a matrix"),
        ({"distances": "none.csv"}, "cannot read none.csv"),
    ],
)
def test_a_mistake_in_distances_is_named(given: dict[str, Any], says: str) -> None:
    assert says in said({"kind": "categorical", "values": ["a", "b"], **given})


def test_too_many_values_for_a_matrix_are_named() -> None:
    assert "2,001 values" in said({"kind": "categorical", "size": 2001, "distances": SQUARE})


INF = float("inf")
MATRIX = [[0, 0.25, 1], [0.5, 0, INF], [1, INF, 0]]


def column(distances: object, folder: Path = Path(), values: str = "abc") -> Any:
    fields = {"kind": "categorical", "values": list(values), "distances": distances}
    return parse_schema({"columns": {"x": fields}}, where="s.yaml", folder=folder)["x"]


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n0,0.25,1\n0.5,0,inf\n1,inf,0\n",
        "from,a,b,c\na,0,0.25,1\nb,0.5,0,inf\nc,1,inf,0\n",
        "from,b,a,c\nc,inf,1,0\nb,0,.5,Infinity\na,0.25,0,1\n",
        '"c","a","b"\n0,1,inf\n1.0,0,2.5e-1\ninf,0.5,0\n',
    ],
)
def test_every_way_to_write_a_csv_says_the_same(text: str, tmp_path: Path) -> None:
    (tmp_path / "far.csv").write_text(text)
    found = column("far.csv", tmp_path)
    assert found.distances == tuple(map(tuple, MATRIX))
    assert found.tree is None and found.hierarchy.depth == 1


def test_inline_matrices_hold_rows_of_numbers_or_text() -> None:
    rows: list[object] = [[0, "0.25", 1], "0.5 0 .inf", [1, INF, 0]]
    assert column({"values": ["a", "b", "c"], "matrix": rows}).distances == tuple(map(tuple, MATRIX))
    assert column(None).distances is None


@given(st.lists(st.floats(0, 1) | st.just(INF), min_size=6, max_size=6))
def test_a_matrix_survives_the_way_through_yaml(cells: list[float]) -> None:
    matrix = np.zeros((3, 3))
    matrix[~np.eye(3, dtype=bool)] = cells
    found = schema(x={"kind": "categorical", "values": ["a", "b", "c"]} | {"distances": inline(matrix)})
    again = parse_schema(yaml.safe_load(found.to_yaml()), where="again.yaml")
    assert again.columns == found.columns and hash(again.columns) == hash(found.columns)
    assert (np.array(found["x"].distances) == matrix).all()


def inline(matrix: Any) -> dict[str, Any]:
    return {"values": ["a", "b", "c"], "matrix": matrix.tolist()}


DAYS = {"kind": "date", "min": "2015-12-31", "max": "2016-12-31"}
TIMES = {"kind": "datetime", "min": "2016-01-01", "max": "2016-01-02"}


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({"kind": "categorical", "values": ["b", "a"], "other": "o"}, ("b", "a")),
        ({"kind": "categorical", "size": 2}, ("0", "1")),
        ({"kind": "flag", "true": ["Y", "y"], "false": [""]}, ("", "Y")),
        ({"kind": "integer", "min": -1, "max": 1}, ("-1", "0", "1")),
        ({"kind": "integer", "min": -5, "max": 4, "bins": {"count": 2}}, ("-5 to -1", "0 to 4")),
        ({"kind": "float", "min": 0, "max": 1, "bins": {"count": 2}}, ("0 to 0.5", "0.5 to 1")),
        ({**DAYS, "bins": {"calendar": "year"}}, ("2015", "2016")),
        ({**DAYS, "max": "2016-01-01", "bins": {"calendar": "month"}}, ("2015-12", "2016-01")),
        ({**DAYS, "max": "2016-01-01", "bins": {"calendar": "day"}}, ("2015-12-31", "2016-01-01")),
        ({**DAYS, "max": "2016-01-04", "bins": {"calendar": "week"}}, ("2015-12-31 to 2016-01-03", "2016-01-04")),
        ({**DAYS, "max": "2016-01-02", "bins": {"count": 2}}, ("2015-12-31", "2016-01-01 to 2016-01-02")),
        ({**TIMES, "max": "2016-01-01 01:59:59", "bins": {"calendar": "hour"}}, ("2016-01-01 00", "2016-01-01 01")),
        (
            {**TIMES, "bins": {"count": 2}},
            ("2016-01-01 00:00:00 to 2016-01-01 23:59:59", "2016-01-02 00:00:00 to 2016-01-02 23:59:59"),
        ),
    ],
)
def test_labels_name_every_value_code(fields: dict[str, Any], labels: tuple[str, ...]) -> None:
    assert schema(a=fields)["a"].labels == labels


def test_labels_of_cyclic_codes() -> None:
    def of(name: str) -> tuple[str, ...]:
        return schema(a={"kind": "datetime", "min": "2016-01-01", "max": "2016-12-31", "bins": {"calendar": name}})[
            "a"
        ].labels

    assert len(of("month_of_year")) == 12 and of("month_of_year")[::11] == ("January", "December")
    assert len(of("day_of_week")) == 7 and of("day_of_week")[::6] == ("Monday", "Sunday")
    assert of("hour_of_day") == tuple(map(str, range(24)))


def test_narrow_bins_of_floats_have_distinct_labels() -> None:
    labels = schema(a={"kind": "float", "min": 1, "max": 1 + 1e-11})["a"].labels
    assert len(set(labels)) == 20
