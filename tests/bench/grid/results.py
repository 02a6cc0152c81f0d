"""Results on disk: one line of JSON per run, appended as it ends, so that an interrupted grid goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Run(NamedTuple):
    """One run: a method on a table, at an ε, with the seed of its noise (and of a drawn table)."""

    table: str
    method: str
    epsilon: float
    seed: int


class Results:
    """The file of results. A run that is measured again replaces the older line when the file is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, dict[Run, dict[str, Any]]()
        for row in _lines(path):
            self.rows[_key(row)] = row

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one result; on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows[_key(row)] = dict(row)


def _key(row: Mapping[str, Any]) -> Run:
    return Run(row["table"], row["method"], float(row["epsilon"]), int(row["seed"]))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of results; half a line at its end, of an interrupted call, is cut off."""
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    for line in whole.splitlines():
        yield json.loads(line)
