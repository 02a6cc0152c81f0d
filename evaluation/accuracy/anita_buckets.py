"""Buckets of ANITA (Platzer 2020, section 2): at most m per attribute, fitted on the real table, applied to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import Table, counted_over
from mechanisms.public.coded_table import AnyTable, CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques

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
    counts = [count_cliques(_unweighted(t), [(n,) for n in t.domain.names]) for t in tables]
    mappings, attributes = [], []
    for i, attribute in enumerate(real.domain.attributes):
        mapping, size, ordered = _mapping(attribute, [c[i] for c in counts], m, apart)
        attributes.append(Attribute(attribute.name, size, ordered))
        mappings.append(mapping)
    return [cast(Table, _mapped(table, Domain(tuple(attributes)), mappings)) for table in tables]


def _unweighted(table: AnyTable) -> AnyTable:
    return replace(table, weights=None) if isinstance(table, CodedTable) else table


def _mapped(table: AnyTable, domain: Domain, mappings: Sequence[NDArray[np.unsignedinteger]]) -> AnyTable:
    """A table over buckets; of rows that lie elsewhere the counts over codes are summed over buckets."""
    if isinstance(table, CodedTable):
        columns = tuple(mapping[column] for mapping, column in zip(mappings, table.columns, strict=True))
        return CodedTable(domain, columns, table.weights)
    sources = {n: (n, mapping) for n, mapping in zip(domain.names, mappings, strict=True)}
    return counted_over(table, domain, sources)


def _mapping(
    attribute: Attribute, counts: list[NDArray[np.int64]], m: int, apart: bool
) -> tuple[NDArray[np.unsignedinteger], int, int]:
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


def frequent(codes: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
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


def apart_edges(counts: NDArray[np.number], m: int) -> NDArray[np.int64]:
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
