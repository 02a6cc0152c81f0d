"""Where the table of units lies, beside that of the records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class UnitsConfig:
    """A table with one row for each unit; None: there is none, and the records hold all columns.

    Attributes:
        path: its file, as that of the records.
        id: its column of ids; None: named as in the records.
    """

    path: str | None = None
    id: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Its file, where there is one."""
        return () if not self.path else (Path(self.path).expanduser(),)
