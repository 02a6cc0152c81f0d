"""The histogram of records per unit: what `unit_id: {records: measured}` asks of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.units import Neighbouring, Norm

#: Ids of the charges begin so.
UNITS = "units:"


@dataclass(frozen=True)
class RecordsPerUnit:
    """How many units have R records, for R = 1 … C; a unit with more counts under C, as its clipped records do.

    A unit stands in one cell with weight 1, however many records it has, so that C does not multiply the sensitivity.

    Attributes:
        name: of the ids' column.
        max_records: C.
        share: its part of the budget, in the accountant's additive currency.
    """

    purpose: ClassVar[Literal["histogram"]] = "histogram"
    name: str
    max_records: int
    share: float

    @property
    def label(self) -> tuple[str]:
        """What stands for the marginal's columns in plans and statements."""
        return (f"records per {self.name}",)

    @property
    def event(self) -> str:
        return f"{UNITS}{self.name}"

    @property
    def query(self) -> Identity:
        return Identity(self.max_records)

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
        """The most that one unit changes, at any C: 1 under `add_remove`; 2 (L1) or √2 (L2) under `replace`."""
        return sensitivity(self.query, norm=norm, neighbouring=neighbouring, max_records=1)
