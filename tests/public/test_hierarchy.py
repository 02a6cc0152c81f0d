"""Hierarchies and distances of values: what lies above each leaf, clusters of places, and mistakes with a way out."""

import io
import json
from csv import writer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.errors import UserError
from mechanisms.public.schema.cluster import METHODS, cluster, cluster_from_settings, places_from_settings
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.hierarchy import Hierarchy, build_hierarchy
from mechanisms.public.schema.hierarchy_fields import hierarchy_fields
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from tests.public.table_worlds import csv, encoded, refusal, schema, source

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
    lines = writer(text)
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


PLACES = "place,longitude,latitude\nA,0,60\nB,1,60\nC,0.9,60.4\nD,9,60\nE,9,61\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings(folder: Path, **fields: Any) -> dict[str, Any]:
    (folder / "places.csv").write_text(PLACES)
    return {"coordinates": "places.csv", "levels": [2], **fields}


def test_near_places_are_together_and_called_after_their_medoid(tmp_path: Path) -> None:
    tree = cluster_from_settings(settings(tmp_path, levels=[2, 3]), where="cluster")
    assert tree.leaves == ("A", "B", "C", "D", "E") and not tree.ordered
    assert tree.level(1).nodes == ("B (3)", "D (2)") and tree.nodes_of(1).tolist() == [0, 0, 0, 1, 1]
    assert tree.level(2).nodes == ("B (3)", "D (1)", "E (1)")


def test_a_degree_of_longitude_is_shorter_than_one_of_latitude(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("place,lat,lon\nA,60,0\nB,60,1.5\nC,61,0\n")
    tree = cluster_from_settings({"coordinates": "p.csv", "levels": [2]}, where="cluster")
    assert tree.nodes_of(1).tolist() == [0, 0, 1]
    (tmp_path / "p.csv").write_text("place,y,x\nA,60,0\nB,60,1.5\nC,61,0\n")
    tree = cluster_from_settings({"coordinates": "p.csv", "levels": [2]}, where="cluster")
    assert tree.nodes_of(1).tolist() == [0, 1, 0]


def test_a_matrix_of_distances_serves_as_well(tmp_path: Path) -> None:
    (tmp_path / "far.csv").write_text(",A,B,C\nA,0,7,1\nB,7,0,8\nC,1,8,0\n")
    given = {"distances": "far.csv", "levels": [2], "names": ["area", "place"], "method": "complete"}
    tree = cluster_from_settings(given, where="cluster")
    assert tree.nodes_of("area").tolist() == [0, 1, 0] and tree.level("place").nodes == ("A", "B", "C")


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25),
    st.data(),
    st.sampled_from(METHODS),
)
def test_cuts_are_nested_of_the_size_asked_for_and_the_same_each_time(places, data, method):
    """Ties and places that coincide included."""
    size = len(places)
    counts = sorted(data.draw(st.sets(st.integers(1, size), min_size=1, max_size=3)))
    apart = squareform(pdist(np.array(places, dtype=float))) if size > 1 else np.zeros((1, 1))
    names = [f"p{i}" for i in range(size)]
    tree = cluster(names, apart, counts, method=method)  # a Hierarchy: nested, or it would have raised
    assert [len(level) for level in tree.levels] == [*counts, size]
    assert tree == cluster(names, apart, counts, method=method)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"level": [2]}, "did you mean 'levels'?"),
        ({"distances": "far.csv"}, "needs coordinates or distances, one of them"),
        ({"coordinates": "none.csv"}, "cannot read"),
        ({"coordinates": "a\0b"}, "is no name that the system takes"),
        ({"levels": None}, "levels: got None"),
        ({"levels": [3, 2]}, "levels: got [3, 2]"),
        ({"levels": [2, 2]}, "levels: got [2, 2]"),
        ({"levels": [6]}, "ascending numbers of clusters, each from 1 to 5"),
        ({"levels": ["two"]}, "levels: got 'two'"),
        ({"names": ["area"]}, "1 level names for 2 levels"),
        ({"method": "averag"}, "did you mean 'average'?"),
        ("place,x\nA,1\nB,far\n", "'x' of 'B': got 'far'"),
        ("place,x\nA,1\nB,inf\n", "'x' of 'B': got 'inf'"),
        ("place,x\nA,1\nA,2\n", "'A' is there twice"),
        ("place\nA\nB\n", "has one column"),
    ],
)
def test_a_mistake_in_the_settings_or_the_coordinates_is_named(given: Any, says: str, tmp_path: Path) -> None:
    own = settings(tmp_path, **(given if isinstance(given, dict) else {}))
    if isinstance(given, str):
        (tmp_path / "places.csv").write_text(given)
    with pytest.raises(UserError) as caught:
        cluster_from_settings(own, where="cluster: column 'x'")
    assert says in str(caught.value) and str(caught.value).startswith("cluster: column 'x': ")


