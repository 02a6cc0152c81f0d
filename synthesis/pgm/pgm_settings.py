"""The synthesizer `pgm`: a graphical model is fitted to all noisy answers and sampled (McKenna et al. 2019).

Where it has no room for all that were measured, it holds the marginals that are most useful to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.designs.pair_view import heaviest_forest
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from synthesis.consistency.evidence import Evidence, gathered
from synthesis.consistency.projection import soften
from synthesis.consistency.residual_parts import completed
from synthesis.contract import Synthesizer, row_bytes
from synthesis.convergence import Synthesized
from synthesis.impossible import Zeros
from synthesis.independent import independent_marginals
from synthesis.pgm.graphical_model import GraphicalModel, ModelSettings, fit_model
from synthesis.pgm.junction_tree import fit_cliques, junction_tree, model_cells


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


def usefulness(measurements: Measurements, evidence: Sequence[Evidence]) -> tuple[list[float], list[int]]:
    """How useful each marginal is, in records; and which of them are the forest of most dependence.

    Columns; a forest of the pairs whose answers show the most dependence; and what else does. A triple of large columns
    would take the room of many pairs without which columns are not joined at all.

    Guarantee: post-processing; costs no privacy.
    """
    independent, cliques = independent_marginals(measurements), [e.clique for e in evidence]
    useful = [math.inf if len(e.clique) < 2 else _shown(e, independent(e.clique)) for e in evidence]
    pairs = [i for i, c in enumerate(cliques) if len(c) == 2]
    forest = [pairs[i] for i in heaviest_forest([cliques[i] for i in pairs], [useful[i] for i in pairs])]
    most = max((u for u in useful if u < math.inf), default=0.0)
    for i in forest:
        useful[i] += most
    return useful, forest


def _shown(evidence: Evidence, independent: Floats) -> float:
    """How much dependence the answers show beyond their noise: L1, in records where each cell is an answer.

    Two tables of one total differ by as much above as below. Where near copies meet, few cells rise, far out of noise,
    and what they rise by is missing in many others, too little in each to be seen: it counts as if it were.
    """
    expected = evidence.answer(independent)
    off = soften(evidence.standardized, expected, 1.0, sparse=True, noise=evidence.noise) - expected
    return 2 * float(max(np.maximum(off, 0.0).sum(), np.maximum(-off, 0.0).sum())) * evidence.stddev
