"""Hierarchies: what lies above each leaf, and both ways to write a hierarchy."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.hierarchy import Hierarchy, build_hierarchy
from mechanisms.public.schema.hierarchy_fields import hierarchy_fields
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from tests.public.table_worlds import schema

CITIES = {"Maryland": ["Baltimore", "Annapolis"], "Indiana": ["Lafayette", "Gary", "Muncie"]}


def listed(tree: dict[str, list[str]]) -> list[str]:
    return [leaf for leaves in tree.values() for leaf in leaves]


def one(**fields: Any) -> Column:
    return schema(a={"kind": "categorical", **fields})["a"]


def test_the_default_is_one_root_over_the_leaves() -> None:
    tree = one(values=["Armed Person", "Bike Theft", "Fire"]).hierarchy
    assert tree == Hierarchy.default(["Armed Person", "Bike Theft", "Fire"]) and tree.depth == 1
    assert one(values=["x"]).tree is None


def test_nodes_above_each_leaf() -> None:
    tree = one(values=["b", "c", "a"], hierarchy={"m": {"n": ["a"], "o": ["c"]}, "p": {"q": ["b"]}}).hierarchy
    assert [level.nodes for level in tree.levels] == [("p", "m"), ("q", "o", "n"), ("b", "c", "a")]
    assert tree.nodes_of(1).tolist() == [0, 1, 1]
    assert tree.nodes_of(2).tolist() == tree.nodes_of("3").tolist() == [0, 1, 2]


def test_levels_have_names_and_numbers() -> None:
    named = {"levels": ["state", "city"], "tree": CITIES}
    tree = one(values=listed(CITIES), hierarchy=named).hierarchy
    assert tree.number("state") == tree.number(1) == tree.number("1") == 1
    assert tree.level("city").nodes == tuple(listed(CITIES))
    for absent in ("stat", 0, 3, "9", True):
        with pytest.raises(UserError, match=r"coarsest first: state \(1\), city \(2\)"):
            tree.number(absent)


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    """Any hierarchy, its leaves in any order unless it is ordinal."""
    ordered = draw(st.booleans())
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    ways: list[tuple[str, ...]] = [()]
    for size in sizes:
        counts = draw(st.lists(st.integers(1, size), min_size=len(ways), max_size=len(ways)))
        ways = [(*way, f"{'.'.join(way[-1:])}{i}") for way, n in zip(ways, counts, strict=True) for i in range(n)]
        if len(ways) > 40:
            break
    leaves = [way[-1] for way in ways]
    if not ordered:
        leaves = draw(st.permutations(leaves))
    return build_hierarchy(ways, leaves, ordered=ordered, where="law")


def declared(tree: Hierarchy, hierarchy: object) -> dict[str, Any]:
    values: dict[str, Any] = {"kind": "categorical", "values": list(tree.leaves), "ordinal": tree.ordered}
    return {"name": "t", "columns": {"a": values | {"hierarchy": hierarchy}}}


def as_csv(tree: Hierarchy) -> str:
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([level.name for level in reversed(tree.levels)])
    above = [[tree.levels[n].nodes[i] for i in tree.nodes_of(n + 1)] for n in range(tree.depth)]
    lines.writerows(zip(*reversed(above), strict=True))
    return text.getvalue()


@given(trees())
def test_yaml_and_csv_say_the_same_and_survive_the_way_through_a_schema(tmp_path_factory, tree):
    nested = parse_schema(declared(tree, hierarchy_fields(tree)), where="nested.yaml")
    assert nested["a"].hierarchy == tree
    assert again(nested) == nested
    if tree.depth > 1:
        folder = tmp_path_factory.mktemp("csv")
        (folder / "tree.csv").write_text(as_csv(tree), encoding="utf-8")
        (folder / "s.yaml").write_text(yaml.safe_dump(declared(tree, "tree.csv")), encoding="utf-8")
        assert load_schema(folder / "s.yaml") == nested


def again(facts: Schema) -> Schema:
    return parse_schema(yaml.safe_load(facts.to_yaml()), where="again.yaml")


def test_a_schema_with_files_beside_it_stands_alone_when_written(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("city,state\nGary,Indiana\nBaltimore,Maryland\n")
    (tmp_path / "far.csv").write_text("x,y\n0,0.25\ninf,0\n")
    (tmp_path / "s.yaml").write_text(
        "columns:\n  city: {kind: categorical, values: [Baltimore, Gary], hierarchy: cities.csv}\n"
        "  b: {kind: categorical, values: [y, x], distances: far.csv}\n"
    )
    found = load_schema(tmp_path / "s.yaml")
    elsewhere = tmp_path / "elsewhere" / "schema.yaml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(found.to_yaml())
    assert load_schema(elsewhere).columns == found.columns
    assert [level.name for level in found["city"].hierarchy.levels] == ["state", "city"]
    assert found["city"].hierarchy.level("state").nodes == ("Maryland", "Indiana")


def test_bins_numbers_and_flags_are_leaves_too() -> None:
    found = schema(
        age={"kind": "integer", "min": 0, "max": 3, "hierarchy": {"young": [0, 1], "old": [2, 3]}},
        pay={"kind": "integer", "bins": {"edges": [0, 10, 11]}, "hierarchy": ["0 to 9", 10]},
        fare={"kind": "float", "bins": {"edges": [0, 2.5, 9]}, "hierarchy": {"all": ["0 to 2.5", "2.5 to 9"]}},
        day={"kind": "date", "min": "2016-12-31", "max": "2017-01-01", "hierarchy": [["x"]]}
        | {"hierarchy": {"2016": ["2016-12-31"], "2017": ["2017-01-01"]}},
        code={"kind": "categorical", "size": 3, "hierarchy": {"even": [0, 2], "odd": [1]}},
        sick={"kind": "flag", "hierarchy": {"any": ["false", "true"]}},
    )
    assert [c.hierarchy.depth for c in found.columns] == [2, 1, 2, 2, 2, 2]
    assert again(found).columns == found.columns
