"""ordered: columns whose values ascend in every row, such as the times of one event after the other."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.jit import compiled
from mechanisms.public.rules.structural_zeros import Zeros, check_cells, column_of_rule, permuted
from mechanisms.public.schema.bins import CYCLIC, multiple
from mechanisms.public.schema.code_labels import common_bins, drawn_ends, step_from
from mechanisms.public.schema.column import ORDERED_KINDS, Column

#: Column → what it has in each row.
Rows: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Ordered:
    """Columns of one kind; where two of them hold a value, the earlier column's is not larger.

    Attributes:
        columns: from the least to the largest.
        alike: all have the same bins and steps, so that values that change places are still those of their columns.
    """

    columns: tuple[str, ...]
    alike: bool

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each two columns."""
        return list(itertools.combinations(self.columns, 2))

    def zeros(self, domain: Domain, columns: Mapping[str, Column]) -> list[Zeros]:
        """Pairs of bins of which all values descend, as structural zeros."""
        zeros = []
        for pair in self.pairs:
            cells = np.zeros(domain.shape(pair), np.bool_)
            least, largest = drawn_ends(columns[pair[0]])[0], drawn_ends(columns[pair[1]])[1]
            cells[: least.size, : largest.size] = least[:, None] > largest
            zeros.append(permuted(domain, pair, cells.ravel()))
        return zeros


def exchanged(
    values: Rows,
    codes: Rows,
    absent: Rows,
    pairs: Sequence[tuple[str, str]],
    stay: Collection[str],
    rng: np.random.Generator,
) -> dict[str, NDArray[Any]]:
    """Values exchanged among the rows of their bin so that rows ascend, as far as the values of the bin let them.

    A column keeps its values, and each row its bins: of all ways in which the rows of a bin, which need a value not
    below those before it, can share the bin's values, one by chance.

    Args:
        pairs: as of `with_room`.
        stay: columns whose values stay where they are.
    """
    changed = dict(values)
    before = {name: [low for low, high in pairs if high == name] for name in values}
    for name in sorted(values, key=lambda n: len(before[n])):
        own, needs = changed[name], np.full(len(codes[name]), -np.inf)
        for low in before[name]:
            needs = np.fmax(needs, np.where(absent[low], -np.inf, changed[low]))
        short = (needs > own) & ~absent[name]
        if name in stay or not short.any():
            continue
        rows = np.flatnonzero(np.isin(codes[name], np.unique(codes[name][short])) & ~absent[name])
        asking = rows[np.lexsort([-needs[rows], codes[name][rows]])]
        pool = rows[np.lexsort([-own[rows], codes[name][rows]])]
        starts = np.flatnonzero(np.diff(codes[name][pool], prepend=-1, append=-1).astype(np.bool_))
        given = shared_out(starts, needs[asking], own[pool].astype(np.float64), rng.random(rows.size))
        changed[name] = np.array(own)
        changed[name][asking] = own[pool[given]]
    return changed


@compiled
def shared_out(starts: Any, needs: Any, pool: Any, chances: Any) -> Any:
    """Which value of the pool each row gets: one by chance of those that are not below its need, while there are any.

    Those who need most come first, and what they may have all others may have too: so as many as can be get one.

    Args:
        starts: (bins + 1,) where the rows of each bin begin, and where all end; rows get values of their bin.
        needs, pool: (rows,) descending in each bin.
        chances: (rows,) uniform numbers from 0 to below 1.
    """
    given = np.full(needs.size, -1, np.int64)
    free = np.empty(needs.size, np.int64)
    for bin in range(starts.size - 1):
        count, place = 0, starts[bin]
        for row in range(starts[bin], starts[bin + 1]):
            while place < starts[bin + 1] and pool[place] >= needs[row]:
                free[count] = place
                count, place = count + 1, place + 1
            if count:
                pick = int(chances[row] * count)
                given[row], free[pick] = free[pick], free[count - 1]
                count -= 1
        for row in range(starts[bin], starts[bin + 1]):  # who found none gets one that nobody took
            if given[row] < 0 and count:
                given[row], count = free[count - 1], count - 1
            elif given[row] < 0:
                given[row], place = place, place + 1
    return given


