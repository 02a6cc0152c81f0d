"""How the values of columns of numbers and dates are spread in two tables, as two curves each; NOT private."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.json_values import JsonDict

Floats = NDArray[np.float64]

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
