"""Marginals that may be chosen, and what a model says about them: public words of private choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mechanisms.public.arrays import Floats
from mechanisms.public.domain import Clique
from mechanisms.public.queries.query_matrices import QueryMatrix

#: What a model says about a marginal: clique → expected records per cell, flattened in C order.
Expected = Callable[[Clique], Floats]


@dataclass(frozen=True)
class Candidate:
    """A marginal that may be chosen, with what is public about its score.

    The score is weight · (Σ max(|Q(counts − expected)| − below, 0) − penalty).

    Attributes:
        clique: the marginal.
        query: Q: entries 0 and 1, at most one per column (None: the identity).
        weight: how much the marginal matters; rounded to a multiple of 2**-16.
        penalty: what its own noise would add, in records.
        below: differences up to so many records in a cell count as none.
    """

    clique: Clique
    query: QueryMatrix | None = None
    weight: float = 1.0
    penalty: float = 0.0
    below: float = 0.0
