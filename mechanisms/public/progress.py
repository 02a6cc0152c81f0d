"""How a long stage says how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the steps done, of how many (0: unknown), and a note that holds nothing private."""

    def __call__(self, done: int, total: int, note: str = "", /) -> None: ...