def test_distances_to_cluster_by_must_be_finite_and_symmetric() -> None:
    for far in ([[0, 1], [2, 0]], [[0, np.inf], [np.inf, 0]], [[0, 1, 1]]):
        with pytest.raises(UserError, match="finite distances, both ways the same"):
            cluster(["a", "b"], np.array(far, dtype=float), [1])
    with pytest.raises(UserError, match="0 values"):
        cluster([], np.zeros((0, 0)), [1])


def test_the_draft_of_a_schema_holds_the_hierarchy(tmp_path: Path) -> None:
    tree = cluster_from_settings(settings(tmp_path), where="cluster")
    table = csv(tmp_path, "id,spot,alike\n" + "".join(f"{i},{'ABCDZ'[i % 5]},{'ABC?'[i % 4]}\n" for i in range(40)))
    text = draft_schema(source(table), "t", {"spot": tree, "alike": tree})
    (tmp_path / "draft.yaml").write_text(text)
    facts = load_schema(tmp_path / "draft.yaml")
    assert facts["spot"].hierarchy == tree and facts["spot"].other == "Other" and not facts["spot"].missing
    assert facts["alike"].missing_texts == ("?",) and facts["alike"].other is None
    assert "1 more texts of the table are Other" in text and not facts.confirmed_public
    coded, _ = encoded(table, facts)
    assert coded.rows == 40 and np.bincount(coded.column("spot")).tolist() == [8, 8, 8, 8, 0, 8]


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    tree = cluster_from_settings(settings(tmp_path), where="cluster")
    with pytest.raises(UserError, match="no column 'spott'"):
        draft_schema(source(csv(tmp_path, "id,spot\n1,A\n")), "t", {"spott": tree})


SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def schema_with(folder, field):
    path = folder / "land.yaml"
    path.write_text(f"name: land\ncolumns:\n  place: {{kind: categorical, values: [a, b], {field}}}\n")
    return path


def check_back(schema, folder):
    (folder / "elsewhere.yaml").write_text(schema.to_yaml())
    assert load_schema(folder / "elsewhere.yaml") == schema


def test_coordinates_from_a_file_by_the_names_of_its_columns_and_back(tmp_path):
    (tmp_path / "places.csv").write_text("place,lat,lon\na,60,10\nb,61,11.1234567\n")
    schema = load_schema(schema_with(tmp_path, "coordinates: places.csv"))
    assert schema["place"].places.points == (("a", (10.0, 60.0)), ("b", (11.12346, 61.0)))
    check_back(schema, tmp_path)


def test_areas_from_geojson_and_back_with_all_parts_of_a_value(tmp_path):
    def feature(name, kind, within):
        return {"properties": {"area": name}, "geometry": {"type": kind, "coordinates": within}}

    found = [feature("a", "Polygon", [SQUARE]), feature("b", "MultiPolygon", [[SQUARE], [SQUARE]])]
    found += [feature("not a value", "Polygon", [SQUARE]), feature("a", "Point", [0, 0])]
    (tmp_path / "areas.json").write_text(json.dumps({"type": "FeatureCollection", "features": found}))
    schema = load_schema(schema_with(tmp_path, "geojson: {file: areas.json, key: area}"))
    assert [(name, len(rings)) for name, rings in schema["place"].places.areas] == [("a", 1), ("b", 2)]
    check_back(schema, tmp_path)


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("coordinates: none.csv", "cannot read"),
        ("coordinates: {c: [1, 2]}", "'c' is no value of the column"),
        ("coordinates: {a: [1]}", "'a': got"),
        ("coordinates: {a: [1, inf]}", "'a': got"),
        ("coordinates: 7, geojson: {file: x, key: y}", "one of the two"),
        ("geojson: {file: broken.json, key: y}", "not as it must be"),
        ("geojson: {file: other.json, key: y}", "no area has the name of a value"),
        ("geojson: {file: none.json}", "got"),
    ],
)
def test_what_is_no_place_is_named(tmp_path, field, says):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text('{"features": []}')
    with pytest.raises(UserError, match="column 'place'") as error:
        load_schema(schema_with(tmp_path, field))
    assert says in str(error.value)


