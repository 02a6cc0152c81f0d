"""What is to be discovered of one column, as a question to its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mechanisms.public.discovery.leaf_tree import LeafTree
from mechanisms.public.discovery.unit_sizes import SizeQuestion
from mechanisms.public.json_values import JsonDict
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, sensitivity
from mechanisms.public.units import WEIGHT_BITS, Neighbouring, Norm

#: Ids of the charges begin so.
DISCOVERY = "discovery:"
VALUES = "values"


def union_sensitivity(norm: Norm, neighbouring: Neighbouring) -> float:
    """The most by which the weights of all values move when one unit changes.

    A unit's weights are a vector of norm at most 1 and without negative entries: 1 under `add_remove`; under `replace`
    two such vectors are exchanged, at most as far apart as two that share no value: 2 (L1) or √2 (L2).
    """
    return sensitivity(Identity(2), norm=norm, neighbouring=neighbouring, max_records=1)


@dataclass(frozen=True)
class Wanted:
    """One question, and once it is planned, what is released of its answer.

    Attributes:
        column: its name; OF_UNITS where it is how many records of a unit count.
        what: bounds, bins or both, which one answer tells; or values; or max_records.
        tree: of bounds and bins: what is counted; None for others.
        sizes: of max_records: what is counted; None for others.
        most: so many values of one unit count at most.
        threshold: of values: the noisy weight, in units of 2**-WEIGHT_BITS, from which on one is released.
        once: of a constant of the schema's unit: each unit counts once, however many records it has.
        noise: of max_records: Σ |noise| of a marginal at C = 1, in records, that the rest of the budget leaves to
            expect. It says what C costs, and is no matter of privacy.
    """

    purpose: ClassVar[Literal["discover"]] = "discover"
    column: str
    what: tuple[str, ...]
    tree: LeafTree | None = None
    sizes: SizeQuestion | None = None
    most: int = 0
    threshold: int | None = None
    noise: float = 0.0
    once: bool = False

    @property
    def of_values(self) -> bool:
        """Whether texts are asked for, which need a threshold."""
        return self.tree is None and self.sizes is None

    @property
    def event(self) -> str:
        return f"{DISCOVERY}{self.column}"

    @property
    def query(self) -> QueryMatrix | None:
        """What is asked of the counts; None of values."""
        return self.sizes.query if self.sizes else self.tree.query if self.tree else None

    @property
    def shape(self) -> tuple[int, int]:
        """Cells that are counted, but for those that no answer tells; and answers."""
        if self.tree is not None:
            return self.tree.leaves, self.tree.query.rows
        return (0, 0) if self.sizes is None else (self.sizes.query.columns, self.sizes.query.rows)

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
        """The most by which the answers (counts of records or units, weights of values) move when one unit changes."""
        if self.sizes is not None:
            return self.sizes.sensitivity(norm=norm, neighbouring=neighbouring)
        if self.tree is None:
            return union_sensitivity(norm, neighbouring)
        most = 1 if self.once else max_records
        return sensitivity(self.tree.query, norm=norm, neighbouring=neighbouring, max_records=most)

    def to_json(self) -> JsonDict:
        """What `verify` needs to compute the sensitivity and the threshold again, as JSON values."""
        asked: JsonDict = {"column": self.column, "what": list(self.what)} | ({"constant": True} if self.once else {})
        if self.tree is not None:
            asked |= {"leaves": self.tree.leaves, "specials": self.tree.specials}
        if self.sizes is not None:
            asked |= {"cap": self.sizes.cap, "noise_per_record": self.noise}
            asked |= {} if self.sizes.lost == 1 else {"lost_record": self.sizes.lost}
        if self.threshold is not None:
            asked |= {"values_per_unit": self.most, "threshold": self.threshold * 2.0**-WEIGHT_BITS}
        return asked
