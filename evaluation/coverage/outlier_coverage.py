"""Outlier coverage: how much of what is rare in the real columns the synthetic ones have: tails, and rare values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metric import Inputs, ReadScore
from evaluation.readings.reading import Ends, Z, mean_ends
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.files import JsonDict

#: Draws that tell what a second sample would cover, and how far a coverage moves.
DRAWS = 200
#: Regions that are listed: those that lack most.
WORST = 10
COLUMNS = ("column", "region", "real", "synthetic", "covered")
NO_RARE = "no column has rare values that five real records or more have"


class OutlierCoverage(ReadScore):
    """The rare regions of all columns: the mean over columns of the share of rare records that are there too.

    The frame has one row per region: column, region, shares of the real and of the synthetic records that lie in it,
    and how much of the real share is covered.
    """

    def to_json(self) -> JsonDict:
        """JSON values: columns, and the regions that lack most."""
        return {"reason": self.reason} if self.reason else self.details


def coverage_of(inputs: Inputs) -> OutlierCoverage:
    """The metric `outlier_coverage`: how much of the real records in rare regions of columns the synthetic table has.

    Of a column Σ min(p, q) / Σ p: a region is covered in full where as large a share q of the synthetic records lies in
    it as of the real ones, p.
    Goal: a table for analysts keeps tails and small groups. Range: [0, 1]; 1 is perfect. Reference: what a second
    sample of the same people covers. Edge cases: without rare regions there is a reason.
    Cost: a count of each column.
    """
    real, synthetic, named, numbers = inputs.real, inputs.synthetic, inputs.label, inputs.numbers
    rng = np.random.default_rng(inputs.options.seed)
    rows: list[tuple[object, ...]] = []
    parts = []
    for i, attribute in enumerate(real.domain.attributes):
        counts = [np.bincount(t.columns[i], minlength=attribute.size) for t in (real, synthetic)]
        regions = rare_regions(counts[0], numbers.get(attribute.name))
        if not regions:
            continue
        held = np.array([[c[r].sum() for r in regions] for c in counts], float)
        p, q = held[0] / real.rows, held[1] / synthetic.rows
        for region, here, there in zip(regions, p, q, strict=True):
            ends = region[counts[0][region] > 0][[0, -1]].tolist()  # the least and the largest that real records have
            called = " to ".join(dict.fromkeys(named(attribute.name, code) for code in ends))
            rows.append((attribute.name, called, float(here), float(there), float(min(there / here, 1))))
        parts.append(_ends(held, (real.rows, synthetic.rows), rng))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    if not parts:
        return OutlierCoverage(None, {}, frame, NO_RARE)
    by = frame.assign(kept=frame["real"] * frame["covered"]).groupby("column", sort=False)
    own = by.agg(regions=("real", "size"), real=("real", "sum"), kept=("kept", "sum"))
    own = own.assign(covered=own["kept"] / own["real"]).drop(columns="kept")
    own = own.sort_values("covered", kind="stable").reset_index()
    lacking = (frame["real"] * (1 - frame["covered"])).sort_values(ascending=False, kind="stable").index[:WORST]
    details = {"columns": own.to_dict(orient="records"), "worst": frame.loc[lacking].to_dict(orient="records")}
    return OutlierCoverage(math.fsum(own["covered"]) / len(own), details, frame, ends=mean_ends(parts))


def _ends(counts: Floats, sizes: tuple[int, int], rng: np.random.Generator) -> Ends:
    """What a second sample covers of a column, and how far the coverage moves with other rows.

    Counts of rare regions are nearly Poisson, and what is known of their means nearly a gamma distribution.

    Args:
        counts: (2, regions) real and synthetic records.
    """
    means = rng.gamma(counts[0], size=(DRAWS, counts.shape[1]))
    second = rng.poisson(means * (sizes[1] / sizes[0]))
    honest = _covered(np.broadcast_to(counts[0], second.shape), second, sizes)
    moved = _covered(np.maximum(rng.poisson(counts[0], second.shape), 1), rng.poisson(counts[1], second.shape), sizes)
    own = float(_covered(counts[:1], counts[1:], sizes)[0])
    error = Z * float(moved.std(ddof=1))
    ends = Ends(float(honest.mean()), float(honest.std(ddof=1)), 0.0, max(own - error, 0.0), min(own + error, 1.0))
    return replace(ends, poor_is="nothing rare", interval_is="95 %, had other rows been drawn for both tables")


def _covered(real: NDArray[Any], synthetic: NDArray[Any], sizes: tuple[int, int]) -> Floats:
    """(draws,) Σ min(p, q) / Σ p of (draws, regions) counts."""
    p, q = real / sizes[0], synthetic / sizes[1]
    return np.asarray(np.minimum(p, q).sum(axis=1) / p.sum(axis=1))


#: A value lies outside where it is farther from the quartiles than so many times their distance (Tukey 1977).
FENCE = 1.5
#: The values on a side of the fences are taken in so many regions of about as many real records.
REGIONS = 5
#: A value of a column without an order is rare where at most this share of the records have it.
RARE = 0.01
#: All that is rare on a side, or among such values, is at most this share of the records: the rarest or outermost.
TOGETHER = 0.1
#: No region has fewer real records: a release that keeps what a few people alone have is no better for it.
LEAST = 5


def rare_regions(counts: Ints, numbers: Floats | None = None) -> list[Ints]:
    """The codes, ascending, of each rare region of a column, some of synthetic values alone; no two share one.

    Args:
        counts: real records of each code.
        numbers: of each code, ascending, NaN for what is no number; None where the codes have no order.
    """
    if numbers is None:
        return _rare_values(counts)
    there = np.flatnonzero(np.isfinite(numbers))
    above = np.cumsum(counts[there])
    if not there.size or not above[-1]:
        return []
    low, high = (float(numbers[there[np.searchsorted(above, q * above[-1])]]) for q in (0.25, 0.75))
    reach = FENCE * (high - low)
    outer = there[numbers[there] < low - reach], there[numbers[there] > high + reach][::-1]
    return [region for codes in outer for region in _side(codes, counts)]


def _rare_values(counts: Ints) -> list[Ints]:
    codes = np.flatnonzero((counts >= LEAST) & (counts <= RARE * counts.sum()))
    codes = codes[np.argsort(counts[codes], kind="stable")]
    codes = codes[np.cumsum(counts[codes]) <= TOGETHER * counts.sum()]
    return [*np.sort(codes)[:, None]]


def _side(codes: Ints, counts: Ints) -> list[Ints]:
    """The regions of the codes beyond a fence, which are given from the outermost inwards."""
    reached = np.cumsum(counts[codes])
    codes = codes[reached <= TOGETHER * counts.sum()]
    total = int(counts[codes].sum())
    groups = min(REGIONS, total // LEAST)
    if not groups:
        return []
    before = np.cumsum(counts[codes]) - counts[codes]
    of = np.minimum(before * groups // total, groups - 1)
    regions = (np.sort(codes[of == group]) for group in np.unique(of))
    return [own for own in regions if counts[own].sum() >= LEAST]
