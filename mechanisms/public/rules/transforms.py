"""Declared steps between the table's columns and the attributes that are measured; each is undone on decoding.

Every step maps rows to rows, one by one, by public rules alone: it costs no privacy, and a unit's records stay its own.
The steps are those of Li et al. 2021b, sections 5.3 and 5.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags, Floats, Ints
from mechanisms.public.coded_table import code_dtype
from mechanisms.public.domain import Attribute

Codes = Mapping[str, NDArray[np.unsignedinteger]]
NewCodes = dict[str, NDArray[np.unsignedinteger]]
Conflict = Literal["mapping", "refuse"]
#: The largest table of combinations that a rule may need.
MAX_COMBINATIONS = 10_000_000
FINE = " (fine)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Step(ABC):
    """A rule between two domains; `forward` is for rows of the table, `backward` for synthetic ones.

    Attributes:
        word: what messages call such a rule.
        takes: attributes that are not measured; `backward` makes them.
        reads: attributes that stay, and that the rule looks at.
        gives: attributes that are measured instead.
        conflict: what rows that contradict the rule do: the rule wins, or the run is refused.
    """

    word: str
    takes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    gives: tuple[Attribute, ...] = ()
    conflict: Conflict = "mapping"

    @property
    def rule(self) -> str:
        """How messages call it, by its own name or its column's, for example derive 'Call Type Group'."""
        return f"{self.word} {(self.gives[0].name if self.gives else self.takes[0])!r}"

    @abstractmethod
    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        """The given attributes' codes, and which rows contradict the rule (None: none can)."""

    @abstractmethod
    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        """The taken attributes' codes."""


def cell_numbers(codes: Codes, names: Sequence[str], sizes: Sequence[int]) -> Ints:
    """Each row's cell in the marginal of some attributes, flattened in C order."""
    return np.asarray(np.ravel_multi_index([codes[name] for name in names], tuple(sizes)), np.int64)


