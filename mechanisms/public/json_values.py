"""What is written as JSON, and read back: values by name, on whose kinds mypy has no say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: A part of a file that was read, or is to be written.
Json: TypeAlias = Mapping[str, Any]
#: The same while it is made.
JsonDict: TypeAlias = dict[str, Any]
