"""Decoding: codes → values of the original kinds, inside each bin evenly or by the shape of the column."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Codes, Flags, Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.progress import Progress
from mechanisms.public.rules.ordered import all_ascending, exchanged, on_their_steps, with_room
from mechanisms.public.rules.unit_ids import assign_units
from mechanisms.public.schema.bins import Grid, multiple, steps_to, within
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.fine_cells import fine_edges
from mechanisms.public.schema.table_schema import Schema


@dataclass(frozen=True, eq=False)
class Drawn:
    """Decoded values of one column.

    Attributes:
        values: one number per row (days or seconds for dates and times), or positions in `labels`.
        labels: the texts of a column of texts, in the order of the codes; None stands for no value.
        other, missing: which rows carry those codes; only for columns of numbers.
    """

    values: NDArray[Any]
    labels: tuple[str | None, ...] | None = None
    other: Flags | None = None
    missing: Flags | None = None


@dataclass(frozen=True, eq=False)
class Owned:
    """Rows in the order in which they are written, and whose they are.

    Attributes:
        coded: the rows.
        ids: of their units; None where none are known.
        values: column → decoded values of all rows, where they were drawn already: those by which rows are in order.
        notes: what rules about constants of persons took, in sentences.
    """

    coded: CodedTable
    ids: NDArray[Any] | None = None
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def labels(column: Column) -> tuple[str | None, ...]:
    """What each code of a column of texts is written as: missing as its first listed text, or as no value."""
    texts: tuple[str | None, ...] = column.values
    if column.constant and texts == ("",):
        texts = (None,)  # no value, where a file can tell
    gap = next(iter(column.missing_texts), "") or None
    other = [] if column.other is None else [column.other]
    return (*texts, *other, *([gap] if column.missing else []), *([None] if column.apart else []))


def draw(codes: Codes, column: Column, rng: np.random.Generator) -> Drawn:
    """A value for each code: one of the whole numbers, days, seconds or of the interval of its bin."""
    if not column.gridded:
        return Drawn(codes, labels=labels(column))
    other = None if column.other_code is None else codes == column.other_code
    absent = column.value_codes + (column.other is not None)  # from this code on: missing, and outside the schema
    missing = codes >= absent if absent < column.size else None
    inside = np.minimum(codes, np.asarray(column.value_codes - 1, dtype=codes.dtype))
    return Drawn(_inside(inside, column, rng), other=other, missing=missing)


def _inside(codes: Codes, column: Column, rng: np.random.Generator) -> NDArray[Any]:
    """Values inside the bins, and inside the ranges of a condition: by the column's shape, where it has one."""
    if column.within is not None and len(column.within) > 1:
        return within(column.grid, column.within).draw(codes, rng)
    grid = column.grid if column.within is None else within(column.grid, column.within)
    if column.shape is None:
        values: NDArray[Any] = grid.draw(codes, rng)
    else:
        limits = None if column.within is None else column.within[0]
        if limits is not None and column.kind != "float":
            limits = limits[0], np.floor(limits[1]) + 1  # where the last whole unit ends
        values = grid.nearest(codes, column.shape.inside(codes, rng, limits=limits))
    return values if column.multiple_of is None else _multiples(values, codes, grid, column)


