"""Values outside a schema as cells of their own: scores never clip, and never pool them with other values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.rules.table_rules import Rules
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.encode import MARKS, OUTSIDE, PLAIN, ROUNDED, encoding, text_sql
from mechanisms.public.tables.scan import Source

#: A grown schema's rules would speak of other codes; scores use none.
NO_RULES = Rules()


def codes_apart(raw: NDArray[np.uint32], column: Column) -> tuple[NDArray[np.unsignedinteger], list[int]]:
    """Codes with one behind all others for what the domain has no place for, and how many values carry each mark.

    A column that declares `outside: other` has that place: its *other* is such values' own cell.
    """
    marks, codes = np.divmod(raw, np.uint32(column.size))
    placed = (marks == PLAIN) | ((marks == OUTSIDE) & (column.outside == "other"))
    codes_with_outside = np.where(placed, codes, column.size).astype(code_dtype(column.size + 1))
    return codes_with_outside, np.bincount(marks, minlength=len(MARKS)).tolist()


def with_apart(schema: Schema, names: Collection[str]) -> Schema:
    """The schema with a code for values outside in these columns; itself where there are none."""
    if not names:
        return schema
    columns = tuple(replace(c, apart=True) if c.name in names else c for c in schema.columns)
    return replace(schema, columns=columns, rules=NO_RULES)


def together(schema: Schema, tables: Mapping[str, Any]) -> tuple[Schema, dict[str, Any]]:
    """The schema with the codes apart that any of the tables needs, and all tables over its domain.

    Args:
        tables: from `encode_columns(…, apart=True)`, or over the schema's own domain; one that an engine counts must
            have all the codes apart.
    """
    needed = {n for t in tables.values() for n in schema.domain.names if t.domain[n].size > schema.domain[n].size}
    grown = with_apart(schema, needed)
    over = {
        n: t if t.domain == grown.domain else CodedTable(grown.domain, t.columns, t.weights) for n, t in tables.items()
    }
    return grown, over


def values_outside(
    source: Source, schema: Schema, name: str, *, most: int = 10, mark: int = ROUNDED, spread: bool = False
) -> list[tuple[str, int]]:
    """The most frequent values of a column that encoding marks, with how often each occurs. NOT private.

    Args:
        mark: values with this mark or a higher one.
        spread: equally frequent ones come in the order of a hash, so that the first of them are like the others.
    """
    column = schema[name]
    plan = encoding(source, replace(schema, columns=(column,), rules=NO_RULES), {"cell": text_sql(source, column)})
    query = (
        f"SELECT cell, count(*) AS n FROM ({plan.select}) WHERE v0 >= {column.size * mark} "
        f"GROUP BY cell ORDER BY n DESC, {'hash(cell), ' if spread else ''}cell LIMIT {most}"
    )
    return [(str(value or ""), int(n)) for value, n in source.lines(query, first=plan.types)]