def test_a_clustering_knows_where_its_leaves_lie(tmp_path):
    (tmp_path / "p.csv").write_text("place,longitude,latitude\na,1,2\nb,3,4\n")
    settings = {"coordinates": "p.csv", "levels": [1]}
    tree = cluster_from_settings(settings, where="cluster")
    found = places_from_settings(settings, tree, where="cluster")
    assert found.points == (("a", (1.0, 2.0)), ("b", (3.0, 4.0)))
    (tmp_path / "p.csv").write_text("place,height\na,1\nb,3\n")
    assert not places_from_settings(settings, tree, where="cluster").points


VALUES = {"kind": "categorical", "values": ["a", "b", "c", "d"]}
LINE = {**VALUES, "ordinal": True}


def said(fields: dict[str, Any], folder: Path = Path()) -> str:
    text = refusal({"columns": {"place": fields}}, folder)
    assert text.startswith("t.yaml: column 'place': ")
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
        (np.int8(7), "below the root: got np.int8"),
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


TWO_APART = {"values": ["a", "b"], "matrix": [[0, 1], [1, 0]]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"distances": TWO_APART, "hierarchy": ["a", "b"]}, "both hierarchy and distances"),
        ({"distances": {**TWO_APART, "values": ["a"]}}, "without a leaf for 'b'"),
        ({"distances": {**TWO_APART, "matrix": [[0, 1.5], [1, 0]]}}, "from 'a' to 'b': got 1.5"),
        ({"distances": {**TWO_APART, "matrix": [[0, -1], [1, 0]]}}, "from 'a' to 'b': got -1"),
        ({"distances": {**TWO_APART, "matrix": [[0, "nan"], [1, 0]]}}, "from 'a' to 'b': got nan"),
        ({"distances": {**TWO_APART, "matrix": [[0, "far"], [1, 0]]}}, "from 'a' to 'b': got 'far'"),
        ({"distances": {**TWO_APART, "matrix": [[0, True], [1, 0]]}}, "from 'a' to 'b': got True"),
        ({"distances": {**TWO_APART, "matrix": [[0, 1], [1, 0.5]]}}, "from 'b' to 'b': got 0.5"),
        ({"distances": {**TWO_APART, "matrix": [[0, 1], [1]]}}, "from 'b': 1 numbers for 2 values"),
        ({"distances": {**TWO_APART, "matrix": [[0, 1]]}}, "1 rows for 2 values"),
        ({"distances": {**TWO_APART, "matrix": 3}}, "1 rows for 2 values"),
        ({"distances": {"values": ["a", "b"]}}, "neither a path nor a matrix"),
        ({"distances": [[0, 1], [1, 0]]}, "neither a path nor a matrix"),
        ({"distances": "none.csv"}, "cannot read none.csv"),
    ],
)
def test_a_mistake_in_distances_is_named(given: dict[str, Any], says: str) -> None:
    assert says in said({"kind": "categorical", "values": ["a", "b"], **given})


def test_too_many_values_for_a_matrix_are_named() -> None:
    assert "2,001 values" in said({"kind": "categorical", "size": 2001, "distances": TWO_APART})


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
    listed = {"values": ["a", "b", "c"]}
    found = schema(x={"kind": "categorical", **listed, "distances": {**listed, "matrix": matrix.tolist()}})
    again = parse_schema(yaml.safe_load(found.to_yaml()), where="again.yaml")
    assert again.columns == found.columns and hash(again.columns) == hash(found.columns)
    assert (np.array(found["x"].distances) == matrix).all()


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
        return schema(a={**TIMES, "max": "2016-12-31", "bins": {"calendar": name}})["a"].labels

    assert len(of("month_of_year")) == 12 and of("month_of_year")[::11] == ("January", "December")
    assert len(of("day_of_week")) == 7 and of("day_of_week")[::6] == ("Monday", "Sunday")
    assert of("hour_of_day") == tuple(map(str, range(24)))


def test_narrow_bins_of_floats_have_distinct_labels() -> None:
    labels = schema(a={"kind": "float", "min": 1, "max": 1 + 1e-11})["a"].labels
    assert len(set(labels)) == 20
