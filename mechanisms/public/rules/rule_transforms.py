"""The steps derive, recode, availability and joint_bins, from fields: the step, and the fields that say it again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.coded_table import code_dtype
from mechanisms.public.domain import Attribute
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.files import as_path
from mechanisms.public.rules.structural_zeros import Zeros, check_cells, column_of_rule, possible_cells
from mechanisms.public.rules.transforms import FINE, Availability, Coarsen, Conflict, Derive, Recode
from mechanisms.public.schema.code_labels import code_of, codes_of, labels_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields, as_text, check_fields, whole_number
from mechanisms.public.schema.schema_text import facts_in_order

ByName = Mapping[str, Column]
#: The fields of each of these rules.
RULE_FIELDS = {
    "derive": ("from", "map", "otherwise", "conflict"),
    "recode": ("columns", "combinations", "conflict"),
    "availability": ("columns", "shared", "conflict"),
}
#: More columns than this in one availability rule would make more flags than any marginal can hold.
MAX_FLAGS = 16
#: How coarse bins for joint marginals are declared.
BINS = "joint_bins: {count: 10}, {level: a level of the hierarchy}, or {starts: [0, 5, 9]} with the first code of each"


def parse_derive(
    name: str, given: object, columns_by_name: ByName, *, where: str, folder: Path
) -> tuple[Derive, FieldDict]:
    """`derive: {column: {from: column, map: {value: value}, otherwise: value, conflict: mapping}}`.

    The map may be a mapping (one source), a list of rows that end in the derived value, or the path of a CSV with the
    sources and the derived column in its header. What it does not list takes `otherwise` (`missing`: none); without
    that, *other* and *missing* of a single source stay so, and all other values must be listed.

    Raises:
        UserError: unknown columns or values, a value mapped twice, or values without one.
    """
    rule = f"derive {name!r}"
    fields = _fields(given, RULE_FIELDS["derive"], rule, where)
    target = column_of_rule(name, columns_by_name, rule, where)
    origin = fields.get("from")
    sources = tuple(as_text(n, rule, where) for n in (origin if isinstance(origin, list | tuple) else [origin]))
    if name in sources or len(set(sources)) < len(sources):
        raise UserError(f"{rule}: from: got {origin!r}", where=where, fix="other columns, each named once")
    columns = [column_of_rule(n, columns_by_name, rule, where) for n in sources]
    sizes = tuple(c.size for c in columns)
    check_cells(sizes, rule, where)
    table = _unlisted(target, columns, fields.get("otherwise"), rule, where)
    rows = _map_rows(fields.get("map"), sources, name, rule, where, folder)
    listed = _place(table, rows, [*columns, target], rule, where)
    gap = np.flatnonzero(table < 0)
    if gap.size:
        codes = np.unravel_index(int(gap[0]), sizes)
        value = ", ".join(map(repr, labels_of(columns, map(int, codes))))
        every = "it" if gap.size == 1 else f"all {gap.size:,} values without one"
        fix = f"list {every}, or set otherwise: VALUE (or missing)"
        raise UserError(f"{rule}: the map says nothing for {value}", where=where, fix=fix)
    conflict = _conflict(fields, rule, where)
    codes_of = table.astype(code_dtype(target.size))
    step = Derive(takes=(name,), reads=sources, size=target.size, sizes=sizes, table=codes_of, conflict=conflict)
    again: FieldDict = {"from": list(sources), "map": listed, "conflict": conflict}
    return step, again | ({"otherwise": fields["otherwise"]} if "otherwise" in fields else {})


def _map_rows(given: object, sources: Sequence[str], name: str, rule: str, where: str, folder: Path) -> list[list[Any]]:
    if isinstance(given, str):
        return facts_in_order(folder / as_path(given, where), [*sources, name], field=rule, where=where)
    if isinstance(given, Mapping) and len(sources) == 1:
        return [[source, value] for source, value in given.items()]
    width = len(sources) + 1
    if (
        isinstance(given, list | tuple)
        and given
        and all(isinstance(r, list | tuple) and len(r) == width for r in given)
    ):
        return [list(row) for row in given]
    fix = "map: {value: value}; a list of rows [source, …, derived]; or the path of a CSV with these columns"
    raise UserError(f"{rule}: map: got {given!r}", where=where, fix=fix)


def _unlisted(target: Column, columns: Sequence[Column], otherwise: object, rule: str, where: str) -> Ints:
    """The derived code of every cell before the map is read; −1: none yet."""
    table = np.full(math.prod([c.size for c in columns]), -1, np.int64)
    if otherwise == "missing" and "missing" not in target.labels:
        if target.missing_code is None:
            fix = f"missing: true for the column {target.name!r}, or otherwise: VALUE"
            raise UserError(f"{rule}: otherwise: missing, but the column is never missing", where=where, fix=fix)
        table[:] = target.missing_code
    elif otherwise is not None:
        table[:] = code_of(target, otherwise, rule=rule, where=where)
    elif len(columns) == 1:
        source = columns[0]
        for own, its in ((source.other_code, target.other_code), (source.missing_code, target.missing_code)):
            if own is not None and its is not None:
                table[own] = its
    return table


def _place(
    table: Ints, rows: Sequence[Sequence[Any]], columns: Sequence[Column], rule: str, where: str
) -> list[list[str | None]]:
    """Write the map's rows into the table; returns them as labels."""
    sizes = [c.size for c in columns[:-1]]
    seen: dict[int, int] = {}
    for row in rows:
        codes = codes_of(columns, row, rule=rule, where=where)
        cell = int(np.ravel_multi_index(codes[:-1], sizes))
        if seen.setdefault(cell, codes[-1]) != codes[-1]:
            values = ", ".join(map(repr, row[:-1]))
            raise UserError(f"{rule}: {values} is mapped to two values", where=where, fix="one value for each source")
        table[cell] = codes[-1]
    cells = [(*map(int, np.unravel_index(cell, sizes)), code) for cell, code in seen.items()]
    return [labels_of(columns, codes) for codes in cells]