def _multiples(values: NDArray[Any], codes: Codes, grid: Grid, column: Column) -> NDArray[Any]:
    """Multiples of what the column says in the place of values: each of a cell as often, or of the bin the nearest.

    A value of a bin that holds no multiple stays as it is.
    """
    step = column.multiple_of or 1.0
    low, last = (ends[codes] for ends in grid.spans)
    high = last + 1 if column.kind != "float" else np.where(codes == grid.size - 1, np.nextafter(last, np.inf), last)
    start, end = low, high
    if column.shape is not None and (cells := fine_edges(column)) is not None:
        cell = np.searchsorted(cells[1:-1], values, side="right")
        start, end = np.maximum(cells[cell], low), np.minimum(np.append(cells[1:-1], np.inf)[cell], high)
    least, beyond = steps_to(low, step), np.where(high > last, 1 - steps_to(-last, step), steps_to(high, step))
    first = steps_to(start, step)
    held = np.where(end < high, steps_to(end, step), beyond) - first
    place = np.clip((values - start) / np.maximum(end - start, np.finfo(float).tiny), 0, 1 - 1e-9)
    steps = np.where(held > 0, first + np.floor(place * held), np.rint(values / step))
    taken = multiple(np.clip(steps, least, np.maximum(beyond - 1, least)), step)
    return np.where((taken >= low) & (taken < high), taken, values).astype(values.dtype)


def with_units(coded: CodedTable, schema: Schema, rng: np.random.Generator, progress: Progress | None = None) -> Owned:
    """The rows in the order in which they are written, and their units' ids where any are known."""
    rules = schema.rules
    if rules.arranged is not None:
        rows: Owned = rules.arranged(coded, schema, rng, progress=progress)
        return rows
    if rules.unit_ids is None or not (rules.unit_ids.records or rules.unit_ids.units):  # none to give ids by
        return Owned(coded)
    order, ids = assign_units(coded, rules.unit_ids, rng)
    return Owned(coded.at(order), ids)


def draw_table(rows: Owned, schema: Schema, rng: np.random.Generator, start: int, stop: int) -> list[Drawn]:
    """Values for some rows, column by column that the table has; columns that the schema orders ascend in every row.

    Args:
        rows: from `with_units`; the rows of a unit, which stand together, come in the order of its columns (all of them
            in one call).
    """
    coded, ids = rows.coded, rows.ids
    drawn = [draw_agreeing(coded, c.name, schema, rng, slice(start, stop)) for c in schema.columns]
    if ids is not None and schema.rules.unit is not None:
        drawn = with_constants(drawn, schema, ids[start:stop])
    for name, values in rows.values.items():
        place = schema.domain.index(name)
        drawn[place] = replace(drawn[place], values=values[start:stop])
    places = {n: schema.domain.index(n) for group in schema.rules.ordered for n in group.columns}
    owners = np.arange(stop - start) if ids is None else ids[start:stop]
    before, some = {n: drawn[i].values for n, i in places.items()}, slice(start, stop)
    for name, own in in_order(before, coded, schema, rng, some, owners, stay=rows.values).items():
        drawn[places[name]] = replace(drawn[places[name]], values=own)
    drawn = with_computed(drawn, schema)[: len(schema.held)]
    if ids is None or schema.rules.unit_ids is None or stop - start < 2:
        return drawn
    own = ids[start:stop]
    keys: list[NDArray[Any]] = [np.cumsum(np.append(False, own[1:] != own[:-1]))]
    for name in schema.rules.unit_ids.order_by:
        codes = np.asarray(coded.column(name)[start:stop])  # of a part of a time these alone are there, and in order
        values = codes if schema[name].cell_of else drawn[schema.domain.index(name)].values
        keys += [codes >= schema[name].value_codes, values]
    order = np.lexsort(keys[::-1])
    return [reordered(d, order) for d in drawn]


