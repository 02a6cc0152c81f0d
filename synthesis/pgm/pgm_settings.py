"""The synthesizer `pgm`: a graphical model is fitted to all noisy answers and sampled (McKenna et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.evidence import gathered
from synthesis.consistency.residual_parts import completed
from synthesis.contract import Synthesizer, row_bytes
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros
from synthesis.pgm.graphical_model import GraphicalModel, fit_model
from synthesis.pgm.junction_tree import fit_cliques, junction_tree, model_cells
from synthesis.pgm.model_settings import ModelSettings
from synthesis.pgm.usefulness import usefulness


@dataclass(frozen=True)
class PgmSpec(ModelSettings, Synthesizer):
    """Settings of the graphical model, as in `ModelSettings`."""

    chunked: ClassVar[bool] = True

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """Rows drawn from the model."""
        model = self.model(measurements, zeros=zeros, progress=progress)
        return Synthesized(model.rows(rows, rng), fit=model.fit)

    def model(
        self, measurements: Measurements, *, zeros: Zeros = (), progress: Progress | None = None
    ) -> GraphicalModel:
        """The fitted model, of what it has room for."""
        held = self.held(measurements, [c for c, _ in zeros])
        return fit_model(held, self, impossible=zeros, progress=progress)

    def held(self, measurements: Measurements, fixed: Sequence[Clique] = ()) -> Measurements:
        """All answers; where their model is larger than `max_cells`, those that are most useful to it."""
        domain = measurements.domain
        if model_cells(domain, [*(a.clique for a in measurements.answers), *fixed]) <= self.max_cells:
            return measurements
        evidence = gathered(domain, completed(measurements).answers)
        useful, _ = usefulness(measurements, evidence)
        inside = set(fit_cliques(domain, [e.clique for e in evidence], useful, self.max_cells, fixed=fixed)[0])
        return replace(measurements, answers=tuple(a for a in measurements.answers if a.clique in inside))

    @property
    def max_model_cells(self) -> int:
        """Of the settings."""
        return self.max_cells

    @property
    def model_settings(self) -> ModelSettings:
        """These."""
        return self

    def predicted_bytes(
        self, domain: Domain, cliques: Sequence[Clique], rows: int, *, fixed: Sequence[Clique] = (), grown: int = 0
    ) -> int:
        """The rows, fourteen arrays per cell of the junction tree, and three per cell measured.

        Raises:
            UserError: a model with more cells than `max_cells`, naming marginals to drop.
        """
        tree = junction_tree(domain, cliques, fixed=fixed, max_cells=self.max_cells)
        measured = sum(domain.cells(c) for c in cliques)
        return row_bytes(domain, rows) + 14 * 8 * max(tree.cells, grown) + 3 * 8 * measured