def parse_recode(
    name: str, given: object, columns: ByName, *, zeros: Sequence[Zeros], where: str, folder: Path
) -> tuple[Recode, FieldDict]:
    """`recode: {name: {columns: [a, b], combinations: all | rows | path.csv, conflict: mapping}}`.

    Combinations that the schema declares impossible are left out in any case.

    Raises:
        UserError: fewer than two columns, unknown values, too many combinations, none possible, a name in use.
    """
    rule = f"recode {name!r}"
    fields = _fields(given, RULE_FIELDS["recode"], rule, where)
    names = _columns(fields.get("columns"), columns, rule, where)
    sizes = tuple(columns[n].size for n in names)
    check_cells(sizes, rule, where)
    possible = np.ones(math.prod(sizes), np.bool_)
    again: FieldDict = {"columns": list(names), "combinations": "all", "conflict": _conflict(fields, rule, where)}
    listed = fields.get("combinations", "all")
    if listed != "all":
        own, cells, _ = possible_cells(fields["columns"], listed, columns, rule, where, folder)
        shape = [columns[n].size for n in own]
        possible = cells.reshape(shape).transpose([own.index(n) for n in names]).ravel()
        codes = np.stack(np.unravel_index(np.flatnonzero(possible), sizes), axis=1)
        again["combinations"] = [labels_of([columns[n] for n in names], row) for row in codes]
    for clique, cells in zeros:
        if set(clique) <= set(names):
            inside = tuple(columns[n].size if n in clique else 1 for n in names)
            possible = (possible.reshape(sizes) & ~cells.reshape(inside)).ravel()
    if not possible.any():
        raise UserError(f"{rule}: no combination is possible", where=where, fix="list one that `impossible` allows")
    return Recode.of(name, names, sizes, possible, again["conflict"]), again


def parse_availability(name: str, given: object, columns: ByName, *, where: str) -> tuple[Availability, FieldDict]:
    """`availability: {name: {columns: [received, on_scene], shared: when, conflict: mapping}}`.

    For columns (times, mostly) that hold the same value wherever they are not missing.

    Raises:
        UserError: columns with other values or bins than the first, or that are never missing.
    """
    rule = f"availability {name!r}"
    fields = _fields(given, RULE_FIELDS["availability"], rule, where)
    names = _columns(fields.get("columns"), columns, rule, where)
    if len(names) > MAX_FLAGS:
        raise UserError(f"{rule}: {len(names)} columns", where=where, fix=f"at most {MAX_FLAGS}")
    first = columns[names[0]]
    for column in (columns[n] for n in names):
        if column.missing_code is None:
            raise UserError(f"{rule}: column {column.name!r} is never missing", where=where, fix="missing: true")
        if (column.labels, column.other) != (first.labels, first.other):
            fix = "the same bins and values for all of them"
            problem = f"{rule}: column {column.name!r} has other values than {first.name!r}"
            raise UserError(problem, where=where, fix=fix)
    shared = as_text(fields.get("shared", f"{name} value"), rule, where)
    conflict = _conflict(fields, rule, where)
    gives = (Attribute(name, 2 ** len(names)), Attribute(shared, first.size, first.attribute.ordered))
    again: FieldDict = {"columns": list(names), "shared": shared, "conflict": conflict}
    return Availability(takes=names, gives=gives, conflict=conflict), again