def in_order(
    values: Mapping[str, NDArray[Any]],
    coded: CodedTable,
    schema: Schema,
    rng: np.random.Generator,
    rows: slice,
    owners: NDArray[Any],
    stay: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Values of some columns for some rows, changed inside their bins so that those which the schema orders ascend.

    Args:
        values: column → values, shape (rows,).
        owners: as of `all_ascending`.
        stay: columns by whose values the rows are in order.
    """
    constants = () if schema.rules.unit is None else schema.rules.unit.constant
    orders = [g for g in schema.rules.ordered if len({*g.columns} & {*values}) > 1]
    groups = [[n for n in g.columns if n in values] for g in orders]
    codes = {n: np.asarray(coded.column(n)[rows]) for n in values}
    absent = {n: own >= schema[n].value_codes for n, own in codes.items()}
    columns = {n: schema[n] for n in values}
    inside = {n: np.minimum(own, schema[n].value_codes - 1) for n, own in codes.items()}
    pairs = [pair for names in groups for pair in itertools.combinations(names, 2)]
    apart = not all(g.alike for g in orders)
    values = exchanged(values, codes, absent, pairs, {*constants, *stay}, rng)
    room = with_room(values, inside, absent, columns, pairs) if apart else values
    ordered = all_ascending(groups, room, absent, constants, owners)
    moving = {n: c for n, c in columns.items() if n not in constants}
    return on_their_steps(ordered, inside, absent, moving, pairs) if apart else ordered


def draw_agreeing(
    coded: CodedTable, name: str, schema: Schema, rng: np.random.Generator, rows: slice = slice(None)
) -> Drawn:
    """A column's values for some rows; of a date or time, those whose weekday and hour are what the row says."""
    drawn = draw(np.asarray(coded.column(name)[rows]), schema[name], rng)
    return replace(drawn, values=agreeing(drawn.values, coded, name, schema, rows))


def agreeing(
    values: NDArray[Any], coded: CodedTable, name: str, schema: Schema, rows: slice = slice(None)
) -> NDArray[Any]:
    """Values of a column for some rows; of a date or time moved inside their bins as the row's weekday and hour say."""
    column = schema[name]
    bins = np.minimum(np.asarray(coded.column(name)[rows]), column.value_codes - 1)
    for rule in schema.rules.calendar:
        if rule.time == name:
            parts = {n: np.asarray(coded.column(n)[rows]) for n in rule.columns.values()}
            values = rule.agreeing(values, bins, parts, column)
    return values


def with_constants(drawn: Sequence[Drawn], schema: Schema, ids: NDArray[Any]) -> list[Drawn]:
    """The decoded columns with one value per unit of those that are constant in it, where a bin has several.

    Args:
        drawn: in the order of the schema's columns.
        ids: of each row's unit, whose rows stand together.
    """
    constant = () if schema.rules.unit is None else schema.rules.unit.constant
    begins = np.append(True, ids[1:] != ids[:-1])[: len(ids)]
    first = np.maximum.accumulate(np.where(begins, np.arange(len(ids)), 0))
    return [reordered(d, first) if c.name in constant else d for d, c in zip(drawn, schema.columns, strict=True)]


def with_computed(drawn: Sequence[Drawn], schema: Schema) -> list[Drawn]:
    """The decoded columns with those that are computed from the others' values, row by row.

    Args:
        drawn: in the order of the schema's columns; what stands in the place of computed ones is not looked at.
    """
    every = list(drawn)
    for step in reversed(schema.rules.computed):  # one that reads a computed column stands before it
        column = schema[step.target]
        values = step.values({n: _numbers(every[schema.domain.index(n)]) for n in step.reads}, column)
        every[schema.domain.index(step.target)] = _drawn(values, column)
    return every


def _numbers(drawn: Drawn) -> Floats:
    """Values as numbers, NaN where there is none."""
    values = np.array(drawn.values, np.float64)
    for absent in (drawn.other, drawn.missing):
        if absent is not None:
            values[absent] = np.nan
    return values


def _drawn(values: Floats, column: Column) -> Drawn:
    missing = np.isnan(values) if column.missing else None
    filled = values if missing is None else np.where(missing, column.low, values)
    return Drawn(filled if column.kind == "float" else filled.astype(np.int64), missing=missing)


def reordered(drawn: Drawn, order: NDArray[np.intp]) -> Drawn:
    """The values of these rows, in this order."""
    other, missing = (None if marks is None else marks[order] for marks in (drawn.other, drawn.missing))
    return Drawn(drawn.values[order], drawn.labels, other, missing)
