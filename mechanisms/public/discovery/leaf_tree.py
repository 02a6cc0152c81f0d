"""A tree of counts over fine public bins of one column: its query matrix, and estimates that agree on all levels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.public.queries.query_matrices import SparseQuery
from mechanisms.public.schema.bins import Floats

#: Children of a node, about: with so many, sums over a range are least noisy (Qardaji et al. 2013).
BRANCHING = 16


@dataclass(frozen=True)
class LeafTree:
    """Counts of all nodes but the root: each record stands in one node per level.

    Attributes:
        leaves: fine bins of the column, in their order.
        specials: codes behind them (*other*, *missing*), which no node counts.
    """

    leaves: int
    specials: int = 0

    @property
    def levels(self) -> int:
        return max(1, round(math.log(self.leaves) / math.log(BRANCHING))) if self.leaves > 1 else 1

    @property
    def branching(self) -> int:
        """The least number of children with which the lowest level holds all leaves."""
        children = max(2, math.ceil(self.leaves ** (1 / self.levels)))
        while children**self.levels < self.leaves:
            children += 1
        return int(children)

    def width(self, level: int) -> int:
        """Leaves under a node of a level, 1 … `levels` from the top."""
        return math.prod([self.branching] * (self.levels - level))

    def nodes(self, level: int) -> int:
        """Nodes of a level that have leaves."""
        return -(-self.leaves // self.width(level))

    @property
    def query(self) -> SparseQuery:
        """One row per node, level after level from the top; entries 0 and 1, one per level in a leaf's column."""
        from scipy import sparse

        rows, first = [], 0
        for level in range(1, self.levels + 1):
            rows.append(first + np.arange(self.leaves) // self.width(level))
            first += self.nodes(level)
        places = np.tile(np.arange(self.leaves), self.levels)
        ones = np.ones(places.size, np.int64)
        shape = (first, self.leaves + self.specials)
        return SparseQuery(sparse.csr_array((ones, (np.concatenate(rows), places)), shape=shape), bits=0)

    def by_level(self, answers: Floats) -> list[Floats]:
        """The answers of each level, padded with 0 where there are no leaves."""
        levels, first = [], 0
        for level in range(1, self.levels + 1):
            padded = np.zeros(self.branching**level)
            padded[: self.nodes(level)] = answers[first : first + self.nodes(level)]
            first += self.nodes(level)
            levels.append(padded)
        return levels

    def estimates(self, answers: Floats) -> Floats:
        """The leaves' counts that fit all levels best in squares (Hay et al. 2010): (leaves,).

        Nodes without leaves count as measured to be 0.
        """
        b, noisy = self.branching, self.by_level(answers)
        below = noisy[-1]
        upward = [below]
        for height, own in enumerate(reversed(noisy[:-1]), start=2):
            part = (b**height - b ** (height - 1)) / (b**height - 1)
            below = part * own + (1 - part) * below.reshape(-1, b).sum(axis=1)
            upward.append(below)
        exact = upward[-1]
        for mine in reversed(upward[:-1]):
            gap = exact - mine.reshape(-1, b).sum(axis=1)
            exact = mine + np.repeat(gap / b, b)
        return exact[: self.leaves]
