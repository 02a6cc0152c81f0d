"""Combinations of values that a schema lists; those that cannot occur are kept out of rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, check_names
from mechanisms.public.files import as_path
from mechanisms.public.rules.transforms import (
    MAX_COMBINATIONS,
    Coarsen,
    Codes,
    NewCodes,
    Step,
    cell_numbers,
    split_cells,
)
from mechanisms.public.schema.code_labels import codes_of, label_of, labels_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import as_text
from mechanisms.public.schema.schema_text import facts_in_order


def possible_cells(
    columns: object, given: object, columns_by_name: Mapping[str, Column], rule: str, where: str, folder: Path
) -> tuple[tuple[str, ...], Flags, list[list[str | None]]]:
    """A list of possible combinations: the columns, which of their cells are listed, and the list as labels.

    Args:
        given: rows of values in the order of the columns; the path of a CSV with the columns in its header; or, of two
            columns, the level of the first one's hierarchy whose nodes are the values of the second.
    """
    if not isinstance(columns, list | tuple) or not columns or len(set(map(str, columns))) < len(columns):
        raise UserError(f"{rule}: columns: got {columns!r}", where=where, fix="a list of columns, each named once")
    names = tuple(as_text(n, rule, where) for n in columns)
    named = [column_of_rule(n, columns_by_name, rule, where) for n in names]
    sizes = [c.size for c in named]
    check_cells(sizes, rule, where)
    rows = given
    if isinstance(given, str | int) and len(names) == 2 and (level := _of_level(named[0], named[1], str(given))):
        rows = level
    elif isinstance(given, str):
        path, tree = folder / as_path(given, where), named[0].tree
        if tree is not None and not path.exists():
            levels = ", ".join(level.name for level in tree.levels)
            fix = f"a level: {levels} (hierarchy: {{levels: [NAME, …], tree: …}} names them); or the path of a CSV"
            raise UserError(f"{rule}: {given!r} is no level of {names[0]!r}, and no file", where=where, fix=fix)
        rows = facts_in_order(path, names, field=rule, where=where)
    if not isinstance(rows, list | tuple) or not rows:
        raise UserError(f"{rule}: got {rows!r}", where=where, fix="a list of combinations, or the path of a CSV")
    cells = np.zeros(math.prod(sizes), np.bool_)
    content = []
    for row in rows:
        values = [row.get(n, row) for n in names] if isinstance(row, Mapping) else row
        if not isinstance(values, list | tuple) or len(values) != len(names):
            raise UserError(f"{rule}: got {row!r}", where=where, fix=f"a value for each of {', '.join(names)}")
        codes = codes_of(named, values, rule=rule, where=where)
        cells[np.ravel_multi_index(codes, sizes)] = True
        content.append(labels_of(named, codes))
    return names, cells, content


def _of_level(leaves: Column, nodes: Column, level: str) -> list[list[str | None]]:
    """The pairs of a value and its node of a level; *other* and *missing* go with all. Empty: no such level."""
    if leaves.tree is None or level not in [own.name for own in leaves.tree.levels]:
        return []
    above = [leaves.tree.level(level).nodes[n] for n in leaves.tree.nodes_of(level)]
    rows: list[list[str | None]] = [[leaf, node] for leaf, node in zip(leaves.labels, above, strict=True)]
    rows += [
        [label_of(leaves, c), label_of(nodes, n)]
        for c in range(leaves.value_codes, leaves.size)
        for n in range(nodes.size)
    ]
    return rows + [[leaf, label_of(nodes, n)] for leaf in leaves.labels for n in range(nodes.value_codes, nodes.size)]


def column_of_rule(name: str, columns: Mapping[str, Column], rule: str, where: str) -> Column:
    """The column of that name; UserError with a suggestion for an unknown one."""
    check_names([name], columns, f"{rule}: no column", where=where)
    return columns[name]


def columns_of_rule(given: object, columns: Mapping[str, Column], rule: str, where: str) -> tuple[str, ...]:
    """The columns that a rule names: none, one, or a list."""
    listed = [] if given is None else given if isinstance(given, list | tuple) else [given]
    return tuple(column_of_rule(as_text(n, rule, where), columns, rule, where).name for n in listed)


def check_cells(sizes: Sequence[int], rule: str, where: str) -> None:
    """Refuse a table of more combinations than a rule may need."""
    if math.prod(sizes) > MAX_COMBINATIONS:
        fix = f"at most {MAX_COMBINATIONS:,}: fewer or coarser columns"
        raise UserError(f"{rule}: {math.prod(sizes):,} combinations", where=where, fix=fix)


#: A clique in domain order, and for each of its cells (flat, C order) whether it is impossible.
Zeros = tuple[Clique, Flags]
#: Rows are mended one rule after the other so often, before those that still break one are replaced.
PASSES = 20
#: Combinations of constants that rules may speak of: links try each of them for each person.
MOST_CONSTANTS = 20_000


def joined(zeros: Iterable[Zeros]) -> tuple[Zeros, ...]:
    """One entry per clique.

    Raises:
        UserError: every combination of some columns is impossible.
    """
    by_clique: dict[Clique, Flags] = {}
    for clique, cells in zeros:
        by_clique[clique] = by_clique[clique] | cells if clique in by_clique else cells
    for clique, cells in by_clique.items():
        if cells.all():
            fix = "leave at least one combination possible"
            raise UserError("every combination is impossible", where=f"impossible: {' × '.join(clique)}", fix=fix)
    return tuple(by_clique.items())


def of_persons(
    zeros: Sequence[Zeros], constants: Collection[str], domain: Domain, where: str
) -> tuple[tuple[Zeros, ...], ...]:
    """Zeros of records, and those that name constants of a person; of these, one for all that share a constant.

    What no constant allows is a zero of records too: each record that is left is allowed to some person.

    Raises:
        UserError: the rules that share constants speak of too many combinations, or leave none.
    """
    own, linked = [z for z in zeros if not {*z[0]} & {*constants}], list[Zeros]()
    for one in (z for z in zeros if {*z[0]} & {*constants}):
        shared = [z for z in linked if {*z[0]} & {*one[0]} & {*constants}]
        names = domain.canonical({n for clique, _ in (*shared, one) for n in clique})
        check_cells(domain.shape(names), f"rules that share a constant ({', '.join(names)})", where)
        if (own_cells := domain.cells([n for n in names if n in constants])) > MOST_CONSTANTS:
            fix = f"at most {MOST_CONSTANTS:,}, each of which is tried for each person: coarser or fewer constants"
            problem = f"rules about {', '.join(names)}: {own_cells:,} combinations of constants"
            raise UserError(problem, where=where, fix=fix)
        codes = split_cells(np.arange(domain.cells(names)), names, domain.shape(names))
        linked = [z for z in linked if all(z is not s for s in shared)] + [
            (names, broken(codes, domain, (*shared, one)))
        ]
    for names, cells in joined(linked):
        gone = tuple(i for i, n in enumerate(names) if n in constants)
        never = cells.reshape(domain.shape(names)).all(axis=gone).ravel()
        own += [(tuple(n for n in names if n not in constants), never)] if never.any() else []
    return joined(own), tuple(linked)


def permuted(domain: Domain, names: Sequence[str], cells: Flags) -> Zeros:
    """Zeros over columns in any order, in domain order."""
    clique = domain.canonical(names)
    axes = [list(names).index(n) for n in clique]
    return clique, np.ascontiguousarray(cells.reshape(domain.shape(names)).transpose(axes)).ravel()


def after(step: Step, zeros: Zeros, before: Domain, domain: Domain) -> Zeros | None:
    """Zeros in the domain behind a step; None where they would need too large a table.

    Exact but for coarse bins: such a bin is impossible only where all of its values are.
    """
    clique, cells = zeros
    gone = [n for n in clique if n in step.takes]
    if not gone:
        return permuted(domain, clique, cells)
    if isinstance(step, Coarsen):
        axis = clique.index(step.takes[0])
        table = np.moveaxis(cells.reshape(before.shape(clique)), axis, 0)
        merged = np.ones((step.gives[0].size, *table.shape[1:]), np.bool_)
        np.logical_and.at(merged, step.groups, table)
        return permuted(domain, clique, np.moveaxis(merged, 0, axis))
    names = [n for n in clique if n not in gone]
    names += [n for n in (*step.reads, *(a.name for a in step.gives)) if n not in names]
    new = domain.canonical(names)
    if domain.cells(new) > MAX_COMBINATIONS:
        return None
    codes = split_cells(np.arange(domain.cells(new)), new, domain.shape(new))
    codes |= step.backward(codes, np.random.default_rng(0))
    return new, cells[cell_numbers(codes, clique, before.shape(clique))]


def mend(codes: NewCodes, domain: Domain, zeros: Sequence[Zeros], rng: np.random.Generator) -> None:
    """Move rows out of impossible combinations, in place.

    A row changes one column where that is enough, by the frequencies of the rows that are possible. What still breaks a
    rule after some passes becomes a copy of a possible row; where none is, one is searched for, code by code.

    Raises:
        UserError: the rules leave no row possible.
    """
    for _ in range(PASSES):
        if not sum(_mend_one(codes, domain, z, rng) for z in zeros):
            return
    left = broken(codes, domain, zeros)
    good, bad = np.flatnonzero(~left), np.flatnonzero(left)
    if bad.size and not good.size:
        for name, code in _possible_row(domain, zeros, rng).items():
            codes[name][bad[0]] = code
        good, bad = bad[:1], bad[1:]
    source = rng.choice(good, bad.size) if bad.size else good[:0]
    for column in codes.values():
        column[bad] = column[source]


def broken(codes: Codes, domain: Domain, zeros: Sequence[Zeros]) -> Flags:
    """Whether each row has an impossible combination."""
    rows = len(next(iter(codes.values()))) if codes else 0
    is_broken = np.zeros(rows, np.bool_)
    for clique, cells in zeros:
        is_broken |= cells[cell_numbers(codes, clique, domain.shape(clique))]
    return is_broken


def _mend_one(codes: NewCodes, domain: Domain, zeros: Zeros, rng: np.random.Generator) -> int:
    clique, cells = zeros
    shape = domain.shape(clique)
    own = cell_numbers(codes, clique, shape)
    bad = np.flatnonzero(cells[own])
    if not bad.size:
        return 0
    counts, whole = np.bincount(own, minlength=cells.size), cells.reshape(shape)
    # of two that are missing together, as a time and its hour, the first decides: by frequency, what is frequent grows
    together = whole.ndim == 2 and whole[-1, :-1].all() and whole[:-1, -1].all() and not whole[-1, -1]
    order = bad[np.argsort(own[bad], kind="stable")]
    for rows in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
        near = _neighbours(int(own[rows[0]]), shape)
        near = near[~cells[near]]
        if together:
            near = near[near // shape[-1] == own[rows[0]] // shape[-1]]
        near = near if near.size else np.flatnonzero(~cells)
        weights = counts[near].astype(np.float64)
        weights = weights if weights.sum() > 0 else np.ones(near.size)
        chosen = split_cells(rng.choice(near, rows.size, p=weights / weights.sum()), clique, shape)
        for name in clique:
            codes[name][rows] = chosen[name]
    return int(bad.size)


def _neighbours(cell: int, shape: tuple[int, ...]) -> Ints:
    """The cells that differ in one column."""
    cells, stride = [], 1
    for size in reversed(shape):
        code = cell // stride % size
        cells.append(cell + (np.delete(np.arange(size), code) - code) * stride)
        stride *= size
    return np.concatenate(cells).astype(np.int64)


def _possible_row(domain: Domain, zeros: Sequence[Zeros], rng: np.random.Generator) -> dict[str, int]:
    """A possible row's codes in the columns of the zeros, found by backtracking in the order of the columns."""
    touched = {n for clique, _ in zeros for n in clique}
    names = [n for n in domain.names if n in touched]
    orders = [rng.permutation(domain[n].size) for n in names]
    row, tried = dict[str, int](), [iter(orders[0])]
    while tried:
        names_so_far, name = set(names[: len(tried)]), names[len(tried) - 1]
        if (code := next(tried[-1], None)) is None:
            tried.pop()
            continue
        row[name] = int(code)
        whole = [(c, z) for c, z in zeros if name in c and set(c) <= names_so_far]
        if any(z[np.ravel_multi_index([row[n] for n in c], domain.shape(c))] for c, z in whole):
            continue
        if len(tried) == len(names):
            return row
        tried.append(iter(orders[len(tried)]))
    fix = "declare fewer combinations impossible: together they leave none"
    raise UserError("no synthetic row satisfies the structural zeros", where="schema: impossible", fix=fix)
