"""Unit ids for synthetic rows: which rows belong to one unit (a taxi, a person).

McKenna 2021 gives taxi ids from public data; here the rows of a unit come from a public list of units, from a declared
distribution of records per unit (neither costs privacy), or from a noisy histogram, which a run pays for. None of them
says which real rows belong together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import as_path
from mechanisms.public.rules.structural_zeros import columns_of_rule
from mechanisms.public.rules.transforms import cell_numbers, spread_codes
from mechanisms.public.schema.code_labels import codes_of, labels_of
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, as_text, check_fields
from mechanisms.public.schema.schema_text import facts_in_order

FIELDS = ("name", "records", "same", "order_by", "units")
FIX = "unit_id: {name: taxi_id, records: {1: 0.7, 2: 0.3}, same: [company], order_by: [start]}"
#: The word for `records` where a run measures them.
MEASURED = "measured"


@dataclass(frozen=True)
class PublicUnit:
    """A unit that is publicly known.

    Attributes:
        name: its id, as written.
        codes: of the columns that all of its records share.
        weight: its share of the rows with these codes, relative to the others'.
    """

    name: str
    codes: tuple[int, ...]
    weight: float


@dataclass(frozen=True)
class UnitIds:
    """How rows get the id of a unit.

    Attributes:
        name: of the id's column.
        records: (number of records, share of the units that have so many); empty with `units`, and with `measured`
            until a run has measured them.
        same: columns in which all records of a unit agree.
        order_by: the rows of a unit stand together, in the order of these columns.
        units: a public list of units; empty with `records`.
        measured: whether a noisy histogram says how many records units have.
    """

    name: str
    records: tuple[tuple[int, float], ...] = ()
    same: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    units: tuple[PublicUnit, ...] = ()
    measured: bool = False


def assign_units(table: CodedTable, spec: UnitIds, rng: np.random.Generator) -> tuple[Ints, NDArray[Any]]:
    """The order in which the rows are written, and the id of each row in that order.

    With `records`: the rows that agree in `same` are cut, in random order, into units whose sizes are drawn from the
    distribution; the last unit of each such group is cut short. Ids are 1, 2, … With `units`: each row goes to a public
    unit with its codes, in proportion to the weights (to any unit, where none has them). Works for every synthesizer.

    Guarantee: post-processing; costs no privacy.
    Returns:
        (rows,) positions and (rows,) ids: whole numbers, or the public texts.
    """
    domain = table.domain
    codes = {n: np.asarray(table.column(n)) for n in {*spec.same, *spec.order_by}}
    groups = cell_numbers(codes, spec.same, domain.shape(spec.same)) if spec.same else np.zeros(table.rows, np.int64)
    units = _listed(groups, spec, domain.shape(spec.same), rng) if spec.units else _drawn(groups, spec.records, rng)
    keys = [codes[n] for n in reversed(spec.order_by)]
    order = np.lexsort((*keys, units)).astype(np.int64)
    unit_of_row = units[order]
    return order, np.array([u.name for u in spec.units], dtype=object)[unit_of_row] if spec.units else unit_of_row + 1


def _drawn(groups: Ints, records: Sequence[tuple[int, float]], rng: np.random.Generator) -> Ints:
    """Unit numbers, 0 … units − 1, by a distribution of records per unit."""
    sizes, shares = np.array([n for n, _ in records]), np.array([p for _, p in records], np.float64)
    unit_of_group = np.empty(len(groups), np.int64)
    mixed = rng.permutation(len(groups))
    mixed = mixed[np.argsort(groups[mixed], kind="stable")]
    first = 0
    for rows in np.split(mixed, np.flatnonzero(np.diff(groups[mixed])) + 1):
        ends = _ends(sizes, shares / shares.sum(), rows.size, rng)
        unit_of_group[rows] = first + np.searchsorted(ends, np.arange(rows.size), side="right")
        first += len(ends)
    return unit_of_group


def _ends(sizes: Ints, shares: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Where each unit ends among `rows` rows."""
    mean, ends = float(sizes @ shares), np.zeros(0, np.int64)
    while not ends.size or ends[-1] < rows:
        more = sizes[spread_codes(shares, math.ceil((rows - (ends[-1] if ends.size else 0)) / mean) + 1, rng)]
        ends = np.concatenate([ends, (ends[-1] if ends.size else 0) + np.cumsum(more)])
    return np.append(ends[ends < rows], rows)


