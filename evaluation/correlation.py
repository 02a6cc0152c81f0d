"""Correlation difference: how far the dependence of every two columns is kept; maps of both tables' correlations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import bucket_tables
from evaluation.counts import pairs_looked_at
from evaluation.metric import Inputs, ReadScore
from evaluation.products import inner
from evaluation.readings.distance_ends import correlation_ends
from mechanisms.public.arrays import Codes, Floats
from mechanisms.public.coded_table import STEP, CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.files import JsonDict

#: Buckets of each attribute for Cramér's V.
BUCKETS = 20
#: Columns: of more, r is summed pair by pair; all products of so many take longer than those of MOST_PAIRS.
WIDE = 1_000


def correlation_of(inputs: Inputs) -> ReadScore:
    """The metric `correlation`: mean |correlation in the real table − in the synthetic one| over all pairs of columns.

    The frame has one row per pair: a, b, kind, real, synthetic, difference (absolute).
    Two ordinal columns: Pearson's r of the values, over records with a value in both. Any other pair: Cramér's V over
    about 20 buckets an attribute, where a value that many records have is a bucket alone: a column that is nearly
    always 0 still tells by its other values.
    Goal: the same dependences, none lost and none invented. Range: [0, 2]; 0 is perfect. Reference: its floor, and what
    independent columns score.
    Edge cases: a constant column (listed) has correlation 0 with every other; no pair is left out of the mean.
    """
    real, synthetic, numbers = inputs.real, inputs.synthetic, inputs.numbers
    domain = real.domain
    coarse = bucket_tables(real, [synthetic], m=BUCKETS, apart=True)
    pairs = pairs_looked_at(domain.names)
    line = {a.name for a in domain.attributes if a.ordered >= 2}
    lines = [n for n in domain.names if n in line]
    centred = [{n: _centred(numbers[n], t.column(n)) for n in lines} for t in (real, synthetic)]
    mixed = [p for p in pairs if not set(p) <= line]
    on_lines = [p for p in pairs if set(p) <= line]
    moments = [_pearson(t, own, on_lines) for t, own in zip((real, synthetic), centred, strict=True)]
    cramer = [dict(zip(mixed, _cramers_v(t, mixed), strict=True)) for t in coarse]
    rows = []
    for a, b in pairs:
        kind = "pearson" if {a, b} <= line else "cramers_v"
        one, two = ((m if kind == "pearson" else v)[(a, b)] for m, v in zip(moments, cramer, strict=True))
        rows.append((a, b, kind, one, two, abs(one - two)))
    frame = pd.DataFrame(rows, columns=["a", "b", "kind", "real", "synthetic", "difference"])
    if not rows:
        return ReadScore(None, {}, frame, "fewer than two columns")
    ends = correlation_ends(real, synthetic, coarse, centred[0], [row[:5] for row in rows])
    sides = {"real": real, "synthetic": synthetic}
    details: JsonDict = {
        "root_mean_square": math.sqrt(math.fsum(frame["difference"] ** 2) / len(frame)),
        "largest": float(frame["difference"].max()),
        "pairs": len(frame),
        "constant": {s: [n for n in domain.names if np.ptp(t.column(n)) == 0] for s, t in sides.items()},
        "worst": frame.sort_values("difference", ascending=False, kind="stable").head(10).to_dict(orient="records"),
    }
    return ReadScore(math.fsum(frame["difference"]) / len(frame), details, frame, ends=ends)


def _centred(values: Floats, codes: Codes) -> Floats:
    """The number of each code less the column's mean, over its spread, so that squares stay exact; NaN for none."""
    counts = np.bincount(codes, minlength=values.size) * np.isfinite(values)
    with np.errstate(invalid="ignore", over="ignore"):
        values = values / max(np.nanmax(np.abs(values), initial=0.0), 1e-300)  # no square overflows
        values = values - np.nansum(values * counts) / max(counts.sum(), 1)
        spread = math.sqrt(np.nansum(values**2 * counts) / max(counts.sum(), 1))
    return np.asarray(values / spread if spread > 0 else values)


