"""Where values lie: coordinates and GeoJSON of a column, checked, and written back with no file beside the schema."""

import json

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.cluster import cluster_from_settings, places_from_settings
from mechanisms.public.schema.table_schema import load_schema

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]


def schema_with(folder, field):
    path = folder / "land.yaml"
    path.write_text(
        f"name: land\nconfirmed_public: true\ncolumns:\n  place: {{kind: categorical, values: [a, b], {field}}}\n"
    )
    return path


def test_coordinates_from_a_file_by_the_names_of_its_columns_and_back(tmp_path):
    (tmp_path / "places.csv").write_text("place,lat,lon\na,60,10\nb,61,11.1234567\n")
    schema = load_schema(schema_with(tmp_path, "coordinates: places.csv"))
    assert schema["place"].places.points == (("a", (10.0, 60.0)), ("b", (11.12346, 61.0)))
    again = tmp_path / "elsewhere.yaml"
    again.write_text(schema.to_yaml())
    assert load_schema(again) == schema


def test_areas_from_geojson_and_back_with_all_parts_of_a_value(tmp_path):
    def feature(name, kind, within):
        return {"properties": {"area": name}, "geometry": {"type": kind, "coordinates": within}}

    found = [feature("a", "Polygon", [SQUARE]), feature("b", "MultiPolygon", [[SQUARE], [SQUARE]])]
    found += [feature("not a value", "Polygon", [SQUARE]), feature("a", "Point", [0, 0])]
    (tmp_path / "areas.json").write_text(json.dumps({"type": "FeatureCollection", "features": found}))
    schema = load_schema(schema_with(tmp_path, "geojson: {file: areas.json, key: area}"))
    assert [(name, len(rings)) for name, rings in schema["place"].places.areas] == [("a", 1), ("b", 2)]
    again = tmp_path / "elsewhere.yaml"
    again.write_text(schema.to_yaml())
    assert load_schema(again) == schema


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
    tree = cluster_from_settings(settings, where="cluster", folder=tmp_path)
    found = places_from_settings(settings, tree, where="cluster", folder=tmp_path)
    assert found.points == (("a", (1.0, 2.0)), ("b", (3.0, 4.0)))
    (tmp_path / "p.csv").write_text("place,height\na,1\nb,3\n")
    assert not places_from_settings(settings, tree, where="cluster", folder=tmp_path).points
