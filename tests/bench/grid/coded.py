"""A table of the grid: codes, sizes, and which columns lie on a line; all of it public facts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain


@dataclass(frozen=True, eq=False)
class GridTable:
    """One table; `drawn` where every seed has a table of its own, so that methods are compared seed by seed.

    Attributes:
        folder: of its file and its schema, by which it is run whole; None: its codes are all that there is.
    """

    name: str
    coded: CodedTable
    drawn: bool = False
    folder: Path | None = None

    @property
    def rows(self) -> int:
        return self.coded.rows

    @property
    def delta(self) -> float:
        """1/n²: a public benchmark may tell the number of rows."""
        return 1 / self.rows**2

    def schema(self) -> dict[str, object]:
        """The content of a schema file: every column with its number of codes."""
        columns = {
            a.name: {"kind": "categorical", "size": a.size, **({"ordinal": True} if a.ordered else {})}
            for a in self.coded.domain.attributes
        }
        return {"name": self.name, "source": "a benchmark", "confirmed_public": True, "columns": columns}


def coded_table(
    columns: Mapping[str, NDArray[np.integer]], sizes: Mapping[str, int], line: Collection[str] = ()
) -> CodedTable:
    """Codes below public sizes; the codes of the columns in `line` ascend."""
    domain = Domain(tuple(Attribute(n, s, s if n in line and s > 1 else 0) for n, s in sizes.items()))
    return CodedTable(domain, tuple(np.asarray(columns[n]).astype(code_dtype(s)) for n, s in sizes.items()))


def drawn_rows(table: CodedTable, rows: int) -> CodedTable:
    """So many rows, drawn without replacement, the same ones every time."""
    keep = np.sort(np.random.default_rng(rows).choice(table.rows, rows, replace=False))
    return CodedTable(table.domain, tuple(c[keep] for c in table.columns))
