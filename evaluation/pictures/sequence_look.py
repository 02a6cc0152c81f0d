"""Events of subjects: how many each has, what follows what, and how much a subject varies; NOT private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_buckets import bucket_tables
from evaluation.values.subjects import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict

Ints = NDArray[np.int64]
#: Buckets of a column; columns, and lengths that are drawn, at most.
BUCKETS, COLUMNS, LENGTHS = 10, 40, 30


def sequence_look(
    tables: tuple[CodedTable, CodedTable],
    subject: tuple[NDArray[np.integer], NDArray[np.integer]],
    order: tuple[NDArray[Any], NDArray[Any]] | None = None,
    *,
    seed: int = 0,
) -> JsonDict | None:
    """Lengths and three figures of coherence (1 − total variation distance), with those of halves of the real subjects.

    - next: pairs of a value and the next one of the same subject, mean over the columns;
    - distinct: how many distinct values a subject has in a column, mean over the columns;
    - subjects: how many of the subjects have each value, as shares of their sum, mean over the columns.

    Args:
        tables: real and synthetic; columns are taken in at most BUCKETS buckets, made from the real values.
        subject: of each row, NOBODY for none.
        order: what the events of a subject are sorted by; None for the order of the rows.
    Returns:
        None where a table has no subjects.
    """
    real, synthetic_buckets = bucket_tables(tables[0], [tables[1]], m=BUCKETS)
    orders = order or (None, None)
    sides = [_events(t, np.asarray(s), o) for t, s, o in zip((real, synthetic_buckets), subject, orders, strict=True)]
    if not all(len(s[0]) for s in sides):
        return None
    names = real.domain.names[:COLUMNS]
    sizes = [real.domain[n].size for n in names]
    whole = [_Counts(s, sizes) for s in sides]
    people = np.unique(sides[0][0])
    first = np.isin(sides[0][0], np.random.default_rng(seed).permutation(people)[: len(people) // 2])
    halves = [_Counts((sides[0][0][f], [c[f] for c in sides[0][1]]), sizes) for f in (first, ~first)]
    figures, reference = whole[0].alike(whole[1]), halves[0].alike(halves[1])
    longest = max(len(c.lengths) for c in whole)
    lengths = [np.pad(c.lengths, (0, longest - len(c.lengths))) / c.lengths.sum() for c in whole]
    edges, names_of = _length_groups(longest)
    drawn = [np.add.reduceat(shares[1:], edges).tolist() for shares in lengths]
    return {
        "subjects": [int(c.lengths.sum()) for c in whole],
        "columns": len(names),
        "figures": figures,
        "halves": reference,
        "labels": names_of,
        "real": drawn[0],
        "synthetic": drawn[1],
        "mean_length": [float(np.average(np.arange(len(c.lengths)), weights=c.lengths)) for c in whole],
    }


def _events(table: CodedTable, subject: Ints, order: NDArray[Any] | None) -> tuple[Ints, list[NDArray[Any]]]:
    """Subjects and codes of the events in the order of subjects and, within, of time."""
    at = np.lexsort((subject,) if order is None else (order, subject))
    at = at[np.count_nonzero(subject == NOBODY) :]
    return subject[at].astype(np.int64), [np.asarray(c[at]) for c in table.columns[:COLUMNS]]


class _Counts:
    """What is compared between two sets of events."""

    def __init__(self, events: tuple[Ints, list[NDArray[Any]]], sizes: list[int]) -> None:
        subject, columns = events
        _, number, counts = np.unique(subject, return_inverse=True, return_counts=True)
        self.lengths = np.bincount(counts)
        follows = subject[1:] == subject[:-1]
        self.next, self.distinct, self.subjects = [], [], []
        for codes, size in zip(columns, sizes, strict=True):
            codes = codes.astype(np.int64)
            self.next.append(np.bincount(codes[:-1][follows] * size + codes[1:][follows], minlength=size * size))
            seen = np.unique(number * size + codes)
            self.distinct.append(np.bincount(np.bincount(seen // size), minlength=size + 1))
            self.subjects.append(np.bincount(seen % size, minlength=size))

    def alike(self, other: _Counts) -> dict[str, float | None]:
        """1 − total variation distance of each part; None where one side has nothing to compare."""
        overlaps: dict[str, float | None] = {}
        for name in ("next", "distinct", "subjects"):
            each = [_alike(a, b) for a, b in zip(getattr(self, name), getattr(other, name), strict=True)]
            defined = [x for x in each if x is not None]
            overlaps[name] = sum(defined) / len(defined) if defined else None
        size = max(len(self.lengths), len(other.lengths))
        overlaps["lengths"] = _alike(*(np.pad(c.lengths, (0, size - len(c.lengths))) for c in (self, other)))
        return overlaps


def _alike(a: Ints, b: Ints) -> float | None:
    if not a.sum() or not b.sum():
        return None
    return 1 - float(np.abs(a / a.sum() - b / b.sum()).sum()) / 2


def _length_groups(longest: int) -> tuple[list[int], list[str]]:
    """Where groups of lengths start, counted from length 1, and their names."""
    width = -(-(longest - 1) // LENGTHS) or 1
    starts = list(range(0, max(longest - 1, 1), width))
    ends = [min(s + width, longest - 1) for s in starts]
    return starts, [str(e) if width == 1 else f"{s + 1} to {e}" for s, e in zip(starts, ends, strict=True)]
