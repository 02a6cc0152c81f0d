"""Declared steps between the table's columns and the attributes that are measured; each is undone on decoding.

Every step maps rows to rows, one by one, by public rules alone: it costs no privacy, and a unit's records stay its own.
The steps are those of Li et al. 2021b, sections 5.3 and 5.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import code_dtype
from mechanisms.public.domain import Attribute

Codes = Mapping[str, NDArray[np.unsignedinteger]]
NewCodes = dict[str, NDArray[np.unsignedinteger]]
Conflict = Literal["mapping", "refuse"]
#: The largest table of combinations that a rule may need.
MAX_COMBINATIONS = 10_000_000
FINE = " (fine)"


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """A rule between two domains; `forward` is for rows of the table, `backward` for synthetic ones.

    Attributes:
        word: what messages call such a rule.
        conflict: what rows that contradict the rule do: the rule wins, or the run is refused.
    """

    word: ClassVar[str]
    conflict: Conflict = field(default="mapping", kw_only=True)

    @property
    def rule(self) -> str:
        """How messages call it, by its own name or its column's, for example derive 'Call Type Group'."""
        return f"{self.word} {getattr(self, 'name', self.takes[0])!r}"

    @property
    @abstractmethod
    def takes(self) -> tuple[str, ...]:
        """Attributes that are not measured; `backward` makes them."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Attributes that stay, and that the rule looks at."""
        return ()

    @property
    def gives(self) -> tuple[Attribute, ...]:
        """Attributes that are measured instead."""
        return ()

    @abstractmethod
    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        """The given attributes' codes, and which rows contradict the rule (None: none can)."""

    @abstractmethod
    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        """The taken attributes' codes."""


def cell_numbers(codes: Codes, names: Sequence[str], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Each row's cell in the marginal of some attributes, flattened in C order."""
    return np.asarray(np.ravel_multi_index([codes[name] for name in names], tuple(sizes)), np.int64)


def split_cells(cells: NDArray[np.integer[Any]], names: Sequence[str], sizes: Sequence[int]) -> NewCodes:
    """The inverse of `cell_numbers`."""
    shape = tuple(sizes)
    parts = np.unravel_index(cells, shape)
    return {n: p.astype(code_dtype(s)) for n, p, s in zip(names, parts, shape, strict=True)}


@dataclass(frozen=True, eq=False)
class Derive(Step):
    """A column that follows from others by a public mapping: neither measured nor synthesized.

    Attributes:
        target: the column, of `size` codes.
        sources, sizes: the columns that it follows from, and their numbers of codes.
        table: the target's code for each cell of the sources, in C order.
    """

    word: ClassVar[str] = "derive"
    target: str
    size: int
    sources: tuple[str, ...]
    sizes: tuple[int, ...]
    table: NDArray[np.unsignedinteger]

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.target,)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.sources

    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        expected = self.table[cell_numbers(codes, self.sources, self.sizes)]
        return {}, np.asarray(codes[self.target] != expected)

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return {self.target: self.table[cell_numbers(codes, self.sources, self.sizes)]}


@dataclass(frozen=True, eq=False)
class Unread(Derive):
    """A column that rows of the table tell nothing of: until values are drawn, all of its codes are 0."""

    sources: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    table: NDArray[np.unsignedinteger] = field(default_factory=lambda: np.zeros(1, np.uint8))

    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        return {}, None

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return {self.target: np.zeros(len(next(iter(codes.values()))), code_dtype(self.size))}


class Constant(Unread):
    """A column of one value, which follows from nothing."""

    word: ClassVar[str] = "constant"


class Unmeasured(Unread):
    """A column of which nothing is measured: synthetic values are drawn uniformly (Li et al. 2021b, section 5.3)."""

    word: ClassVar[str] = "unmeasured"

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        rows = len(next(iter(codes.values())))
        return {self.target: rng.integers(0, self.size, rows).astype(code_dtype(self.size))}


class OfUnit(Unread):
    """A column that is the same in all records of a unit: measured once per unit, and written when units are made."""

    word: ClassVar[str] = "unit: constant"


