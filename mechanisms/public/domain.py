"""Domain: names → sizes, and cliques of attributes in one canonical order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mechanisms.public.errors import UserError, require_columns

Clique = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Attribute:
    """One discretized column.

    Attributes:
        name: the column's name.
        size: number of codes; codes are 0 … size − 1.
        ordered: the first ``ordered`` codes lie on a line (0: the column is categorical). The codes behind them
            (*other*, *missing*) lie on no line.
    """

    name: str
    size: int
    ordered: int = 0

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.ordered <= self.size:
            raise UserError(f"size {self.size} and ordered {self.ordered} do not fit", where=f"column {self.name!r}")


@dataclass(frozen=True)
class Domain:
    """The public product space of all attributes, in the order of the table.

    >>> domain = Domain((Attribute("age", 4), Attribute("sex", 2), Attribute("ward", 3)))
    >>> domain.canonical(["ward", "age"]), domain.cells(["age", "ward"])
    (('age', 'ward'), 12)
    >>> domain.project(("sex",)).names
    ('sex',)
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise UserError(f"columns named twice: {', '.join(twice)}", where="schema")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {a.name: a.size for a in self.attributes}

    def __len__(self) -> int:
        return len(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def index(self, name: str) -> int:
        """Position of an attribute; raises UserError with a suggestion for an unknown name."""
        if name not in self._index:
            require_columns([name], self.names, where="marginal")
        return self._index[name]

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def canonical(self, names: Iterable[str]) -> Clique:
        """The clique in domain order, without repeats."""
        names = [*names]
        if not self._index.keys() >= {*names}:
            require_columns(names, self.names, where="marginal")
        return tuple(self.names[i] for i in sorted({self.index(n) for n in names}))

    def axes(self, clique: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.index(n) for n in clique)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        return tuple(self[n].size for n in clique)

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells of the marginal, as an exact Python integer."""
        sizes = self._sizes  # many pairs of many columns are asked for theirs
        return math.prod([sizes.get(n) or self[n].size for n in clique])

    def project(self, clique: Iterable[str]) -> Domain:
        return Domain(tuple(self[n] for n in clique))


def subsets(clique: tuple[T, ...]) -> list[tuple[T, ...]]:
    """Every non-empty subset, smaller ones first."""
    return [s for size in range(1, len(clique) + 1) for s in itertools.combinations(clique, size)]
