"""What a report draws, as JSON values: distributions, pairs, the map, distances; NOT private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.cube import map_cubes
from evaluation.dependence import Dependence
from evaluation.map_columns import MapColumns
from evaluation.metric import Options
from evaluation.outcome import plain
from evaluation.readings.distance_ends import expected_tvd
from evaluation.score import Scorecard
from evaluation.tvd import Tvd
from mechanisms.public.coded_table import AnyTable, CodedTable
from mechanisms.public.marginals import count_cliques
from mechanisms.public.schema.code_labels import code_names, code_values
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.places import Places, Point, Ring
from mechanisms.public.schema.table_schema import Schema

#: Bars of one column, at most.
BARS = 16
#: Larger maps are not counted for a picture alone.
MAP_CELLS = 20_000_000


def figures(
    card: Scorecard,
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema,
    options: Options,
    places: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Everything that the report draws from the two tables.

    Args:
        card: the scores; what was not computed is not drawn.
        places: the columns of longitude and latitude, which place the segments of the map.
    """
    own: dict[str, Any] = {}
    for outcome in card.outcomes.values():
        if outcome.metric.figures is not None and outcome.result is not None:
            own |= outcome.metric.figures(outcome.result, schema, options)
    parts = own | {
        "columns": [_distribution(c, options.whole or real, synthetic) for c in schema.columns],
        "pairs": _pairs(card, schema),
        "dependence": _dependence(card),
        "map": _map(own.get("map"), real, synthetic, schema, options, places),
    }
    return dict(plain({k: v for k, v in parts.items() if v is not None}))


def _distribution(column: Column, real: AnyTable, synthetic: CodedTable) -> dict[str, Any]:
    labels = [*code_names(column)]
    counts = np.stack([count_cliques(t, [(column.name,)])[0] for t in (real, synthetic)])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    expected = expected_tvd(shares[0], max(real.rows, 1), max(synthetic.rows, 1))
    names, values = _merged(labels, shares, column.on_a_line, column.value_codes)
    return {
        "name": column.name,
        "kind": column.kind,
        "tvd": distance if min(real.rows, synthetic.rows) else None,
        "expected": expected if min(real.rows, synthetic.rows) else None,
        "values": column.size,
        "labels": names,
        "real": values[0].tolist(),
        "synthetic": values[1].tolist(),
    }


def _merged(
    labels: list[str], shares: NDArray[np.float64], ordered: bool, values: int
) -> tuple[list[str], NDArray[np.float64]]:
    """At most BARS bars: neighbours of an ordered column together, the rare values of another one as one."""
    size = len(labels)
    if size <= BARS:
        return labels, shares
    if ordered:
        width = -(-values // (BARS - (size - values)))
        starts = [*range(0, values, width), *range(values, size)]
        ends = [*starts[1:], size]
        names = [
            labels[a] if b - a == 1 else labels[a].split(" to ")[0] + " … " + labels[b - 1].split(" to ")[-1]
            for a, b in zip(starts, ends, strict=True)
        ]
        return names, np.add.reduceat(shares, starts, axis=1)
    order = np.argsort(-shares[0], kind="stable")
    top, rest = order[: BARS - 1], order[BARS - 1 :]
    names = [*(labels[i] for i in top), f"{len(rest)} others"]
    return names, np.concatenate([shares[:, top], shares[:, rest].sum(axis=1, keepdims=True)], axis=1)


def _pairs(card: Scorecard, schema: Schema) -> dict[str, Any] | None:
    outcome = card.outcomes.get("tvd")
    if outcome is None or not isinstance(outcome.result, Tvd) or not outcome.result.marginals:
        return None
    names = schema.domain.names
    matrix: list[list[float | None]] = [[None] * len(names) for _ in names]
    for clique, value in outcome.result.marginals:
        if len(clique) < 3:
            i, j = names.index(clique[0]), names.index(clique[-1])
            matrix[i][j] = matrix[j][i] = value
    return {"names": list(names), "tvd": matrix}


def _dependence(card: Scorecard) -> dict[str, Any] | None:
    outcome = card.outcomes.get("dependence")
    if outcome is None or not isinstance(outcome.result, Dependence) or outcome.result.reason:
        return None
    return outcome.result.to_json()


def _map(
    given: Mapping[str, Any] | None,
    real: CodedTable,
    synthetic: CodedTable,
    schema: Schema,
    options: Options,
    places: tuple[str, str] | None,
) -> dict[str, Any] | None:
    """The score of each place and time: of a metric that was computed, else how far apart the kinds are.

    Args:
        given: of the metric: score (its name), times, segments, losses (segments × times), regions (segment → region),
            and what else is drawn of it.
    """
    columns = options.own(MapColumns)
    time, segment, kind = columns.time, columns.segment, columns.kind
    if time is None or segment is None or kind is None or not min(real.rows, synthetic.rows):
        return None
    names = (time, segment, kind)
    regions: Mapping[str, str] = {}
    further: dict[str, Any] = {}
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
    known_places = schema[segment].places or Places()
    areas = _areas(known_places, regions)
    where = _points(known_places, regions) or (_places(real, schema, segment, places) if places else {})
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
    shares = []
    for counts in (real, synthetic):
        total = counts.sum(axis=-1, keepdims=True)
        shares.append(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
    one_empty = (real.sum(axis=-1) > 0) != (synthetic.sum(axis=-1) > 0)
    return np.asarray(np.where(one_empty, 1.0, np.abs(shares[0] - shares[1]).sum(axis=-1) / 2))


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
