"""What methods share that release the noisy distances of all pairs, and spend a reserve on what these decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.accounting.plan import Reservation
from mechanisms.public.domain import Clique, Domain
from mechanisms.selection.base import SCORES, Method, one_way_slots

#: What the parts of the budget are for.
SCORED_STAGES = ("one-way", "scores", "measurement")
#: What a message says of `combine_cells`.
COMBINED = "0: pairs stay pairs"


@dataclass(frozen=True)
class ScoredPairs(Method):
    """One-way marginals, noisy distances of all candidates from independence, then a round out of the reserve.

    Attributes:
        candidates: the pairs that are scored; empty: the one-way marginals are measured twice.
        combine_cells: overlapping pairs become marginals of at most so many cells; 0: they stay pairs.
    """

    candidates: tuple[Clique, ...]
    combine_cells: int = 1_000

    def slots(self, domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """One-way marginals, all distances from independence at once, and the part of the budget for what is chosen.

        Args:
            split: parts of the budget for the three stages; the first is shared out by cells^(2/3).
        """
        slots = one_way_slots(domain, split[0])
        if self.candidates:
            slots.append(Reservation(SCORES, None, 0, split[1], len(self.candidates)))
        return slots, split[2]

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """Every candidate, at the size that it may be combined to."""
        bounds = super().later_cells(domain, slots)
        return bounds + [(" × ".join(c), max(domain.cells(c), self.combine_cells)) for c in self.candidates]

    @property
    def reported(self) -> Sequence[Clique]:
        return self.candidates
