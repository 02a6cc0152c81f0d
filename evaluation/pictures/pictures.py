"""All that a report draws of two tables, as JSON values; of rows, samples of declared size; NOT private.

Among them densities of numbers, and records over the two principal axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.learning.features import some_rows
from evaluation.metric import Options
from evaluation.outcome import plain
from evaluation.pictures.pair_maps import chosen_pairs, grouped_codes, map_of_places, pair_maps
from evaluation.pictures.validity import broken_rules, valid_columns
from evaluation.products import inner, times
from evaluation.readings.distance_ends import expected_tvd
from evaluation.score import Scorecard
from evaluation.tvd import Tvd
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import AnyTable, CodedTable, count_cliques
from mechanisms.public.domain import Attribute
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: Bars of one column, at most.
BARS = 16


def pictures(
    card: Scorecard,
    tables: tuple[CodedTable, CodedTable],
    schema: Schema,
    options: Options,
    *,
    declared: Schema,
    places: tuple[str, str] | None = None,
    numbers: tuple[Sequence[str], tuple[Floats, Floats]] | None = None,
) -> JsonDict:
    """What there is to draw of the two tables, by the name of the picture.

    Args:
        card: the scores; what was not computed is not drawn.
        tables: real and synthetic, over the schema's domain.
        declared: the schema before codes for values outside joined it, with its rules.
        places: the columns of longitude and latitude, which place the segments of the map.
        numbers: columns of numbers and dates, and values of some records of both tables.
    """
    real, synthetic = tables
    whole, compared = options.whole or real, getattr(card.outcomes.get("tvd"), "result", None)
    distances = compared.marginals if isinstance(compared, Tvd) else ()
    strong = card.correlations.get("cramers_v", {"names": [], "real": []})
    chosen = chosen_pairs(distances, strong["names"], strong["real"], options.pairs)
    own: JsonDict = {}
    for outcome in card.outcomes.values():
        if hasattr(outcome.result, "drawn"):
            own |= outcome.result.drawn(schema, options)
    given = own.pop("map", None)
    parts = {
        "columns": [_distribution(c, whole, synthetic) for c in schema.columns],
        "pairs": _matrix(distances, schema.domain.names),
        "map": map_of_places(given, real, synthetic, schema, options, places),
        "axes": _axes(real, synthetic, options),
        "pair_maps": pair_maps(chosen, whole, synthetic, schema),
        "densities": None if numbers is None else densities(*numbers),
        "valid": None if options.values is None else valid_columns(options.values),
        "rules": broken_rules(declared.rules, declared.domain, real, synthetic),
    }
    drawn = {name: part for name, part in own.items() if part is not None}
    return dict(plain(drawn | {name: part for name, part in parts.items() if part}))


def _distribution(column: Column, real: AnyTable, synthetic: CodedTable) -> JsonDict:
    counts = np.stack([count_cliques(t, [(column.name,)])[0] for t in (real, synthetic)])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    expected = expected_tvd(shares[0], max(real.rows, 1), max(synthetic.rows, 1))
    names, groups = grouped_codes(column, counts[0], BARS, even=True)
    values = [np.bincount(groups, side, len(names)).tolist() for side in shares]
    return {
        "name": column.name,
        "kind": column.kind,
        "tvd": distance if min(real.rows, synthetic.rows) else None,
        "expected": expected if min(real.rows, synthetic.rows) else None,
        "values": column.size,
        "labels": names,
        "real": values[0],
        "synthetic": values[1],
    }


def _matrix(distances: Sequence[tuple[tuple[str, ...], float]], names: Sequence[str]) -> JsonDict | None:
    """The distances of columns and pairs."""
    if not distances:
        return None
    matrix: list[list[float | None]] = [[None] * len(names) for _ in names]
    for clique, value in distances:
        if len(clique) < 3:
            i, j = names.index(clique[0]), names.index(clique[-1])
            matrix[i][j] = matrix[j][i] = value
    return {"names": list(names), "tvd": matrix}


def _axes(real: CodedTable, synthetic: CodedTable, options: Options) -> JsonDict | None:
    real, synthetic, options = options.of_values(real, synthetic)
    tables = {"real": real, "synthetic": synthetic, "holdout": options.holdout}
    same = {n: t for n, t in tables.items() if t is not None and t.domain == real.domain}
    return principal_axes(same, seed=options.seed)


#: Columns that are drawn, at most; points of a curve; a column with fewer distinct values has bars alone.
COLUMNS, POINTS, FEWEST = 24, 80, 30
#: A value that more than this share of a table's records have is said, and left out of its curve; so many at most.
SPIKE, SPIKES = 0.1, 3
#: The curves reach over these quantiles of both tables.
ENDS = (0.005, 0.995)


def densities(names: Sequence[str], values: tuple[Floats, Floats]) -> list[JsonDict]:
    """The columns with the largest difference of distribution functions from the real table, each with its curves.

    Curves are kernel estimates by a Gaussian, of one width in both tables (Silverman 1986, Equation 3.31, of the real
    values).

    Args:
        values: (records, columns) of the real and the synthetic table, NaN for none.
    Returns:
        column, distance (of Kolmogorov and Smirnov), x (its first and last point), real and synthetic (densities,
        relative to the highest), spikes (value and share in either table).
    """
    drawn = []
    for i, name in enumerate(names):
        sides = [v[:, i][np.isfinite(v[:, i])] for v in values]
        if min(map(len, sides)) and len(np.unique(sides[0])) >= FEWEST:
            drawn.append({"column": name, "distance": _distance(*sides), **_curves(*sides)})
    return sorted((d for d in drawn if d["x"]), key=lambda d: -d["distance"])[:COLUMNS]


def _distance(real: Floats, synthetic: Floats) -> float:
    both = np.unique(np.concatenate([real, synthetic]))
    shares = [np.searchsorted(np.sort(v), both, side="right") / len(v) for v in (real, synthetic)]
    return float(np.abs(shares[0] - shares[1]).max())


def _curves(real: Floats, synthetic: Floats) -> JsonDict:
    spikes = _spikes(real, synthetic)
    rest = [v[~np.isin(v, [s["value"] for s in spikes])] for v in (real, synthetic)]
    out: JsonDict = {"spikes": spikes, "x": [], "real": [], "synthetic": []}
    if len(rest[0]) < 2:
        return out
    ends = [np.quantile(v, ENDS) for v in rest if len(v)]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    spread = min(float(rest[0].std()), float(np.subtract(*np.quantile(rest[0], (0.75, 0.25)))) / 1.34 or math.inf)
    if not high > low or not spread > 0 or not math.isfinite(high - low):
        return out
    step = (high - low) / (POINTS - 1)
    width = max(0.9 * spread * len(rest[0]) ** -0.2, step)
    drawn = [
        _density(v, low, step, width) * (len(v) / n) for v, n in zip(rest, (len(real), len(synthetic)), strict=True)
    ]
    top = max(float(d.max()) for d in drawn) or 1.0
    return (
        out
        | {"x": [float(low), float(high)]}
        | {side: [round(float(y), 4) for y in d / top] for side, d in zip(("real", "synthetic"), drawn, strict=True)}
    )


def _density(values: Floats, low: float, step: float, width: float) -> Floats:
    """Shares around POINTS places, each value parted between its neighbours, and smoothed."""
    pad = math.ceil(4 * width / step)
    places = (values - low) / step + pad
    cells = POINTS + 2 * pad
    inside = places[(places >= 0) & (places < cells - 1)]
    left = inside.astype(np.int64)
    part = inside - left
    counts = np.bincount(left, 1 - part, cells) + np.bincount(left + 1, part, cells)
    reach = np.arange(-pad, pad + 1) * step / width
    kernel = np.exp(-(reach**2) / 2)
    smooth = np.convolve(counts / max(len(values), 1), kernel / kernel.sum(), mode="same")
    return np.asarray(smooth[pad : pad + POINTS], np.float64)


def _spikes(real: Floats, synthetic: Floats) -> list[dict[str, float]]:
    spikes: dict[float, None] = {}
    for side in (real, synthetic):
        values, counts = np.unique(side, return_counts=True)
        often = np.argsort(-counts, kind="stable")[:SPIKES]
        spikes |= {float(values[i]): None for i in often if counts[i] > SPIKE * len(side)}
    return [
        {"value": v, "real": float((real == v).mean()), "synthetic": float((synthetic == v).mean())}
        for v in list(spikes)[:SPIKES]
    ]


#: Real records that the axes are fitted on, records of each table that are drawn, columns and values of one column that
#: take part, at most.
FITTED, DRAWN, AXIS_COLUMNS, VALUES = 5000, 1500, 60, 10
#: The picture reaches over this share of the real records on either axis, and a margin.
INSIDE, MARGIN = (0.002, 0.998), 0.15


def principal_axes(tables: Mapping[str, CodedTable], *, seed: int = 0) -> JsonDict | None:
    """Places of records on two principal axes of the real table's records, the same for all tables.

    As in the factor analysis of mixed data: an ordered column is its rank among the real records, standardized, and any
    other one an indicator of each of its most frequent values, over the root of its share. No column with one value
    takes part.

    Args:
        tables: by name, over one domain; `real` is one of them.
    Returns:
        rows (drawn, per table), fitted (real records), columns (that take part) and of (all), explained (the axes'
        shares of the variance), points (per table, "x,y x,y …" in thousandths of the picture); None where no two
        dimensions vary.
    """
    real, rng = tables["real"], np.random.default_rng(seed)
    if min(t.rows for t in tables.values()) == 0:
        return None
    fitted = some_rows(real, FITTED, rng).columns
    coders = [_Coder(a, np.asarray(c)) for a, c in zip(real.domain.attributes, fitted, strict=True)]
    used = [i for i, coder in enumerate(coders) if coder.varies][:AXIS_COLUMNS]
    if not used:
        return None

    def features(codes: Sequence[NDArray[Any]]) -> Floats:
        return np.concatenate([coders[i].features(codes[i]) for i in used], axis=1)

    numbers = features(fitted)
    center = numbers.mean(axis=0)
    variances, axes = np.linalg.eigh(inner(numbers - center, numbers - center) / len(numbers))
    if len(variances) < 2 or variances[-2] <= 1e-12:
        return None
    plane = axes[:, [-1, -2]] * np.where(axes[np.abs(axes).argmax(axis=0), range(len(axes))] < 0, -1, 1)[[-1, -2]]
    ends = np.quantile(times(numbers - center, plane), INSIDE, axis=0)
    width = np.maximum(ends[1] - ends[0], 1e-9) * MARGIN
    low, high = ends[0] - width, ends[1] + width
    points, rows = {}, {}
    for name, table in tables.items():
        places = times(features(some_rows(table, DRAWN, rng).columns) - center, plane)
        points[name] = _text((places - low) / (high - low))
        rows[name] = min(table.rows, DRAWN)
    explained = (variances[[-1, -2]] / variances.sum()).tolist()
    return {"rows": rows, "fitted": len(numbers), "columns": len(used), "of": len(coders)} | {
        "explained": explained,
        "points": points,
    }


class _Coder:
    """Codes of one column → its features, fitted on real codes."""

    def __init__(self, attribute: Attribute, codes: NDArray[Any]) -> None:
        counts = np.bincount(codes, minlength=attribute.size).astype(np.float64)
        self.varies = np.count_nonzero(counts) > 1
        if attribute.ordered:
            line = counts[: attribute.ordered]
            ranks = (np.cumsum(line) - line / 2) / max(line.sum(), 1.0)
            whole = np.full(attribute.size, np.average(ranks, weights=line) if line.sum() else 0.0)
            whole[: attribute.ordered] = ranks
            spread = np.sqrt(np.average((whole - np.average(whole, weights=counts)) ** 2, weights=counts))
            self.varies = self.varies and spread > 1e-9
            self.table = whole[:, None] / max(spread, 1e-9)
            return
        often = np.argsort(-counts, kind="stable")[: min(VALUES, np.count_nonzero(counts))]
        self.table = np.zeros((attribute.size, len(often)))
        self.table[often, range(len(often))] = 1 / np.sqrt(counts[often] / counts.sum())

    def features(self, codes: NDArray[Any]) -> Floats:
        """(rows, features)."""
        return np.asarray(self.table[codes], np.float64)


def _text(places: Floats) -> str:
    """Thousandths, y upwards; what lies outside of the picture lies on its edge."""
    whole = np.rint(np.clip(places, 0.0, 1.0) * 1000).astype(int)
    return " ".join(f"{x},{1000 - y}" for x, y in whole)
