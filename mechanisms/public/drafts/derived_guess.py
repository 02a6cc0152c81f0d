"""Columns of a drafted schema that are days or years between two dates in every row, as far as the table tells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechanisms.public.rules.computed import value_types
from mechanisms.public.rules.expressions import Expression, parse_expression
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.scan import Source, stream

#: What is tried for each whole number and each two dates.
TRIED = ("days", "years")
#: More dates, or more whole numbers, than that are not tried.
MOST = 12
#: A rule is proposed where at least so many rows hold a value, of at least two kinds.
FEWEST_ROWS = 10
#: Rows that are looked at first.
FEW = 200


def guess_derived(source: Source, drafted: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Column, expression, and in how many rows it holds: all of the table's. NOT private.

    Args:
        drafted: column → its declaration.
    """
    first = [
        [n for n, f in drafted.items() if f["kind"] in kinds][:MOST] for kinds in (("date", "datetime"), ("integer",))
    ]
    if not all(first):
        return []
    schema = parse_schema({"columns": {n: drafted[n] for names in first for n in names}}, where="the draft")
    dates, numbers = ([schema[n] for n in names] for names in first)
    asked = [*dates, *numbers]
    types = value_types({c.name: c for c in asked})
    tried = [
        (number, parse_expression(f"{word}({_marked(a)}, {_marked(b)})", types, "the draft"))
        for number in numbers
        for a, b in itertools.permutations(dates, 2)
        for word in TRIED
    ]
    return _holding(source, schema, asked, tried) if tried else []


def _marked(column: Column) -> str:
    return f"`{column.name}`" if not (column.name.isidentifier() and column.name.isascii()) else column.name


def _holding(
    source: Source, schema: Schema, asked: Sequence[Column], tried: list[tuple[Column, Expression]]
) -> list[tuple[str, str, int]]:
    """Those of the tried rules that no row breaks."""
    inner, values = value_expressions(source, schema, asked)
    select = f"SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM ({inner})"
    rows, filled = 0, dict.fromkeys([n.name for n, _ in tried], 0)
    kinds: dict[str, set[float]] = {}
    with source.connect() as engine:
        for batch in stream(source, engine, select):
            read = {
                c.name: np.array(batch.column(i).to_numpy(zero_copy_only=False), np.float64)
                for i, c in enumerate(asked)
            }
            few = {name: values[:FEW] for name, values in read.items()}
            for part in (few, read):  # nearly all that is tried fails soon
                tried = [(n, e) for n, e in tried if np.array_equal(e.values(part), part[n.name], equal_nan=True)]
            rows += batch.num_rows
            for name in {n.name for n, _ in tried}:
                present = read[name][~np.isnan(read[name])]
                filled[name] += present.size
                kinds.setdefault(name, set()).update(np.unique(present)[:2].tolist())
            if not tried:
                return []
    return [
        (n.name, e.text, rows) for n, e in tried if filled[n.name] >= FEWEST_ROWS and len(kinds.get(n.name, ())) > 1
    ]
