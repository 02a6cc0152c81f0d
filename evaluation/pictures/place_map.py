"""The scores of places over time, with coordinates or areas where they are known; NOT private."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import map_cubes, row_shares
from evaluation.metric import MapColumns, Options
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.schema.code_labels import code_names, code_values
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.places import Places, Point, Ring
from mechanisms.public.schema.table_schema import Schema

#: Larger maps are not counted for a picture alone.
MAP_CELLS = 20_000_000


def map_of_places(
    given: Json | None,
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema,
    options: Options,
    places: tuple[str, str] | None,
) -> JsonDict | None:
    """The score of each place and time: of a metric that was computed, else how far apart the kinds are.

    Args:
        given: of the metric: score (its name), times, segments, losses (segments × times), regions (segment → region),
            and what else is drawn of it.
        places: the columns of longitude and latitude, which place the segments of the map.
    """
    columns = options.own(MapColumns)
    time, segment, kind = columns.time, columns.segment, columns.kind
    if time is None or segment is None or kind is None or not min(real.rows, synthetic.rows):
        return None
    names = (time, segment, kind)
    regions: Mapping[str, str] = {}
    further: JsonDict = {}
    if given is not None:
        further = dict(given)
        losses, caption, regions = further.pop("losses"), further.pop("score"), further.pop("regions")
        labels = (further.pop("times"), further.pop("segments"))
    elif real.domain.cells(names) <= MAP_CELLS:
        cubes = map_cubes(real, synthetic, schema, names)
        losses, caption = _kinds_apart(cubes.real, cubes.synthetic).T, "Total variation distance of the kinds"
        labels = (cubes.times, cubes.segments)
    else:
        return None
    times, segments = (named(schema[n], axis) for n, axis in zip((time, segment), labels, strict=True))
    counts = np.bincount(real.column(segment), minlength=schema[segment].size)
    records = dict(zip(code_names(schema[segment]), counts, strict=True))
    own_places = schema[segment].places or Places()
    areas = _areas(own_places, regions)
    where = _points(own_places, regions) or (_places(real, schema, segment, places) if places else {})
    return {
        "score": caption,
        "time": time,
        "segment": segment,
        "times": times,
        "segments": segments,
        "losses": losses.tolist(),
        "records": [records.get(s) for s in segments],
        "x": [where.get(s, (None, None))[0] for s in segments],
        "y": [where.get(s, (None, None))[1] for s in segments],
        "areas": [areas.get(s, []) for s in segments] if areas else None,
        **further,
    }


def _points(places: Places, regions: Mapping[str, str]) -> dict[str, Point]:
    """The declared place of each segment; of a region, the middle of its segments'."""
    points: dict[str, list[Point]] = {}
    for name, point in places.points:
        points.setdefault(regions.get(name, name), []).append(point)
    return {
        name: (float(np.mean([p[0] for p in ps])), float(np.mean([p[1] for p in ps]))) for name, ps in points.items()
    }


def _areas(places: Places, regions: Mapping[str, str]) -> dict[str, list[Ring]]:
    """The declared area of each segment; of a region, those of its segments."""
    areas: dict[str, list[Ring]] = {}
    for name, rings in places.areas:
        areas.setdefault(regions.get(name, name), []).extend(rings)
    return areas


def named(column: Column, labels: tuple[object, ...]) -> list[str]:
    """What the labels of a map's axis are called in the schema; a region keeps its name."""
    names = dict(zip(map(str, code_values(column)), code_names(column), strict=True))
    return [names.get(str(label), str(label)) for label in labels]


def _kinds_apart(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Total variation distance along the last axis: two empty rows are alike, an empty one and another are apart."""
    one_empty = (real.sum(axis=-1) > 0) != (synthetic.sum(axis=-1) > 0)
    apart = np.abs(row_shares(real) - row_shares(synthetic)).sum(axis=-1) / 2
    return np.asarray(np.where(one_empty, 1.0, apart))


def _places(real: CodedTable, schema: Schema, segment: str, columns: tuple[str, str]) -> dict[str, tuple[float, float]]:
    """The mean place of each segment's real records, from the middles of the bins of longitude and latitude."""
    means = []
    for name in columns:
        grid = getattr(schema[name].grid, "edges", None)
        if grid is None:
            return {}
        middles = (np.asarray(grid[:-1]) + np.asarray(grid[1:])) / 2
        clique = real.domain.canonical((segment, name))
        counts = count_cliques(real, [clique])[0].reshape(real.domain.shape(clique))
        counts = (counts if clique[0] == segment else counts.T)[:, : len(middles)]
        total = counts.sum(axis=1)
        means.append(np.where(total > 0, counts @ middles / np.maximum(total, 1), np.nan))
    labels = code_names(schema[segment])
    return {
        s: (float(x), float(y)) for s, x, y in zip(labels, *means, strict=True) if np.isfinite(x) and np.isfinite(y)
    }
