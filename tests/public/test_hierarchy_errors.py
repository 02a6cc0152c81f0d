"""Every mistake in a hierarchy or a matrix of distances is one message that names the column and the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema

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
        ({"n": ["a", "b"], "s": {}}, "below 's': has no leaf"),
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
    ],
)
def test_a_mistake_in_a_hierarchy_is_named(tree: object, says: str) -> None:
    assert says in said({**VALUES, "other": "Other", "missing": ["?"], "hierarchy": tree})


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"n": ["b", "a"], "s": ["c", "d"]}, "leaf 'b' (in 'n') stands where 'a' belongs"),
        ({"s": ["c", "d"], "n": ["a", "b"]}, "leaf 'c' (in 's') stands where 'a' belongs"),
        ({"n": ["a", "c"], "s": ["b", "d"]}, "leaf 'c' (in 'n') stands where 'b' belongs"),
        (["b", "a", "c", "d"], "leaf 'b' stands where 'a' belongs"),
    ],
)
def test_an_ordinal_level_out_of_order_is_named(tree: object, says: str) -> None:
    assert says in said({**LINE, "hierarchy": tree})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("v,group\na,n\nb,s\nc,n\nd,s\n", "node 'n' of level 'group' has 'c' but not 'b' before it"),
        ("v,group,top\na,n,x\nb,n,y\nc,s,y\nd,s,y\n", "node 'n' of level 'group' has two parents, 'x' and 'y'"),
        ("v,group\na,n\nb,\nc,n\nd,s\n", "leaf 'b' has no 'group'"),
        ("v,group\na,n\nb\n", "line 3, with 'b': 1 cells below 2 in the header"),
        ("v\na\nb\nc\nd\n", "has one column"),
        ("v,group\n", "holds no row below its header"),
        ("", "holds no row below its header"),
        ("v,v\na,n\nb,n\nc,n\nd,n\n", "a level called 'v'"),
        ('v,group\n"a,n\n', "is no CSV"),
    ],
)
def test_a_mistake_in_a_csv_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text(text)
    assert says in said({**LINE, "hierarchy": "tree.csv"}, tmp_path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_bytes(b"v,group\n\xff,\xfe\n")
    assert "tree.csv is not UTF-8 text" in said({**VALUES, "hierarchy": "tree.csv"}, tmp_path)


SQUARE = {"values": ["a", "b"], "matrix": [[0, 1], [1, 0]]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"distances": SQUARE, "hierarchy": ["a", "b"]}, "both hierarchy and distances"),
        ({"distances": {**SQUARE, "values": ["a", "x"]}}, "no value of the column is 'x'"),
        ({"distances": {**SQUARE, "values": ["a"]}}, "without a leaf for 'b'"),
        ({"distances": {**SQUARE, "values": ["a", "a"]}}, "leaf 'a' is there twice"),
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n0,1\n", "1 rows below 2 columns"),
        (",a,b\na,0,1\nc,1,0\n", "2 rows below 3 columns"),
        (",a,b\na,0,1\nb,2,0\n", "from 'b' to 'a': got 2"),
    ],
)
def test_a_mistake_in_a_csv_of_distances_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "far.csv").write_text(text)
    assert says in said({"kind": "categorical", "values": ["a", "b"], "distances": "far.csv"}, tmp_path)


def test_too_many_values_for_a_matrix_are_named() -> None:
    assert "2,001 values" in said({"kind": "categorical", "size": 2001, "distances": SQUARE})


def test_a_hierarchy_in_a_file_of_its_own_is_looked_for_beside_the_schema(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("columns: {place: {kind: categorical, values: [a, b], hierarchy: tree.csv}}\n")
    with pytest.raises(UserError, match=r"column 'place': hierarchy: cannot read .*tree\.csv") as caught:
        load_schema(tmp_path / "s.yaml")
    assert str(tmp_path / "tree.csv") in str(caught.value)
