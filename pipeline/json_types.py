"""JSON objects as Python holds them: to look at, and to make; their keys are told where they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
JsonDict: TypeAlias = dict[str, Any]
