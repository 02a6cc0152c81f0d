"""Explicit distances: every way to write a matrix, what it says of itself, and the names of the value codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.schema.distances import Distances
from mechanisms.public.schema.table_schema import parse_schema
from tests.public.table_worlds import schema

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
    assert found.distances.matrix.tolist() == MATRIX and found.distances.names == ("a", "b", "c")
    assert found.tree is None and found.hierarchy.flat


def test_inline_matrices_hold_rows_of_numbers_or_text() -> None:
    rows: list[object] = [[0, "0.25", 1], "0.5 0 .inf", [1, INF, 0]]
    assert column({"values": ["a", "b", "c"], "matrix": rows}).distances == Distances(np.array(MATRIX), ("a", "b", "c"))
    assert column(None).distances is None


@given(st.lists(st.floats(0, 1) | st.just(INF), min_size=6, max_size=6))
def test_a_matrix_survives_the_way_through_yaml(cells: list[float]) -> None:
    matrix = np.zeros((3, 3))
    matrix[~np.eye(3, dtype=bool)] = cells
    found = schema(x={"kind": "categorical", "values": ["a", "b", "c"]} | {"distances": inline(matrix)})
    again = parse_schema(yaml.safe_load(found.to_yaml()), where="again.yaml")
    assert again.columns == found.columns and hash(again.columns) == hash(found.columns)
    assert (found["x"].distances.matrix == matrix).all()  # type: ignore[union-attr]


def inline(matrix: Any) -> dict[str, Any]:
    return {"values": ["a", "b", "c"], "matrix": matrix.tolist()}


def test_matrices_are_equal_by_their_numbers() -> None:
    line, other = (Distances(np.array([[0, x], [x, 0]]), ("a", "b")) for x in (0.5, 0.25))
    assert line == Distances(line.matrix, ("a", "b"))
    assert line != other and line != 3


def test_a_matrix_cannot_be_changed() -> None:
    given = np.array([[0.0, 1], [1, 0]])
    distances = Distances(given, ("a", "b"))
    given[0, 1] = 0.5
    assert distances.matrix[0, 1] == 1
    with pytest.raises(ValueError, match="read-only"):
        distances.matrix[0, 1] = 0
    with pytest.raises(UserError, match="2 × 1 numbers for 2 values"):
        Distances(np.zeros((2, 1)), ("a", "b"))


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

    assert of("month_of_year")[::11] == ("January", "December")
    assert of("day_of_week")[::6] == ("Monday", "Sunday")
    assert of("hour_of_day") == tuple(map(str, range(24)))


def test_narrow_bins_of_floats_have_distinct_labels() -> None:
    labels = schema(a={"kind": "float", "min": 1, "max": 1 + 1e-11})["a"].labels
    assert len(set(labels)) == 20
