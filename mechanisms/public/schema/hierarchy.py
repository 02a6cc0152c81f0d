"""Hierarchy: how the values of an attribute generalize, and how far apart they are (Li et al. 2021a, section 2.3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, did_you_mean

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: A matrix of distances between more nodes than this would not fit in memory.
MAX_DENSE = 10_000


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

    @property
    def flat(self) -> bool:
        """Whether there is nothing between the root and the leaves."""
        return self.depth == 1

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

    def ancestors(self, level: str | int) -> Iterator[Ints]:
        """For each level from 1 to `level`: the node there above each node of `level` (itself in the last)."""
        number = self.number(level)
        path = [np.arange(len(self.levels[number - 1]), dtype=np.int64)]
        for one in reversed(self.levels[1:number]):
            path.append(np.array(one.parents, dtype=np.int64)[path[-1]])
        return reversed(path)

    def nodes_of(self, level: str | int) -> Ints:
        """The node of `level` above each leaf: leaves → positions in `level(level).nodes`."""
        number = self.number(level)
        return list(self.ancestors(self.depth))[number - 1]

    def distances(self, level: str | int) -> Floats:
        """Semantic distances in [0, 1] between the k nodes of a level, k × k.

        |j − i| / (k − 1) if the attribute is ordered; else (t − s) / t, with t the level and s the level of the lowest
        common ancestor. Li et al. 2021a, section 2.3.1.

        Raises:
            UserError: the matrix would have more than MAX_DENSE rows.
        """
        number = self.number(level)
        size = len(self.levels[number - 1])
        if size > MAX_DENSE:
            fix = "a coarser level; the solvers need no such matrix for a hierarchy"
            raise UserError(f"distances between {size:,} nodes of level {level!r}", where="hierarchy", fix=fix)
        if self.ordered:
            place = np.arange(size)
            return np.asarray(np.abs(place[:, None] - place[None, :]) / max(size - 1, 1))
        shared = np.zeros((size, size), dtype=np.int64)
        for above in self.ancestors(number):
            shared += above[:, None] == above[None, :]
        return np.asarray((number - shared) / number)


def first_repeat(texts: Iterable[str]) -> str | None:
    """The first text that was there before."""
    seen: set[str] = set()
    return next((t for t in texts if t in seen or seen.add(t)), None)  # type: ignore[func-returns-value]
