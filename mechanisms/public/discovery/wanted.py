"""What is to be discovered of one column, as a question to its rows."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.public.discovery.leaf_tree import LeafTree

#: Ids of the charges begin so.
DISCOVERY = "discovery:"
VALUES = "values"


@dataclass(frozen=True)
class Wanted:
    """One question.

    Attributes:
        column: its name.
        what: bounds, bins or both, which one answer tells; or values.
        tree: of bounds and bins: what is counted; None for values.
    """

    column: str
    what: tuple[str, ...]
    tree: LeafTree | None = None

    @property
    def event(self) -> str:
        """The ledger's name of the charge."""
        return f"{DISCOVERY}{self.column}"
