"""How the values of a column relate: its `hierarchy` or `distances`, from YAML or CSV and back, or by clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from mechanisms.public.errors import UserError, one_of
from mechanisms.public.schema.bins import Floats, Ints
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields, as_text, check_fields, text_list, whole_number
from mechanisms.public.schema.hierarchy import (
    MAX_VALUES,
    Distances,
    Hierarchy,
    Way,
    build_hierarchy,
    first_repeat,
    match_leaves,
)
from mechanisms.public.schema.places import Places, east_and_north, parse_places, read_points
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
        levels, ways = _ways_of_csv(folder / Path(given).expanduser(), where)
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
        problem = "has no leaf" if node is None or node in ({}, []) else f"got {node!r}"
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
        names, rows = matrix_of_csv(folder / Path(given).expanduser(), where)
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


Method = Literal["average", "complete", "single", "ward"]
METHODS = get_args(Method)
FIELDS = ("coordinates", "distances", "levels", "names", "method")


def cluster(
    names: Sequence[str],
    apart: Floats,
    counts: Sequence[int],
    *,
    method: str = "average",
    level_names: Sequence[str] | None = None,
    where: str = "cluster",
) -> Hierarchy:
    """A hierarchy whose levels are cuts of one agglomerative clustering; the same input gives the same tree.

    Args:
        names: of the k values, in the order of their codes.
        apart: k × k symmetric distances, in any unit.
        counts: clusters per level, coarsest first, ascending, each from 1 to k; the leaves follow below them.
        method: how far apart two clusters are: average, complete, single or ward.
        level_names: of all levels, the leaves' last; default: their numbers.

    Returns:
        An unordered hierarchy; a cluster is called after its medoid and its number of leaves: `Alder Square (12)`.
    Raises:
        UserError: distances that are not symmetric or not finite, or counts that do not ascend.
    """
    size = len(names)
    way = cast(Method, one_of(method, METHODS, where, "method"))
    if not size or size > MAX_VALUES:
        raise UserError(f"{size:,} values", where=where, fix=f"1 to {MAX_VALUES:,} values")
    if (
        apart.shape != (size, size)
        or not np.isfinite(apart).all()
        or not np.allclose(apart, apart.T, rtol=0, atol=1e-9)
    ):
        raise UserError("clustering needs finite distances, both ways the same", where=where, fix="a symmetric matrix")
    if list(counts) != sorted(set(counts)) or not all(1 <= n <= size for n in counts):
        fix = f"ascending numbers of clusters, each from 1 to {size}"
        raise UserError(f"levels: got {list(counts)}", where=where, fix=fix)
    both = (apart + apart.T) / 2
    np.fill_diagonal(both, 0)
    merges = linkage(squareform(both, checks=False), way) if size > 1 else np.zeros((0, 4))
    cuts = [_cluster_names(_cut(merges, size, n), names, both) for n in counts]
    ways = list(zip(*cuts, names, strict=True))
    return build_hierarchy(ways, names, ordered=False, where=where, level_names=level_names)


def _cut(merges: Floats, size: int, count: int) -> Ints:
    """The cluster of each leaf after all but the last count − 1 merges."""
    member = np.arange(size)
    for step, (a, b) in enumerate(merges[: size - count, :2].astype(np.int64)):
        member[(member == a) | (member == b)] = size + step
    return member


def _cluster_names(member: Ints, names: Sequence[str], apart: Floats) -> list[str]:
    """The cluster of each leaf, by the name of the leaf nearest to all others in it, and how many leaves it has."""
    called = {}
    for one in np.unique(member):
        inside = np.flatnonzero(member == one)
        far = np.round(apart[np.ix_(inside, inside)].sum(axis=1), 9)
        called[int(one)] = f"{names[inside[int(np.argmin(far))]]} ({len(inside)})"
    return [called[int(one)] for one in member]


def cluster_from_settings(settings: object, *, where: str) -> Hierarchy:
    """A hierarchy from settings: {coordinates: FILE | distances: FILE, levels: [5, 25], names: […], method: average}.

    Args:
        settings: `coordinates`: a CSV with the value first, then one or more numbers (longitude and latitude are
            brought to one scale); or `distances`: a CSV with a square matrix, its header the values. `levels`: the
            numbers of clusters, coarsest first. `names`: of all levels, the leaves' last.
        where: the setting, for messages.

    Raises:
        UserError: an unknown or absent field, an unfit file, or what `cluster` does not accept.
    """
    given: FieldDict = dict(settings) if isinstance(settings, dict) else {}
    check_fields(given, FIELDS, "", where)
    if ("coordinates" in given) == ("distances" in given):
        fix = "{coordinates: places.csv, levels: [5, 25]}, or distances: instead of coordinates:"
        raise UserError("needs coordinates or distances, one of them", where=where, fix=fix)
    field = "coordinates" if "coordinates" in given else "distances"
    path = Path(str(given[field])).expanduser()
    counts = given.get("levels")
    if not isinstance(counts, list) or not counts:
        raise UserError(f"levels: got {counts!r}", where=where, fix="numbers of clusters, coarsest first: [5, 25]")
    counts = [whole_number(n, "levels", where, low=1, high=MAX_VALUES) for n in counts]
    if field == "coordinates":
        names, places = _coordinates(path, where)
        apart = squareform(pdist(places))
    else:
        names, rows = matrix_of_csv(path, where)
        apart = matrix_of_rows(rows, names, where)
    twice = first_repeat(names)
    if twice is not None:
        raise UserError(f"{field}: {twice!r} is there twice", where=where, fix="each value once")
    level_names = text_list(given["names"], "names", where) if given.get("names") else None
    method = str(given.get("method", "average"))
    return cluster(names, apart, counts, method=method, level_names=level_names, where=where)


def places_from_settings(settings: Fields, tree: Hierarchy, *, where: str) -> Places:
    """Where the leaves of `cluster_from_settings` lie, as far as its coordinates are places on a map."""
    if "coordinates" not in settings or len(read_points(Path(settings["coordinates"]), where)[0]) < 3:
        return Places()
    given = {"coordinates": settings["coordinates"]}
    return parse_places(given, tree.leaves, where=where, folder=Path()) or Places()


def _coordinates(path: Path, where: str) -> tuple[list[str], Floats]:
    """Values, and their places: values × dimensions."""
    header, names, places = read_points(path, where)
    axes = east_and_north(header)
    if axes is not None:
        east, north = axes
        places[:, east] *= np.cos(np.radians(places[:, north].mean()))  # a degree of longitude is shorter
    return names, places