def _columns(given: object, columns: ByName, rule: str, where: str) -> tuple[str, ...]:
    """Two or more columns, in the order of the table."""
    if not isinstance(given, list | tuple) or len(given) < 2 or len(set(map(str, given))) < len(given):
        raise UserError(f"{rule}: columns: got {given!r}", where=where, fix="two or more columns, each named once")
    names = [column_of_rule(as_text(n, rule, where), columns, rule, where).name for n in given]
    return tuple(sorted(names, key=list(columns).index))


def _fields(given: object, allowed: Sequence[str], rule: str, where: str) -> Fields:
    if not isinstance(given, Mapping):
        raise UserError(f"{rule}: got {given!r}", where=where, fix=f"a mapping of {', '.join(allowed)}")
    check_fields(given, allowed, rule, where)
    return given


def _conflict(fields: Fields, rule: str, where: str) -> Conflict:
    word = one_of(fields.get("conflict", "mapping"), ("mapping", "refuse"), where, f"{rule}: conflict")
    return cast(Conflict, word)


def parse_joint_bins(given: object, where: str) -> tuple[str, object] | None:
    """The declaration as one name and its value; what it means is checked with the whole column."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in {"count", "level", "starts"}:
        raise UserError(f"joint_bins: got {given!r}", where=where, fix=BINS)
    name, value = next(iter(given.items()))
    return str(name), tuple(value) if isinstance(value, list | tuple) else value


def coarsened(column: Column, *, where: str) -> Coarsen:
    """The step of a column with `joint_bins`; *other* and *missing* keep bins of their own.

    Raises:
        UserError: bins that do not fit the column.
    """
    assert column.joint_bins is not None
    name, value = column.joint_bins
    size = column.value_codes
    groups = {"count": _counted, "level": _level, "starts": _starts}[name](column, value, where)
    bins = int(groups.max()) + 1
    groups = np.concatenate([groups, bins + np.arange(column.size - size)])
    ordered = bins if column.on_a_line and bool((np.diff(groups[:size]) >= 0).all()) else 0
    coarse = Attribute(column.name, bins + column.size - size, ordered)
    gives = (coarse, replace(column.attribute, name=column.name + FINE))
    return Coarsen(takes=(column.name,), gives=gives, groups=groups.astype(code_dtype(coarse.size)))


def _counted(column: Column, value: object, where: str) -> Ints:
    """Runs of codes of nearly equal length."""
    size = column.value_codes
    count = whole_number(value, "joint_bins: count", where, low=1, high=size)
    return np.arange(size, dtype=np.int64) * count // size


def _starts(column: Column, value: object, where: str) -> Ints:
    starts = list(value) if isinstance(value, tuple) else []
    whole = all(isinstance(s, int) and not isinstance(s, bool) for s in starts)
    fits = whole and starts and starts[0] == 0 and starts == sorted(set(starts)) and starts[-1] < column.value_codes
    if not fits:
        fix = f"ascending codes from 0 to at most {column.value_codes - 1}, the first one 0"
        raise UserError(f"joint_bins: starts: got {value!r}", where=where, fix=fix)
    return (np.searchsorted(np.array(starts), np.arange(column.value_codes), side="right") - 1).astype(np.int64)


def _level(column: Column, value: object, where: str) -> Ints:
    """Each value's node on a level of the hierarchy."""
    if column.tree is None:
        raise UserError("joint_bins: level, but the column has no hierarchy", where=where, fix=BINS)
    try:
        return column.tree.nodes_of(value if isinstance(value, int) else str(value))
    except UserError as error:
        raise UserError(f"joint_bins: {error.what}", where=where, fix=error.fix) from error
