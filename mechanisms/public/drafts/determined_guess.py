"""Pairs of columns of a drafted schema of which one nearly always follows from the other, as far as the table tells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.drafts.column_facts import FEWEST_UNITS, MAX_VALUES
from mechanisms.public.drafts.ordered_guess import FEWEST_ROWS
from mechanisms.public.schema.code_labels import label_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.encode import encoding
from mechanisms.public.tables.scan import Source, stream

#: Of the rows that the most frequent target alone would place wrong, the source places at least this share right
#: (λ of Goodman & Kruskal 1954): a target of which nearly all rows are one value follows from nothing by that.
LAMBDA = 0.99
#: More columns are not tried, and a longer list of pairs is not proposed.
MOST, LONGEST = 24, 2_000


@dataclass(frozen=True)
class Determined:
    """A column that follows from another.

    Attributes:
        follows: how many rows show the pairs, of `rows` in which the source has a value that says something.
        possible: the pairs that can be, (source, target) by their labels; None: missing.
        complete: each code of the source has one target.
    """

    source: str
    target: str
    follows: int
    rows: int
    possible: tuple[tuple[str | None, str | None], ...]
    complete: bool


def guess_determined(source: Source, drafted: Mapping[str, Mapping[str, Any]]) -> list[Determined]:
    """Of each target the source with the fewest values; of two columns that say the same, the later one. NOT private.

    A value of fewer than FEWEST_UNITS rows, *other* and *missing* of the source go with every value of the target.

    Args:
        drafted: column → its declaration.
    """
    few = {n: f for n, f in drafted.items() if _few(f)}
    if len(few) < 2:
        return []
    schema = parse_schema({"columns": few}, where="the draft")
    columns = [c for c in schema.columns if 1 < c.value_codes <= MAX_VALUES][:MOST]
    if len(columns) < 2:
        return []
    place = {c.name: i for i, c in enumerate(columns)}
    tried = {
        (a.name, b.name): np.zeros((a.size, b.size), np.int64)
        for a, b in itertools.permutations(columns, 2)
        if (a.value_codes, -place[a.name]) > (b.value_codes, -place[b.name])
    }
    schema = parse_schema({"columns": {c.name: drafted[c.name] for c in columns}}, where="the draft")
    coded = encoding(source, schema)
    with source.connect() as engine:
        for statement in coded.types:
            engine.execute(statement)
        for batch in stream(source, engine, coded.select):
            codes = {c.name: np.asarray(batch.column(i)).astype(np.int64) % c.size for i, c in enumerate(columns)}
            for (a, b), counts in tried.items():
                cells = codes[a] * counts.shape[1] + codes[b]
                counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
    found: dict[str, Determined] = {}
    for (a, b), counts in sorted(tried.items(), key=lambda item: (item[1].shape[0], place[item[0][0]])):
        if b not in found and (one := _determined(schema[a], schema[b], counts)) is not None:
            found[b] = one
    return [found[c.name] for c in columns if c.name in found]


def _few(fields: Mapping[str, Any]) -> bool:
    """Whether each value of the column has a code of its own."""
    return fields["kind"] == "categorical" or (
        fields["kind"] == "integer" and "bins" not in fields and fields["max"] - fields["min"] < MAX_VALUES
    )


def _determined(source: Column, target: Column, counts: NDArray[np.int64]) -> Determined | None:
    """What the counts say of one pair (source codes × target codes)."""
    values = counts[: source.value_codes]
    most = values.argmax(axis=1)
    told = values.max(axis=1) >= FEWEST_UNITS
    seen, follows = values[told], int(values.max(axis=1)[told].sum())
    rows = int(seen.sum())
    wrong = rows - int(seen.sum(axis=0).max(initial=0))
    if rows < FEWEST_ROWS or not wrong or rows - follows > (1 - LAMBDA) * wrong:
        return None
    pairs = [
        (label_of(source, a), label_of(target, b))
        for a in range(source.size)
        for b in ([int(most[a])] if a < told.size and told[a] else range(target.size))
    ]
    complete = bool(told.all()) and source.size == source.value_codes
    return (
        Determined(source.name, target.name, follows, rows, tuple(pairs), complete) if len(pairs) <= LONGEST else None
    )
