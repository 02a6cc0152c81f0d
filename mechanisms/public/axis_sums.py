"""Sums of a table over some of its axes, and back, in compiled loops: any axis is the middle of three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
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


@lru_cache(maxsize=4096)
def _blocks(shape: tuple[int, ...], gone: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Axes that go, neighbours as one, first to last: cells before them, along them, and behind them that stay."""
    blocks, behind, axis = [], 1, len(shape)
    while axis:
        end = axis
        while axis and axis - 1 in gone:
            axis -= 1
        if axis < end:
            blocks.append((math.prod(shape[:axis]), math.prod(shape[axis:end]), behind))
        else:
            axis -= 1
            behind *= shape[axis]
    return tuple(reversed(blocks))


def summed_over(table: Numbers, gone: Sequence[int]) -> Numbers:
    """The sums over some axes; C-contiguous in and out."""
    shape = table.shape
    for before, along, behind in reversed(_blocks(shape, tuple(gone))):
        out = np.empty((before, behind), table.dtype)
        _sum_middle(table.reshape(before, along, behind), out)
        table = out
    return table.reshape([size for axis, size in enumerate(shape) if axis not in gone]) if gone else table


def add_over(table: Numbers, slope: Numbers, gone: Sequence[int]) -> None:
    """Add to a table, along some axes, one that lacks them."""
    *earlier, (before, along, behind) = _blocks(table.shape, tuple(gone)) or ((table.size, 1, 1),)
    for outer, repeats, inner in earlier:
        slope = np.repeat(slope.reshape(outer, 1, inner), repeats, 1)
    _add_middle(table.reshape(before, along, behind), slope.reshape(before, behind))
