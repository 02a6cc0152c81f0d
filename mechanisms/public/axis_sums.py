"""Sums of a table over its middle axis, and back, in compiled loops: any axis is the middle of three."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mechanisms.public.jit import compiled, compiled_with

Numbers = NDArray[Any]  # whole or floating-point, as given


@compiled_with(fastmath={"reassoc", "contract", "nsz"})
def sum_middle(table: Numbers, out: Numbers) -> None:
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
def add_middle(table: Numbers, more: Numbers) -> None:
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
