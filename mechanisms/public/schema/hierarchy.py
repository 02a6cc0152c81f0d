"""How the values of an attribute generalize (Li et al. 2021a, section 2.3.1), or how far they are apart (3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, did_you_mean

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class Distances:
    """What it costs to take one value for another: an explicit matrix, instead of a hierarchy.

    Attributes:
        matrix: k × k, from (row) and to (column) the k value codes; 0 on the diagonal, else in [0, 1] or inf, where
            no value may be taken for the other. It need not be symmetric, nor keep the triangle inequality. Read-only.
    """

    matrix: Floats

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distances) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())


def first_repeat(texts: Iterable[str]) -> str | None:
    """The first text that was there before."""
    seen: set[str] = set()
    return next((t for t in texts if t in seen or seen.add(t)), None)  # type: ignore[func-returns-value]