def with_room(
    values: Rows, codes: Rows, absent: Rows, columns: Mapping[str, Column], pairs: Sequence[tuple[str, str]]
) -> dict[str, NDArray[Any]]:
    """Values of rows that descend, moved inside their bins to what those before and behind leave of these.

    Sorted, each then lies in its own bin: the least and the largest that is left ascend along the columns, and so the
    n-th of the sorted values is not below the n-th least one, nor above the n-th largest one.

    Args:
        codes: none of them descend (as of `Ordered.zeros`).
        pairs: of columns that ascend; with a ≤ b and b ≤ c there is a ≤ c, but where all of a lies below all of c.
    """
    ends = {n: [np.where(absent[n], np.nan, e[codes[n]]) for e in drawn_ends(columns[n])] for n in values}
    room = {n: list(own) for n, own in ends.items()}
    descends = np.zeros(len(next(iter(values.values()))), np.bool_)
    for low, high in pairs:
        room[high][0] = np.fmax(room[high][0], ends[low][0])
        room[low][1] = np.fmin(room[low][1], ends[high][1])
        descends |= (values[low] > values[high]) & ~absent[low] & ~absent[high]
    moved = dict(values)
    for name, (first, last) in ends.items():
        rows = np.flatnonzero(descends & ~absent[name] & ((room[name][0] > first) | (room[name][1] < last)))
        (least, largest), step = (end[rows] for end in room[name]), columns[name].step
        width, whole = largest - least, last[rows] - first[rows]
        part = (values[name][rows] - first[rows]) / np.maximum(whole + step, np.finfo(float).tiny)
        places = least + width * part
        if step:
            places = multiple(np.rint((least + np.floor(part * (np.rint(width / step) + 1)) * step) / step), step)
        moved[name] = np.array(values[name])
        moved[name][rows] = np.clip(places, least, largest)
    return moved


def on_their_steps(
    values: Rows, codes: Rows, absent: Rows, columns: Mapping[str, Column], pairs: Sequence[tuple[str, str]]
) -> dict[str, NDArray[Any]]:
    """Values that ascend, each rounded down, else up, to a step of its column where its bin and the others let it."""
    rounded = dict(values)
    for name, column in columns.items():
        step, own = column.step, values[name].astype(np.float64)
        first, last = (end[codes[name]] for end in drawn_ends(column))
        for steps in (step_from(own, step), -step_from(-own, step)) if step else ():
            tried = rounded | {name: multiple(steps, step) + 0.0}  # not −0
            fits = (first <= tried[name]) & (tried[name] <= last) & ~absent[name]
            for low, high in [pair for pair in pairs if name in pair]:
                fits &= (tried[low] <= tried[high]) | absent[low] | absent[high]
            rounded[name] = np.where(fits, tried[name], rounded[name]).astype(rounded[name].dtype)
    return rounded


def ascending(values: Sequence[NDArray[Any]], absent: Sequence[Flags]) -> list[NDArray[Any]]:
    """The values of some columns, exchanged within each row so that those present ascend.

    Values of bins that ascend stay in their bins.
    """
    columns = [np.array(v) for v in values]
    for last in range(len(columns), 1, -1):
        for low in range(last - 1):
            for high in range(low + 1, last):
                swap = (columns[low] > columns[high]) & ~absent[low] & ~absent[high]
                columns[low], columns[high] = (
                    np.where(swap, columns[high], columns[low]),
                    np.where(swap, columns[low], columns[high]),
                )
    return columns


def about_constants(
    values: Sequence[NDArray[Any]], absent: Sequence[Flags], constant: Sequence[bool], owners: NDArray[Any]
) -> list[NDArray[Any]]:
    """The values of columns, some constant in a person, changed so that they ascend in every record.

    A constant before all others goes down to the least value of its person's records, and smaller ones go up to it: two
    values change places; one behind all others likewise. One between others goes to them, and what still descends to
    it. The order of a person's records stays, and values of bins that ascend stay in these.

    Args:
        values: (records,) each; a constant's the same in all records of a person.
        owners: (records,) whose they are; those of a person stand together.
    """
    columns = ascending(values, [a | c for a, c in zip(absent, constant, strict=True)])
    fixed, moving = ([i for i, c in enumerate(constant) if c == own] for own in (True, False))
    starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: owners.size])
    turns = [(place, columns[place]) for place in fixed]
    for place in fixed:
        own = old = columns[place]
        for other in moving:
            limit, none = (np.minimum, np.inf) if other > place else (np.maximum, -np.inf)
            seen = limit.reduceat(np.where(absent[other], none, columns[other]), starts)
            own = limit(own, np.repeat(seen, np.diff(starts, append=owners.size)))
        columns[place] = np.where(absent[place], old, own).astype(old.dtype)
    columns = ascending(columns, [a | (not c) for a, c in zip(absent, constant, strict=True)])
    for place, turn in [*turns, *((place, columns[place]) for place in fixed)]:
        for other in moving:
            limited = (np.maximum if other > place else np.minimum)(columns[other], turn)
            columns[other] = np.where(absent[place], columns[other], limited)
    return columns