def split_cells(cells: NDArray[np.integer[Any]], names: Sequence[str], sizes: Sequence[int]) -> NewCodes:
    """The inverse of `cell_numbers`."""
    shape = tuple(sizes)
    parts = np.unravel_index(cells, shape)
    return {n: p.astype(code_dtype(s)) for n, p, s in zip(names, parts, shape, strict=True)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Derive(Step):
    """A column that follows from others by a public mapping: neither measured nor synthesized.

    Attributes:
        size: codes of the column that it takes.
        sizes: numbers of codes of the columns that it reads.
        table: the column's code for each cell of these, in C order.
    """

    word: str = "derive"
    size: int
    sizes: tuple[int, ...] = ()
    table: NDArray[np.unsignedinteger] = field(default_factory=lambda: np.zeros(1, np.uint8))

    @property
    def target(self) -> str:
        """The column that it takes."""
        return self.takes[0]

    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        expected = self.table[cell_numbers(codes, self.reads, self.sizes)]
        return {}, np.asarray(codes[self.target] != expected)

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return {self.target: self.table[cell_numbers(codes, self.reads, self.sizes)]}


class Unread(Derive):
    """A column that rows of the table tell nothing of: until values are drawn, all of its codes are 0.

    It has one value; or it is the same in all records of a unit, is measured once per unit, and written with the units.
    """

    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        return {}, None

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return {self.target: np.zeros(len(next(iter(codes.values()))), code_dtype(self.size))}


class Unmeasured(Unread):
    """A column of which nothing is measured: synthetic values are drawn uniformly (Li et al. 2021b, section 5.3)."""

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        rows = len(next(iter(codes.values())))
        return {self.target: rng.integers(0, self.size, rows).astype(code_dtype(self.size))}


@dataclass(frozen=True, eq=False, kw_only=True)
class Recode(Step):
    """A group of columns as one attribute whose codes are the combinations that can occur.

    Attributes:
        sizes: numbers of codes of the group's columns.
        cells: the possible combinations as cells of the group, ascending; code i is the combination `cells[i]`.
        place: for each cell of the group the code it is counted under: its own, or that of the possible combination
            that agrees with it in most columns (the first of several).
    """

    word: str = "recode"
    sizes: tuple[int, ...]
    cells: Ints
    place: NDArray[np.unsignedinteger]

    @classmethod
    def of(
        cls,
        name: str,
        columns: tuple[str, ...],
        sizes: tuple[int, ...],
        possible: Flags,
        conflict: Conflict = "mapping",
    ) -> Recode:
        """The step for a table of truth values over the group's cells, of which at least one is true."""
        cells = np.flatnonzero(possible).astype(np.int64)
        place = np.zeros(possible.size, code_dtype(cells.size))
        place[cells] = np.arange(cells.size)
        other = np.flatnonzero(~possible)
        combinations = np.stack(np.unravel_index(cells, sizes))
        for start in range(0, other.size, max(1, 2_000_000 // cells.size)):
            part = other[start : start + max(1, 2_000_000 // cells.size)]
            agree = sum(
                a[:, None] == b[None, :] for a, b in zip(np.unravel_index(part, sizes), combinations, strict=True)
            )  # fmt: skip
            place[part] = np.argmax(agree, axis=1)
        gives = (Attribute(name, cells.size),)
        return cls(takes=columns, gives=gives, sizes=sizes, cells=cells, place=place, conflict=conflict)

    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        own = cell_numbers(codes, self.takes, self.sizes)
        code = self.place[own]
        return {self.gives[0].name: code}, None if self.cells.size == self.place.size else self.cells[code] != own

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return split_cells(self.cells[codes[self.gives[0].name]], self.takes, self.sizes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Availability(Step):
    """Columns that hold the same value wherever they hold one: one shared value, and flags that say which are there.

    It gives the flags, 2^columns codes, of which bit i (the first column is the highest) is 1 where column i is not
    missing; and the value, with the codes of each of the columns: its last code means that no column has one.
    """

    word: str = "availability"

    def impossible(self) -> Flags:
        """Over flags × shared: no column has a value if and only if there is no shared one."""
        flags, shared = (np.arange(a.size) for a in self.gives)
        return np.asarray((flags == 0)[:, None] != (shared == shared.size - 1)[None, :]).ravel()

    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        """Codes of the flags and of the shared column; and the rows whose columns have different values."""
        gap = self.gives[1].size - 1
        shared = np.array(codes[self.takes[-1]])
        for name in reversed(self.takes[:-1]):
            shared = np.where(codes[name] != gap, codes[name], shared)
        flags: Any = np.int64(0)
        conflict = np.zeros(len(shared), np.bool_)
        for name in self.takes:
            there = codes[name] != gap
            flags = flags * 2 + there
            conflict |= there & (codes[name] != shared)
        own = self.gives[0]
        return {own.name: flags.astype(code_dtype(own.size)), self.gives[1].name: shared}, conflict

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        flags, shared = (codes[a.name] for a in self.gives)
        gap = np.asarray(self.gives[1].size - 1, shared.dtype)
        bits = {name: len(self.takes) - 1 - i for i, name in enumerate(self.takes)}
        return {name: np.where((flags >> bit) & 1, shared, gap).astype(shared.dtype) for name, bit in bits.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Coarsen(Step):
    """A column with coarse bins in joint marginals, and its fine one-way marginal, which is restored afterwards.

    It gives the bins, under the column's own name, and the column as "… (fine)", which stands in no joint marginal.

    Attributes:
        groups: each fine code's bin.
    """

    word: str = "joint_bins of"
    groups: NDArray[np.unsignedinteger]

    def forward(self, codes: Codes) -> tuple[NewCodes, Flags | None]:
        own = codes[self.takes[0]]
        return {self.gives[0].name: self.groups[own], self.gives[1].name: own}, None

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        """Each bin's rows get fine codes in proportion to the fine column's frequencies in that bin; else uniform ones.

        The synthesizer made the fine column from the noisy one-way marginal alone.
        """
        coarse, fine = self.gives
        fine_codes = np.empty(len(codes[coarse.name]), code_dtype(fine.size))
        weights = np.bincount(codes[fine.name], minlength=fine.size).astype(np.float64)
        for group in range(coarse.size):
            rows, members = np.flatnonzero(codes[coarse.name] == group), np.flatnonzero(self.groups == group)
            fine_codes[rows] = members[spread_codes(weights[members], rows.size, rng)]
        return {self.takes[0]: fine_codes}


def spread_codes(weights: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """`rows` places in proportion to the weights, each rounded up or down without bias, in random order."""
    sums = np.cumsum(weights if weights.sum() > 0 else np.ones_like(weights))
    points = (np.arange(rows) + rng.random()) * (sums[-1] / max(rows, 1))
    spread = np.minimum(np.searchsorted(sums, points, side="right"), len(sums) - 1)
    rng.shuffle(spread)
    return np.asarray(spread, np.int64)