def _listed(groups: Ints, spec: UnitIds, sizes: Sequence[int], rng: np.random.Generator) -> Ints:
    """Unit numbers from a public list."""
    weights = np.array([u.weight for u in spec.units])
    cells = np.array([int(np.ravel_multi_index(u.codes, tuple(sizes))) if sizes else 0 for u in spec.units])
    unit_of_group = np.empty(len(groups), np.int64)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        own = np.flatnonzero(cells == groups[rows[0]]) if rows.size else cells[:0]
        own = own if own.size else np.arange(len(spec.units))
        unit_of_group[rows] = own[spread_codes(weights[own], rows.size, rng)]
    return unit_of_group


def parse_unit_ids(
    given: object, columns: Mapping[str, Column], *, where: str, folder: Path
) -> tuple[UnitIds | None, FieldDict]:
    """`unit_id: {name, records: {1: 0.7, 2: 0.3}, same, order_by}`; or `records: measured`; or `units: path.csv`.

    The CSV holds the ids under the column's name, the columns in `same`, and perhaps `records`, each unit's weight.

    Raises:
        UserError: neither or both of records and units; shares that are no distribution; unknown columns or values.
    """
    if given is None:
        return None, {}
    if not isinstance(given, Mapping) or "name" not in given:
        raise UserError(f"unit_id: got {given!r}", where=where, fix=FIX)
    check_fields(given, FIELDS, "unit_id", where)
    name = as_text(given["name"], "unit_id: name", where)
    if name in columns:
        fix = "another name; or leave the column out of the schema: ids are written, not measured"
        raise UserError(f"unit_id: {name!r} is a column of the schema", where=where, fix=fix)
    if ("records" in given) == ("units" in given):
        raise UserError("unit_id: needs either records or units", where=where, fix=FIX)
    same, order = (columns_of_rule(given.get(f), columns, f"unit_id: {f}", where) for f in ("same", "order_by"))
    content: FieldDict = {"name": name}
    records: tuple[tuple[int, float], ...] = ()
    units: tuple[PublicUnit, ...] = ()
    measured = given.get("records") == MEASURED
    if measured:
        content["records"] = MEASURED
    elif "records" in given:
        records = _records(given["records"], where)
        content["records"] = dict(records)
    else:
        units, content["units"] = _units(given["units"], name, [columns[n] for n in same], where, folder)
    content |= {k: list(v) for k, v in (("same", same), ("order_by", order)) if v}
    return UnitIds(name, records, same, order, units, measured), content


def _records(given: object, where: str) -> tuple[tuple[int, float], ...]:
    try:
        pairs = sorted((int(str(n)), float(str(p))) for n, p in given.items())  # type: ignore[attr-defined]
    except (AttributeError, ValueError) as error:
        fix = f"shares of units, or the word {MEASURED}: {FIX}"
        raise UserError(f"unit_id: records: got {given!r}", where=where, fix=fix) from error
    total = sum(p for _, p in pairs)
    if not pairs or pairs[0][0] < 1 or not all(0 <= p <= 1 for _, p in pairs) or abs(total - 1) > 1e-6:
        problem = f"unit_id: records: shares of units, by their number of records, that sum to {total:.6g}"
        raise UserError(problem, where=where, fix="numbers of records of at least 1, with shares that sum to 1")
    return tuple(pairs)


def _units(
    given: object, name: str, columns: Sequence[Column], where: str, folder: Path
) -> tuple[tuple[PublicUnit, ...], list[Any]]:
    """Public units from a CSV, or from rows [id, value of each column in `same`, …, weight]."""
    rule, names = "unit_id: units", [name, *(c.name for c in columns)]
    rows = given
    if isinstance(given, str):
        path = folder / as_path(given, where)
        rows = facts_in_order(path, names, field=rule, where=where, weight="records")
    if not isinstance(rows, list | tuple) or not rows:
        raise UserError(f"{rule}: got {rows!r}", where=where, fix="the path of a CSV")
    ids, content = [], []
    for row in rows:
        try:
            weight = float(row[-1]) if len(row) == len(names) + 1 else math.nan
        except (TypeError, ValueError):
            weight = math.nan
        if not 0 < weight < math.inf:
            raise UserError(f"{rule}: got {row!r}", where=where, fix=f"{', '.join(names)}, and a weight above 0")
        codes = tuple(codes_of(columns, row[1:-1], rule=rule, where=where))
        ids.append(PublicUnit(as_text(row[0], rule, where), codes, weight))
        content.append([ids[-1].name, *labels_of(columns, codes), weight])
    return tuple(ids), content
