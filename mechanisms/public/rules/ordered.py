"""ordered: columns whose values ascend in every row, such as the times of one event after the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.rules.combinations import check_cells, known_column
from mechanisms.public.rules.structural_zeros import Zeros, permuted
from mechanisms.public.schema.bins import CYCLIC
from mechanisms.public.schema.code_labels import common_bins
from mechanisms.public.schema.column import ORDERED_KINDS, Column

#: Yes or no for each row.
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Ordered:
    """Columns of one kind and the same bins; where two of them hold a value, the earlier column's is not larger.

    Attributes:
        columns: from the least to the largest.
        values: how many codes of each are values; the codes behind them have no order.
    """

    columns: tuple[str, ...]
    values: int

    def zeros(self, domain: Domain) -> list[Zeros]:
        """Descending pairs of bins as structural zeros."""
        zeros = []
        for place, first in enumerate(self.columns):
            for second in self.columns[place + 1 :]:
                cells = np.zeros(domain.shape((first, second)), np.bool_)
                cells[: self.values, : self.values] = np.tri(self.values, k=-1, dtype=np.bool_)
                zeros.append(permuted(domain, (first, second), cells.ravel()))
        return zeros


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
        made = about_constants([changed[n] for n in names], [absent[n] for n in names], own, owners)
        changed.update(zip(names, made, strict=True))
    return changed


def parse_ordered(
    given: object, columns_by_name: Mapping[str, Column], where: str
) -> tuple[tuple[Ordered, ...], list[Any]]:
    """`ordered: [[received, dispatched, on_scene]]`.

    Raises:
        UserError: an unknown column, or columns whose bins differ or have no order.
    """
    if given is None:
        return (), []
    groups = given if isinstance(given, list | tuple) else [given]
    parsed = []
    for group in groups:
        if not isinstance(group, list | tuple) or len(group) < 2 or len(set(map(str, group))) < len(group):
            fix = "lists of two or more columns: ordered: [[received, dispatched]]"
            raise UserError(f"ordered: got {group!r}", where=where, fix=fix)
        columns = [known_column(str(n), columns_by_name, "ordered", where) for n in group]
        first = columns[0]
        for column in columns:
            cyclic = column.bins is not None and column.bins.calendar in CYCLIC
            problem = f"ordered: column {column.name!r} has no order, or other bins than {first.name!r}"
            if column.kind not in ORDERED_KINDS or cyclic or column.kind != first.kind:
                fix = "numbers, dates or times of one kind with the same bins in all of them"
                raise UserError(problem, where=where, fix=fix)
            if column.labels != first.labels:
                fields = ", ".join(f"{k}: {_said(v)}" for k, v in common_bins(columns).items())
                raise UserError(problem, where=where, fix=f"the same bins in all of them: {{{fields}}} fits")
        check_cells((first.size, first.size), "ordered", where)
        parsed.append(Ordered(tuple(c.name for c in columns), first.value_codes))
    return tuple(parsed), [list(o.columns) for o in parsed]


def _said(value: object) -> str:
    """A field as YAML's short form has it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_said(v)}' for k, v in value.items())}}}"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
