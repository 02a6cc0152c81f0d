"""Where the values of a column lie: points from a CSV, or areas from GeoJSON; public facts, drawn by the report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import as_path
from mechanisms.public.schema.discover_fields import FieldDict, Fields
from mechanisms.public.schema.hierarchy import first_repeat
from mechanisms.public.schema.schema_text import check_alone, read_facts

WEST_EAST = {"longitude", "lon", "lng", "long"}
SOUTH_NORTH = {"latitude", "lat"}
#: Decimals of a place: about a metre.
DECIMALS = 5
POINTS = "coordinates: places.csv with value,longitude,latitude; or coordinates: {value: [longitude, latitude]}"
AREAS = "geojson: {file: areas.geojson, key: the property that names the value}"

Point = tuple[float, float]
Ring = tuple[Point, ...]


@dataclass(frozen=True)
class Places:
    """Places of values; a value without one is not drawn.

    Attributes:
        points: value → longitude and latitude, or x and y.
        areas: value → its closed lines, holes among them.
    """

    points: tuple[tuple[str, Point], ...] = ()
    areas: tuple[tuple[str, tuple[Ring, ...]], ...] = ()


def parse_places(given: Fields, labels: Sequence[str], *, where: str, folder: Path) -> Places | None:
    """The `coordinates` or the `geojson` of a column; None where it has neither.

    Args:
        labels: the column's values.

    Raises:
        UserError: both; a file or a place that is not as it must be; a place of what is no value of the column.
    """
    if given.get("coordinates") is not None and given.get("geojson") is not None:
        raise UserError("both coordinates and geojson", where=where, fix="one of the two")
    if given.get("coordinates") is not None:
        points = _points(given["coordinates"], where, folder)
        if (twice := first_repeat(name for name, _ in points)) is not None:
            raise UserError(f"coordinates: {twice!r} is there twice", where=where, fix="each value once")
        for name in (n for n, _ in points if n not in labels):
            fix = did_you_mean(name, labels) or "a value of the column"
            raise UserError(f"coordinates: {name!r} is no value of the column", where=where, fix=fix)
        return Places(points=points)
    if given.get("geojson") is not None:
        areas = _areas(given["geojson"], where, folder)
        if not {name for name, _ in areas} & set(labels):
            raise UserError("geojson: no area has the name of a value", where=where, fix=AREAS)
        return Places(areas=tuple((name, rings) for name, rings in areas if name in set(labels)))
    return None


def place_fields(places: Places | None) -> FieldDict:
    """The declaration that `parse_places` reads back, with no file beside it."""
    if places is None or not (places.points or places.areas):
        return {}
    if places.points:
        return {"coordinates": {name: list(point) for name, point in places.points}}
    written = {n: [" ".join(f"{v:.{DECIMALS}f}" for p in r for v in p) for r in rings] for n, rings in places.areas}
    return {"geojson": {"areas": written}}


def read_points(path: Path, where: str) -> tuple[list[str], list[str], Floats]:
    """The header, the values, and values × numbers, of a CSV with the value first.

    Raises:
        UserError: no such file, one column, or a cell that is no finite number.
    """
    header, rows = read_facts(path, field="coordinates", where=where)
    if len(header) < 2:
        fix = "the value first, then its coordinates: name,longitude,latitude"
        raise UserError(f"coordinates: {path} has one column", where=where, fix=fix)
    places = np.array([[_finite(cell) for cell in row[1:]] for row in rows])
    for i, j in np.argwhere(np.isnan(places))[:1]:
        problem = f"coordinates: {header[j + 1]!r} of {rows[i][0]!r}: got {rows[i][j + 1]!r}"
        raise UserError(problem, where=where, fix="a finite number")
    return header, [row[0] for row in rows], places


def east_and_north(header: Sequence[str]) -> tuple[int, int] | None:
    """Which of the columns behind the value are longitude and latitude, by their names."""
    axes = [name.strip().lower() for name in header[1:]]
    if not (set(axes) & WEST_EAST and set(axes) & SOUTH_NORTH):
        return None
    east = next(i for i, a in enumerate(axes) if a in WEST_EAST)
    return east, next(i for i, a in enumerate(axes) if a in SOUTH_NORTH)


def _points(given: object, where: str, folder: Path) -> tuple[tuple[str, Point], ...]:
    if isinstance(given, str):
        header, names, numbers = read_points(folder / as_path(given, where), where)
        if len(header) < 3:
            raise UserError("coordinates: one number per value", where=where, fix=POINTS)
        east, north = east_and_north(header) or (0, 1)
        points = [(n, (line[east], line[north])) for n, line in zip(names, numbers.tolist(), strict=True)]
    elif isinstance(given, Mapping):
        points = [(str(name), _pair(name, point, where)) for name, point in given.items()]
    else:
        raise UserError(f"coordinates: got {given!r}", where=where, fix=POINTS)
    return tuple((name, (round(x, DECIMALS), round(y, DECIMALS))) for name, (x, y) in points)


def _pair(name: object, point: object, where: str) -> Point:
    numbers = [_finite(v) for v in point] if isinstance(point, list | tuple) else []
    if len(numbers) != 2 or any(math.isnan(v) for v in numbers):
        raise UserError(f"coordinates: {name!r}: got {point!r}", where=where, fix=POINTS)
    return numbers[0], numbers[1]


def _areas(given: object, where: str, folder: Path) -> list[tuple[str, tuple[Ring, ...]]]:
    if not isinstance(given, Mapping) or set(given) not in ({"file", "key"}, {"areas"}):
        raise UserError(f"geojson: got {given!r}", where=where, fix=AREAS)
    try:
        if "areas" in given:
            texts = {str(name): list(rings) for name, rings in dict(given["areas"]).items()}
            return [(name, tuple(_ring_of_text(r) for r in rings)) for name, rings in texts.items()]
        check_alone(field="geojson", where=where)
        path = folder / as_path(str(given["file"]), where)
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        areas: dict[str, list[Ring]] = {}
        for feature in content["features"]:
            name = str((feature.get("properties") or {}).get(str(given["key"]), ""))
            areas.setdefault(name, []).extend(_rings(feature.get("geometry") or {}))
    except OSError as error:
        fix = "check the path; a relative one in a schema starts at the schema's own folder"
        raise UserError(f"geojson: cannot read {given['file']}: {error.strerror}", where=where, fix=fix) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        fix = f"a FeatureCollection of polygons; {AREAS}"
        raise UserError("geojson: not as it must be", where=where, fix=fix) from error
    return [(name, tuple(rings)) for name, rings in areas.items() if rings]


def _rings(geometry: Fields) -> list[Ring]:
    kind, within = geometry.get("type"), geometry.get("coordinates") or []
    polygons: Sequence[Any] = within if kind == "MultiPolygon" else [within] if kind == "Polygon" else []
    rings = [[(float(p[0]), float(p[1])) for p in ring] for polygon in polygons for ring in polygon]
    return [_rounded(ring) for ring in rings if len(ring) > 2]


def _ring_of_text(text: object) -> Ring:
    numbers = [float(v) for v in str(text).split()]
    return _rounded(list(zip(numbers[::2], numbers[1::2], strict=True)))


def _rounded(ring: Sequence[Point]) -> Ring:
    if not all(math.isfinite(v) for point in ring for v in point):
        raise ValueError("a place that is no finite number")
    return tuple((round(x, DECIMALS), round(y, DECIMALS)) for x, y in ring)


def _finite(cell: object) -> float:
    """The number, or NaN for what is none."""
    try:
        value = float(str(cell))
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
