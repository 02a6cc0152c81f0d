"""Compiled loops: numba is loaded by the first call, and what it compiled is kept where a folder can be written to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

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
