"""CodedTable: columns of integer codes over a Domain, real or synthetic; plain arrays or memory maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError


def code_dtype(size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds codes 0 … size − 1."""
    return np.min_scalar_type(max(size - 1, 1))


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Codes column by column; the repr shows shapes, never rows.

    Attributes:
        domain: what the codes mean.
        columns: one array per attribute: ``rows`` unsigned codes below the attribute's size (may be memory maps).
        weights: None (each row counts 1), or uint32 per row in units of 2**-WEIGHT_BITS records.
        threads: how many count its rows side by side.
    """

    domain: Domain
    columns: tuple[NDArray[np.unsignedinteger], ...]
    weights: NDArray[np.uint32] | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        lengths = {len(c) for c in self.columns} | ({len(self.weights)} if self.weights is not None else set())
        if len(self.columns) != len(self.domain) or len(lengths) > 1:
            raise ValueError(
                f"{len(self.columns)} columns, lengths {sorted(lengths)}, for {len(self.domain)} attributes"
            )

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    def column(self, name: str) -> NDArray[np.unsignedinteger]:
        return self.columns[self.domain.index(name)]

    def at(self, rows: NDArray[np.int64] | slice) -> CodedTable:
        """Some of the rows, in the order asked for."""
        weights = None if self.weights is None else self.weights[rows]
        return CodedTable(self.domain, tuple(np.asarray(c[rows]) for c in self.columns), weights)

    def parted(self, aside: NDArray[np.bool_]) -> tuple[CodedTable, CodedTable]:
        """The rows that were not set aside, and those that were."""
        return self.at(np.flatnonzero(~aside)), self.at(np.flatnonzero(aside))

    def over(self, names: Clique) -> CodedTable:
        """Some of the columns, in the order asked for."""
        return CodedTable(self.domain.project(names), tuple(self.column(n) for n in names), self.weights)

    def __repr__(self) -> str:
        return f"CodedTable({self.rows} rows × {len(self.domain)} columns, weighted={self.weights is not None})"


@dataclass(frozen=True, eq=False)
class CountedTable:
    """Rows that lie elsewhere, and are counted there; the repr shows shapes, never rows.

    Attributes:
        domain: what their codes mean.
        rows: how many.
        weighted: whether they have weights, in units of 2**-WEIGHT_BITS records.
        count: marginals → the counts of each, as of `count_cliques`.
    """

    domain: Domain
    rows: int
    weighted: bool
    count: Callable[[Sequence[Clique]], list[NDArray[np.int64]]]

    def __repr__(self) -> str:
        return f"CountedTable({self.rows} rows × {len(self.domain)} columns, weighted={self.weighted})"


#: Rows at hand, or elsewhere.
AnyTable: TypeAlias = CodedTable | CountedTable


def check_same_domain(one: AnyTable, other: AnyTable) -> None:
    """UserError for two tables whose columns or codes differ: they cannot be compared."""
    if one.domain != other.domain:
        fix = "encode both tables with one schema"
        raise UserError("the two tables have different columns or codes", where="the two tables", fix=fix)
