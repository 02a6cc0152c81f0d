"""ANITA's accuracy (Platzer 2020, section 2): distances of all or many n-way tables over few buckets per attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import Table, counted_over, paired_cells, sampled_sets
from evaluation.readings.distance_ends import DistanceEnds, expected_tvd
from evaluation.readings.reading import Ends
from mechanisms.public.arrays import Codes, Ints
from mechanisms.public.coded_table import AnyTable, CodedTable, code_dtype, count_cliques
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.files import JsonDict

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


#: What buckets are cut of: numbers, or places on a line.
Values = NDArray[np.generic]


def bucket_tables(real: Table, others: Sequence[Table], *, m: int = 10, apart: bool = False) -> list[Table]:
    """The real and further tables over at most m buckets per attribute; rows that lie elsewhere stay there.

    Ordinal attributes: quantiles of the real values, [lo, hi), so that buckets hold about as many records each. Others:
    the m − 1 most frequent codes of the real table (the lower code where they tie) and one bucket for all others; an
    attribute with at most m codes in all tables keeps them. *Other* and *missing* codes of ordinal attributes that
    occur are buckets of their own.

    Args:
        apart: ordinal values that many records have are buckets alone, as of `apart_edges`: a measure of dependence
            sees nothing of a column that is nearly always 0 where its zeros share a bucket with all else.
    """
    tables = [real, *others]
    rows = (replace(t, weights=None) if isinstance(t, CodedTable) else t for t in tables)
    counts = [count_cliques(t, [(n,) for n in t.domain.names]) for t in rows]
    mappings, attributes = [], []
    for i, attribute in enumerate(real.domain.attributes):
        mapping, size, ordered = _mapping(attribute, [c[i] for c in counts], m, apart)
        attributes.append(Attribute(attribute.name, size, ordered))
        mappings.append(mapping)
    return [cast(Table, _mapped(table, Domain(tuple(attributes)), mappings)) for table in tables]


def _mapped(table: AnyTable, domain: Domain, mappings: Sequence[Codes]) -> AnyTable:
    """A table over buckets; of rows that lie elsewhere the counts over codes are summed over buckets."""
    if isinstance(table, CodedTable):
        columns = tuple(mapping[column] for mapping, column in zip(mappings, table.columns, strict=True))
        return CodedTable(domain, columns, table.weights)
    sources = {n: (n, mapping) for n, mapping in zip(domain.names, mappings, strict=True)}
    return counted_over(table, domain, sources)


def _mapping(attribute: Attribute, counts: list[Ints], m: int, apart: bool) -> tuple[Codes, int, int]:
    """Code → bucket, how many buckets, how many of them on a line.

    Args:
        counts: rows of each code, in the real table first.
    """
    occurs = np.flatnonzero(np.sum(counts, axis=0))
    mapping = np.zeros(attribute.size, np.int64)
    if not attribute.ordered:
        own = frequent(occurs, counts[0], m)
        mapping[:], size = len(own), max(len(own) + (len(occurs) > m), 1)
        mapping[own] = np.arange(len(own))
        return mapping.astype(code_dtype(size)), size, 0
    special = occurs[occurs >= attribute.ordered]
    line_counts, room = counts[0][: attribute.ordered], max(m - len(special), 1)
    inner = apart_edges(line_counts, room) if apart else quantile_edges(np.arange(attribute.ordered), line_counts, room)
    mapping[: attribute.ordered] = np.searchsorted(inner, np.arange(attribute.ordered), side="right")
    line = len(inner) + 1
    mapping[special] = line + np.arange(len(special))
    size = line + len(special)
    return mapping.astype(code_dtype(size)), size, line


def frequent(codes: Ints, counts: Ints, most: int) -> Ints:
    """The codes that are told apart, in their order: of more than `most` the most frequent, with room for the rest."""
    return codes if len(codes) <= most else np.sort(np.argsort(-counts, kind="stable")[: most - 1])


def quantile_edges(values: Values, counts: NDArray[np.number], m: int) -> Values:
    """The inner edges of at most m buckets [lo, hi) that hold about as many records each.

    Args:
        values: ascending. counts: records of each value.
    """
    above = np.cumsum(counts)
    if m < 2 or not len(above) or above[-1] == 0:
        return values[:0]
    places = np.searchsorted(above, above[-1] * np.arange(1, m) / m, side="right")
    first = np.flatnonzero(counts)[0]
    edges: Values = values[np.unique(places[places > first])]
    return edges


def apart_edges(counts: NDArray[np.number], m: int) -> Ints:
    """The inner edges of at most m + 1 buckets of places on a line; a place with over 2/m of the records is one alone.

    What lies between two such places is cut at quantiles, into buckets in proportion to its records.

    Args:
        counts: records of each place.
    """
    k, total = len(counts), counts.sum()
    if k < 2 or m < 2 or total == 0:
        return np.empty(0, np.int64)
    alone = np.flatnonzero(counts * m > 2 * total)
    starts = np.concatenate([[0], alone + 1])
    ends = np.concatenate([alone, [k]])
    runs = [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if a < b]
    records = [counts[a:b].sum() for a, b in runs]
    spare, rest = max(m - len(alone) - len(runs), 0), max(sum(records), 1)
    edges = {int(e) for e in np.concatenate([alone, alone + 1])}
    for (a, b), n in zip(runs, records, strict=True):
        inner = quantile_edges(np.arange(a, b), counts[a:b], 1 + int(spare * n / rest))
        edges |= {int(e) for e in inner}
    return np.array(sorted(edges - {0, k}), np.int64)