def _pearson(table: CodedTable, numbers: Mapping[str, Floats], pairs: Sequence[Clique]) -> dict[Clique, float]:
    """r of pairs of ordinal columns over the records with a value in both; 0 where one does not vary there."""
    names = list(numbers)
    if len(names) > WIDE:
        return {p: _pearson(table, {n: numbers[n] for n in p}, [p])[p] for p in pairs}
    if len(names) < 2:
        return {}
    n = sums = squares = products = np.zeros((len(names), len(names)))
    complete = all(np.isfinite(values).all() for values in numbers.values())
    for start in range(0, table.rows, STEP):
        x = np.stack([numbers[name][table.column(name)[start : start + STEP]] for name in names]).T
        if complete:
            n, sums, squares = n + len(x), sums + x.sum(axis=0)[:, None], squares + (x * x).sum(axis=0)[:, None]
            products = products + inner(x, x)
            continue
        has = np.asarray(np.isfinite(x), float)
        x = np.where(has > 0, x, 0.0)
        n, sums = n + inner(has, has), sums + inner(x, has)
        squares, products = squares + inner(x * x, has), products + inner(x, x)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = squares - sums * sums / n
        r = np.clip((products - sums * sums.T / n) / np.sqrt(spread * spread.T), -1.0, 1.0)
    r = np.where((spread > 1e-9) & (spread.T > 1e-9), r, 0.0)
    at = {name: i for i, name in enumerate(names)}
    return {(a, b): float(r[at[a], at[b]]) for a, b in pairs}


def _cramers_v(table: CodedTable, pairs: list[tuple[str, str]]) -> list[float]:
    return [
        cramers_v(counts.reshape(table.domain.shape(p)))
        for p, counts in zip(pairs, count_cliques(table, pairs), strict=True)
    ]


def cramers_v(counts: NDArray[np.number]) -> float:
    """√(χ² / (n · (min(rows, columns) − 1))) over the rows and columns that occur; 0 where only one does."""
    table = np.asarray(counts, float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    chi2 = float(((table - expected) ** 2 / expected).sum())
    return min(1.0, math.sqrt(chi2 / total / (min(table.shape) - 1)))


#: Records of each table whose values, and whose codes, are looked at, and columns, at most: figures of a picture, not
#: scores. An r of 20,000 records has a standard error of at most 0.007; V of fewer is larger than it should be.
RECORDS, CODED, COLUMNS = 20_000, 100_000, 36


def correlation_maps(
    names: Sequence[str], values: tuple[Floats, Floats], tables: tuple[CodedTable, CodedTable]
) -> JsonDict:
    """Three matrices of each kind (real, synthetic, and synthetic − real), with the columns they are of.

    Pearson's r of two columns of numbers or dates over the records with a value in both; Spearman's is that of the
    ranks among each column's values, means where they tie; Cramér's V of any two columns over at most 20 buckets each,
    the same in both tables. None where a column has one value. From at most RECORDS records (V: CODED) and the first
    COLUMNS columns.

    Args:
        names: of the columns of `values`: (records, columns) of the real and the synthetic table, NaN where none.
        tables: the codes of both.
    """
    numbers = names[:COLUMNS]
    pairs = [pd.DataFrame(np.where(np.isfinite(v), v, np.nan)).iloc[:, : len(numbers)] for v in values]
    maps: JsonDict = {"rows": {n: len(v) for n, v in zip(("real", "synthetic"), values, strict=True)}}
    if len(numbers) > 1 and min(map(len, pairs)):
        maps["pearson"] = _sides(numbers, [_pearson_of_rows(v) for v in pairs])
        maps["spearman"] = _sides(numbers, [_pearson_of_rows(v.rank()) for v in pairs])
    columns = tables[0].domain.names[:COLUMNS]
    if len(columns) > 1 and min(t.rows for t in tables):
        real, other = (_some(t) for t in tables)
        coarse = bucket_tables(real, [other], m=BUCKETS, apart=True)
        maps["cramers_v"] = _sides(columns, [_cramers(t, columns) for t in coarse])
    return maps


def _sides(names: Sequence[str], both: Sequence[Floats]) -> JsonDict:
    real, synthetic = both
    return {
        "names": list(names),
        "real": real.tolist(),
        "synthetic": synthetic.tolist(),
        "difference": (synthetic - real).tolist(),
    }


def _some(table: CodedTable) -> CodedTable:
    """Rows at equal distances, at most CODED."""
    if table.rows <= CODED:
        return table
    rows = np.linspace(0, table.rows - 1, CODED).astype(np.int64)
    return table.at(rows)


def _pearson_of_rows(values: pd.DataFrame) -> Floats:
    """r of every two columns over the rows with both; NaN on the diagonal and where one does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (values / values.abs().max()).corr().to_numpy(copy=True)  # no square overflows
    np.fill_diagonal(r, np.nan)
    return r


def _cramers(table: CodedTable, names: Sequence[str]) -> Floats:
    matrix = np.full((len(names), len(names)), np.nan)
    places = list(itertools.combinations(range(len(names)), 2))
    cliques = [(names[i], names[j]) for i, j in places]
    varied = [len(np.unique(table.column(n))) > 1 for n in names]
    for (i, j), value in zip(places, _cramers_v(table, cliques), strict=True):
        if varied[i] and varied[j]:
            matrix[i, j] = matrix[j, i] = value
    return matrix
