"""ANITA's accuracy (Platzer 2020, section 2): distances of all or many n-way tables over few buckets per attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import pandas as pd

from evaluation.counts import paired_cells, sampled_sets
from evaluation.readings.distance_ends import DistanceEnds, expected_tvd
from evaluation.readings.reading import Ends
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique
from mechanisms.public.json_values import JsonDict

#: n-way tables at most, and rows of both tables times n-way tables: more tables are a seeded sample.
MOST_TABLES, MOST_LOOKUPS = 10_000, 1_000_000_000
COLUMNS = ("attributes", "cells", "l1d", "tvd", "hellinger", "floor")


@dataclass(frozen=True, eq=False)
class NWay:
    """The distances of the n-way tables of one n.

    Attributes:
        n: attributes per table.
        frame: one row per table: attributes, cells that occur, l1d, tvd, hellinger, and floor: the TVD that two samples
            of these sizes from the real distribution are expected to have (normal approximation).
        possible: how many n-way tables there are.
        reason: why there are no distances.
        ends: what the accuracy may be read against, and its interval.
    """

    n: int
    frame: pd.DataFrame
    possible: int
    reason: str = ""
    ends: Ends | None = None

    @property
    def accuracy(self) -> float | None:
        """1 − mean TVD: 1 is perfect, 0 is no overlap."""
        return None if self.frame.empty else 1 - fmean(self.frame["tvd"])

    def to_json(self) -> JsonDict:
        """JSON values: averages, floor and the worst tables; every table of one or two attributes."""
        out: JsonDict = {"n": self.n, "tables": len(self.frame), "of": self.possible, "accuracy": self.accuracy}
        if self.reason or self.frame.empty:
            return out | {"reason": self.reason or "no tables of so many attributes"}
        means = {f"mean_{c}": fmean(self.frame[c]) for c in ("l1d", "tvd", "hellinger")}
        worst = self.frame.sort_values("tvd", ascending=False, kind="stable").head(10)
        listed = [
            {"attributes": list(a), "tvd": float(t)} for a, t in zip(worst["attributes"], worst["tvd"], strict=True)
        ]
        out |= means | {"floor_tvd": fmean(self.frame["floor"]), "worst": listed}
        if self.n <= 2:
            shown = self.frame.drop(columns="floor").assign(attributes=self.frame["attributes"].map(list))
            out["all"] = shown.to_dict(orient="records")
        return out


def affordable_tables(rows: int) -> int:
    """How many n-way tables of so many rows are counted in seconds; never fewer than 100."""
    return max(100, min(MOST_TABLES, MOST_LOOKUPS // max(rows, 1)))


def draw_sets(names: Sequence[str], n: int, *, limit: int, seed: int) -> list[Clique]:
    """All sets of n names, or a seeded random `limit` of them (each set once)."""
    if math.comb(len(names), n) <= max(limit, 2_000_000):
        return sampled_sets(names, n, limit, seed=seed)
    rng, chosen = np.random.default_rng(seed), set[tuple[int, ...]]()
    while len(chosen) < limit:
        chosen.add(tuple(int(i) for i in np.sort(rng.choice(len(names), n, replace=False))))
    return [tuple(names[i] for i in places) for places in sorted(chosen)]


def n_way(
    real: CodedTable,
    synthetic: CodedTable,
    n: int,
    *,
    limit: int = MOST_TABLES,
    seed: int = 0,
) -> NWay:
    """Distances of n-way tables of the real and the synthetic records, over the buckets that they are in.

    Goal: every n attributes together are distributed as in the real table. Range: TVD in [0, 1], L1D = 2 TVD, Hellinger
    in [0, 1]; 0 is perfect. Reference: `floor`, what a second sample of the same people would score.
    Edge cases: a table without records has no distances; fewer than n attributes make none.

    Args:
        limit: at most so many tables, drawn with `seed` (section 2: a random subset beyond few attributes).
    """
    possible = math.comb(len(real.domain), n)
    empty = pd.DataFrame({name: [] for name in COLUMNS})
    if real.rows == 0 or synthetic.rows == 0:
        return NWay(n, empty, possible, "a table without records has no distribution")
    sets = [real.domain.canonical(s) for s in draw_sets(real.domain.names, n, limit=limit, seed=seed)]
    ends = DistanceEnds(real, synthetic, sets, (real.rows, synthetic.rows), seed=seed) if sets else None
    frame = table_distances(real, synthetic, sets, ends)
    return NWay(n, frame, possible, ends=None if ends is None else _turned(ends.ends(fmean(frame["tvd"]))))


def _turned(ends: Ends) -> Ends:
    """Of an accuracy, 1 − TVD."""
    honest, poor, low, high = (None if v is None else 1 - v for v in (ends.honest, ends.poor, ends.high, ends.low))
    return replace(ends, honest=honest, poor=poor, low=low, high=high)


def table_distances(
    real: CodedTable, synthetic: CodedTable, sets: Sequence[Clique], ends: DistanceEnds | None = None
) -> pd.DataFrame:
    """The distances of these marginals of two tables with records, one row each, in the columns of `NWay.frame`.

    Cost: one pass over the rows of both tables per batch of marginals; very large ones are sorted.

    Args:
        ends: is told of each marginal.
    """
    rows = []
    for clique, cells in zip(sets, paired_cells(real, synthetic, sets), strict=True):
        p, q = cells.p / cells.p.sum(), cells.q / cells.q.sum()
        if ends is not None:
            ends.add(clique, cells.shape, cells.ids, p, q)
        l1d, floor = float(np.abs(q - p).sum()), expected_tvd(q, real.rows, synthetic.rows)
        hellinger = math.sqrt(max(0.0, 1.0 - float(np.sqrt(q * p).sum())))
        rows.append((clique, cells.ids.size, l1d, l1d / 2, hellinger, floor))
    return pd.DataFrame(rows, columns=list(COLUMNS))
