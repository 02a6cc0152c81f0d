"""Measure what a plan says: in one round, or in several between which a selection decides."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.public.release import Measurements
from mechanisms.selection.selections import method_of
from mechanisms.sensitive.measurement import measure_persons
from pipeline.measuring.fitted_models import Fit
from pipeline.measuring.selection_context import AdaptiveRun, MeasurementContext


def measure_plan(rounds: MeasurementContext, *, fit: Fit) -> Measurements:
    """Measure what a plan says, in one round or in several.

    Guarantee: the answers and the choices together are (ε, δ)-DP for the plan's unit and neighbouring relation. Between
        rounds only kept answers and public facts are read, so that an interrupted run goes on with the same choices.
    Args:
        fit: a model of what is known so far, for methods that choose.
    """
    persons = measure_persons(rounds.table, rounds.ledger, rounds.source, answers_dir=rounds.folder)
    rounds.folder.mkdir(mode=0o700, exist_ok=True)
    steps = AdaptiveRun(rounds, rounds.ledger.plan, fit)
    method_of(steps.plan.method).run(steps)
    return replace(steps.measurements, persons=persons)
