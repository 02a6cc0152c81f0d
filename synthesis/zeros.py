"""Structural zeros: combinations of codes that cannot be, and no row may have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.table import CodedTable

#: A combination that cannot be: a clique in domain order, and for each of its cells whether it is impossible.
Impossible = tuple[Clique, NDArray[np.bool_]]
Zeros = Sequence[Impossible]

#: How often rows are mended by parts before whole rows are copied.
TRIES = 8


def check_zeros(domain: Domain, zeros: Zeros) -> tuple[Impossible, ...]:
    """The zeros, shaped as their cliques; those that rule nothing out are left out.

    Raises:
        UserError: columns out of order or unknown; another number of cells; nothing left possible in one clique.
    """
    found = []
    for clique, cells in zeros:
        name = " × ".join(clique)
        if domain.canonical(clique) != tuple(clique) or cells.size != domain.cells(clique):
            what = f"the impossible combinations of {name} do not fit its {domain.cells(clique):,} cells"
            raise UserError(what, where="schema", fix="columns in the schema's order, a truth value per cell")
        if cells.all():
            raise UserError(f"no combination of {name} is possible", where="schema", fix="allow at least one")
        if cells.any():
            found.append((tuple(clique), np.asarray(cells, np.bool_).reshape(domain.shape(clique))))
    return tuple(found)


def impossible_cells(domain: Domain, zeros: Zeros, clique: Clique) -> NDArray[np.bool_] | None:
    """Which cells of a clique each zero rules out by itself, shaped; None where all are possible.

    A cell is ruled out where all its completions to the zero's attributes are.
    """
    found = np.zeros(domain.shape(clique), np.bool_)
    for names, cells in zeros:
        gone = tuple(i for i, n in enumerate(names) if n not in clique)
        shared = [n for n in names if n in clique]
        if shared:
            missing = tuple(i for i, n in enumerate(clique) if n not in shared)
            found |= np.expand_dims(cells.all(axis=gone), missing)
    return found if found.any() else None


def violating(table: CodedTable, zeros: Zeros) -> NDArray[np.int64]:
    """The numbers of the rows with an impossible combination, ascending."""
    bad = np.zeros(table.rows, np.bool_)
    for clique, cells in zeros:
        bad |= cells[tuple(table.column(n) for n in clique)]
    return np.flatnonzero(bad)


def mended(table: CodedTable, zeros: Zeros, rng: np.random.Generator) -> CodedTable:
    """The table with no impossible combination left; rows that are possible stay as they are.

    An impossible row takes the part that is ruled out from a row that is possible; where that does not help, it
    becomes a copy of one. Where no row is possible, one is searched for, code by code.

    Raises:
        UserError: no row is possible at all.
    """
    if not table.rows or not zeros or not violating(table, zeros).size:
        return table
    made = CodedTable(table.domain, tuple(np.array(c) for c in table.columns))
    bad = violating(made, zeros)
    if bad.size == made.rows:
        for column, code in zip(made.columns, _possible_row(made, zeros, rng), strict=True):
            column[bad[0]] = code
        bad = bad[1:]
    good = np.setdiff1d(np.arange(made.rows), bad, assume_unique=True)
    for _ in range(TRIES):
        for clique, cells in zeros:
            mine = bad[cells[tuple(made.column(n)[bad] for n in clique)]]
            donors = rng.choice(good, mine.size)
            for name in clique:
                made.column(name)[mine] = made.column(name)[donors]
        bad = violating(made, zeros)
        if not bad.size:
            return made
    donors = rng.choice(good, bad.size)
    for column in made.columns:
        column[bad] = column[donors]
    return made


def _possible_row(table: CodedTable, zeros: Zeros, rng: np.random.Generator) -> list[int]:
    """Codes of one possible row, found by backtracking in the order of the columns."""
    domain, row = table.domain, [0] * len(table.domain)
    touched = {n for clique, _ in zeros for n in clique}
    names = [n for n in domain.names if n in touched]
    orders = [rng.permutation(domain[n].size) for n in names]
    at = [0] * len(names)
    i = 0
    while 0 <= i < len(names):
        if at[i] == len(orders[i]):
            at[i] = 0
            i -= 1
            if i >= 0:
                at[i] += 1
            continue
        row[domain.index(names[i])] = int(orders[i][at[i]])
        known = set(names[: i + 1])
        whole = [(c, z) for c, z in zeros if names[i] in c and set(c) <= known]
        if any(z[tuple(row[domain.index(n)] for n in c)] for c, z in whole):
            at[i] += 1
        else:
            i += 1
    if i < 0:
        raise UserError("no row is possible", where="schema", fix="allow combinations that can hold together")
    return row
