"""Models between rounds: what a selection is handed to see how the answers so far hang together; post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.accounting.plan import Plan
from mechanisms.public.candidates import Expected
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.release import Measurements
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.selection.selections import method_of
from synthesis.contract import Synthesizer
from synthesis.independent import independent_marginals
from synthesis.pgm.graphical_model import GraphicalModel, fit_model
from synthesis.pgm.junction_tree import still_small
from synthesis.pgm.model_settings import ModelSettings


@dataclass
class Fit:
    """Models of what was measured so far: graphical ones, each fit started from the one before, or independent columns.

    Attributes:
        settings: of the graphical model; None: independent columns, for methods that look at one-way marginals alone.
        zeros: combinations that cannot occur.
        last: the graphical model fitted last.
    """

    settings: ModelSettings | None
    zeros: tuple[Zeros, ...] = ()
    last: GraphicalModel | None = None

    def __call__(self, measurements: Measurements) -> Expected:
        """The marginals of a model of the measurements."""
        if self.settings is None:
            return independent_marginals(measurements)
        self.last = fit_model(measurements, self.settings, impossible=self.zeros, start=self.last)
        return self.last.marginal

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        if self.settings is None:
            return list(candidates) if sum(domain.shape(domain.names)) <= limit else []
        small = still_small(domain, [*measured, *(c for c, _ in self.zeros)], candidates, limit)
        fitting = [c for c, keeps in zip(candidates, small, strict=True) if keeps]
        return [c for c in fitting if self.last is None or self.last.answerable(c)]


def build_fit(synthesis: Synthesizer, plan: Plan, zeros: tuple[Zeros, ...] = ()) -> Fit:
    """The model that the plan's method asks for: independent columns, or a graphical model of all answers."""
    return Fit(synthesis.model_settings if method_of(plan.method).graphical else None, zeros)
