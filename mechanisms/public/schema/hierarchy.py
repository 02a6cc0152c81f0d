"""How the values of an attribute generalize (Li et al. 2021a, section 2.3.1), or how far they are apart (3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.errors import UserError, did_you_mean, first_few

#: What it costs to take one value for another, instead of a hierarchy: k × k, from (row) and to (column) the value
#: codes; 0 on the diagonal, else in [0, 1] or inf, where no value may be taken for the other. It need not be symmetric,
#: nor keep the triangle inequality.
Distances: TypeAlias = tuple[tuple[float, ...], ...]
#: Nodes from a child of the root down to a leaf.
Way = tuple[str, ...]
#: Values of a column with an explicit matrix of distances: it is written out in the schema.
MAX_VALUES = 2_000


@dataclass(frozen=True)
class Level:
    """The nodes of one level, in order.

    Attributes:
        name: of the level, unique in its hierarchy.
        nodes: their names, unique in the level.
        parents: of each node, the position of its parent in the level above; 0, the root, in the first level.
    """

    name: str
    nodes: tuple[str, ...]
    parents: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Hierarchy:
    """A rooted tree over the values of one attribute; the special codes (*other*, *missing*) are not in it.

    `build_hierarchy` makes it, and refuses what is no such tree.

    Attributes:
        levels: level 1 (the root's children) to level t (the leaves: leaf c is value code c). Every node has a child
            in the next level; nodes are numbered in the order of their first leaf.
        ordered: the nodes of each level lie on a line, in the order given.
    """

    levels: tuple[Level, ...]
    ordered: bool

    @classmethod
    def default(cls, names: Sequence[str], ordered: bool = False) -> Hierarchy:
        """One root over the leaves: the hierarchy of an attribute for which none is given."""
        return cls((Level("1", tuple(names), (0,) * len(names)),), ordered)

    @property
    def depth(self) -> int:
        """t: edges between the root and each leaf."""
        return len(self.levels)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the leaves, by value code."""
        return self.levels[-1].nodes

    def number(self, level: str | int) -> int:
        """The number of a level, 1 (coarsest) … depth (leaves), from its name or number.

        Raises:
            UserError: no such level; names those that there are.
        """
        names = [one.name for one in self.levels]
        if isinstance(level, str) and level in names:
            return names.index(level) + 1
        number = int(level) if isinstance(level, int) or level.isdecimal() else 0
        if isinstance(level, bool) or not 1 <= number <= self.depth:
            levels = ", ".join(n if n == str(i) else f"{n} ({i})" for i, n in enumerate(names, start=1))
            fix = f"{did_you_mean(str(level), names)} coarsest first: {levels}; leave the attribute out for the root"
            raise UserError(f"no level {level!r}", where="hierarchy", fix=fix.strip())
        return number

    def level(self, level: str | int) -> Level:
        return self.levels[self.number(level) - 1]

    def nodes_of(self, level: str | int) -> Ints:
        """The node of `level` above each leaf: leaves → positions in `level(level).nodes`."""
        node = np.arange(len(self.leaves), dtype=np.int64)
        for below in reversed(self.levels[self.number(level) :]):
            node = np.array(below.parents, dtype=np.int64)[node]
        return node


def first_repeat(texts: Iterable[str]) -> str | None:
    """The first text that was there before."""
    seen: set[str] = set()
    return next((t for t in texts if t in seen or seen.add(t)), None)  # type: ignore[func-returns-value]


def build_hierarchy(
    ways: Sequence[Way],
    leaves: Sequence[str],
    *,
    ordered: bool,
    where: str,
    level_names: Sequence[str] | None = None,
    special: Collection[str] = (),
) -> Hierarchy:
    """The hierarchy of an attribute from the way down to each of its leaves, as written.

    Args:
        ways: one per leaf.
        leaves: the values of the attribute, in the order of their codes.
        ordered: the attribute is ordinal.
        where: the file and the column, for messages.
        level_names: coarsest first; default: their numbers.
        special: labels of codes that are no values, for messages.

    Raises:
        UserError: leaves at several depths; a leaf that is missing, unknown, or there twice; a node with two parents;
            an ordinal level out of order; unfit level names.
    """
    depth = _one_depth(ways, where)
    codes = match_leaves([way[-1] for way in ways], leaves, field="hierarchy", where=where, special=special)
    names = _level_names(level_names, depth, where)
    if ordered:
        _check_order(ways, codes, leaves, where)
    by_code = [way for _, way in sorted(zip(codes, ways, strict=True), key=lambda pair: pair[0])]
    levels: list[Level] = []
    above: dict[str, int] = {"": 0}
    for number, name in enumerate(names):
        parents: dict[str, str] = {}
        for way in by_code:
            node, parent = way[number], way[number - 1] if number else ""
            if parents.setdefault(node, parent) != parent:
                problem = (
                    f"hierarchy: node {node!r} of level {name!r} has two parents, {parents[node]!r} and {parent!r}"
                )
                raise UserError(problem, where=where, fix="names that are unique in their level")
        if ordered:
            _check_together([way[number] for way in by_code], leaves, name, where)
        levels.append(Level(name, tuple(parents), tuple(above[p] for p in parents.values())))
        above = {node: i for i, node in enumerate(parents)}
    return Hierarchy(tuple(levels), ordered)


def match_leaves(
    given: Sequence[str], leaves: Sequence[str], *, field: str, where: str, special: Collection[str] = ()
) -> list[int]:
    """The code of each given leaf; given and values must be one to one.

    Raises:
        UserError: a leaf that is there twice, unknown, or missing.
    """
    twice = first_repeat(given)
    if twice is not None:
        raise UserError(f"{field}: leaf {twice!r} is there twice", where=where, fix="each value of the column once")
    code = {leaf: i for i, leaf in enumerate(leaves)}
    unknown = [leaf for leaf in given if leaf not in code]
    if unknown and unknown[0] in special:
        fix = "leave it out: only values are in it, not what stands for other or missing ones"
        raise UserError(f"{field}: {unknown[0]!r} is no value", where=where, fix=fix)
    if unknown:
        allowed = did_you_mean(unknown[0], leaves) or f"the values: {', '.join(map(repr, leaves[:8]))}, …"
        problem = f"{field}: no value of the column is {first_few(map(repr, unknown), 5)}"
        raise UserError(problem, where=where, fix=allowed)
    absent = [leaf for leaf in leaves if leaf not in set(given)] if len(given) < len(leaves) else []
    if absent:
        fix = "every value of the column once"
        raise UserError(f"{field}: without a leaf for {first_few(map(repr, absent), 5)}", where=where, fix=fix)
    return [code[leaf] for leaf in given]


def _one_depth(ways: Sequence[Way], where: str) -> int:
    first = ways[0]
    for way in ways:
        if len(way) != len(first):
            problem = f"{way[-1]!r} lies {len(way)} below the root, but {first[-1]!r} {len(first)}"
            fix = f"all leaves at the same depth: {{{way[-1]}: [{way[-1]}]}} puts a leaf one deeper"
            raise UserError(f"hierarchy: leaf {problem}", where=where, fix=fix)
    return len(first)


def _level_names(names: Sequence[str] | None, depth: int, where: str) -> list[str]:
    numbers = [str(i) for i in range(1, depth + 1)]
    if names is None:
        return numbers
    if len(names) != depth:
        fix = "one name per level below the root, coarsest first, the leaves' last"
        raise UserError(f"hierarchy: {len(names)} level names for {depth} levels", where=where, fix=fix)
    if (wrong := first_repeat(names)) is None:
        wrong = next((n for n, i in zip(names, numbers, strict=True) if not n or (n.isdecimal() and n != i)), None)
    if wrong is not None:
        fix = "unique names; a number may only be the level's own"
        raise UserError(f"hierarchy: a level called {wrong!r}", where=where, fix=fix)
    return list(names)


def _check_order(ways: Sequence[Way], codes: Sequence[int], leaves: Sequence[str], where: str) -> None:
    """Ordinal: the leaves stand as in the domain."""
    for place, (way, code) in enumerate(zip(ways, codes, strict=True)):
        if code != place:
            inside = f" (in {way[-2]!r})" if len(way) > 1 else ""
            problem = (
                f"hierarchy: leaf {way[-1]!r}{inside} stands where {leaves[place]!r} belongs; the column is ordinal"
            )
            raise UserError(problem, where=where, fix="nodes and leaves in the order of the column's values")


def _check_together(nodes: Sequence[str], leaves: Sequence[str], level: str, where: str) -> None:
    """Ordinal: the leaves of each node of a level are neighbours."""
    last: dict[str, int] = {}
    for place, node in enumerate(nodes):
        if last.get(node, place - 1) != place - 1:
            gap = leaves[last[node] + 1]
            problem = f"hierarchy: node {node!r} of level {level!r} has {leaves[place]!r} but not {gap!r} before it"
            fix = "the column is ordinal: the leaves of a node are neighbours"
            raise UserError(problem, where=where, fix=fix)
        last[node] = place
