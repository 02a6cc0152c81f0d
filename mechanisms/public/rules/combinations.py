"""Lists of combinations of values in a schema: which cells of a few columns they name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, check_names
from mechanisms.public.rules.transforms import MAX_COMBINATIONS
from mechanisms.public.schema.code_labels import codes_of, label_of, labels_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.facts_file import facts_in_order
from mechanisms.public.schema.fields import as_text


def possible_cells(
    columns: object, given: object, columns_by_name: Mapping[str, Column], rule: str, where: str, folder: Path
) -> tuple[tuple[str, ...], NDArray[np.bool_], list[list[str | None]]]:
    """A list of possible combinations: the columns, which of their cells are listed, and the list as labels.

    Args:
        given: rows of values in the order of the columns; the path of a CSV with the columns in its header; or, of two
            columns, the level of the first one's hierarchy whose nodes are the values of the second.
    """
    if not isinstance(columns, list | tuple) or not columns or len(set(map(str, columns))) < len(columns):
        raise UserError(f"{rule}: columns: got {columns!r}", where=where, fix="a list of columns, each named once")
    names = tuple(as_text(n, rule, where) for n in columns)
    named = [column_of_rule(n, columns_by_name, rule, where) for n in names]
    sizes = [c.size for c in named]
    check_cells(sizes, rule, where)
    rows = given
    if isinstance(given, str) and len(names) == 2 and (level := _of_level(named[0], named[1], given)):
        rows = level
    elif isinstance(given, str):
        rows = facts_in_order(folder / Path(given).expanduser(), names, field=rule, where=where)
    if not isinstance(rows, list | tuple) or not rows:
        raise UserError(f"{rule}: got {rows!r}", where=where, fix="a list of combinations, or the path of a CSV")
    cells = np.zeros(math.prod(sizes), np.bool_)
    content = []
    for row in rows:
        values = [row.get(n, row) for n in names] if isinstance(row, Mapping) else row
        if not isinstance(values, list | tuple) or len(values) != len(names):
            raise UserError(f"{rule}: got {row!r}", where=where, fix=f"a value for each of {', '.join(names)}")
        codes = codes_of(named, values, rule=rule, where=where)
        cells[np.ravel_multi_index(codes, sizes)] = True
        content.append(labels_of(named, codes))
    return names, cells, content


def _of_level(leaves: Column, nodes: Column, level: str) -> list[list[str | None]]:
    """The pairs of a value and its node of a level; *other* and *missing* go with all. Empty: no such level."""
    if leaves.tree is None or level not in [own.name for own in leaves.tree.levels]:
        return []
    above = [leaves.tree.level(level).nodes[n] for n in leaves.tree.nodes_of(level)]
    rows: list[list[str | None]] = [[leaf, node] for leaf, node in zip(leaves.labels, above, strict=True)]
    rows += [
        [label_of(leaves, c), label_of(nodes, n)]
        for c in range(leaves.value_codes, leaves.size)
        for n in range(nodes.size)
    ]
    return rows + [[leaf, label_of(nodes, n)] for leaf in leaves.labels for n in range(nodes.value_codes, nodes.size)]


def column_of_rule(name: str, columns: Mapping[str, Column], rule: str, where: str) -> Column:
    """The column of that name; UserError with a suggestion for an unknown one."""
    check_names([name], columns, f"{rule}: no column", where=where)
    return columns[name]


def columns_of_rule(given: object, columns: Mapping[str, Column], rule: str, where: str) -> tuple[str, ...]:
    """The columns that a rule names: none, one, or a list."""
    listed = [] if given is None else given if isinstance(given, list | tuple) else [given]
    return tuple(column_of_rule(as_text(n, rule, where), columns, rule, where).name for n in listed)


def check_cells(sizes: Sequence[int], rule: str, where: str) -> None:
    """Refuse a table of more combinations than a rule may need."""
    if math.prod(sizes) > MAX_COMBINATIONS:
        fix = f"at most {MAX_COMBINATIONS:,}: fewer or coarser columns"
        raise UserError(f"{rule}: {math.prod(sizes):,} combinations", where=where, fix=fix)
