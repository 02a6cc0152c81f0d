"""Models between rounds: what a selection is handed to see how the answers so far hang together; post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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


class Fit(Protocol):
    """Models of what was measured so far; post-processing."""

    def __call__(self, measurements: Measurements) -> Expected:
        """The marginals of a model of the measurements."""
        ...

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        """The candidates that the model fitted last can answer, and with which it has at most `limit` cells."""
        ...


class IndependentFit:
    """Independent columns: for methods that look at one-way marginals alone."""

    def __call__(self, measurements: Measurements) -> Expected:
        return independent_marginals(measurements)

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        return list(candidates) if sum(domain.shape(domain.names)) <= limit else []


@dataclass
class PgmFit:
    """A graphical model of all answers, each fit started from the one before.

    Attributes:
        settings: of the model.
        zeros: combinations that cannot occur.
        last: the model fitted last.
    """

    settings: ModelSettings
    zeros: tuple[Zeros, ...] = ()
    last: GraphicalModel | None = None

    def __call__(self, measurements: Measurements) -> Expected:
        self.last = fit_model(measurements, self.settings, impossible=self.zeros, start=self.last)
        return self.last.marginal

    def possible(
        self, domain: Domain, measured: Sequence[Clique], candidates: Sequence[Clique], limit: int
    ) -> list[Clique]:
        small = still_small(domain, [*measured, *(c for c, _ in self.zeros)], candidates, limit)
        fitting = [c for c, keeps in zip(candidates, small, strict=True) if keeps]
        return [c for c in fitting if self.last is None or self.last.answerable(c)]


def build_fit(synthesis: Synthesizer, plan: Plan, zeros: tuple[Zeros, ...] = ()) -> Fit:
    """The model that the plan's method asks for: independent columns, or a graphical model of all answers."""
    if not method_of(plan.method).graphical:
        return IndependentFit()
    return PgmFit(synthesis.model_settings, zeros)
