"""What is written as JSON, and read back: values by name, on whose kinds mypy has no say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard

#: A part of a file that was read, or is to be written.
Json: TypeAlias = Mapping[str, Any]
#: The same while it is made.
JsonDict: TypeAlias = dict[str, Any]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf
