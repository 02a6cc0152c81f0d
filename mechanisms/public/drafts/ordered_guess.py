"""Pairs of columns of a drafted schema of which one hardly ever exceeds the other, as far as the table tells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from mechanisms.public.drafts.derived_guess import MOST
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.scan import Source, stream

#: A pair is proposed where at least so many rows hold both values, so many of these ascend, and at most so many agree.
FEWEST_ROWS, ASCENDING, EQUAL = 200, 0.99, 0.95
#: Words that, in the names of two numbers that are the same but for them, tell which comes first.
WORDS: tuple[tuple[str, str], ...] = (
    ("start", "end"),
    ("begin", "stop"),
    ("begin", "end"),
    ("start", "stop"),
    ("min", "max"),
    ("low", "high"),
    ("lower", "upper"),
    ("first", "last"),
    ("from", "to"),
    ("opened", "closed"),
    ("birth", "death"),
    ("admitted", "discharged"),
    ("admission", "discharge"),
)


def guess_ordered(source: Source, drafted: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, int, int]]:
    """The lower column, the upper one, rows that ascend or agree, and rows that hold both. NOT private.

    Args:
        drafted: column → its declaration.
    """
    tried = _tried(drafted)
    names = list(dict.fromkeys(n for pair in tried for n in pair))
    if not names:
        return []
    schema = parse_schema({"columns": {n: drafted[n] for n in names}}, where="the draft")
    inner, values = value_expressions(source, schema, [schema[n] for n in names])
    select = f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"
    counts = {pair: np.zeros(3, np.int64) for pair in tried}
    with source.connect() as engine:
        for batch in stream(source, engine, select):
            read = {
                n: np.array(batch.column(i).to_numpy(zero_copy_only=False), np.float64) for i, n in enumerate(names)
            }
            for (a, b), seen in counts.items():
                gap = (read[b] - read[a])[~np.isnan(read[a]) & ~np.isnan(read[b])]
                seen += (gap.size, int((gap >= 0).sum()), int((gap == 0).sum()))
    return [
        (a, b, int(up), int(both))
        for (a, b), (both, up, same) in counts.items()
        if both >= FEWEST_ROWS and up >= ASCENDING * both and same <= EQUAL * both
    ]


def _tried(drafted: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of dates, or of times, whose ranges overlap, and of numbers whose names say so."""
    pairs: list[tuple[str, str]] = []
    for kind in ("date", "datetime"):
        names = [n for n, f in drafted.items() if f["kind"] == kind][:MOST]
        pairs += [
            (a, b)
            for a, b in itertools.permutations(names, 2)
            if drafted[a]["min"] <= drafted[b]["max"] and drafted[b]["min"] <= drafted[a]["max"]
        ]
    for kind in ("integer", "float"):
        numbers = {n.lower(): n for n, f in drafted.items() if f["kind"] == kind and f.keys() >= {"min", "max"}}
        pairs += dict.fromkeys(
            (numbers[n], numbers[other])
            for n in sorted(numbers)
            for low, high in WORDS
            if low in n and (other := n.replace(low, high)) in numbers
        )
    return pairs


def with_same_bins(drafted: Mapping[str, dict[str, Any]], a: str, b: str) -> None:
    """The declarations of both columns get the bounds that hold both, and the bins of the wider one."""
    one, two = drafted[a], drafted[b]
    low, high = min(one["min"], two["min"]), max(one["max"], two["max"])
    bins = one.get("bins", two.get("bins"))
    for fields in (one, two):
        fields |= {"min": low, "max": high} | ({"bins": bins} if bins else {})
