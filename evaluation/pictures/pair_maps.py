"""Maps of a report: pairs of columns as cells, and the scores of places over time; NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evaluation.accuracy.anita_accuracy import apart_edges
from evaluation.counts import row_shares
from evaluation.cube import map_cubes
from evaluation.metric import MapColumns, Options
from evaluation.readings.distance_ends import expected_tvd
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import AnyTable, CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.schema.code_labels import code_names, code_values
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.places import Places, Point, Ring
from mechanisms.public.schema.table_schema import Schema

#: Pairs of either sort, and cells in a row, at most.
WORST, DEPENDENT, CELLS = 4, 2, 10
#: Why a pair is drawn that the settings name.
ASKED = "asked for"
#: A pair is looked at in more cells than are drawn, but not in more than these.
COUNTED = 4_000_000


def chosen_pairs(
    distances: Sequence[tuple[Clique, float]],
    names: Sequence[str],
    strengths: Sequence[Sequence[float | None]],
    asked: Sequence[tuple[str, str]] = (),
) -> list[tuple[str, str, str]]:
    """Pairs and why each was chosen: those asked for, those farthest from the truth, then the strongest dependences.

    Args:
        distances: of marginals, of any number of columns.
        names, strengths: columns, and a symmetric matrix over them.
        asked: pairs in the order in which they are drawn, rows of cells first.
    """
    named = {frozenset(pair): (*pair, ASKED) for pair in asked}
    pairs = sorted((p for p in distances if len(p[0]) == 2), key=lambda p: -p[1])[:WORST]
    chosen = dict.fromkeys(named, ASKED)
    for clique, _ in pairs:
        chosen.setdefault(frozenset(clique), "farthest from the real table")
    strong = sorted(
        ((value, names[i], names[j]) for i, line in enumerate(strengths) for j, value in enumerate(line[:i]) if value),
        reverse=True,
    )
    rest = [frozenset((a, b)) for _, a, b in strong]
    for pair in [p for p in rest if p not in chosen][:DEPENDENT]:
        chosen[pair] = "among the strongest dependences"
    order = {name: i for i, name in enumerate(names)}
    out = []
    for pair, why in chosen.items():
        if pair in named:
            out.append(named[pair])
            continue
        a, b = sorted(pair, key=lambda n: (order.get(n, len(order)), n))
        out.append((a, b, why))
    return out


def pair_maps(
    pairs: Sequence[tuple[str, str, str]], real: AnyTable, synthetic: CodedTable, schema: Schema
) -> list[JsonDict]:
    """Shares of the records in at most CELLS × CELLS cells of each pair, the same cells in both tables.

    Neighbours of an ordered column are drawn together so that each row has about as many real records; of other columns
    the rarer values are one row.
    """
    domain, drawn = real.domain, []
    pairs = [p for p in pairs if domain.cells(domain.canonical(p[:2])) <= COUNTED]
    if not pairs or not min(real.rows, synthetic.rows):
        return []
    singles = {n for a, b, _ in pairs for n in (a, b)}
    coarse = {n: grouped_codes(schema[n], count_cliques(real, [(n,)])[0], CELLS) for n in singles}
    cliques = [domain.canonical(p[:2]) for p in pairs]
    both = [count_cliques(t, cliques) for t in (real, synthetic)]
    for (a, b, why), clique, *counts in zip(pairs, cliques, *both, strict=True):
        tables = []
        for each in counts:
            cells = np.asarray(each, np.float64).reshape(domain.shape(clique))
            cells = cells if clique[0] == a else cells.T
            merged = np.zeros((len(coarse[a][0]), len(coarse[b][0])))
            np.add.at(merged, (coarse[a][1][:, None], coarse[b][1][None, :]), cells)
            tables.append(merged / max(merged.sum(), 1))
        whole = np.asarray(counts[0], np.float64)
        drawn.append(
            {"a": a, "b": b, "why": why, "rows": coarse[a][0], "columns": coarse[b][0]}
            | {"tvd": float(np.abs(whole / whole.sum() - counts[1] / counts[1].sum()).sum() / 2)}
            | {"expected": expected_tvd(whole / whole.sum(), real.rows, synthetic.rows)}
            | {"real": tables[0].tolist(), "synthetic": tables[1].tolist()}
        )
    return drawn


def grouped_codes(column: Column, counts: Ints, most: int, *, even: bool = False) -> tuple[list[str], Ints]:
    """The names of at most so many groups of codes, and the group of each code: neighbours, or the rarer ones as one.

    Args:
        counts: of real records.
        even: neighbours in groups of as many codes each; else of about as many records.
    """
    labels, values = [*code_names(column)], column.value_codes
    size = len(labels)
    if size <= most:
        return labels, np.arange(size)
    if not column.on_a_line:
        order = np.argsort(-counts, kind="stable")
        groups = np.full(size, most - 1)
        groups[order[: most - 1]] = np.arange(most - 1)
        return [*(labels[i] for i in order[: most - 1]), f"{size - most + 1} others"], groups
    room = most - min(size - values, most - 2)
    inner = np.arange(values)[:: -(-values // room)][1:] if even else apart_edges(counts[:values], room)
    groups = np.concatenate(
        [np.searchsorted(inner, np.arange(values), side="right"), len(inner) + 1 + np.arange(size - values)]
    )
    starts, ends = [0, *inner.tolist()], [*(inner - 1).tolist(), values - 1]
    names = [
        labels[a] if a == b else f"{labels[a].split(' to ')[0]} … {labels[b].split(' to ')[-1]}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return [*names, *labels[values:]], groups


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


def _kinds_apart(real: Floats, synthetic: Floats) -> Floats:
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
