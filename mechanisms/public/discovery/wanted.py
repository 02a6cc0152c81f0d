"""What is to be discovered of one column, as a question to its rows."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.public.discovery.leaf_tree import LeafTree
from mechanisms.public.discovery.unit_sizes import SizeQuestion

#: Ids of the charges begin so.
DISCOVERY = "discovery:"
VALUES = "values"


@dataclass(frozen=True)
class Wanted:
    """One question.

    Attributes:
        column: its name; OF_UNITS where it is how many records of a unit count.
        what: bounds, bins or both, which one answer tells; or values; or max_records.
        tree: of bounds and bins: what is counted; None for others.
        sizes: of max_records: what is counted; None for others.
    """

    column: str
    what: tuple[str, ...]
    tree: LeafTree | None = None
    sizes: SizeQuestion | None = None

    @property
    def of_values(self) -> bool:
        """Whether texts are asked for, which need a threshold."""
        return self.tree is None and self.sizes is None

    @property
    def event(self) -> str:
        """The ledger's name of the charge."""
        return f"{DISCOVERY}{self.column}"
