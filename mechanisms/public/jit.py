"""Compiled loops: numba is loaded by the first call, its code is kept; and sums over some axes of a table by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])


class Compiled:
    """A loop that becomes machine code when it is first called: who only names it does not load numba.

    numba takes the loops that a loop calls as it made them, so that these are compiled with it.

    Attributes:
        py_func: the loop in Python, named as numba names it.
        options: of njit.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self.py_func, self.options = function, options
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return (self.py_func if "no_cpython_wrapper" in self.options else self.loop)(*arguments)

    @cached_property
    def loop(self) -> Callable[..., Any]:
        """What numba made of it; cached on disk, or in memory alone where no cache can be written."""
        import numba

        own = self.py_func
        names = {name: own.__globals__.get(name) for name in own.__code__.co_names}
        called = {name: other.loop for name, other in names.items() if isinstance(other, Compiled)}
        if called:
            own = FunctionType(own.__code__, own.__globals__ | called, own.__name__, own.__defaults__, own.__closure__)
            update_wrapper(own, self.py_func)
        try:
            machine_code = numba.njit(own, cache=True, nogil=True, no_cfunc_wrapper=True, **self.options)
        except RuntimeError:
            machine_code = numba.njit(own, nogil=True, no_cfunc_wrapper=True, **self.options)
        if numba.config.DISABLE_JIT:
            return cast("Callable[..., Any]", machine_code)
        typed, plain = machine_code.get_call_template, numba.types.unliteral
        # A loop that others call with constants is compiled for their type, not again for each constant.
        machine_code.get_call_template = lambda arguments, named: typed(
            [plain(a) for a in arguments], {name: plain(a) for name, a in named.items()}
        )
        return cast("Callable[..., Any]", machine_code)


def compiled(function: F) -> F:
    """numba's njit without the global lock, at the first call."""
    return compiled_with()(function)


def compiled_with(**options: Any) -> Callable[[F], F]:
    """The same with further options of njit: ``parallel=True``, ``fastmath={"contract"}``."""

    def wrap(function: F) -> F:
        return cast("F", Compiled(cast("FunctionType", function), options))

    return wrap


#: Of loops that make no array: numba then counts no references to those handed on, which takes half of a short loop.
compiled_uncounted = compiled_with(_nrt=False)
#: The same, called by other loops alone: from Python they run as Python, since each way in compiles them once more.
#: They stand inline where they are called: to hand on many arrays takes a third of what is left.
compiled_in_place = compiled_with(_nrt=False, forceinline=True, no_cpython_wrapper=True)


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