@dataclass(frozen=True, eq=False)
class Recode(Step):
    """A group of columns as one attribute whose codes are the combinations that can occur.

    Attributes:
        name: of the attribute.
        columns, sizes: the group, and their numbers of codes.
        cells: the possible combinations as cells of the group, ascending; code i is the combination `cells[i]`.
        place: for each cell of the group the code it is counted under: its own, or that of the possible combination
            that agrees with it in most columns (the first of several).
    """

    word: ClassVar[str] = "recode"
    name: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    cells: NDArray[np.int64]
    place: NDArray[np.unsignedinteger]

    @classmethod
    def of(
        cls,
        name: str,
        columns: tuple[str, ...],
        sizes: tuple[int, ...],
        possible: NDArray[np.bool_],
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
        return cls(name, columns, sizes, cells, place, conflict=conflict)

    @property
    def takes(self) -> tuple[str, ...]:
        return self.columns

    @property
    def gives(self) -> tuple[Attribute, ...]:
        return (Attribute(self.name, self.cells.size),)

    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        own = cell_numbers(codes, self.columns, self.sizes)
        code = self.place[own]
        return {self.name: code}, None if self.cells.size == self.place.size else self.cells[code] != own

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        return split_cells(self.cells[codes[self.name]], self.columns, self.sizes)


@dataclass(frozen=True, eq=False)
class Availability(Step):
    """Columns that hold the same value wherever they hold one: one shared value, and flags that say which are there.

    Attributes:
        name: of the flags, an attribute of 2^columns codes; bit i (the first column is the highest) is 1 where column i
            is not missing.
        shared: the attribute of the value; its last code means that no column has one.
        columns: all with the codes of `shared`.
    """

    word: ClassVar[str] = "availability"
    name: str
    shared: Attribute
    columns: tuple[str, ...]

    @property
    def takes(self) -> tuple[str, ...]:
        return self.columns

    @property
    def gives(self) -> tuple[Attribute, ...]:
        return (Attribute(self.name, 2 ** len(self.columns)), self.shared)

    def impossible(self) -> NDArray[np.bool_]:
        """Over flags × shared: no column has a value if and only if there is no shared one."""
        none, missing = np.arange(2 ** len(self.columns)) == 0, np.arange(self.shared.size) == self.shared.size - 1
        return np.asarray(none[:, None] != missing[None, :]).ravel()

    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        """Codes of the flags and of the shared column; and the rows whose columns have different values."""
        gap = self.shared.size - 1
        shared = np.array(codes[self.columns[-1]])
        for name in reversed(self.columns[:-1]):
            shared = np.where(codes[name] != gap, codes[name], shared)
        flags: Any = np.int64(0)
        conflict = np.zeros(len(shared), np.bool_)
        for name in self.columns:
            there = codes[name] != gap
            flags = flags * 2 + there
            conflict |= there & (codes[name] != shared)
        return {self.name: flags.astype(code_dtype(2 ** len(self.columns))), self.shared.name: shared}, conflict

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        shared, flags = codes[self.shared.name], codes[self.name]
        gap = np.asarray(self.shared.size - 1, shared.dtype)
        bits = {name: len(self.columns) - 1 - i for i, name in enumerate(self.columns)}
        return {name: np.where((flags >> bit) & 1, shared, gap).astype(shared.dtype) for name, bit in bits.items()}


@dataclass(frozen=True, eq=False)
class Coarsen(Step):
    """A column with coarse bins in joint marginals, and its fine one-way marginal, which is restored afterwards.

    Attributes:
        fine: the column; in the measured domain it is called "… (fine)", and stands in no joint marginal.
        coarse: the attribute of the bins, under the column's own name.
        groups: each fine code's bin.
    """

    word: ClassVar[str] = "joint_bins of"
    fine: Attribute
    coarse: Attribute
    groups: NDArray[np.unsignedinteger]

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.fine.name,)

    @property
    def gives(self) -> tuple[Attribute, ...]:
        return (self.coarse, Attribute(self.fine.name + FINE, self.fine.size, self.fine.ordered))

    def forward(self, codes: Codes) -> tuple[NewCodes, NDArray[np.bool_] | None]:
        own = codes[self.fine.name]
        return {self.coarse.name: self.groups[own], self.fine.name + FINE: own}, None

    def backward(self, codes: Codes, rng: np.random.Generator) -> NewCodes:
        """Each bin's rows get fine codes in proportion to the fine column's frequencies in that bin; else uniform ones.

        The synthesizer made the fine column from the noisy one-way marginal alone.
        """
        fine_codes = np.empty(len(codes[self.coarse.name]), code_dtype(self.fine.size))
        weights = np.bincount(codes[self.fine.name + FINE], minlength=self.fine.size).astype(np.float64)
        for group in range(self.coarse.size):
            rows, members = np.flatnonzero(codes[self.coarse.name] == group), np.flatnonzero(self.groups == group)
            fine_codes[rows] = members[spread_codes(weights[members], rows.size, rng)]
        return {self.fine.name: fine_codes}


def spread_codes(weights: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`rows` places in proportion to the weights, each rounded up or down without bias, in random order."""
    sums = np.cumsum(weights if weights.sum() > 0 else np.ones_like(weights))
    points = (np.arange(rows) + rng.random()) * (sums[-1] / max(rows, 1))
    spread = np.minimum(np.searchsorted(sums, points, side="right"), len(sums) - 1)
    rng.shuffle(spread)
    return np.asarray(spread, np.int64)
