"""Records of several tables over the two axes in which the real ones differ most (Pagès 2004); NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.learning.features import some_rows
from evaluation.products import inner, times
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute
from mechanisms.public.json_values import JsonDict

Floats = NDArray[np.float64]

#: Real records that the axes are fitted on, records of each table that are drawn, columns and values of one column that
#: take part, at most.
FITTED, DRAWN, COLUMNS, VALUES = 5000, 1500, 60, 10
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
    used = [i for i, coder in enumerate(coders) if coder.varies][:COLUMNS]
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
