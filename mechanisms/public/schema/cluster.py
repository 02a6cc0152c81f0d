"""A hierarchy by hierarchical clustering, from coordinates or distances of the values (Li et al. 2021a, §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.files import as_path
from mechanisms.public.schema.discover_fields import FieldDict, Fields, check_fields, text_list, whole_number
from mechanisms.public.schema.hierarchy import MAX_VALUES, Hierarchy, build_hierarchy, first_repeat
from mechanisms.public.schema.hierarchy_fields import matrix_of_csv, matrix_of_rows
from mechanisms.public.schema.places import Places, east_and_north, parse_places, read_points

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
    path = as_path(str(given[field]), where)
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
