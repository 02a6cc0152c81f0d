"""Tables that nobody chose: each is cut at random out of a public table, and recoded at random; a number draws all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from tests.bench.grid.coded import coded_table

#: So many tables are drawn, of so many rows and columns.
TABLES = 30
ROWS = (500, 50_000)
COLUMNS = (4, 30)
#: Two columns become one of at most so many codes.
MOST_MERGED = 300
#: The share of columns that are merged with the next, coarsened, recoded at random; of ordered ones, said to be none.
MERGED, COARSE, RECODED, UNORDERED = 0.1, 0.2, 0.3, 0.3

Codes = NDArray[np.integer]
Column = tuple[Codes, int, bool]
PREFIX = "derived_"


def derived_names(draw: int) -> list[str]:
    """The names of all tables that a number draws."""
    return [f"{PREFIX}{draw}_{i:02}" for i in range(TABLES)]


def derived(name: str, sources: Sequence[str], whole_table: Callable[[str], CodedTable]) -> CodedTable:
    """The table of a name, which says the draw.

    Args:
        sources: the public tables; `whole_table` reads one.
    """
    rng = np.random.default_rng([int(part) for part in name.removeprefix(PREFIX).split("_")])
    whole = whole_table(sources[int(rng.integers(len(sources)))])
    most = min(ROWS[1], whole.rows)
    rows = int(np.exp(rng.uniform(np.log(ROWS[0]), np.log(most))))
    keep = np.sort(rng.choice(whole.rows, rows, replace=False))
    width = int(rng.integers(COLUMNS[0], min(COLUMNS[1], len(whole.domain.names)) + 1))
    picked = rng.permutation(len(whole.domain.names))[:width]
    columns = [_column(whole.domain, whole.columns[i][keep], int(i)) for i in picked]
    changed = {f"c{i:02}": _recoded(c, rng) for i, c in enumerate(_merged(columns, rng))}
    sizes, line = {n: size for n, (_, size, _) in changed.items()}, [n for n, (_, _, line) in changed.items() if line]
    return coded_table({n: codes for n, (codes, _, _) in changed.items()}, sizes, line)


def _column(domain: Domain, codes: Codes, place: int) -> Column:
    fact = domain.attributes[place]
    return codes.astype(np.int64), fact.size, bool(fact.ordered)


def _merged(columns: list[Column], rng: np.random.Generator) -> list[Column]:
    """Some columns joined with the one after them: a code for each pair of their codes."""
    found: list[Column] = []
    for codes, size, line in columns:
        if len(found) > 1 and rng.random() < MERGED and found[-1][1] * size <= MOST_MERGED:
            last, others, _ = found.pop()
            found.append((last * size + codes, others * size, False))
        else:
            found.append((codes, size, line))
    return found


def _recoded(column: Column, rng: np.random.Generator) -> Column:
    """A column coarsened to neighbours of equal width, its codes shuffled, or its order left unsaid."""
    codes, size, line = column
    if size > 3 and rng.random() < COARSE:
        bins = int(rng.integers(2, size))
        codes, size = codes * bins // size, bins
    if rng.random() < RECODED:
        return rng.permutation(size)[codes], size, False
    return codes, size, line and rng.random() >= UNORDERED
