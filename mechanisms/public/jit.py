"""Compiled loops whose compilation is kept between runs where a folder can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """numba's njit without the global lock; cached on disk, or in memory alone where no cache can be written."""
    try:
        result: F = numba.njit(function, cache=True, nogil=True)
    except RuntimeError:
        result = numba.njit(function, nogil=True)
    return result
