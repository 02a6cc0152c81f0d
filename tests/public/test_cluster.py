"""Hierarchies by clustering, and where places lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.errors import UserError
from mechanisms.public.schema.cluster import METHODS, cluster, cluster_from_settings, places_from_settings
from mechanisms.public.schema.table_schema import load_schema
from tests.public.table_worlds import csv, encoded, source

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
    path.write_text(
        f"name: land\nconfirmed_public: true\ncolumns:\n  place: {{kind: categorical, values: [a, b], {field}}}\n"
    )
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
