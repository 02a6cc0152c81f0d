"""Products with adaptive grids in compiled loops: the marginal summed step by step, cells taken out on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.axis_sums import Numbers, add_middle, sum_middle
from mechanisms.public.jit import compiled

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Program:
    """Steps over one buffer of tables: sum an earlier table over an axis, then take cells out of the sums.

    Attributes:
        sums: per step where its source starts (-1: the marginal itself), the source's cells before, along and behind
            the axis, and where its own table starts.
        stops: per step where its part of `cells` ends.
        cells: places in the buffer that are taken out, step after step.
        rows: the answers that they are; -1: taken out without being asked for.
        size: length of the buffer; `answers`: the number of rows.
    """

    sums: Ints
    stops: Ints
    cells: Ints
    rows: Ints
    size: int
    answers: int

    def answer(self, marginal: Numbers) -> Numbers:
        """The 0/1 structure times a marginal (flat)."""
        buffer, out = np.empty(self.size, marginal.dtype), np.zeros(self.answers, marginal.dtype)
        buffer[: marginal.size] = marginal
        _answer(self.sums, self.stops, self.cells, self.rows, buffer, out)
        return out

    def transpose(self, answers: Numbers, columns: int) -> Numbers:
        """The structure's transpose times one number per row: a marginal (flat) of so many cells."""
        buffer = np.zeros(self.size, answers.dtype)
        _transpose(self.sums, self.stops, self.cells, self.rows, answers, buffer)
        return buffer[:columns]


@dataclass
class Writer:
    """Makes a program, step by step."""

    size: int = 0
    sums: list[tuple[int, ...]] = field(default_factory=list)
    cells: list[Ints] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)

    def start(self, cells: int) -> int:
        """The marginal itself, in the buffer's first cells."""
        self._add((-1, 0, 0, 0, 0), cells)
        return 0

    def summed(self, source: int, shape: Sequence[int], axes: Sequence[int]) -> int:
        """A table summed over some axes, one after the other; where the sums start."""
        left = list(shape)
        for axis in sorted(axes, reverse=True):
            before, along, behind = math.prod(left[:axis]), left[axis], math.prod(left[axis + 1 :])
            place = self.size
            self._add((source, before, along, behind, place), before * behind)
            source = place
            del left[axis]
        return source

    def take(self, place: int, fine: Ints, rows: Ints) -> None:
        """Take cells out of the table made last, which starts at `place`."""
        self.cells[-1], self.rows[-1] = fine + place, rows

    def program(self, answers: int) -> Program:
        stops = np.cumsum([c.size for c in self.cells])
        cells, rows = np.concatenate(self.cells), np.concatenate(self.rows)
        return Program(np.array(self.sums, np.int64), stops.astype(np.int64), cells, rows, self.size, answers)

    def _add(self, step: tuple[int, ...], cells: int) -> None:
        self.sums.append(step)
        self.cells.append(np.empty(0, np.int64))
        self.rows.append(np.empty(0, np.int64))
        self.size += cells


@compiled
def _answer(sums: Ints, stops: Ints, cells: Ints, rows: Ints, buffer: Numbers, out: Numbers) -> None:
    first = 0
    for step in range(len(sums)):
        source, before, along, behind, place = sums[step]
        if source >= 0:
            table = buffer[source : source + before * along * behind].reshape((before, along, behind))
            sum_middle(table, buffer[place : place + before * behind].reshape((before, behind)))
        for k in range(first, stops[step]):
            if rows[k] >= 0:
                out[rows[k]] = buffer[cells[k]]
            buffer[cells[k]] = 0
        first = stops[step]


@compiled
def _transpose(sums: Ints, stops: Ints, cells: Ints, rows: Ints, answers: Numbers, buffer: Numbers) -> None:
    for step in range(len(sums) - 1, -1, -1):
        source, before, along, behind, place = sums[step]
        for k in range(stops[step - 1] if step else 0, stops[step]):
            buffer[cells[k]] = answers[rows[k]] if rows[k] >= 0 else 0
        if source >= 0:
            table = buffer[source : source + before * along * behind].reshape((before, along, behind))
            add_middle(table, buffer[place : place + before * behind].reshape((before, behind)))
