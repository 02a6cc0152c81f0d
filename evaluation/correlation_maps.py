"""Correlations of all columns in both tables: Pearson and Spearman of values, Cramér's V of codes; NOT private."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_buckets import bucket_tables
from evaluation.correlation import BUCKETS, cramers_v
from evaluation.products import inner
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict
from mechanisms.public.marginals import count_cliques

#: Records of each table whose values, and whose codes, are looked at, and columns, at most: figures of a picture, not
#: scores. An r of 20,000 records has a standard error of at most 0.007; V of fewer is larger than it should be.
RECORDS, CODED, COLUMNS = 20_000, 100_000, 36

Values = NDArray[np.float64]


def correlation_maps(
    names: Sequence[str], values: tuple[Values, Values], tables: tuple[CodedTable, CodedTable]
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
    pairs = [v[:, : len(numbers)] for v in values]
    maps: JsonDict = {"rows": {n: len(v) for n, v in zip(("real", "synthetic"), values, strict=True)}}
    if len(numbers) > 1 and min(map(len, pairs)):
        maps["pearson"] = _sides(numbers, [_pearson(v) for v in pairs])
        maps["spearman"] = _sides(numbers, [_pearson(_ranks(v)) for v in pairs])
    columns = tables[0].domain.names[:COLUMNS]
    if len(columns) > 1 and min(t.rows for t in tables):
        real, other = (_some(t) for t in tables)
        coarse = bucket_tables(real, [other], m=BUCKETS, apart=True)
        maps["cramers_v"] = _sides(columns, [_cramers(t, columns) for t in coarse])
    return maps


def _sides(names: Sequence[str], both: Sequence[Values]) -> JsonDict:
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


def _pearson(values: Values) -> Values:
    """r of every two columns over the rows with both; NaN on the diagonal and where one does not vary."""
    has = np.isfinite(values)
    x = np.where(has, values, 0.0)
    x = x / np.maximum(np.abs(x).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)  # no square overflows
    with np.errstate(invalid="ignore", divide="ignore"):
        x = np.where(has, x - x.sum(axis=0) / has.sum(axis=0), 0.0)
        x /= np.sqrt((x**2).mean(axis=0))
        x, has = np.nan_to_num(x), has.astype(np.float64)
        n: Any
        if has.all():
            n, sums, squares = len(x), x.sum(axis=0)[:, None], (x**2).sum(axis=0)[:, None]
        else:
            n, sums, squares = inner(has, has), inner(x, has), inner(x**2, has)
        spread = squares - sums**2 / n
        r = (inner(x, x) - sums * sums.T / n) / np.sqrt(spread * spread.T)
    r = np.where((spread > 1e-9) & (spread.T > 1e-9), np.clip(r, -1.0, 1.0), np.nan)
    np.fill_diagonal(r, np.nan)
    return np.asarray(r, np.float64)


def _ranks(values: Values) -> Values:
    """The rank of each value in its column, from 0; of equal ones their mean."""
    ranks = np.full(values.shape, np.nan)
    for i, column in enumerate(values.T):
        has = np.isfinite(column)
        _, place, counts = np.unique(column[has], return_inverse=True, return_counts=True)
        ranks[has, i] = (np.cumsum(counts) - (counts + 1) / 2)[place]
    return ranks


def _cramers(table: CodedTable, names: Sequence[str]) -> Values:
    matrix = np.full((len(names), len(names)), np.nan)
    places = list(itertools.combinations(range(len(names)), 2))
    cliques = [(names[i], names[j]) for i, j in places]
    varied = [len(np.unique(table.column(n))) > 1 for n in names]
    for (i, j), clique, counts in zip(places, cliques, count_cliques(table, cliques), strict=True):
        if varied[i] and varied[j]:
            matrix[i, j] = matrix[j, i] = cramers_v(counts.reshape(table.domain.shape(clique)))
    return matrix
