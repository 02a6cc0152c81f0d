"""Sums of a table over some of its axes, and back, in compiled loops: any axis is the middle of three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_with

Numbers = NDArray[Any]  # whole or floating-point, as given


@compiled_with(fastmath={"reassoc", "contract", "nsz"})
def _sum_middle(table: Numbers, out: Numbers) -> None:
    """The sums of a table of three axes over its middle one."""
    before, along, behind = table.shape
    if behind == 1:
        for i in range(before):
            total = table[i, 0, 0]
            for j in range(1, along):
                total += table[i, j, 0]
            out[i, 0] = total
        return
    for i in range(before):
        for k in range(behind):  # element by element: an assignment of rows compiles checks of shapes for seconds
            out[i, k] = table[i, 0, k]
        for j in range(1, along):
            for k in range(behind):
                out[i, k] += table[i, j, k]


@compiled
def _add_middle(table: Numbers, more: Numbers) -> None:
    """Add to a table of three axes one that lacks the middle one."""
    before, along, behind = table.shape
    if behind == 1:
        for i in range(before):
            for j in range(along):
                table[i, j, 0] += more[i, 0]
        return
    for i in range(before):
        for j in range(along):
            for k in range(behind):
                table[i, j, k] += more[i, k]


def summed_over(table: Numbers, gone: Sequence[int]) -> Numbers:
    """The sums over some axes; C-contiguous in and out."""
    for axis in reversed(gone):
        shape = table.shape
        out = np.empty((math.prod(shape[:axis]), math.prod(shape[axis + 1 :])), table.dtype)
        _sum_middle(table.reshape(len(out), shape[axis], -1), out)
        table = out.reshape(shape[:axis] + shape[axis + 1 :])
    return table


def add_over(table: Numbers, slope: Numbers, gone: Sequence[int]) -> None:
    """Add to a table, along some axes, one that lacks them."""
    if not gone:
        table += slope
        return
    for axis in gone[:-1]:
        slope = np.repeat(np.expand_dims(slope, axis), table.shape[axis], axis)
    axis = gone[-1]
    outer = math.prod(table.shape[:axis])
    _add_middle(table.reshape(outer, table.shape[axis], -1), slope.reshape(outer, -1))
