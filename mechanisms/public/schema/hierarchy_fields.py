"""How the values of a column relate: its `hierarchy` or `distances` in a schema, from YAML or CSV and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.files import as_path
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields, as_text, text_list
from mechanisms.public.schema.hierarchy import (
    MAX_VALUES,
    Distances,
    Hierarchy,
    Way,
    build_hierarchy,
    match_leaves,
)
from mechanisms.public.schema.schema_text import read_facts

NAMED = {"levels", "tree"}
TREE = "{north: [a, b], south: [c]}, or the path of a CSV: leaf first, then its ancestors from fine to coarse"


def parse_relations(column: Column, given: Fields, *, where: str, folder: Path) -> FieldDict:
    """What a declaration says about the relations of the column's values: {"tree": …}, {"distances": …} or nothing.

    Args:
        column: all else that was declared.
        given: the declaration.
        where: the file and the column, for messages.
        folder: where the CSV files lie that the declaration names.

    Raises:
        UserError: both are given, or one is not as it must be; names the node or the values.
    """
    tree, matrix = given.get("hierarchy"), given.get("distances")
    if tree is not None and matrix is not None:
        fix = "distances instead of a hierarchy, or a hierarchy that says the distances"
        raise UserError("both hierarchy and distances", where=where, fix=fix)
    if tree is not None:
        return {"tree": _hierarchy(column, tree, where, folder)}
    if matrix is not None:
        return {"distances": _distances(column, matrix, where, folder)}
    return {}


def relation_fields(column: Column) -> FieldDict:
    """The declaration that `parse_relations` reads back, with no file beside it."""
    if column.tree is not None:
        return {"hierarchy": hierarchy_fields(column.tree)}
    if column.distances is not None:
        rows = [" ".join(map(_digits, row)) for row in column.distances]
        return {"distances": {"values": list(column.labels), "matrix": rows}}
    return {}


def hierarchy_fields(tree: Hierarchy) -> FieldDict:
    """A hierarchy as nested mappings that end in lists of leaves, with the names of its levels."""
    below: list[Any] = list(tree.leaves)
    for number in range(tree.depth - 1, 0, -1):
        children: list[dict[str, Any]] = [{} for _ in tree.levels[number - 1].nodes]
        for name, parent, own in zip(tree.levels[number].nodes, tree.levels[number].parents, below, strict=True):
            children[parent][name] = own
        below = [list(own) if number == tree.depth - 1 else own for own in children]
    top = below if tree.depth == 1 else dict(zip(tree.levels[0].nodes, below, strict=True))
    return {"levels": [level.name for level in tree.levels], "tree": top}


def special_labels(column: Column) -> tuple[str, ...]:
    """Texts of the column's codes that are no values."""
    return (*([] if column.other is None else [column.other]), *column.missing_texts)


def _hierarchy(column: Column, given: object, where: str, folder: Path) -> Hierarchy:
    if isinstance(given, str):
        levels, ways = _ways_of_csv(folder / as_path(given, where), where)
    elif isinstance(given, Mapping) and set(given) == NAMED:
        levels = list(text_list(given["levels"], "hierarchy: levels", where))
        ways = _ways(given["tree"], (), where)
    else:
        levels, ways = None, _ways(given, (), where)
    special = special_labels(column)
    return build_hierarchy(
        ways, column.labels, ordered=column.on_a_line, where=where, level_names=levels, special=special
    )


def _ways(node: object, above: Way, where: str) -> list[Way]:
    """The way to each leaf below a node, in the order written."""
    name = repr(above[-1]) if above else "the root"
    if not isinstance(node, Mapping | list | tuple) or not node:
        problem = "has no leaf" if node is None or isinstance(node, Mapping | list | tuple) else f"got {node!r}"
        raise UserError(f"hierarchy: below {name}: {problem}", where=where, fix=TREE)
    if isinstance(node, Mapping):
        inner = [(as_text(key, f"hierarchy: below {name}", where), child) for key, child in node.items()]
        return [way for key, child in inner for way in _ways(child, (*above, key), where)]
    return [(*above, as_text(leaf, f"hierarchy: below {name}", where)) for leaf in node]


