"""Nearest and second nearest records under exact distances: Hamming, or mixed for ordinal and categorical columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.verdict.near_rows import NO_ROW, RowPlaces, nearest_rows
from evaluation.verdict.rare_matches import column_marks, row_sums
from mechanisms.public.coded_table import CodedTable, check_same_domain
from mechanisms.public.json_values import JsonDict

Kind = Literal["hamming", "mixed"]
#: Steps on the line of an ordinal attribute, whose distances are rounded to them.
LINE = 2**20


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each record asked about: how far the two nearest reference records are.

    Attributes:
        first, second: distances in attributes, from 0 to the number of columns; second is inf for a single reference.
        index: the first of the nearest reference records.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    index: NDArray[np.int64]

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Nearest over second nearest, in [0, 1]: 1 where both are 0 (neither stands out), NaN without a second."""
        safe = np.where(self.second > 0, self.second, 1.0)
        ratio = np.where(self.second > 0, self.first / safe, 1.0)
        return np.asarray(np.where(np.isinf(self.second), np.nan, ratio))


def nearest(queries: CodedTable, reference: CodedTable, *, kind: Kind = "hamming") -> Nearest:
    """The two nearest reference records of every query record, compared with all of them.

    Hamming counts the attributes that differ. Mixed counts |i − j| / (k − 1) of ordinal attributes instead, and 1
    between *other*, *missing* and the values.
    Cost: that of `nearest_rows`; memory: the tables again.
    """
    check_same_domain(queries, reference)
    n = queries.rows
    if n == 0 or reference.rows == 0:
        return Nearest(np.full(n, np.inf), np.full(n, np.inf), np.full(n, -1, np.int64))
    both = _places((queries, reference), kind)
    near = nearest_rows(*(both.only(rows) for rows in np.split(np.arange(both.rows), [n])))
    second = np.where(near.second < NO_ROW, near.second / both.apart, np.inf)
    return Nearest(near.first / both.apart, second, near.index)


def _places(tables: tuple[CodedTable, CodedTable], kind: Kind) -> RowPlaces:
    """Both tables, one below the other: in bytes where columns only are equal or not and have few values."""
    ordered, others = [], []
    for attribute, *both in zip(tables[0].domain.attributes, *(t.columns for t in tables), strict=True):
        k, codes = attribute.ordered if kind == "mixed" else 0, np.concatenate(both).astype(np.int64)
        if k > 1:
            ordered.append(np.rint(np.where(codes < k, codes / (k - 1), codes - k + 2) * LINE))
        else:
            others.append(np.unique(codes, return_inverse=True)[1])
    rows = sum(t.rows for t in tables)
    lines, values = (np.array(part, np.uint32).reshape(len(part), rows) for part in (ordered, others))
    if ordered or values.max(initial=0) > 255:
        return RowPlaces(lines, values, LINE if ordered else 1)
    return RowPlaces(lines.astype(np.uint8), values.astype(np.uint8), 1)


def matches(queries: CodedTable, reference: CodedTable) -> JsonDict:
    """How many records equal a reference record in every attribute, and in all but one alone (Platzer 2020, section 3).

    As JSON values: rows, exact and all_but_one, and the shares of both (`exact_share` …).
    Cost: one sort of the reference per attribute; records are compared by 64-bit sums, whose chance to collide is
    about rows × rows × columns / 2⁶⁴.
    """
    check_same_domain(queries, reference)
    asked, stored = row_sums(queries), row_sums(reference)
    exact = np.isin(asked, stored)
    near, left = np.zeros(queries.rows, bool), np.flatnonzero(~exact)
    for i in range(len(queries.domain)) if len(queries.domain) > 1 else ():
        marks = column_marks(queries, i)
        near[left] |= np.isin(asked[left] - marks[queries.columns[i][left]], stored - marks[reference.columns[i]])
    figures: JsonDict = {"rows": queries.rows}
    for name, places in (("exact", exact), ("all_but_one", near)):
        count = int(places.sum())
        figures |= {name: count, f"{name}_share": count / queries.rows if queries.rows else None}
    return figures
