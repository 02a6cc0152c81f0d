"""The schema by which rows are read before anything is known, and what is asked about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mechanisms.public.discovery.leaf_tree import LeafTree
from mechanisms.public.discovery.wanted import Wanted
from mechanisms.public.rules.table_rules import parse_rules
from mechanisms.public.schema.leaf_bins import scouting_column
from mechanisms.public.schema.table_schema import Schema


def scouting_schema(schema: Schema) -> Schema:
    """The schema with leaves for bins, and no listed values, in the columns of which something is discovered."""
    columns = tuple(c if c.discover is None else scouting_column(c) for c in schema.columns)
    declared = schema.rules.declared
    rules = parse_rules(declared, columns, where=schema.name, folder=Path())
    return replace(schema, columns=columns, rules=rules)


def questions_of(schema: Schema) -> tuple[Wanted, ...]:
    """What is asked about the rows, one question per column of which something is discovered."""
    questions, unit = [], schema.rules.unit
    for column in schema.to_discover:
        assert column.discover is not None
        scout = scouting_column(column)
        tree = None if column.discover.values else LeafTree(scout.value_codes, scout.size - scout.value_codes)
        once = unit is not None and column.name in unit.constant
        questions.append(Wanted(column.name, column.discover.what, tree, once=once))
    return tuple(questions)
