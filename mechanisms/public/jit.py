"""Compiled loops whose compilation is kept between runs where a folder can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """numba's njit without the global lock; cached on disk, or in memory alone where no cache can be written."""
    return compiled_with()(function)


def compiled_with(**options: Any) -> Callable[[F], F]:
    """The same with further options of njit: ``parallel=True``, ``fastmath={"contract"}``."""

    def wrap(function: F) -> F:
        try:
            result: F = numba.njit(function, cache=True, nogil=True, **options)
        except RuntimeError:
            result = numba.njit(function, nogil=True, **options)
        return result

    return wrap
