"""Synthesizers that take consistent marginals alone; over merged values first where answers merge some."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.agree import ConsistentTargets, consistent
from synthesis.consistency.merged_values import Groups, compressed, expanded, merged_values, one_way_counts, rare_zeros
from synthesis.consistency.residual_parts import completed
from synthesis.contract import Synthesizer
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros


@dataclass(frozen=True)
class ByTargets(Synthesizer):
    """Rows by way of consistent marginals (Li et al. 2021b, section 5.3)."""

    #: Below which noisy counts values may never occur: in standard deviations, and in records; see `rare_zeros`.
    rare, floor = 0.0, 0.0

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows that follow the consistent marginals; columns that a rule names keep their values apart."""
        groups = merged_values(measurements, apart={name for clique, _ in zeros for name in clique})
        reduced = compressed(completed(measurements), groups) if groups else measurements
        never = rare_zeros(measurements, groups, rare=self.rare, floor=self.floor)
        targets = consistent(reduced, zeros=[*zeros, *never])
        synthesized = (self.over(groups) if groups else self).follow(targets, rows=rows, rng=rng, progress=progress)
        counts = one_way_counts(measurements, groups)
        return replace(synthesized, table=expanded(synthesized.table, measurements.domain, groups, counts, rng))

    def over(self, groups: Groups) -> ByTargets:
        """The same settings where some values are merged."""
        return self

    @abstractmethod
    def follow(
        self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator, progress: Progress | None = None
    ) -> Synthesized:
        """So many rows over the domain of the targets."""