def _ways_of_csv(path: Path, where: str) -> tuple[list[str], list[Way]]:
    header, rows = read_facts(path, field="hierarchy", where=where)
    if len(header) < 2:
        fix = "two or more columns: leaf first, then its ancestors from fine to coarse"
        raise UserError(f"hierarchy: {path} has one column", where=where, fix=fix)
    for cells in rows:
        if "" in cells[1:]:
            gap = header[cells.index("", 1)]
            problem = f"hierarchy: {path}: leaf {cells[0]!r} has no {gap!r}"
            raise UserError(problem, where=where, fix="all leaves at the same depth: a node in every column")
    return header[::-1], [tuple(cells[::-1]) for cells in rows]


def _distances(column: Column, given: object, where: str, folder: Path) -> Distances:
    labels = column.labels
    if len(labels) > MAX_VALUES:
        problem = f"distances: {len(labels):,} values, but at most {MAX_VALUES:,} are allowed"
        raise UserError(problem, where=where, fix="a hierarchy, or coarser bins")
    if isinstance(given, str):
        names, rows = matrix_of_csv(folder / as_path(given, where), where)
    elif isinstance(given, Mapping) and set(given) == {"values", "matrix"}:
        names = list(text_list(given["values"], "distances: values", where))
        rows = given["matrix"] if isinstance(given["matrix"], list) else [given["matrix"]]
    else:
        fix = "the path of a CSV; or {values: [a, b], matrix: [[0, 0.5], [0.5, 0]]}"
        raise UserError("distances: neither a path nor a matrix", where=where, fix=fix)
    codes = np.array(match_leaves(names, labels, field="distances", where=where, special=special_labels(column)))
    matrix = matrix_of_rows(rows, names, where)
    ordered = np.empty_like(matrix)
    ordered[np.ix_(codes, codes)] = matrix
    bad = ~((ordered >= 0) & (ordered <= 1) | (ordered == np.inf)) | (np.eye(len(labels), dtype=bool) & (ordered != 0))
    for i, j in np.argwhere(bad)[:1]:
        fix = "0: a value is at no distance from itself" if i == j else "a number from 0 to 1, or inf"
        problem = f"distances: from {labels[i]!r} to {labels[j]!r}: got {ordered[i, j]:g}"
        raise UserError(problem, where=where, fix=fix)
    return tuple(map(tuple, ordered.tolist()))


def matrix_of_csv(path: Path, where: str) -> tuple[list[str], list[list[str]]]:
    """The names in the header of a square matrix, and its rows in their order; rows may start with their name."""
    header, rows = read_facts(path, field="distances", where=where)
    if len(header) == len(rows):
        return header, rows
    names = header[1:]
    if len(header) != len(rows) + 1 or sorted(row[0] for row in rows) != sorted(names):
        problem = f"distances: {path}: {len(rows)} rows below {len(header)} columns"
        raise UserError(
            problem, where=where, fix="a header of the values, then a row of numbers for each, in its order"
        )
    by_name = {row[0]: row[1:] for row in rows}
    return names, [by_name[name] for name in names]


def matrix_of_rows(rows: Sequence[Any], names: Sequence[str], where: str) -> Floats:
    """A square matrix from rows of numbers, or of text that reads as numbers."""
    split = [row.split() if isinstance(row, str) else row for row in rows]
    lengths = [len(row) if isinstance(row, list | tuple) else 0 for row in split]
    if lengths != [len(names)] * len(names):
        problem = f"{len(lengths)} rows for {len(names)} values"
        if len(lengths) == len(names):
            place = next(i for i, n in enumerate(lengths) if n != len(names))
            problem = f"from {names[place]!r}: {lengths[place]} numbers for {len(names)} values"
        raise UserError(f"distances: {problem}", where=where, fix=f"{len(names)} rows of {len(names)} numbers")
    every = ((name, row) for name, row in zip(names, split, strict=True))
    return np.array([[_number(cell, a, b, where) for cell, b in zip(row, names, strict=True)] for a, row in every])


def _number(cell: object, a: str, b: str, where: str) -> float:
    try:
        if isinstance(cell, str | int | float) and not isinstance(cell, bool):
            return float("inf" if cell == ".inf" else cell)
    except ValueError:
        cell = str(cell)
    raise UserError(f"distances: from {a!r} to {b!r}: got {cell!r}", where=where, fix="a number from 0 to 1, or inf")


def _digits(number: float) -> str:
    return str(int(number)) if number in {0, 1} else repr(number)
