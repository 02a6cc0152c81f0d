"""Rows from one-way marginals alone: the baseline that keeps no correlation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique
from mechanisms.public.progress import Progress
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from synthesis.by_targets import ByTargets
from synthesis.consistency.agree import Targets, consistent
from synthesis.consistency.projection import product
from synthesis.convergence import Synthesized
from synthesis.rounding import codes_of


@dataclass(frozen=True)
class IndependentSpec(ByTargets):
    """Rows from one-way marginals alone."""

    def follow(
        self, targets: Targets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """Independent columns."""
        return Synthesized(independent_rows(targets, rows=rows, rng=rng))


def independent_rows(targets: Targets, *, rows: int, rng: np.random.Generator) -> CodedTable:
    """`rows` rows whose columns follow their one-way marginals, independent of each other.

    Cost: rows × columns.
    """
    domain = targets.domain
    columns = tuple(codes_of(targets.one_way(a.name), rows, rng).astype(code_dtype(a.size)) for a in domain.attributes)
    return CodedTable(domain, columns)


def independent_marginals(measurements: Measurements) -> Callable[[Clique], NDArray[np.float64]]:
    """Any marginal as the product of the whole one-way marginals measured, in records, flattened in C order.

    Guarantee: post-processing; costs no privacy.
    Args:
        measurements: answers to other queries are passed over; a column without an answer counts as uniform.
    """
    whole = tuple(a for a in measurements.answers if len(a.clique) == 1 and isinstance(a.query, Identity))
    targets = consistent(Measurements(measurements.domain, whole, measurements.public_total))
    sides = {a.name: targets.one_way(a.name) for a in measurements.domain.attributes}

    def marginal(clique: Clique) -> NDArray[np.float64]:
        if not targets.total > 0:
            return np.zeros(measurements.domain.cells(clique))
        return product([sides[n] for n in clique], targets.total).ravel()

    return marginal
