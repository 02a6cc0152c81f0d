"""Structural zeros: combinations of codes that cannot be, and no row may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.rules.structural_zeros import broken, mend

#: A combination that cannot be: a clique in domain order, and for each of its cells whether it is impossible.
Impossible = tuple[Clique, Flags]
Zeros = Sequence[Impossible]


def check_zeros(domain: Domain, zeros: Zeros) -> tuple[Impossible, ...]:
    """The zeros, shaped as their cliques; those that rule nothing out are left out.

    Raises:
        UserError: columns out of order or unknown; another number of cells; nothing left possible in one clique.
    """
    checked = []
    for clique, cells in zeros:
        name = " × ".join(clique)
        if domain.canonical(clique) != tuple(clique) or cells.size != domain.cells(clique):
            problem = f"the impossible combinations of {name} do not fit its {domain.cells(clique):,} cells"
            raise UserError(problem, where="schema", fix="columns in the schema's order, a truth value per cell")
        if cells.all():
            raise UserError(f"no combination of {name} is possible", where="schema", fix="allow at least one")
        if cells.any():
            checked.append((tuple(clique), np.asarray(cells, np.bool_).reshape(domain.shape(clique))))
    return tuple(checked)


def impossible_cells(domain: Domain, zeros: Zeros, clique: Clique) -> Flags | None:
    """Which cells of a clique each zero rules out by itself, shaped; None where all are possible.

    A cell is ruled out where all its completions to the zero's attributes are.
    """
    is_impossible = np.zeros(domain.shape(clique), np.bool_)
    for names, cells in zeros:
        gone = tuple(i for i, n in enumerate(names) if n not in clique)
        shared = [n for n in names if n in clique]
        if shared:
            missing = tuple(i for i, n in enumerate(clique) if n not in shared)
            is_impossible |= np.expand_dims(cells.all(axis=gone), missing)
    return is_impossible if is_impossible.any() else None


def check_condition(domain: Domain, zeros: Zeros, weights: Mapping[str, Floats]) -> None:
    """Refuse a condition all of whose rows, with codes of a weight above 0, one rule alone forbids.

    Raises:
        UserError: it does.
    """
    for names, cells in check_zeros(domain, zeros):
        possible = ~cells
        for axis, name in enumerate(names):
            if name in weights:
                possible = np.compress(weights[name] > 0, possible, axis=axis)
        if possible.size and not possible.any():
            problem = f"no row satisfies the conditions: a rule of the schema forbids them, of {' × '.join(names)}"
            raise UserError(problem, where="where", fix="another condition; no synthesizer makes such rows")


def mended(table: CodedTable, zeros: Zeros, rng: np.random.Generator) -> CodedTable:
    """The table with no impossible combination left; rows that are possible stay as they are. See `mend`.

    Raises:
        UserError: no row is possible at all.
    """
    flat = [(clique, cells.ravel()) for clique, cells in zeros]
    codes = dict(zip(table.domain.names, table.columns, strict=True))
    if not table.rows or not broken(codes, table.domain, flat).any():
        return table
    changed = {n: np.array(c) for n, c in codes.items()}
    mend(changed, table.domain, flat, rng)
    return CodedTable(table.domain, tuple(changed.values()), table.weights)