def all_ascending(
    groups: Sequence[Sequence[str]],
    values: Mapping[str, NDArray[Any]],
    absent: Mapping[str, Flags],
    constants: Collection[str],
    owners: NDArray[Any],
) -> dict[str, NDArray[Any]]:
    """Values by column, changed so that each group of columns ascends, as of `about_constants`.

    A group may undo another that shares a column: all of them come again, as often as there are groups.
    """
    changed = dict(values)
    for names in [*groups] * len(groups):
        own = [n in constants for n in names]
        changed_by_unit = about_constants([changed[n] for n in names], [absent[n] for n in names], own, owners)
        changed.update(zip(names, changed_by_unit, strict=True))
    return changed


def parse_ordered(
    given: object, columns_by_name: Mapping[str, Column], constants: Collection[str], where: str
) -> tuple[tuple[Ordered, ...], list[Any]]:
    """`ordered: [[received, dispatched, on_scene]]`.

    Args:
        constants: columns that are constant in a person.

    Raises:
        UserError: an unknown column, columns that have no order, constants of persons with other bins, or groups of
            which one goes on another without its columns.
    """
    if given is None:
        return (), []
    groups = given if isinstance(given, list | tuple) else [given]
    parsed = []
    for group in groups:
        if not isinstance(group, list | tuple) or len(group) < 2 or len(set(map(str, group))) < len(group):
            fix = "lists of two or more columns: ordered: [[received, dispatched]]"
            raise UserError(f"ordered: got {group!r}", where=where, fix=fix)
        columns = [column_of_rule(str(n), columns_by_name, "ordered", where) for n in group]
        first = columns[0]
        alike = all(c.labels == first.labels for c in columns)
        for column in columns:
            cyclic = column.bins is not None and column.bins.calendar in CYCLIC
            problem = f"ordered: column {column.name!r} has no order, or is of another kind than {first.name!r}"
            if column.kind not in ORDERED_KINDS or cyclic or column.kind != first.kind:
                fix = (
                    "numbers, dates or times of one kind; kind: date reads the day of a time, derive: length takes both"
                )
                raise UserError(problem, where=where, fix=fix)
            check_cells((first.size, column.size), "ordered", where)
        if not alike and (fixed := [c.name for c in columns if c.name in constants]):
            fields = ", ".join(f"{k}: {_as_yaml(v)}" for k, v in common_bins(columns).items())
            problem = f"ordered: {fixed[0]!r} is constant in a person, and other columns have other bins"
            raise UserError(problem, where=where, fix=f"the same bins in all of them: {{{fields}}} fits")
        steps = {c.step for c in columns}
        parsed.append(Ordered(tuple(c.name for c in columns), alike and len(steps) == 1))
    pairs = [pair for group in parsed for pair in group.pairs]
    try:
        TopologicalSorter({high: [a for a, b in pairs if b == high] for _, high in pairs}).prepare()
    except CycleError as error:
        raise UserError(f"ordered: {' before '.join(error.args[1])}", where=where, fix="groups that agree") from None
    for (low, middle), (same, high) in itertools.product(pairs, repeat=2):
        chain = [columns_by_name[n] for n in (low, middle, high)]
        if middle != same or (low, high) in pairs or chain[0].high <= chain[2].low:
            continue
        if any(c.labels != chain[0].labels for c in chain):
            problem = f"ordered: {low!r} to {middle!r} and {middle!r} to {high!r} in two groups, with other bins"
            raise UserError(problem, where=where, fix=f"one group: [{low}, {middle}, {high}]")
    return tuple(parsed), [list(o.columns) for o in parsed]


def _as_yaml(value: object) -> str:
    """A field as YAML's short form has it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_as_yaml(v)}' for k, v in value.items())}}}"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
